/* SPDX-License-Identifier: BSD-2-Clause */
/* Slabs and slots; see zram_alloc.h. Compaction: zram_compact.c. */
#include "config.h"

#include "backends/zram_alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/zram_alloc_priv.h"
#include "base/poison.h"

#define SMALL      4096u /* up to here classes are ZRAM_UNIT apart */
#define SLOT_MIN   32u
#define OPEN_STEP  256u /* slabs made accessible at once */
#define NEAR_TWICE 128u /* classes up to twice the size, beyond SMALL; fewer below */

/* --- classes --------------------------------------------------------------------------------- */

static uint32_t
class_of(uint32_t size)
{
    if (size <= SLOT_MIN)
        return SLOT_MIN / ZRAM_UNIT - 1;
    if (size <= SMALL)
        return (size + ZRAM_UNIT - 1) / ZRAM_UNIT - 1;
    unsigned octave = 31u - (unsigned)__builtin_clz((size - 1) / SMALL); /* 4K-8K: 0 */
    uint32_t step = (SMALL / 128u) << octave;
    return 256u + octave * 128u + (size - 1 - (SMALL << octave)) / step;
}

static uint32_t
class_slot(uint32_t i)
{
    if (i < 256u)
        return (i + 1) * ZRAM_UNIT;
    unsigned octave = (i - 256u) / 128u;
    uint32_t step = (SMALL / 128u) << octave;
    return (SMALL << octave) + ((i - 256u) % 128u + 1) * step;
}

/* What comes before the slots. */
static uint32_t
head_bytes(uint32_t slot, uint32_t cap)
{
    if (slot >= SMALL)
        return 0;
    uint32_t n = bitmap_bytes(cap) + cap * (uint32_t)sizeof(uint32_t);
    return (n + ZRAM_UNIT - 1) / ZRAM_UNIT * ZRAM_UNIT;
}

/* As many slots as there is room for, or up to half as many, so that the last page is used best. */
static void
class_init(struct zram_class *c, uint32_t i)
{
    uint64_t best_lost = ZRAM_SLAB, best_bytes = 1;
    pthread_mutex_init(&c->lock, NULL);
    for (unsigned k = 0; k < ZRAM_LISTS; k++)
        c->heads[k] = SLAB_NONE;
    c->slot = class_slot(i);
    uint32_t most = ZRAM_SLAB / c->slot;
    for (uint32_t cap = most; cap > 0 && cap >= most / 2; cap--) {
        uint64_t bytes = head_bytes(c->slot, cap) + cap * c->slot;
        uint64_t lost = zram_page_up(bytes) - bytes;
        if (bytes > ZRAM_SLAB || lost * best_bytes >= best_lost * bytes)
            continue;
        best_lost = lost;
        best_bytes = bytes;
        c->cap = cap;
        c->first = head_bytes(c->slot, cap);
    }
}

int
zram_alloc_open(struct zram_alloc *a, struct zram_mem *mem, uint64_t max_bytes)
{
    uint64_t most = (UINT64_C(1) << ZRAM_HANDLE_BITS) / SLAB_HANDLE;
    /* Slabs end where pages are used best, and each class has one that is not full. */
    uint64_t want = max_bytes * 3 / ZRAM_SLAB + ZRAM_CLASSES;
    a->nslabs = (uint32_t)(want < most ? want : most);
    a->mem = mem;
    a->free_head = SLAB_NONE;
    a->base = zram_mem_reserve((size_t)a->nslabs * ZRAM_SLAB, false);
    a->slabs = zram_mem_reserve(a->nslabs * sizeof(*a->slabs), true);
    a->side = zram_mem_reserve(a->nslabs * sizeof(*a->side), true);
    pthread_mutex_init(&a->lock, NULL);
    for (uint32_t i = 0; i < ZRAM_CLASSES; i++)
        class_init(&a->classes[i], i);
    if (a->base != NULL && a->slabs != NULL && a->side != NULL)
        return 0;
    zram_alloc_close(a);
    return -ENOMEM;
}

void
zram_alloc_close(struct zram_alloc *a)
{
    zram_mem_give(a->mem, atomic_load(&a->taken));
    if (a->base != NULL)
        unpoison(a->base, (size_t)a->open * ZRAM_SLAB);
    zram_mem_release(a->base, (size_t)a->nslabs * ZRAM_SLAB);
    zram_mem_release(a->slabs, a->nslabs * sizeof(*a->slabs));
    zram_mem_release(a->side, a->nslabs * sizeof(*a->side));
    for (uint32_t i = 0; i < ZRAM_CLASSES; i++)
        pthread_mutex_destroy(&a->classes[i].lock);
    pthread_mutex_destroy(&a->lock);
    memset(a, 0, sizeof(*a));
}

/* --- slabs ----------------------------------------------------------------------------------- */

static void
unlink_slab(struct zram_alloc *a, struct zram_class *c, struct zram_slab *s)
{
    if (s->list == LIST_NO)
        return;
    if (s->prev != SLAB_NONE)
        a->slabs[s->prev].next = s->next;
    else
        c->heads[s->list] = s->next;
    if (s->next != SLAB_NONE)
        a->slabs[s->next].prev = s->prev;
    s->list = LIST_NO;
}

static unsigned
list_for(const struct zram_class *c, const struct zram_slab *s)
{
    if (s->isolated || s->used == 0)
        return LIST_NO;
    if (s->used < s->end)
        return s->used * ZRAM_HOLEY / c->cap;
    return s->end < c->cap ? LIST_END : LIST_NO;
}

void
zram_slab_relist(struct zram_alloc *a, struct zram_class *c, uint32_t no)
{
    struct zram_slab *s = &a->slabs[no];
    unsigned list = list_for(c, s);
    if (list == s->list)
        return;
    unlink_slab(a, c, s);
    if (list == LIST_NO)
        return;
    s->list = (uint8_t)list;
    s->prev = SLAB_NONE;
    s->next = c->heads[list];
    if (s->next != SLAB_NONE)
        a->slabs[s->next].prev = no;
    c->heads[list] = no;
}

uint32_t
zram_class_fullest(const struct zram_class *c)
{
    for (unsigned i = ZRAM_HOLEY; i-- > 0;)
        if (c->heads[i] != SLAB_NONE)
            return c->heads[i];
    return SLAB_NONE;
}

static bool
take_pages(struct zram_alloc *a, struct zram_slab *s, uint32_t bytes)
{
    uint32_t want = (uint32_t)zram_page_up(bytes);
    if (want <= s->taken)
        return true;
    if (!zram_mem_take(a->mem, want - s->taken))
        return false;
    atomic_fetch_add_explicit(&a->taken, want - s->taken, memory_order_relaxed);
    s->taken = want;
    return true;
}

/* A number for a slab whose addresses are accessible; under a->lock. */
static uint32_t
take_number(struct zram_alloc *a)
{
    uint32_t no = a->free_head;
    if (no != SLAB_NONE) {
        a->free_head = a->slabs[no].next;
        return no;
    }
    if (a->fresh == a->nslabs)
        return SLAB_NONE;
    if (a->fresh == a->open) {
        uint32_t n = a->nslabs - a->open < OPEN_STEP ? a->nslabs - a->open : OPEN_STEP;
        if (mprotect(slab_at(a, a->open), (size_t)n * ZRAM_SLAB, PROT_READ | PROT_WRITE) != 0)
            return SLAB_NONE;
        a->open += n;
    }
    return a->fresh++;
}

static void
give_number(struct zram_alloc *a, uint32_t no)
{
    pthread_mutex_lock(&a->lock);
    a->slabs[no].next = a->free_head;
    a->free_head = no;
    pthread_mutex_unlock(&a->lock);
}

/* An empty slab of the class, in no list; under the class's lock. */
static uint32_t
new_slab(struct zram_alloc *a, struct zram_class *c)
{
    pthread_mutex_lock(&a->lock);
    uint32_t no = take_number(a);
    pthread_mutex_unlock(&a->lock);
    if (no == SLAB_NONE)
        return no;
    struct zram_slab *s = &a->slabs[no];
    *s = (struct zram_slab){.cls = (uint16_t)(c - a->classes), .list = LIST_NO};
    if (!take_pages(a, s, c->first + c->slot)) {
        give_number(a, no);
        return SLAB_NONE;
    }
    poison(slab_at(a, no) + c->first, ZRAM_SLAB - c->first);
    return no;
}

uint64_t
zram_slab_release(struct zram_alloc *a, uint32_t no)
{
    struct zram_slab *s = &a->slabs[no];
    uint32_t bytes = s->taken;
    unpoison(slab_at(a, no), ZRAM_SLAB);
    zram_mem_drop(slab_at(a, no), bytes);
    atomic_fetch_sub_explicit(&a->taken, bytes, memory_order_relaxed);
    zram_mem_give(a->mem, bytes);
    give_number(a, no);
    return bytes;
}

/* --- slots ----------------------------------------------------------------------------------- */

static void
set_slot(struct zram_alloc *a, struct zram_class *c, uint32_t no, uint32_t slot, uint32_t owner)
{
    slab_bits(a, no, c)[slot / 64] |= UINT64_C(1) << slot % 64;
    slab_owners(a, no, c)[slot] = owner;
    a->slabs[no].used++;
    atomic_fetch_add_explicit(&a->filled, c->slot, memory_order_relaxed);
    unpoison(slab_at(a, no) + c->first + slot * c->slot, c->slot);
}

uint32_t
zram_slab_fill(struct zram_alloc *a, struct zram_class *c, uint32_t no, uint32_t owner)
{
    struct zram_slab *s = &a->slabs[no];
    const uint64_t *bits = slab_bits(a, no, c);
    uint32_t word = s->hint;
    while (bits[word] == UINT64_MAX)
        word++;
    s->hint = (uint16_t)word;
    uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(~bits[word]);
    c->holes--;
    set_slot(a, c, no, slot, owner);
    return slot;
}

void
zram_slab_clear(struct zram_alloc *a, struct zram_class *c, uint32_t no, uint32_t slot)
{
    struct zram_slab *s = &a->slabs[no];
    uint64_t *bits = slab_bits(a, no, c);
    bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    s->used--;
    c->holes++;
    if (slot / 64 < s->hint)
        s->hint = (uint16_t)(slot / 64);
    if (slot + 1u == s->end) {
        while (s->end > 0 && (bits[(s->end - 1) / 64] >> (s->end - 1) % 64 & 1) == 0)
            s->end--;
        c->holes -= slot + 1u - s->end;
    }
    atomic_fetch_sub_explicit(&a->filled, c->slot, memory_order_relaxed);
    poison(slab_at(a, no) + c->first + slot * c->slot, c->slot);
}

/* One more slot at the end of a slab; false: no memory for it. */
static bool
extend(struct zram_alloc *a, struct zram_class *c, uint32_t no, uint32_t owner, uint64_t *handle)
{
    struct zram_slab *s = &a->slabs[no];
    if (!take_pages(a, s, c->first + (s->end + 1u) * c->slot))
        return false;
    set_slot(a, c, no, s->end, owner);
    *handle = slot_handle(c, no, s->end++);
    return true;
}

/* holes: only slots that cost no memory. */
static bool
get_of_class(struct zram_alloc *a, struct zram_class *c, uint32_t owner, bool holes,
             uint64_t *handle)
{
    bool ok = true;
    pthread_mutex_lock(&c->lock);
    uint32_t no = zram_class_fullest(c);
    if (no != SLAB_NONE) {
        *handle = slot_handle(c, no, zram_slab_fill(a, c, no, owner));
    } else {
        no = c->heads[LIST_END];
        if (no == SLAB_NONE && !holes)
            no = new_slab(a, c);
        ok = no != SLAB_NONE && extend(a, c, no, owner, handle);
    }
    if (ok)
        zram_slab_relist(a, c, no);
    pthread_mutex_unlock(&c->lock);
    return ok;
}

int
zram_alloc_get(struct zram_alloc *a, uint32_t size, uint32_t owner, uint64_t *handle)
{
    uint32_t first = class_of(size);
    if (get_of_class(a, &a->classes[first], owner, false, handle))
        return 0;
    /* No memory: a hole among larger objects is better than to refuse. */
    uint32_t n = first < NEAR_TWICE ? first : NEAR_TWICE;
    for (uint32_t i = first + 1; i <= first + n && i < ZRAM_CLASSES; i++)
        if (get_of_class(a, &a->classes[i], owner, true, handle))
            return 0;
    return -ENOSPC;
}

static const struct zram_slab *
slab_of(const struct zram_alloc *a, uint64_t handle)
{
    return &a->slabs[handle / SLAB_HANDLE];
}

void
zram_alloc_put(struct zram_alloc *a, uint64_t handle)
{
    uint32_t no = (uint32_t)(handle / SLAB_HANDLE);
    struct zram_slab *s = &a->slabs[no];
    struct zram_class *c = &a->classes[s->cls];
    pthread_mutex_lock(&c->lock);
    zram_slab_clear(a, c, no, slot_no(c, handle));
    zram_slab_relist(a, c, no);
    bool empty = s->used == 0 && !s->isolated;
    pthread_mutex_unlock(&c->lock);
    if (empty)
        (void)zram_slab_release(a, no);
}

bool
zram_alloc_suits(const struct zram_alloc *a, uint64_t handle, uint32_t size)
{
    return slab_of(a, handle)->cls == class_of(size);
}

uint32_t
zram_alloc_room(const struct zram_alloc *a, uint64_t handle)
{
    return a->classes[slab_of(a, handle)->cls].slot;
}

uint64_t
zram_alloc_waste(const struct zram_alloc *a)
{
    uint64_t taken = atomic_load_explicit(&a->taken, memory_order_relaxed);
    uint64_t filled = atomic_load_explicit(&a->filled, memory_order_relaxed);
    return taken > filled ? taken - filled : 0;
}
