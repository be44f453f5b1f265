/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LUN maps: sorted, immutable, counted, shared by configuration snapshots and nexuses; and the
 * 8-byte LUN field (SAM-5 4.7).  Any thread.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/pool.h"
#include "base/ref.h"
#include "scsi/scsi.h"

struct lun_map {
    struct ref ref;
    unsigned n;
    struct lun_map_entry e[];
};

static int
by_number(const void *a, const void *b)
{
    const struct lun_map_entry *x = a, *y = b;

    return (int)x->number - (int)y->number;
}

struct lun_map *
lun_map_new(const struct lun_map_entry *e, unsigned n)
{
    if (n > LUN_MAX_NUMBER + 1)
        return NULL;
    struct lun_map *m = xcalloc(1, sizeof *m + n * sizeof m->e[0]);
    ref_init(&m->ref);
    m->n = n;
    if (n != 0) {
        memcpy(m->e, e, n * sizeof m->e[0]);
        qsort(m->e, n, sizeof m->e[0], by_number);
    }
    for (unsigned i = 0; i < n; i++) {
        if (m->e[i].number > LUN_MAX_NUMBER || (i != 0 && m->e[i].number == m->e[i - 1].number)) {
            free(m);
            return NULL;
        }
    }
    for (unsigned i = 0; i < n; i++)
        lun_get(m->e[i].lun);
    return m;
}

struct lun_map *
lun_map_get(struct lun_map *m)
{
    ref_get(&m->ref);
    return m;
}

void
lun_map_put(struct lun_map *m)
{
    if (m == NULL || !ref_put(&m->ref))
        return;
    for (unsigned i = 0; i < m->n; i++)
        lun_put(m->e[i].lun);
    free(m);
}

unsigned
lun_map_count(const struct lun_map *m)
{
    return m->n;
}

const struct lun_map_entry *
lun_map_at(const struct lun_map *m, unsigned i)
{
    return &m->e[i];
}

struct lun *
lun_map_find(const struct lun_map *m, uint16_t number)
{
    unsigned lo = 0, hi = m->n;

    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (m->e[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->n && m->e[lo].number == number ? m->e[lo].lun : NULL;
}

void
lun_encode(uint16_t number, uint8_t out[8])
{
    memset(out, 0, 8);
    /* below 256 the peripheral form: what every initiator understands */
    put_be16(out, number < 256 ? number : (uint16_t)(0x4000u | number));
}

int
lun_decode(const uint8_t in[8])
{
    for (unsigned i = 2; i < 8; i++)
        if (in[i] != 0)
            return -1;
    switch (in[0] >> 6) {
    case 0: /* peripheral, bus 0 only */
        return in[0] == 0 ? in[1] : -1;
    case 1: /* flat */
        return get_be16(in) & 0x3fff;
    default:
        return -1;
    }
}
