/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a configuration to be applied comes from: a bundle that a tool made with its caller's
 * rights, or the daemon's own file, which the opener's child reads with the rights of the start.
 * Never a file that a request names.  In helpers, and in the opener.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/secret.h"
#include "conf/source.h"
#include "target/apply.h"
#include "target/apply_store.h"

static const struct conf_pos asked_pos = {"the request", 0, 0};

/* --- in the opener's child ------------------------------------------------------------------- */

static struct apply_file own;

void
apply_permit(const struct conf *c)
{
    for (unsigned i = 0; i < c->nportals; i++)
        (void)opener_permit_port(c->portals[i].at.port);
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        if (c->access[i].path)
            (void)opener_permit(c->access[i].path);
    }
    for (unsigned i = 0; i < c->ntargets; i++) {
        for (unsigned k = 0; k < c->targets[i].nluns; k++)
            apply_store_permit(&c->targets[i].luns[k]);
    }
}

static void
permit_all(struct conf_bundle *b)
{
    struct conf_report r;

    conf_report_init(&r);
    struct conf *c = conf_read_bundle(b, apply_checks(), &r);
    if (c)
        apply_permit(c);
    conf_free(c);
    conf_report_fini(&r);
}

/* The descriptor of a file in memory with the bundle, or with "error"; -errno. */
static int
read_own(const void *arg, size_t len)
{
    int fd = memfd_create("evtgt-conf", MFD_CLOEXEC);
    struct conf_report r;
    json_t *j;

    (void)arg; /* always that of the start, whatever is asked for */
    (void)len;
    if (fd < 0)
        return -errno;
    conf_report_init(&r);
    struct conf_bundle *b = conf_bundle_read(own.path, own.syntax, &r);
    if (b) {
        j = conf_bundle_pack(b);
        permit_all(b);
    } else {
        j = json_pack("{ss}", "error", r.n ? r.v[0].text : "it cannot be read");
    }
    int rc = j ? json_dumpfd(j, fd, JSON_COMPACT) : -1;
    json_decref(j);
    conf_bundle_free(b);
    conf_report_fini(&r);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -EIO;
}

/* --- in the daemon --------------------------------------------------------------------------- */

void
apply_set_file(const struct apply_file *file)
{
    own = *file;
    if (own.path)
        opener_serve(OPENER_READ_CONF, read_own, false);
}

/* Portals of the command line stand in place of the file's, as at the start. */
static void
take_listen(struct conf *c, struct conf_report *r)
{
    struct conf *l =
        own.listen ? conf_parse("command line", own.listen, strlen(own.listen), NULL, r) : NULL;
    if (!l)
        return;
    struct conf_portal *v = c->portals;
    c->portals = l->portals;
    c->nportals = l->nportals;
    c->no_portals = false;
    for (unsigned i = 0; i < c->nportals; i++)
        c->portals[i].pos.file = conf_keep(c, c->portals[i].pos.file);
    l->portals = v;
    l->nportals = 0;
    conf_free(l);
}

/* The bundle of the daemon's own configuration; NULL: told. */
static json_t *
own_bundle(struct conf_report *r)
{
    const struct conf_pos pos = {own.path ? own.path : "", 0, 0};
    json_error_t je;
    int fd = own.path ? opener_call(OPENER_READ_CONF, "", 0) : -ENOSYS;

    if (!own.path) {
        conf_report_add(r, true, &asked_pos, "this daemon was started without a configuration");
        return NULL;
    }
    if (fd < 0) {
        conf_report_add(r, true, &pos, "%s", strerror(-fd));
        return NULL;
    }
    json_t *j = json_loadfd(fd, JSON_REJECT_DUPLICATES, &je);
    close(fd);
    if (!j) {
        conf_report_add(r, true, &pos, "what was read makes no sense: %s",
                        secret_free_words(je.text));
        return NULL;
    }
    const char *why = json_string_value(json_object_get(j, "error"));
    if (why) {
        conf_report_add(r, true, &pos, "%s", why);
        json_decref(j);
        return NULL;
    }
    return j;
}

struct conf *
apply_source(struct apply_job *job)
{
    const struct apply_ask *ask = &job->ask;
    struct conf_report *r = &job->report;
    json_t *j = ask->reload ? own_bundle(r) : json_incref(ask->bundle);
    struct conf_checks checks = *apply_checks();
    struct conf *c = NULL;
    char err[512] = "";

    if (!j)
        return NULL;
    checks.running = job->have;
    checks.running_stays = !ask->whole;
    struct conf_bundle *b = conf_bundle_unpack(j, err, sizeof err);
    json_decref(j);
    if (!b)
        conf_report_add(r, true, &asked_pos, "bundle: %s", err);
    else
        c = conf_read_bundle(b, &checks, r);
    conf_bundle_free(b);
    if (c && ask->reload) {
        take_listen(c, r);
        c = apply_saved_lay(&job->saved, c, own.listen != NULL, r);
    }
    return c;
}
