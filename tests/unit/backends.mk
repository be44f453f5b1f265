# SPDX-License-Identifier: BSD-2-Clause
# Backends and layers: each program runs its cases with both disk engines.
BE_UNIT_LIBS = backends/libbackends.a base/libbase.a -lcunit $(BACKENDS_LIBS) $(BASE_LIBS)
BE_UNIT_FIXTURE = tests/unit/be_unit.c tests/unit/be_unit.h

UNIT_TESTS += tests/unit/test-backend
tests_unit_test_backend_SOURCES = tests/unit/test-backend.c $(BE_UNIT_FIXTURE)
tests_unit_test_backend_LDADD = $(BE_UNIT_LIBS)

UNIT_TESTS += tests/unit/test-layers
tests_unit_test_layers_SOURCES = tests/unit/test-layers.c $(BE_UNIT_FIXTURE)
tests_unit_test_layers_LDADD = $(BE_UNIT_LIBS)

UNIT_TESTS += tests/unit/test-file
tests_unit_test_file_SOURCES = tests/unit/test-file.c $(BE_UNIT_FIXTURE)
tests_unit_test_file_LDADD = $(BE_UNIT_LIBS)


# Includes backends/fdio.c over a scripted disk engine.
UNIT_TESTS += tests/unit/test-fdio
tests_unit_test_fdio_SOURCES = tests/unit/test-fdio.c $(BE_UNIT_FIXTURE)
tests_unit_test_fdio_LDADD = $(BE_UNIT_LIBS)

# Needs loop devices; skipped (77) without.
UNIT_TESTS += tests/unit/test-block
tests_unit_test_block_SOURCES = tests/unit/test-block.c $(BE_UNIT_FIXTURE)
tests_unit_test_block_LDADD = $(BE_UNIT_LIBS)

# Includes tests/lib/replay.c.
UNIT_TESTS += tests/unit/test-record
tests_unit_test_record_SOURCES = tests/unit/test-record.c $(BE_UNIT_FIXTURE)
tests_unit_test_record_LDADD = $(BE_UNIT_LIBS)

# Workers submit while main opens, probes and closes: for ThreadSanitizer.
UNIT_TESTS += tests/unit/test-be-threads
tests_unit_test_be_threads_LDADD = $(BE_UNIT_LIBS)

# Starts the opener before any thread and drops root: skipped (77) without root.
UNIT_TESTS += tests/unit/test-be-opener
tests_unit_test_be_opener_LDADD = $(BE_UNIT_LIBS)

check_PROGRAMS += tests/lib/replay
UNIT_TESTS += tests/unit/test-store-ident
tests_unit_test_store_ident_LDADD = $(BE_UNIT_LIBS)

# The compressed RAM store.
UNIT_TESTS += tests/unit/test-zram-codec
tests_unit_test_zram_codec_LDADD = $(BE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-zram-alloc
tests_unit_test_zram_alloc_LDADD = $(BE_UNIT_LIBS)
UNIT_TESTS += tests/unit/test-zram-store
tests_unit_test_zram_store_LDADD = $(BE_UNIT_LIBS)
# For ThreadSanitizer.
UNIT_TESTS += tests/unit/test-zram-threads
tests_unit_test_zram_threads_LDADD = $(BE_UNIT_LIBS)

UNIT_TESTS += tests/unit/test-zram
tests_unit_test_zram_SOURCES = tests/unit/test-zram.c $(BE_UNIT_FIXTURE)
tests_unit_test_zram_LDADD = $(BE_UNIT_LIBS)
