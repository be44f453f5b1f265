# SPDX-License-Identifier: BSD-2-Clause
UNIT_TESTS += tests/unit/test-conf tests/unit/test-conf-doc tests/unit/test-conf-bundle tests/unit/test-conf-write tests/unit/test-conf-errors tests/unit/test-syntax-errors tests/unit/test-apply-diff tests/unit/test-apply-view tests/unit/test-model
tests_unit_test_conf_LDADD = $(UNIT_LIBS)
tests_unit_test_conf_doc_LDADD = $(UNIT_LIBS)
tests_unit_test_conf_bundle_LDADD = $(UNIT_LIBS)
tests_unit_test_conf_write_LDADD = $(UNIT_LIBS)
tests_unit_test_conf_errors_LDADD = $(UNIT_LIBS)
tests_unit_test_syntax_errors_LDADD = $(UNIT_LIBS)
tests_unit_test_model_LDADD = $(UNIT_LIBS)
tests_unit_test_apply_diff_LDADD = $(UNIT_LIBS)
tests_unit_test_apply_view_LDADD = $(UNIT_LIBS)
EXTRA_DIST += tests/unit/conf_given.h
UNIT_TESTS += tests/unit/test-zram-kernel
tests_unit_test_zram_kernel_SOURCES = tests/unit/test-zram-kernel.c tools/zram_kernel.c tools/zram_kernel.h
tests_unit_test_zram_kernel_LDADD = $(UNIT_LIBS)
