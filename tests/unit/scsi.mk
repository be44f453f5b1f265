# SPDX-License-Identifier: BSD-2-Clause
# scsi/ and what is below: these link no other room.
SCSI_UNIT_LIBS = scsi/libscsi.a backends/libbackends.a base/libbase.a -lcunit $(BACKENDS_LIBS) $(BASE_LIBS)
UNIT_TESTS += tests/unit/test-scsi-dispatch
tests_unit_test_scsi_dispatch_LDADD = $(SCSI_UNIT_LIBS)
# Block commands: the spy sits between scsi/ and the backend.
SBC_SPY = -Wl,--wrap=be_submit
UNIT_TESTS += tests/unit/test-sbc-rw
tests_unit_test_sbc_rw_LDADD = $(SCSI_UNIT_LIBS)
tests_unit_test_sbc_rw_LDFLAGS = $(AM_LDFLAGS) $(SBC_SPY)
UNIT_TESTS += tests/unit/test-sbc-verify
tests_unit_test_sbc_verify_LDADD = $(SCSI_UNIT_LIBS)
tests_unit_test_sbc_verify_LDFLAGS = $(AM_LDFLAGS) $(SBC_SPY)
UNIT_TESTS += tests/unit/test-sbc-unmap
tests_unit_test_sbc_unmap_LDADD = $(SCSI_UNIT_LIBS)
tests_unit_test_sbc_unmap_LDFLAGS = $(AM_LDFLAGS) $(SBC_SPY)
UNIT_TESTS += tests/unit/test-sbc-misc
tests_unit_test_sbc_misc_LDADD = $(SCSI_UNIT_LIBS)
tests_unit_test_sbc_misc_LDFLAGS = $(AM_LDFLAGS) $(SBC_SPY)
UNIT_TESTS += tests/unit/test-sbc-model
tests_unit_test_sbc_model_LDADD = $(SCSI_UNIT_LIBS)
EXTRA_DIST += tests/unit/scsi_fake.h tests/unit/sbc_cdb.h tests/unit/sbc_file.h tests/unit/sbc_spy.h
UNIT_TESTS += tests/unit/test-scsi-inquiry
tests_unit_test_scsi_inquiry_LDADD = $(SCSI_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-scsi-mode
tests_unit_test_scsi_mode_LDADD = $(SCSI_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-scsi-task
tests_unit_test_scsi_task_LDADD = $(SCSI_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-scsi-threads
tests_unit_test_scsi_threads_LDADD = $(SCSI_UNIT_LIBS)
