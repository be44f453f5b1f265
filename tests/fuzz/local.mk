# SPDX-License-Identifier: BSD-2-Clause
# libFuzzer targets: tests/fuzz/fuzz_NAME.c, corpus in tests/fuzz/corpus/fuzz_NAME/.
# Built by `./configure CC=clang --enable-fuzzers && make fuzz-programs`; run by tests/fuzz/run.
FUZZ_LIBS = target/libtarget.a conf/libconf.a scsi/libscsi.a backends/libbackends.a \
	base/libbase.a $(BACKENDS_LIBS) $(BASE_LIBS)
FUZZER_FLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
FUZZ_TARGETS =

FUZZ_TARGETS += tests/fuzz/fuzz_cdb
tests_fuzz_fuzz_cdb_SOURCES = tests/fuzz/fuzz_cdb.c
tests_fuzz_fuzz_cdb_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_cdb_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_text
tests_fuzz_fuzz_text_SOURCES = tests/fuzz/fuzz_text.c
tests_fuzz_fuzz_text_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_text_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_textstate
tests_fuzz_fuzz_textstate_SOURCES = tests/fuzz/fuzz_textstate.c
tests_fuzz_fuzz_textstate_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_textstate_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_pdu
tests_fuzz_fuzz_pdu_SOURCES = tests/fuzz/fuzz_pdu.c
tests_fuzz_fuzz_pdu_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_pdu_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_conf
tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c
tests_fuzz_fuzz_conf_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_conf_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_bundle
tests_fuzz_fuzz_bundle_SOURCES = tests/fuzz/fuzz_bundle.c
tests_fuzz_fuzz_bundle_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_bundle_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_admin
tests_fuzz_fuzz_admin_SOURCES = tests/fuzz/fuzz_admin.c
tests_fuzz_fuzz_admin_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_admin_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_isns
tests_fuzz_fuzz_isns_SOURCES = tests/fuzz/fuzz_isns.c
tests_fuzz_fuzz_isns_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_isns_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_login
tests_fuzz_fuzz_login_SOURCES = tests/fuzz/fuzz_login.c
tests_fuzz_fuzz_login_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_login_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_iet
tests_fuzz_fuzz_iet_SOURCES = tests/fuzz/fuzz_iet.c tests/fuzz/foreign.h
tests_fuzz_fuzz_iet_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_iet_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_lio
tests_fuzz_fuzz_lio_SOURCES = tests/fuzz/fuzz_lio.c tests/fuzz/foreign.h
tests_fuzz_fuzz_lio_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_lio_LDFLAGS = $(FUZZER_FLAGS)

FUZZ_TARGETS += tests/fuzz/fuzz_tgt
tests_fuzz_fuzz_tgt_SOURCES = tests/fuzz/fuzz_tgt.c tests/fuzz/foreign.h
tests_fuzz_fuzz_tgt_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_tgt_LDFLAGS = $(FUZZER_FLAGS)

if FUZZERS
check_PROGRAMS += $(FUZZ_TARGETS)
endif
# Only what tests/fuzz/run needs.
fuzz-programs: $(FUZZ_TARGETS)
.PHONY: fuzz-programs
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/run
