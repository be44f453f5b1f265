# UNIT_TESTS += tests/unit/test-NAME; tests_unit_test_NAME_LDADD = $(UNIT_LIBS)
