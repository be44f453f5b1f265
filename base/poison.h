/* SPDX-License-Identifier: BSD-2-Clause */
/* Marks memory that is free but not unmapped, for AddressSanitizer; nothing without it. */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISON_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_ASAN 1
#endif
#endif

#ifdef POISON_ASAN
#include <sanitizer/asan_interface.h>

static inline void
poison(const void *p, size_t n)
{
    __asan_poison_memory_region(p, n);
}

static inline void
unpoison(const void *p, size_t n)
{
    __asan_unpoison_memory_region(p, n);
}

static inline bool
is_poisoned(const void *p)
{
    return __asan_address_is_poisoned(p) != 0;
}
#else
static inline void
poison(const void *p, size_t n)
{
    (void)p;
    (void)n;
}

static inline void
unpoison(const void *p, size_t n)
{
    (void)p;
    (void)n;
}

static inline bool
is_poisoned(const void *p)
{
    (void)p;
    return false;
}
#endif

#endif
