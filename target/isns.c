/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of the iSNS client, its start, live changes and its end, see isns.h.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/netif.h"
#include "target/isns.h"
#include "target/isns_client.h"
#include "target/model.h"

static struct {
    bool started;
    struct isns_settings set;
    struct netif_watch watch; /* what wildcard portals stand for */
} isns;

/* --- settings -------------------------------------------------------------------------------- */

void
isns_settings_init(struct isns_settings *s)
{
    *s = (struct isns_settings){.port = ISNS_PORT};
}

static bool
parse_port(const char *text, uint16_t *port)
{
    unsigned long v = 0;
    if (*text == '\0' || strlen(text) > 5)
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        v = 10 * v + (unsigned long)(*text - '0');
    }
    *port = (uint16_t)v;
    return v >= 1 && v <= 65535;
}

/* "192.0.2.1", "192.0.2.1:3205", "2001:db8::1", "[2001:db8::1]:3205". */
static bool
parse_server(char *text, uint16_t port, struct isns_server *out)
{
    struct sockaddr_in *in = (void *)&out->addr;
    struct sockaddr_in6 *in6 = (void *)&out->addr;
    char *colon = strchr(text, ':'), *end = strchr(text, ']');

    memset(out, 0, sizeof *out);
    if (text[0] == '[') {
        if (end == NULL || (end[1] != '\0' && (end[1] != ':' || !parse_port(end + 2, &port))))
            return false;
        *end = '\0';
        text++;
    } else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
        if (!parse_port(colon + 1, &port))
            return false;
        *colon = '\0';
    }
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        out->len = sizeof *in;
        return true;
    }
    if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1)
        return false;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    out->len = sizeof *in6;
    return true;
}

int
isns_settings_check(struct isns_settings *s, char *err, size_t errsize)
{
    char text[sizeof s->servers], *save = NULL;

    s->nservers = 0;
    snprintf(text, sizeof text, "%s", s->servers);
    for (char *p = strtok_r(text, ", \t", &save); p; p = strtok_r(NULL, ", \t", &save)) {
        char shown[80];
        snprintf(shown, sizeof shown, "%s", p);
        if (s->nservers == ISNS_SERVERS_MAX) {
            snprintf(err, errsize, "more than %u iSNS servers", ISNS_SERVERS_MAX);
            return -EINVAL;
        }
        if (!parse_server(p, s->port, &s->server[s->nservers])) {
            snprintf(err, errsize,
                     "\"%.60s\" is no address of an iSNS server: want a number such as 192.0.2.1, "
                     "192.0.2.1:3205 or [2001:db8::1]:3205",
                     shown);
            return -EINVAL;
        }
        s->nservers++;
    }
    if (s->on && s->nservers == 0) {
        snprintf(err, errsize, "iSNS cannot be on without iSNSServerIP");
        return -EINVAL;
    }
    return 0;
}

const struct isns_settings *
isns_settings(void)
{
    return &isns.set;
}

const char *
isns_state(char *server, size_t size)
{
    const struct isns_server *s;
    const char *state;

    server[0] = '\0';
    if (!isns.started)
        return "off";
    state = isns_client_state(&s);
    if (s != NULL)
        (void)portal_text(&s->addr, server, size);
    return state;
}

/* --- start, change, end ---------------------------------------------------------------------- */

static void
run(void)
{
    if (isns.set.on)
        isns_client_run(isns.set.server, isns.set.nservers);
}

static void
on_left(void *arg)
{
    (void)arg;
    run();
}

/* Whoever publishes next makes it known to the workers. */
static void
set_access(void)
{
    bool on = isns.set.on && isns.set.access;

    isns_client_access(on);
    if (model.dd_only == on)
        return;
    model.dd_only = on;
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
    log_event(LL_NOTICE, LA_NET, "isns-access-control state=%s", on ? "on" : "off");
}

static void
on_addresses(struct netif_watch *w)
{
    (void)w;
    isns_client_changed();
}

void
isns_start(struct worker *main_worker, const struct isns_settings *s, const uint8_t *seed)
{
    isns.set = *s;
    isns.started = true;
    isns_client_init(main_worker, seed);
    model_published = isns_client_changed;
    netif_watch_start(&isns.watch, on_addresses);
    set_access();
    run();
}

static bool
same_servers(const struct isns_settings *a, const struct isns_settings *b)
{
    return a->nservers == b->nservers &&
           memcmp(a->server, b->server, a->nservers * sizeof *a->server) == 0;
}

int
isns_change(const struct isns_settings *s, char *err, size_t errsize)
{
    struct isns_settings new = *s;

    if (isns_settings_check(&new, err, errsize) < 0)
        return -EINVAL;
    bool again = new.on != isns.set.on || !same_servers(&new, &isns.set);
    isns.set = new;
    set_access();
    if (again && isns.started)
        isns_client_leave(on_left, NULL);
    return 0;
}

void
isns_end(void (*done)(void *arg), void *arg)
{
    if (!isns.started) {
        done(arg);
        return;
    }
    isns.set.on = false;
    model_published = NULL;
    netif_watch_stop(&isns.watch);
    isns_client_leave(done, arg);
}
