/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive circular doubly linked lists.  A node that is in no list points to itself
 * (`list_init`), so `list_del` is always safe and `list_is_linked` tells.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void
list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool
list_is_empty(const struct list *l)
{
    return l->next == l;
}

static inline bool
list_is_linked(const struct list *n)
{
    return n->next != n;
}

static inline void
list_insert_between(struct list *n, struct list *prev, struct list *next)
{
    n->prev = prev;
    n->next = next;
    prev->next = n;
    next->prev = n;
}

static inline void
list_add_tail(struct list *l, struct list *n)
{
    list_insert_between(n, l->prev, l);
}

static inline void
list_add_head(struct list *l, struct list *n)
{
    list_insert_between(n, l, l->next);
}

static inline void
list_del(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

/* First node unlinked, or NULL. */
static inline struct list *
list_pop(struct list *l)
{
    if (list_is_empty(l))
        return NULL;
    struct list *n = l->next;
    list_del(n);
    return n;
}

/* All of `from` moved to the tail of `to`; `from` is empty afterwards. */
static inline void
list_splice_tail(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_first(l, type, member) container_of((l)->next, type, member)

#define list_each(it, l) for (struct list *it = (l)->next; it != (l); it = it->next)
/* The body may unlink `it` (but nothing else). */
#define list_each_safe(it, l)                                                                     \
    for (struct list *it = (l)->next, *it##_n = it->next; it != (l); it = it##_n, it##_n = it->next)

#endif
