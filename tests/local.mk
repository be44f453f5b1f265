# SPDX-License-Identifier: BSD-2-Clause
# CUnit programs: one module each, `tests/unit/test-NAME.c`; add a name here.
UNIT_LIBS = target/libtarget.a conf/libconf.a scsi/libscsi.a backends/libbackends.a base/libbase.a \
	-lcunit $(BACKENDS_LIBS) $(BASE_LIBS)
UNIT_TESTS =
include tests/unit/base.mk
include tests/unit/backends.mk
include tests/unit/scsi.mk
include tests/unit/target.mk
include tests/unit/conf.mk
if HAVE_CUNIT
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif

# House rules and layers.
TESTS += tests/lint/layers tests/lint/house tests/lint/docs tests/lint/log
# What ./check makes of its suites' output.
TESTS += tests/lib/selftest
EXTRA_DIST += tests/lib/selftest tests/lib/reasons.py tests/lib/schedule.py tests/lint/layers tests/lint/house tests/lint/docs tests/lint/log tests/run-all \
	tests/lib/ext4.py tests/lib/make-check tests/lib/distcheck tests/lib/quickstart-check .ci/run

# A real initiator for quickstart and the initiator tests.
if HAVE_LIBISCSI
check_PROGRAMS += tests/initiator/prove
tests_initiator_prove_LDADD = -liscsi
check_PROGRAMS += tests/powerloss/promise
tests_powerloss_promise_LDADD = -liscsi
endif

# Suites that ./check runs (tests/run-all) and what they need.
EXTRA_DIST += tests/conformance/run tests/conformance/expected-skips tests/conformance/expected-fails tests/initiator/build-vm \
	tests/initiator/boot tests/initiator/bootdisk.py tests/initiator/bootmenu.py \
	tests/initiator/chap tests/initiator/guest-init tests/initiator/guest-open-iscsi.sh \
	tests/initiator/qemu \
	tests/initiator/vm tests/initiator/vm-run tests/isolation/run tests/login-storm/run tests/perf/verify \
	tests/powerloss/kill9 tests/powerloss/run
include tests/perf/local.mk
include tests/wire/local.mk
include tests/fuzz/local.mk
include tests/admin/local.mk
include tests/isns/local.mk
include tests/soak/local.mk
