# SPDX-License-Identifier: BSD-2-Clause
# base/ alone: these link no other room.
BASE_UNIT_LIBS = base/libbase.a -lcunit $(BASE_LIBS)
EXTRA_DIST += tests/unit/unit.h
UNIT_TESTS += tests/unit/test-cur
tests_unit_test_cur_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-crc32c
tests_unit_test_crc32c_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-log
tests_unit_test_log_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-pool
tests_unit_test_pool_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-budget
tests_unit_test_budget_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-helper
tests_unit_test_helper_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-worker
tests_unit_test_worker_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-disk
tests_unit_test_disk_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-opener
tests_unit_test_opener_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-cstore
tests_unit_test_cstore_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-dirs
tests_unit_test_dirs_LDADD = $(BASE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-guard
tests_unit_test_guard_LDADD = $(BASE_UNIT_LIBS)
