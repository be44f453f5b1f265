# SPDX-License-Identifier: BSD-2-Clause
# Load generator with data check, and the least a target can do: the ceiling of a machine.
if HAVE_LIBISCSI
check_PROGRAMS += tests/perf/iscsi-load tests/perf/null-iscsi
tests_perf_iscsi_load_SOURCES = tests/perf/iscsi-load.c tests/perf/load-lib.c \
	tests/perf/load-raw.c tests/perf/load-login.c tests/perf/load.h tests/perf/load-raw.h
tests_perf_iscsi_load_LDADD = base/libbase.a -liscsi $(ISAL_LIBS)
bench_needs = tests/perf/iscsi-load$(EXEEXT) tests/perf/null-iscsi$(EXEEXT)
endif

# Side by side with a server that does nothing and with tgt; see docs/performance.md.
bench: evtgtd$(EXEEXT) $(bench_needs)
	$(srcdir)/tests/perf/bench --build .
.PHONY: bench
# What bench makes of its measurements.
TESTS += tests/perf/selftest
EXTRA_DIST += tests/perf/selftest tests/perf/bench tests/perf/benchlib.py tests/perf/benchparts.py \
	tests/perf/benchcosts.py tests/perf/benchplot.py

# The compressed RAM store alone, beside the kernel's zram.
check_PROGRAMS += tests/perf/zram-bench
tests_perf_zram_bench_LDADD = backends/libbackends.a base/libbase.a $(BACKENDS_LIBS) $(BASE_LIBS)
