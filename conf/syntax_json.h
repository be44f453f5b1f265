/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the values of a JSON text stand in it, which jansson does not tell. */
#ifndef CONF_SYNTAX_JSON_H
#define CONF_SYNTAX_JSON_H

#include <jansson.h>

#include "conf/conf.h"

struct json_places;

/* root: what json_loadb made of this text, in which no object has a key twice. */
struct json_places *json_places_new(const char *file, const char *text, size_t len, json_t *root);
void json_places_free(struct json_places *p);
/* Of a key of an object; of an object or array. Of the file when it is not found. */
struct conf_pos json_places_key(const struct json_places *p, json_t *object, const char *key);
struct conf_pos json_places_of(const struct json_places *p, const json_t *value);

#endif
