/* SPDX-License-Identifier: BSD-2-Clause */
/* Log: escaping, rate, areas, one line an event; counters. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "tests/unit/unit.h"

static void
test_escape(void)
{
    char b[128];
    CU_ASSERT_STRING_EQUAL(log_esc(b, sizeof b, "iqn.2001-04.com.example:x"),
                           "iqn.2001-04.com.example:x");
    CU_ASSERT_STRING_EQUAL(log_esc(b, sizeof b, ""), "");
    CU_ASSERT_STRING_EQUAL(log_esc(b, sizeof b, "a b\n\"'\\\x7f\xc3\xa4"),
                           "a\\x20b\\x0a\\x22\\x27\\x5c\\x7f\\xc3\\xa4");
    CU_ASSERT_STRING_EQUAL(log_escn(b, sizeof b, "\0x", 2), "\\x00x");
    CU_ASSERT_STRING_EQUAL(LOG_ESC("a\tb"), "a\\x09b");
    CU_ASSERT_STRING_EQUAL(LOG_TEXT("it said \"no\"\n"), "it said \\x22no\\x22\\x0a");
}

static void
test_escape_cut(void)
{
    char b[16];
    CU_ASSERT_STRING_EQUAL(log_esc(b, 8, "1234567"), "1234567"); /* just fits */
    CU_ASSERT_STRING_EQUAL(log_esc(b, 8, "12345678"), "1234...");
    CU_ASSERT_STRING_EQUAL(log_esc(b, 8, "12\n\n"), "12...");
    CU_ASSERT_STRING_EQUAL(log_esc(b, 8, "\n\n"), "\\x0a..."); /* no half escape */
    CU_ASSERT_STRING_EQUAL(log_esc(b, 7, "\n\n"), "...");
    for (size_t size = 1; size < 12; size++) {
        memset(b, 'Z', sizeof b);
        log_esc(b, size, "a\x01zzzzzzzzzzzzzzzzzzzzz");
        CU_ASSERT(strlen(b) < size);
        CU_ASSERT_EQUAL(b[size], 'Z');
    }
    b[0] = 'q';
    log_esc(b, 0, "abc");
    CU_ASSERT_EQUAL(b[0], 'q');
}

static void
test_rate(void)
{
    struct log_rate r = {0};
    uint32_t sup = 99;
    clock_fake_set(1000000);
    for (int i = 0; i < 5; i++) {
        CU_ASSERT_TRUE(log_rate_ok(&r, &sup));
        CU_ASSERT_EQUAL(sup, 0);
    }
    for (int i = 0; i < 7; i++)
        CU_ASSERT_FALSE(log_rate_ok(&r, &sup));
    clock_fake_advance(9999000);
    CU_ASSERT_FALSE(log_rate_ok(&r, &sup));
    clock_fake_advance(1000);
    CU_ASSERT_TRUE(log_rate_ok(&r, &sup));
    CU_ASSERT_EQUAL(sup, 8);
    CU_ASSERT_TRUE(log_rate_ok(&r, &sup));
    CU_ASSERT_EQUAL(sup, 0);
    clock_fake_off();
}

static void
test_areas(void)
{
    CU_ASSERT_EQUAL(log_set_debug("net,scsi"), 0);
    CU_ASSERT_TRUE(log_debug_on(LA_NET));
    CU_ASSERT_TRUE(log_debug_on(LA_SCSI));
    CU_ASSERT_FALSE(log_debug_on(LA_LOGIN));
    CU_ASSERT_EQUAL(log_set_debug("login,nosuch"), -EINVAL);
    CU_ASSERT_EQUAL(log_set_debug("login,"), -EINVAL);
    CU_ASSERT_EQUAL(log_set_debug(",login"), -EINVAL);
    CU_ASSERT_TRUE(log_debug_on(LA_NET)); /* nothing changed */
    CU_ASSERT_FALSE(log_debug_on(LA_LOGIN));
    CU_ASSERT_EQUAL(log_set_debug("all"), 0);
    for (unsigned a = 0; a < LA_COUNT; a++)
        CU_ASSERT_TRUE(log_debug_on((enum log_area)a));
    CU_ASSERT_EQUAL(log_set_debug(""), 0);
    CU_ASSERT_FALSE(log_debug_on(LA_NET));
}

/* What goes to stderr while fn runs. */
static void
capture(void (*fn)(void), char *out, size_t size)
{
    int fds[2], saved = dup(STDERR_FILENO);
    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
    fn();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t n = read(fds[0], out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    close(fds[0]);
}

static void
emit(void)
{
    char big[3000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    log_event(LL_WARN, LA_LOGIN, "refused peer=%s\nerror daemon: forged", "a");
    log_event(LL_DEBUG, LA_NET, "not shown");
    log_debug(LA_NET, "not shown n=%d", 1);
    log_event(LL_ERROR, LA_DAEMON, "%s", big);
}

static void
test_line(void)
{
    static char out[8192];
    capture(emit, out, sizeof out);
    static const char first[] =
        "warn login: refused peer=a?error daemon: forged\nerror daemon: xxx";
    CU_ASSERT_EQUAL(strncmp(out, first, sizeof first - 1), 0);
    CU_ASSERT(strlen(out) < 1100);
    CU_ASSERT_EQUAL(strcmp(out + strlen(out) - 4, "...\n"), 0);
}

static void
emit_one(void)
{
    log_open("test", false);
    log_event(LL_WARN, LA_NET, "event n=%d", 7);
}

/* A file gets the time, the journal the priority, a pipe neither. */
static void
test_sinks(void)
{
    char out[256], path[] = "/tmp/evtgt-log-XXXXXX", stream[64];
    struct stat st;
    int saved = dup(STDERR_FILENO), fd = mkstemp(path);

    CU_ASSERT_FATAL(fd >= 0 && saved >= 0);
    dup2(fd, STDERR_FILENO);
    emit_one();
    dup2(saved, STDERR_FILENO);
    ssize_t n = pread(fd, out, sizeof out - 1, 0);
    out[n > 0 ? n : 0] = '\0';
    unlink(path);
    close(fd);
    CU_ASSERT_EQUAL(strcspn(out, "T"), 10);
    CU_ASSERT_STRING_EQUAL(out + 23, "Z warn net: event n=7\n");

    capture(emit_one, out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "warn net: event n=7\n");

    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    CU_ASSERT_EQUAL_FATAL(fstat(fds[1], &st), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    dup2(fds[1], STDERR_FILENO);
    emit_one();
    dup2(saved, STDERR_FILENO);
    unsetenv("JOURNAL_STREAM");
    n = read(fds[0], out, sizeof out - 1);
    out[n > 0 ? n : 0] = '\0';
    CU_ASSERT_STRING_EQUAL(out, "<4>warn net: event n=7\n");
    close(fds[0]);
    close(fds[1]);
    close(saved);
    capture(emit_one, out, sizeof out); /* as it was */
}

static void *
count_on_thread(void *arg)
{
    (void)arg;
    counter_attach();
    counter_add(CT_TMF, 5);
    counter_add(CT_TMF, 6);
    counter_detach();
    counter_add(CT_TMF, 100); /* without a cell */
    return NULL;
}

static void
test_counters(void)
{
    pthread_t t[2];
    uint64_t before = counter_sum(CT_TMF);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, count_on_thread, NULL), 0);
    counter_add(CT_TMF, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    CU_ASSERT_EQUAL(counter_sum(CT_TMF) - before, 223);
    for (unsigned c = 0; c < CT_COUNT; c++) {
        const char *name = counter_name((enum counter)c);
        CU_ASSERT_PTR_NOT_NULL_FATAL(name);
        CU_ASSERT_EQUAL(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"escaping", test_escape},
        {"escaping cut to size", test_escape_cut},
        {"rate", test_rate},
        {"areas", test_areas},
        {"one line an event", test_line},
        {"sinks", test_sinks},
        {"counters", test_counters},
    };
    return UNIT_RUN("log", tests);
}
