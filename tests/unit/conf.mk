UNIT_TESTS += tests/unit/test-conf
tests_unit_test_conf_LDADD = $(UNIT_LIBS)
