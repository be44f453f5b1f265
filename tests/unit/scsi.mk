# UNIT_TESTS += tests/unit/test-NAME; tests_unit_test_NAME_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-scsi-dispatch
tests_unit_test_scsi_dispatch_LDADD = $(UNIT_LIBS)
