/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets (CHAP): counted byte strings in pages of their own, which are left out of core dumps,
 * locked in memory where that is allowed, and wiped when the last reference goes.  Any thread.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_MAX 255u /* bytes */

struct secret; /* immutable */

/* A copy of p[0..len), 1 to SECRET_MAX bytes; what p points to stays the caller's to wipe. */
struct secret *secret_new(const void *p, size_t len);
struct secret *secret_get(struct secret *s);
void secret_put(struct secret *s); /* NULL: nothing */
const uint8_t *secret_bytes(const struct secret *s);
size_t secret_len(const struct secret *s);
/* In a time that does not depend on where they differ. */
bool secret_same(const struct secret *a, const struct secret *b);

/* A child that was forked, before it does anything else: none of them is its business. What it
 * still holds references to reads as zeroes. */
void secret_forget_all(void);
/* How many there are (tests). */
unsigned secret_count(void);

/* memset to zero that is not optimised away. */
void secret_wipe(void *p, size_t len);
/* Wipes a string of the heap and frees it; NULL: nothing. */
void secret_free_text(char *s);
/* What jansson says of a text that it does not understand, without the word that it names: that may
 * be a secret. Changes and returns `text`. */
const char *secret_free_words(char *text);

#endif
