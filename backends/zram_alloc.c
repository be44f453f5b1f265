/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments and slots; see zram_alloc.h. Compaction: zram_compact.c. */
#include "config.h"

#include "backends/zram_alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/zram_alloc_priv.h"
#include "base/poison.h"

#define SMALL      4096u /* up to here classes are 16 bytes apart */
#define APART      16u
#define ROOM_MIN   32u
#define OPEN_STEP  32u  /* segments made accessible at once */
#define NEAR_TWICE 128u /* classes up to twice the size, beyond SMALL; fewer below */

/* --- classes --------------------------------------------------------------------------------- */

static uint32_t
class_of(uint32_t size)
{
    if (size <= ROOM_MIN)
        return ROOM_MIN / APART - 1;
    if (size <= SMALL)
        return (size + APART - 1) / APART - 1;
    unsigned octave = 31u - (unsigned)__builtin_clz((size - 1) / SMALL); /* 4K-8K: 0 */
    uint32_t step = (SMALL / 128u) << octave;
    return 256u + octave * 128u + (size - 1 - (SMALL << octave)) / step;
}

uint32_t
zram_class_room(uint32_t i)
{
    if (i < 256u)
        return (i + 1) * APART;
    unsigned octave = (i - 256u) / 128u;
    uint32_t step = (SMALL / 128u) << octave;
    return (SMALL << octave) + ((i - 256u) % 128u + 1) * step;
}

/* --- open, close ----------------------------------------------------------------------------- */

static bool
reserve(struct zram_alloc *a)
{
    size_t bytes = (size_t)a->nsegments * ZRAM_SEGMENT;
    a->range = zram_mem_reserve(bytes + ZRAM_SEGMENT, false);
    a->segments = zram_mem_reserve(a->nsegments * sizeof(*a->segments), true);
    if (a->range == NULL || a->segments == NULL)
        return false;
    uintptr_t at = ((uintptr_t)a->range + ZRAM_SEGMENT - 1) / ZRAM_SEGMENT * ZRAM_SEGMENT;
    a->base = (uint8_t *)a->range + (at - (uintptr_t)a->range);
    if (a->nsegments > SEGMENT_HUGE)
        (void)madvise(a->base + (size_t)SEGMENT_HUGE * ZRAM_SEGMENT,
                      bytes - (size_t)SEGMENT_HUGE * ZRAM_SEGMENT, MADV_HUGEPAGE);
    return true;
}

int
zram_alloc_open(struct zram_alloc *a, struct zram_mem *mem, uint64_t max_bytes)
{
    uint64_t most = ((UINT64_C(1) << ZRAM_HANDLE_BITS) - 1) * ZRAM_UNIT / ZRAM_SEGMENT;
    /* Slots are a little larger than objects, and not all are used. */
    uint64_t want = max_bytes / ZRAM_SEGMENT * 2 + 2 * ZRAM_ENDS;
    a->nsegments = (uint32_t)(want < most ? want : most);
    a->mem = mem;
    a->free_heads[0] = a->free_heads[1] = SEGMENT_NONE;
    pthread_mutex_init(&a->lock, NULL);
    for (uint32_t i = 0; i < ZRAM_CLASSES; i++)
        pthread_mutex_init(&a->classes[i].lock, NULL);
    for (uint32_t i = 0; i < ZRAM_ENDS; i++) {
        pthread_mutex_init(&a->ends[i].lock, NULL);
        a->ends[i].no = SEGMENT_NONE;
    }
    if (reserve(a))
        return 0;
    zram_alloc_close(a);
    return -ENOMEM;
}

void
zram_alloc_close(struct zram_alloc *a)
{
    zram_mem_give(a->mem, atomic_load(&a->taken));
    if (a->base != NULL)
        unpoison(a->base, (size_t)a->open * ZRAM_SEGMENT);
    zram_mem_release(a->range, ((size_t)a->nsegments + 1) * ZRAM_SEGMENT);
    zram_mem_release(a->segments, a->nsegments * sizeof(*a->segments));
    for (uint32_t i = 0; i < ZRAM_CLASSES; i++)
        pthread_mutex_destroy(&a->classes[i].lock);
    for (uint32_t i = 0; i < ZRAM_ENDS; i++)
        pthread_mutex_destroy(&a->ends[i].lock);
    pthread_mutex_destroy(&a->lock);
    memset(a, 0, sizeof(*a));
}

/* --- segments -------------------------------------------------------------------------------- */

/* Under a->lock. */
static uint32_t
take_number(struct zram_alloc *a)
{
    for (unsigned i = 0; i < 2; i++) {
        uint32_t no = a->free_heads[i];
        if (no == SEGMENT_NONE)
            continue;
        if (i == 1 && atomic_load(&a->fresh) < SEGMENT_HUGE)
            break;
        a->free_heads[i] = a->segments[no].next;
        return no;
    }
    uint32_t fresh = atomic_load(&a->fresh);
    if (fresh == a->nsegments)
        return SEGMENT_NONE;
    if (fresh == a->open) {
        uint32_t n = a->nsegments - fresh < OPEN_STEP ? a->nsegments - fresh : OPEN_STEP;
        if (mprotect(a->base + (size_t)fresh * ZRAM_SEGMENT, (size_t)n * ZRAM_SEGMENT,
                     PROT_READ | PROT_WRITE) != 0)
            return SEGMENT_NONE;
        a->open += n;
    }
    atomic_store(&a->fresh, fresh + 1);
    return fresh;
}

static void
give_number(struct zram_alloc *a, uint32_t no)
{
    unsigned i = no >= SEGMENT_HUGE;
    pthread_mutex_lock(&a->lock);
    a->segments[no].next = a->free_heads[i];
    a->free_heads[i] = no;
    pthread_mutex_unlock(&a->lock);
}

/* Memory up to so far into the segment, of which the caller holds the end. */
static bool
take_memory(struct zram_alloc *a, uint32_t no, uint32_t bytes, uint64_t *taken)
{
    struct zram_segment *s = &a->segments[no];
    if (bytes <= s->taken)
        return true;
    uint32_t want = no >= SEGMENT_HUGE ? ZRAM_SEGMENT : (uint32_t)zram_page_up(bytes);
    if (!zram_mem_take(a->mem, want - s->taken))
        return false;
    (void)atomic_fetch_add_explicit(&a->taken, want - s->taken, memory_order_relaxed);
    *taken += want - s->taken;
    s->taken = want;
    return true;
}

/* A segment of which `bytes` have memory; under the lock of an end. */
static uint32_t
new_segment(struct zram_alloc *a, uint32_t bytes, uint64_t *taken)
{
    pthread_mutex_lock(&a->lock);
    uint32_t no = take_number(a);
    pthread_mutex_unlock(&a->lock);
    if (no == SEGMENT_NONE)
        return no;
    struct zram_segment *s = &a->segments[no];
    s->end = s->taken = 0;
    s->use++;
    atomic_store(&s->state, SEG_FILLING);
    if (take_memory(a, no, bytes, taken))
        return no;
    atomic_store(&s->state, SEG_FREE);
    give_number(a, no);
    return SEGMENT_NONE;
}

static bool
change_state(struct zram_segment *s, enum segment_state from, enum segment_state to)
{
    unsigned is = from;
    return atomic_compare_exchange_strong(&s->state, &is, to);
}

static void
link_hole(struct zram_alloc *a, struct zram_class *c, uint64_t handle)
{
    struct slot *s = slot_of(a, handle);
    s->state = SLOT_HOLE;
    s->prev = 0;
    s->next = c->holes;
    if (c->holes != 0)
        slot_of(a, c->holes)->prev = handle;
    c->holes = handle;
}

static void
unlink_hole(struct zram_alloc *a, struct zram_class *c, uint64_t handle, enum slot_state state)
{
    struct slot *s = slot_of(a, handle);
    if (s->prev != 0)
        slot_of(a, s->prev)->next = s->next;
    else
        c->holes = s->next;
    if (s->next != 0)
        slot_of(a, s->next)->prev = s->prev;
    s->state = (uint16_t)state;
}

/* Every free slot of the segment: in its list, or out of it. */
static void
list_holes(struct zram_alloc *a, uint32_t no, bool in)
{
    const struct zram_segment *s = &a->segments[no];
    for (uint32_t at = 0; at < s->end;) {
        uint64_t handle = slot_handle(no, at);
        uint32_t cls = slot_of(a, handle)->cls;
        struct zram_class *c = &a->classes[cls];
        pthread_mutex_lock(&c->lock);
        unsigned state = slot_of(a, handle)->state;
        if (in && state == SLOT_DEAD)
            link_hole(a, c, handle);
        else if (!in && state == SLOT_HOLE)
            unlink_hole(a, c, handle, SLOT_DEAD);
        pthread_mutex_unlock(&c->lock);
        at += slot_bytes(cls);
    }
}

bool
zram_segment_claim(struct zram_alloc *a, uint32_t no)
{
    struct zram_segment *s = &a->segments[no];
    if (change_state(s, SEG_EMPTYING, SEG_CLAIMED))
        return true;
    if (!change_state(s, SEG_FILLED, SEG_CLAIMED))
        return false;
    list_holes(a, no, false);
    return true;
}

static uint64_t
drop(struct zram_alloc *a, uint32_t no)
{
    struct zram_segment *s = &a->segments[no];
    uint32_t bytes = s->taken;
    unpoison(a->base + (size_t)no * ZRAM_SEGMENT, ZRAM_SEGMENT);
    zram_mem_drop(a->base + (size_t)no * ZRAM_SEGMENT, bytes);
    (void)atomic_fetch_sub_explicit(&a->taken, bytes, memory_order_relaxed);
    zram_mem_give(a->mem, bytes);
    atomic_store(&s->state, SEG_FREE);
    give_number(a, no);
    return bytes;
}

uint64_t
zram_segment_let_go(struct zram_alloc *a, uint32_t no)
{
    struct zram_segment *s = &a->segments[no];
    do {
        if (atomic_load(&s->live) == 0)
            return drop(a, no);
        atomic_store(&s->state, SEG_EMPTYING);
        /* Its last object may have gone while nobody else could claim it. */
    } while (atomic_load(&s->live) == 0 && change_state(s, SEG_EMPTYING, SEG_CLAIMED));
    return 0;
}

void
zram_segment_restore(struct zram_alloc *a, uint32_t no)
{
    struct zram_segment *s = &a->segments[no];
    list_holes(a, no, true);
    atomic_store(&s->state, SEG_FILLED);
    if (atomic_load(&s->live) == 0)
        (void)zram_segment_empty(a, no);
}

void
zram_end_detach(struct zram_alloc *a, struct zram_end *e)
{
    atomic_store(&a->segments[e->no].state, SEG_FILLED);
    e->no = SEGMENT_NONE;
}

uint64_t
zram_segment_empty(struct zram_alloc *a, uint32_t no)
{
    struct zram_segment *s = &a->segments[no];
    for (uint32_t i = 0; i < ZRAM_ENDS && atomic_load(&s->state) == SEG_FILLING; i++) {
        pthread_mutex_lock(&a->ends[i].lock);
        if (a->ends[i].no == no && atomic_load(&s->live) == 0)
            zram_end_detach(a, &a->ends[i]);
        pthread_mutex_unlock(&a->ends[i].lock);
    }
    if (atomic_load(&s->live) != 0 || !zram_segment_claim(a, no))
        return 0;
    return zram_segment_let_go(a, no);
}

/* --- slots ----------------------------------------------------------------------------------- */

static void
count_used(struct zram_alloc *a, uint64_t handle, uint32_t bytes)
{
    atomic_fetch_add(&segment_of(a, handle)->live, bytes);
    (void)atomic_fetch_add_explicit(&a->filled, bytes, memory_order_relaxed);
}

static bool
get_hole(struct zram_alloc *a, uint32_t cls, uint32_t owner, uint64_t *handle)
{
    struct zram_class *c = &a->classes[cls];
    pthread_mutex_lock(&c->lock);
    *handle = c->holes;
    if (*handle != 0) {
        unlink_hole(a, c, *handle, SLOT_USED);
        slot_of(a, *handle)->owner = owner;
        count_used(a, *handle, slot_bytes(cls));
    }
    pthread_mutex_unlock(&c->lock);
    if (*handle != 0)
        unpoison(zram_alloc_ptr(a, *handle), zram_class_room(cls));
    return *handle != 0;
}

/* How many segments may be filled at once: what they have not used yet shall not count. */
static uint32_t
ends_now(const struct zram_alloc *a)
{
    uint64_t taken = atomic_load_explicit(&a->taken, memory_order_relaxed);
    if (taken < (uint64_t)SEGMENT_HUGE * ZRAM_SEGMENT)
        return ZRAM_ENDS;
    uint64_t n = taken / ((uint64_t)ZRAM_SEGMENT * 128u);
    return n == 0 ? 1 : n < ZRAM_ENDS ? (uint32_t)n : ZRAM_ENDS;
}

/* An end that nobody else fills just now, locked. */
static struct zram_end *
lock_end(struct zram_alloc *a)
{
    uint32_t n = ends_now(a);
    for (uint32_t i = 0; i < n; i++)
        if (pthread_mutex_trylock(&a->ends[i].lock) == 0)
            return &a->ends[i];
    pthread_mutex_lock(&a->ends[0].lock);
    return &a->ends[0];
}

static bool
get_new(struct zram_alloc *a, uint32_t cls, uint32_t owner, uint64_t *handle, uint64_t *taken)
{
    uint32_t bytes = slot_bytes(cls), full = SEGMENT_NONE;
    struct zram_end *e = lock_end(a);
    if (e->no != SEGMENT_NONE && a->segments[e->no].end + bytes > ZRAM_SEGMENT) {
        full = e->no;
        zram_end_detach(a, e);
    }
    if (e->no == SEGMENT_NONE)
        e->no = new_segment(a, bytes, taken);
    bool ok = e->no != SEGMENT_NONE && take_memory(a, e->no, a->segments[e->no].end + bytes, taken);
    if (ok) {
        struct zram_segment *s = &a->segments[e->no];
        *handle = slot_handle(e->no, s->end);
        *slot_of(a, *handle) =
            (struct slot){.owner = owner, .cls = (uint16_t)cls, .state = SLOT_USED};
        s->end += bytes;
        count_used(a, *handle, bytes);
    }
    pthread_mutex_unlock(&e->lock);
    if (full != SEGMENT_NONE && atomic_load(&a->segments[full].live) == 0)
        (void)zram_segment_empty(a, full);
    return ok;
}

int
zram_alloc_get_counted(struct zram_alloc *a, uint32_t size, uint32_t owner, uint64_t *handle,
                       uint64_t *taken)
{
    uint32_t first = class_of(size);
    if (get_hole(a, first, owner, handle) || get_new(a, first, owner, handle, taken))
        return 0;
    /* No memory: a hole among larger objects is better than to refuse. */
    uint32_t n = first < NEAR_TWICE ? first : NEAR_TWICE;
    for (uint32_t i = first + 1; i <= first + n && i < ZRAM_CLASSES; i++)
        if (get_hole(a, i, owner, handle))
            return 0;
    return -ENOSPC;
}

int
zram_alloc_get(struct zram_alloc *a, uint32_t size, uint32_t owner, uint64_t *handle)
{
    uint64_t taken = 0;
    return zram_alloc_get_counted(a, size, owner, handle, &taken);
}

uint64_t
zram_alloc_put_counted(struct zram_alloc *a, uint64_t handle)
{
    struct zram_segment *s = segment_of(a, handle);
    struct slot *slot = slot_of(a, handle);
    uint32_t cls = slot->cls, bytes = slot_bytes(cls);
    struct zram_class *c = &a->classes[cls];
    poison(zram_alloc_ptr(a, handle) + sizeof(*slot) - SLOT_HEAD, bytes - sizeof(*slot));
    pthread_mutex_lock(&c->lock);
    /* Whoever empties the segment changes its state first and takes this lock then. */
    if (atomic_load(&s->state) <= SEG_FILLED)
        link_hole(a, c, handle);
    else
        slot->state = SLOT_DEAD;
    pthread_mutex_unlock(&c->lock);
    (void)atomic_fetch_sub_explicit(&a->filled, bytes, memory_order_relaxed);
    if (atomic_fetch_sub(&s->live, bytes) == bytes)
        return zram_segment_empty(a, (uint32_t)(s - a->segments));
    return 0;
}

void
zram_alloc_put(struct zram_alloc *a, uint64_t handle)
{
    (void)zram_alloc_put_counted(a, handle);
}

bool
zram_alloc_suits(const struct zram_alloc *a, uint64_t handle, uint32_t size)
{
    return slot_of(a, handle)->cls == class_of(size);
}

uint32_t
zram_alloc_room(const struct zram_alloc *a, uint64_t handle)
{
    return zram_class_room(slot_of(a, handle)->cls);
}

uint64_t
zram_alloc_waste(const struct zram_alloc *a)
{
    uint64_t taken = atomic_load_explicit(&a->taken, memory_order_relaxed);
    uint64_t filled = atomic_load_explicit(&a->filled, memory_order_relaxed);
    return taken > filled ? taken - filled : 0;
}
