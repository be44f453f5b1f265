# UNIT_TESTS += tests/unit/test-NAME; tests_unit_test_NAME_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-keys
tests_unit_test_keys_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-nego
tests_unit_test_nego_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-name
tests_unit_test_name_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-acl
tests_unit_test_acl_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-login
tests_unit_test_login_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-discovery
tests_unit_test_discovery_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test-portal
tests_unit_test_portal_LDADD = $(UNIT_LIBS)
EXTRA_DIST += tests/unit/login_fake.h
