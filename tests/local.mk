# CUnit programs: one module each, `tests/unit/test-NAME.c`; add a name here.
UNIT_LIBS = target/libtarget.a conf/libconf.a scsi/libscsi.a backends/libbackends.a base/libbase.a \
	-lcunit $(BASE_LIBS)
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
