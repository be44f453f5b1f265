/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One event, one line: `level area: event key=value ...`.  To stderr (foreground) or syslog.
 * Any thread; never blocks on a lock that is held across I/O of a LUN.  Nothing is logged per
 * command.  A text that a peer supplied goes through log_esc (control characters, quotes,
 * backslashes, blanks and bytes >= 0x7f become \xHH), and what a peer can provoke goes through
 * a log_rate.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LL_ERROR, LL_WARN, LL_NOTICE, LL_INFO, LL_DEBUG };

/* Areas, for `-d AREAS`: LL_DEBUG lines are dropped unless their area is on. */
enum log_area {
    LA_DAEMON,
    LA_CONF,
    LA_ADMIN,
    LA_NET,
    LA_LOGIN,
    LA_SESSION,
    LA_SCSI,
    LA_BACKEND,
    LA_WORKER,
    LA_COUNT
};

struct log_rate {
    uint64_t window_start_ms;
    uint32_t seen; /* in this window */
    uint32_t suppressed;
};

/* Sink: stderr when `to_syslog` is false; there lines for a regular file begin with the time in
 * UTC, those for systemd's journal with the priority, as sd-daemon(3) has it. Before threads. */
void log_open(const char *ident, bool to_syslog);
/* `areas`: comma list of area names, or "all". 0, or -EINVAL with nothing changed. */
int log_set_debug(const char *areas);
bool log_debug_on(enum log_area area);

void log_event(enum log_level level, enum log_area area, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* One LL_ERROR line, then abort(): a broken invariant of our own, or no memory for a small object;
 * never for anything a peer or a device can do. */
void log_abort(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#define log_debug(area, ...)                                                                      \
    do {                                                                                          \
        if (log_debug_on(area))                                                                   \
            log_event(LL_DEBUG, (area), __VA_ARGS__);                                             \
    } while (0)

/* Escaped copy of s (len bytes), NUL-terminated, cut to size with a trailing "..."; returns buf. */
const char *log_escn(char *buf, size_t size, const void *s, size_t len);
const char *log_esc(char *buf, size_t size, const char *s);
#define LOG_ESC(s) log_esc((char[256]){0}, 256, (s))
/* The same for what the format puts in double quotes: blanks stay. */
const char *log_text(char *buf, size_t size, const char *s);
#define LOG_TEXT(s) log_text((char[512]){0}, 512, (s))

/* True when this event may be logged now: at most 5 in 10 s; the first line after a pause carries
 * suppressed=N, which the caller prints from *suppressed when it is not 0. Owner's thread. */
bool log_rate_ok(struct log_rate *r, uint32_t *suppressed);

#endif
