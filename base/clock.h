/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only source of time.  Monotonic; tests move it with clock_fake_*.  Timers that must follow
 * a faked clock are made with base/worker.h's worker_timer.  Any thread.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t clock_ms(void);
uint64_t clock_us(void);

struct timespec;
/* The moment `ms` from now as pthread_cond_timedwait takes it; never faked. */
void clock_deadline(struct timespec *ts, unsigned ms);

/* The wall clock for people, "2026-11-30T15:04:05.678Z", into buf (25 bytes are enough); never
 * faked. Returns the length. */
size_t clock_stamp(char *buf, size_t size);

/* Blocks the calling thread for real time: helper threads and main before its loop only. */
void clock_pause_ms(unsigned ms);

/* How long who finds a lock taken looks again before it says so: a daemon that was killed keeps its
 * descriptors until the kernel has taken its ring apart, some milliseconds after it is gone. */
#define LOCK_PATIENCE_MS 500u
#define LOCK_LOOK_MS     20u

/* Unit tests: from now on time stands at `us` and moves only by clock_fake_advance. */
void clock_fake_set(uint64_t us);
void clock_fake_advance(uint64_t us);
void clock_fake_off(void);
bool clock_is_fake(void);

#endif
