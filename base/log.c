/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log.  A line is made in a buffer on the stack and written by one write(2) or syslog(3), so
 * lines of several threads do not mix and no lock of ours is held meanwhile.  Any thread.
 */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_MAX_BYTES 1024
#define RATE_WINDOW_MS 10000u
#define RATE_LINES     5u

static const char *const level_names[] = {"error", "warn", "notice", "info", "debug"};
static const int level_prio[] = {LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG};
static const char *const area_names[LA_COUNT] = {
    [LA_DAEMON] = "daemon", [LA_CONF] = "conf",       [LA_ADMIN] = "admin",
    [LA_NET] = "net",       [LA_LOGIN] = "login",     [LA_SESSION] = "session",
    [LA_SCSI] = "scsi",     [LA_BACKEND] = "backend", [LA_WORKER] = "worker",
};

/* Set before threads. */
static bool use_syslog;
static enum { FORM_PLAIN, FORM_FILE, FORM_JOURNAL } form;

static atomic_uint debug_mask;

/* What adds the time: a terminal has somebody before it, the journal does it itself, a file not. */
static void
find_form(void)
{
    const char *js = getenv("JOURNAL_STREAM"); /* "device:inode" of the stream to the journal */
    char here[64];
    struct stat st;

    form = FORM_PLAIN;
    if (fstat(STDERR_FILENO, &st) < 0)
        return;
    snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    if (S_ISREG(st.st_mode))
        form = FORM_FILE;
    else if (js && strcmp(js, here) == 0)
        form = FORM_JOURNAL;
}

void
log_open(const char *ident, bool to_syslog)
{
    static char name[64]; /* openlog keeps the pointer */
    snprintf(name, sizeof name, "%s", ident);
    if (use_syslog)
        closelog();
    use_syslog = to_syslog;
    find_form();
    if (to_syslog)
        openlog(name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

/* The mask bit of one name of n bytes, ~0u for "all", 0 when there is no such area. */
static unsigned
area_bit(const char *s, size_t n)
{
    if (n == 3 && memcmp(s, "all", 3) == 0)
        return ~0u;
    for (unsigned i = 0; i < LA_COUNT; i++)
        if (strlen(area_names[i]) == n && memcmp(area_names[i], s, n) == 0)
            return 1u << i;
    return 0;
}

int
log_set_debug(const char *areas)
{
    unsigned mask = 0;
    const char *p = areas;
    while (*p) {
        size_t n = strcspn(p, ",");
        unsigned bit = area_bit(p, n);
        if (bit == 0)
            return -EINVAL;
        mask |= bit;
        p += n;
        if (*p == ',' && *++p == '\0')
            return -EINVAL;
    }
    atomic_store_explicit(&debug_mask, mask, memory_order_relaxed);
    return 0;
}

bool
log_debug_on(enum log_area area)
{
    return (atomic_load_explicit(&debug_mask, memory_order_relaxed) >> area & 1u) != 0;
}

static size_t
prefix(char *line, size_t size, enum log_level level)
{
    if (form == FORM_JOURNAL) {
        int n = snprintf(line, size, "<%d>", level_prio[level]);
        return n > 0 ? (size_t)n : 0;
    }
    size_t n = form == FORM_FILE ? clock_stamp(line, size - 1) : 0;
    if (n > 0)
        line[n++] = ' ';
    return n;
}

static void line_write(enum log_level level, enum log_area area, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void
line_write(enum log_level level, enum log_area area, const char *fmt, va_list ap)
{
    char line[LINE_MAX_BYTES];
    int saved = errno;
    size_t len = use_syslog ? 0 : prefix(line, sizeof line, level);
    int head =
        snprintf(line + len, sizeof line - len, "%s %s: ", level_names[level], area_names[area]);
    if (head > 0)
        len += (size_t)head;
    int body = vsnprintf(line + len, sizeof line - len, fmt, ap);
    if (body > 0)
        len += (size_t)body;
    if (len > sizeof line - 2) { /* room for the newline */
        len = sizeof line - 2;
        memcpy(line + len - 3, "...", 3);
    }
    /* one event is one line whatever was formatted in */
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    if (use_syslog) {
        line[len] = '\0';
        syslog(level_prio[level], "%s", line);
    } else {
        line[len++] = '\n';
        ssize_t n = write(STDERR_FILENO, line, len);
        (void)n; /* a log that cannot be written has nowhere to say so */
    }
    errno = saved;
}

void
log_event(enum log_level level, enum log_area area, const char *fmt, ...)
{
    if (level == LL_DEBUG && !log_debug_on(area))
        return;
    va_list ap;
    va_start(ap, fmt);
    line_write(level, area, fmt, ap);
    va_end(ap);
}

void
log_abort(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line_write(LL_ERROR, LA_DAEMON, fmt, ap);
    va_end(ap);
    abort();
}

static bool
is_plain(uint8_t c)
{
    return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\';
}

/* blanks: they stay as they are. */
static const char *
escape(char *buf, size_t size, const void *s, size_t len, bool blanks)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = s;
    size_t o = 0, cut = 0; /* cut: the last place where "..." still fits after whole characters */
    if (size == 0)
        return buf;
    for (size_t i = 0; i < len; i++) {
        size_t need = is_plain(p[i]) || (blanks && p[i] == ' ') ? 1 : 4;
        if (o + need + 1 > size) {
            size_t dots = size - 1 - cut < 3 ? size - 1 - cut : 3;
            memset(buf + cut, '.', dots);
            buf[cut + dots] = '\0';
            return buf;
        }
        if (need == 1) {
            buf[o] = (char)p[i];
        } else {
            buf[o] = '\\';
            buf[o + 1] = 'x';
            buf[o + 2] = hex[p[i] >> 4];
            buf[o + 3] = hex[p[i] & 15];
        }
        o += need;
        if (o + 4 <= size)
            cut = o;
    }
    buf[o] = '\0';
    return buf;
}

const char *
log_escn(char *buf, size_t size, const void *s, size_t len)
{
    return escape(buf, size, s, len, false);
}

const char *
log_text(char *buf, size_t size, const char *s)
{
    return escape(buf, size, s, strlen(s), true);
}

const char *
log_esc(char *buf, size_t size, const char *s)
{
    return log_escn(buf, size, s, strlen(s));
}

bool
log_rate_ok(struct log_rate *r, uint32_t *suppressed)
{
    uint64_t now = clock_ms();
    *suppressed = 0;
    if (r->seen == 0 || now - r->window_start_ms >= RATE_WINDOW_MS) {
        r->window_start_ms = now;
        r->seen = 0;
        *suppressed = r->suppressed;
        r->suppressed = 0;
    }
    if (r->seen >= RATE_LINES) {
        if (r->suppressed < UINT32_MAX)
            r->suppressed++;
        return false;
    }
    r->seen++;
    return true;
}
