/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time.  CLOCK_MONOTONIC, or a value that tests move by hand.  Any thread.
 */
#include "config.h"

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static atomic_bool fake_on;
static atomic_uint_fast64_t fake_us;

uint64_t
clock_us(void)
{
    if (atomic_load_explicit(&fake_on, memory_order_relaxed))
        return atomic_load_explicit(&fake_us, memory_order_relaxed);
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

uint64_t
clock_ms(void)
{
    return clock_us() / 1000u;
}

void
clock_deadline(struct timespec *ts, unsigned ms)
{
    clock_gettime(CLOCK_REALTIME, ts);
    ts->tv_sec += (time_t)(ms / 1000u);
    ts->tv_nsec += (long)(ms % 1000u) * 1000000;
    if (ts->tv_nsec >= 1000000000) {
        ts->tv_sec++;
        ts->tv_nsec -= 1000000000;
    }
}

size_t
clock_stamp(char *buf, size_t size)
{
    struct timespec ts;
    struct tm tm;
    char ms[8];

    clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
    int k = snprintf(ms, sizeof ms, ".%03uZ", (unsigned)(ts.tv_nsec / 1000000) % 1000u);
    if (n == 0 || n + (size_t)k >= size)
        return 0;
    memcpy(buf + n, ms, (size_t)k + 1);
    return n + (size_t)k;
}

void
clock_pause_ms(unsigned ms)
{
    struct timespec ts = {.tv_sec = (time_t)(ms / 1000u), .tv_nsec = (long)(ms % 1000u) * 1000000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        continue;
}

void
clock_fake_set(uint64_t us)
{
    atomic_store(&fake_us, us);
    atomic_store(&fake_on, true);
}

void
clock_fake_advance(uint64_t us)
{
    atomic_fetch_add(&fake_us, us);
}

void
clock_fake_off(void)
{
    atomic_store(&fake_on, false);
}

bool
clock_is_fake(void)
{
    return atomic_load_explicit(&fake_on, memory_order_relaxed);
}
