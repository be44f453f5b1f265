# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += base/libbase.a
base_libbase_a_SOURCES = base/buf.c base/budget.c base/clock.c base/counter.c base/crc32c.c \
	base/cstore.c base/dirs.c base/disk.c base/guard.c base/helper.c base/hostport.c base/log.c base/longopt.c \
	base/mailbox.c base/netif.c base/opener.c base/opener_do.c base/opener_granted.c \
	base/opener_permit.c base/pool.c base/privs.c base/secret.c base/worker.c \
	base/bytes.h base/cur.h base/list.h base/ref.h base/serial.h \
	base/buf.h base/budget.h base/clock.h base/counter.h base/crc32c.h base/cstore.h \
	base/dirs.h base/disk.h base/guard.h base/helper.h base/hostport.h base/log.h base/longopt.h base/netif.h \
	base/opener.h base/opener_priv.h base/poison.h base/pool.h base/privs.h base/secret.h base/spin.h base/worker.h \
	base/worker_priv.h
