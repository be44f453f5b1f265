/* SPDX-License-Identifier: BSD-2-Clause */
/* Units in compressed memory, for the admin socket.  Main only. */
#ifndef TARGET_APPLY_ZRAM_H
#define TARGET_APPLY_ZRAM_H

#include "target/model.h"

bool apply_is_zram(const struct store *s);

/* Settings of such a unit; texts are borrowed. */
struct apply_zram_view {
    const char *name, *algorithm;
    unsigned level, chunk_size;
    uint64_t mem_limit;
};
void apply_zram_view(const struct store *s, struct apply_zram_view *v);
/* Its counters, as be_each_counter. */
void apply_zram_counters(const struct store *s,
                         void (*fn)(void *arg, const char *group, const char *name, uint64_t value),
                         void *arg);
/* The limit of all of them together, as it is configured; 0: not said. */
uint64_t apply_zram_limit(void);

struct apply_zram_work {
    const char *recompress; /* the codec; NULL: compaction */
    bool huge, idle;
    unsigned idle_s, max_ms;
    /* out */
    bool again;
    uint64_t seen, done, gained;
};
/* A piece of background work, by a helper; err "": it was done. */
void apply_zram_work(struct store *s, const struct apply_zram_work *work,
                     void (*done)(void *arg, const char *err, const struct apply_zram_work *work),
                     void *arg);

#endif
