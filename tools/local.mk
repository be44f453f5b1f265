# SPDX-License-Identifier: BSD-2-Clause
sbin_PROGRAMS += evtgtadm
evtgtadm_SOURCES = tools/evtgtadm.c tools/adm.h tools/call.c tools/print.c tools/tgtadm.c
evtgtadm_LDADD = conf/libconf.a base/libbase.a $(BASE_LIBS)

# The tables of the code for docs/ and for tests/lint/docs.
noinst_PROGRAMS += tools/dump
tools_dump_SOURCES = tools/dump.c
tools_dump_LDADD = target/libtarget.a scsi/libscsi.a backends/libbackends.a base/libbase.a $(BASE_LIBS)
