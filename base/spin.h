/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a worker that has nothing to do looks again at once (busy polling) or sleeps.  Waking a
 * thread that sleeps takes longer than a small command: an initiator that sends one command,
 * waits for its answer and sends the next gains a quarter where the worker is still awake.
 *
 * So a worker stays awake only where that is what happens: each spell of work was about one
 * command, and the next came within the limit.  With more commands in flight the next ones are
 * there before it could fall asleep or are worth being gathered; a slower initiator would
 * keep a core busy for nothing.  A worker that waited in vain sleeps until the gaps are short again.
 * Owner's thread; times in microseconds.
 */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_WEIGHT 8u /* how many spells of work the averages remember */

struct spin {
    uint32_t limit_us;  /* 0: never awake without work */
    uint32_t gap_sum;   /* SPIN_WEIGHT x the average pause between two spells of work */
    uint32_t cmds_sum;  /* SPIN_WEIGHT x 16 x the average number of commands in one */
    uint32_t cmds;      /* in the present one */
    uint64_t idle_from; /* the end of the last one */
};

static inline void
spin_init(struct spin *s, uint32_t limit_us)
{
    *s = (struct spin){.limit_us = limit_us, .gap_sum = limit_us * SPIN_WEIGHT * 2};
}

/* One more command has come in. */
static inline void
spin_command(struct spin *s)
{
    s->cmds++;
}

/* A spell of work begins (the loop did something) after a pause: the averages learn. */
static inline void
spin_learn(struct spin *s, uint64_t now_us)
{
    uint64_t gap = now_us - s->idle_from, most = (uint64_t)s->limit_us * 4;
    if (gap > most)
        gap = most;
    s->gap_sum += (uint32_t)gap - s->gap_sum / SPIN_WEIGHT;
    s->cmds_sum += s->cmds * 16 - s->cmds_sum / SPIN_WEIGHT;
    s->cmds = 0;
}

/* Once a loop turn, before the loop would sleep; did: this turn had work. True: look again
 * instead of sleeping. */
static inline bool
spin_turn(struct spin *s, bool did, uint64_t now_us)
{
    if (did) {
        if (s->cmds != 0)
            spin_learn(s, now_us);
        s->idle_from = now_us;
    }
    uint32_t gap = s->gap_sum / SPIN_WEIGHT, cmds16 = s->cmds_sum / SPIN_WEIGHT;
    return gap < s->limit_us && cmds16 <= 20 && cmds16 > 0 &&
           now_us - s->idle_from < s->limit_us;
}

#endif
