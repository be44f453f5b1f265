/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets and logical units as people name them. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"

/* {tid, name} of all targets: short, whatever they hold. */
static json_t *
all_ids(struct call *c)
{
    json_t *data = verb_ask(c, "lld", "show", NULL), *all = json_array(), *d;
    size_t i;
    json_array_foreach(json_object_get(data, "drivers"), i, d)
        json_array_extend(all, json_object_get(d, "targets"));
    json_decref(data);
    return all;
}

static bool
is_whole(const char *text)
{
    return strncasecmp(text, "iqn.", 4) == 0 || strncasecmp(text, "eui.", 4) == 0 ||
           strncasecmp(text, "naa.", 4) == 0;
}

static bool
is_number(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* How well a name fits: 3 whole, 2 from a colon on, 1 some end, 0 not. */
static int
fits(const char *name, const char *text)
{
    size_t n = strlen(name), k = strlen(text);
    if (!k || k > n || strcasecmp(name + n - k, text) != 0)
        return 0;
    if (k == n)
        return 3;
    return name[n - k - 1] == ':' ? 2 : 1;
}

/* Consumes all; `hint` goes with the message when none of them is meant. */
static struct target_id
find_in(struct call *c, json_t *all, const char *text, const char *hint)
{
    struct target_id hit = {0, NULL};
    json_t *t;
    int best = 0;
    unsigned n = 0;
    size_t i;
    char many[512] = "";

    json_array_foreach(all, i, t)
    {
        const char *name = j_str(t, "name");
        int fit =
            is_number(text) && j_num(t, "tid") == strtoll(text, NULL, 10) ? 4 : fits(name, text);
        if (!fit || fit < best)
            continue;
        if (fit > best) {
            best = fit;
            n = 0;
            many[0] = 0;
        }
        n++;
        size_t used = strlen(many);
        snprintf(many + used, sizeof many - used, "%s%s", used ? ", " : "", name);
        free(hit.name);
        hit = (struct target_id){j_num(t, "tid"), xstrdup(name)};
    }
    json_decref(all);
    if (n == 0)
        verb_fail(c, VERB_NOT_DONE, "no-target", hint, "there is no target %s", text);
    if (n > 1)
        verb_fail(c, VERB_NOT_DONE, "ambiguous", "Give more of the name, or the tid.",
                  "%u targets end in %s: %s", n, text, many);
    return hit;
}

struct target_id
find_target(struct call *c, const char *text)
{
    return find_in(c, all_ids(c), text, "`target list` shows all.");
}

char *
find_saved_name(struct call *c, const char *text)
{
    json_t *all = all_ids(c), *known = json_object(), *t;
    json_t *data = verb_ask(c, "config", "saved", NULL);
    size_t i;

    if (is_whole(text)) { /* of the file and deleted: only the daemon knows it */
        json_decref(all);
        json_decref(known);
        json_decref(data);
        return xstrdup(text);
    }
    json_array_foreach(all, i, t) json_object_set(known, j_str(t, "name"), t);
    json_array_foreach(json_object_get(data, "saved"), i, t)
    {
        const char *name = j_str(t, "target");
        if (*name && !json_object_get(known, name))
            json_array_append_new(all, json_pack("{si ss}", "tid", -1, "name", name));
    }
    json_decref(known);
    json_decref(data);
    return find_in(c, all, text, "`target list` shows what is served, `saved` what is saved.").name;
}

json_t *
find_all(struct call *c)
{
    json_t *data = verb_ask(c, "target", "show", NULL);
    json_t *all = json_incref(json_object_get(data, "targets"));
    json_decref(data);
    return all;
}

json_t *
find_target_shown(struct call *c, const struct target_id *t)
{
    json_t *data = verb_ask(c, "target", "show", json_pack("{sI}", "tid", (json_int_t)t->tid));
    json_t *one = json_incref(json_array_get(json_object_get(data, "targets"), 0));
    json_decref(data);
    if (!one)
        verb_fail(c, VERB_NOT_DONE, "no-target", NULL, "%s is gone", t->name);
    return one;
}

json_t *
find_lun(struct call *c, const json_t *target, const char *number)
{
    unsigned n = verb_number(c, "LUN", number, 0, 16383);
    json_t *l;
    size_t i;
    json_array_foreach(json_object_get(target, "luns"), i, l)
    {
        if (j_num(l, "lun") == n)
            return json_incref(l);
    }
    verb_fail(c, VERB_NOT_DONE, "no-lun", "`lun list TARGET` shows all.", "%s has no LUN %u",
              j_str(target, "name"), n);
    return NULL;
}

/* --- names of new targets -------------------------------------------------------------------- */

/* What stands before the first colon of every target's name; NULL: they differ, or there is none.
 */
static char *
common_authority(struct call *c)
{
    json_t *all = all_ids(c), *t;
    char *common = NULL;
    size_t i;

    json_array_foreach(all, i, t)
    {
        const char *name = j_str(t, "name"), *colon = strchr(name, ':');
        size_t n = colon ? (size_t)(colon - name) : 0;
        if (!n || (common && (strlen(common) != n || strncmp(common, name, n) != 0))) {
            free(common);
            common = NULL;
            break;
        }
        if (!common)
            common = xasprintf("%.*s", (int)n, name);
    }
    json_decref(all);
    return common;
}

/* The host's name backwards: nas.example.com is com.example.nas; one without a domain is local.nas.
 */
static char *
host_authority(void)
{
    char host[256] = "", stamp[32], back[300] = "";

    if (gethostname(host, sizeof host - 1) < 0 || !host[0])
        snprintf(host, sizeof host, "localhost");
    if (!strchr(host, '.'))
        snprintf(host + strlen(host), sizeof host - strlen(host), ".local");
    for (char *p = host; *p; p++)
        *p =
            (char)(isalnum((unsigned char)*p) || *p == '.' || *p == '-' ? tolower((unsigned char)*p)
                                                                        : '-');
    for (char *dot; (dot = strrchr(host, '.'));) {
        if (dot[1])
            snprintf(back + strlen(back), sizeof back - strlen(back), "%s.", dot + 1);
        *dot = 0;
    }
    clock_stamp(stamp, sizeof stamp);
    return xasprintf("iqn.%.7s.%s%s", stamp, back, host);
}

char *
find_new_name(struct call *c, const char *text)
{
    if (is_whole(text))
        return xstrdup(text);
    char *authority = common_authority(c);
    if (!authority)
        authority = host_authority();
    char *name = xasprintf("%s:%s", authority, text);
    free(authority);
    return name;
}

void
find_names_print(const char *socket)
{
    json_t *req = json_pack("{si ss ss}", "v", 1, "mode", "lld", "op", "show");
    json_t *reply = adm_call(socket, req), *d, *t;
    size_t i, k;
    json_array_foreach(json_object_get(json_object_get(reply, "data"), "drivers"), i, d)
    {
        json_array_foreach(json_object_get(d, "targets"), k, t) puts(j_str(t, "name"));
    }
    json_decref(reply);
    json_decref(req);
}
