/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One unit, sessions on two worker threads: LUN RESET reaches both and waits for both, and a
 * storm of commands, resets, reservations, mode changes, map changes and dying sessions.  Meant
 * for ThreadSanitizer as much as for the assertions.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/helper.h"
#include "base/worker.h"
#include "scsi/priv.h"
#include "tests/unit/unit.h"

#define NW   2u
#define DEEP 8u

static struct worker *ws[NW + 1]; /* the last one is the administrator's */
static struct backend *be;
static struct lun *lun;
static struct lun_map *maps[2]; /* with the unit, and empty */
static char gate[] = "/tmp/evtgt-gate2-XXXXXX";

/* --- a call on a worker, waited for ---------------------------------------------------------- */

struct call {
    void (*fn)(void *arg);
    void *arg;
    atomic_bool over;
};

static void
on_call(struct worker *w, void *arg)
{
    struct call *c = arg;
    (void)w;
    c->fn(c->arg);
    atomic_store(&c->over, true);
}

static void
call(unsigned i, void (*fn)(void *arg), void *arg)
{
    struct call c = {.fn = fn, .arg = arg};
    worker_post(ws[i], on_call, &c);
    while (!atomic_load(&c.over))
        usleep(200);
}

static bool
wait_for(atomic_uint *v, unsigned at_least)
{
    for (int i = 0; i < 20000; i++) {
        if (atomic_load(v) >= at_least)
            return true;
        usleep(500);
    }
    return false;
}

/* --- commands -------------------------------------------------------------------------------- */

struct tcmd {
    struct scsi_cmd c; /* first */
    struct peer *peer;
    unsigned slot;
};

struct peer { /* a session and its commands; owner: its worker */
    struct worker *w;
    unsigned id;
    struct itn *itn;
    struct tcmd *cmds[DEEP];
    struct scsi_tmf tmf;
    bool tmf_busy, stop, storm;
    unsigned seed, left;
    atomic_uint done, aborted, tmf_done, io;
};

static uint8_t data[4096];

static bool
on_pull(struct scsi_cmd *cmd)
{
    memcpy(cmd->data, data, cmd->win_len);
    return true;
}

static void
on_push(struct scsi_cmd *cmd)
{
    (void)cmd;
    abort(); /* nothing here is that long */
}

static void next_command(struct peer *p, unsigned slot);

static void
on_done(struct scsi_cmd *cmd)
{
    struct tcmd *t = (struct tcmd *)(void *)cmd;
    struct peer *p = t->peer;

    atomic_fetch_add(&p->done, 1);
    if (cmd->aborted)
        atomic_fetch_add(&p->aborted, 1);
    if (p->cmds[t->slot] == t)
        p->cmds[t->slot] = NULL;
    scsi_release(cmd);
    free(t);
    if (p->storm && !p->stop)
        next_command(p, t == NULL ? 0 : (unsigned)(atomic_load(&p->done) % DEEP));
}

static const struct scsi_xport xport = {on_pull, on_push, on_done, NULL, NULL};

static void
submit(struct peer *p, unsigned slot, const uint8_t *cdb, size_t len, uint8_t attr)
{
    struct tcmd *t = calloc(1, sizeof *t);

    t->peer = p;
    t->slot = slot;
    t->c.itn = p->itn;
    t->c.w = p->w;
    t->c.xport = &xport;
    memcpy(t->c.cdb_inline, cdb, len);
    t->c.cdb = t->c.cdb_inline;
    t->c.cdb_len = 16;
    t->c.attr = attr;
    t->c.exp_in = t->c.exp_out = 512;
    p->cmds[slot] = t;
    scsi_submit(&t->c);
}

static void
on_tmf(struct scsi_tmf *t)
{
    struct peer *p = container_of(t, struct peer, tmf);
    p->tmf_busy = false;
    atomic_fetch_add(&p->tmf_done, 1);
}

static void
open_session(void *arg)
{
    struct peer *p = arg;
    struct itn_params ip = {.initiator_name = "i",
                            .isid = {0x40, 0, 0, 0, 0, (uint8_t)p->id},
                            .target_name = "iqn.2026-01.example:t",
                            .tpgt = 1,
                            .map = maps[0]};
    uint16_t asc;
    p->w = ws[p->id];
    p->itn = itn_new(p->w, &ip);
    while (ua_take(itn_nexus(p->itn, 0), &asc))
        ;
}

static void
close_session(void *arg)
{
    struct peer *p = arg;
    p->stop = true;
    if (p->tmf_busy)
        scsi_tmf_forget(&p->tmf);
    itn_free(p->itn);
    p->itn = NULL;
}

/* --- reset over two workers ------------------------------------------------------------------ */

static void
start_write(void *arg)
{
    static const uint8_t cdb[10] = {0x2a, 0, 0, 0, 0, 1, 0, 0, 1};
    struct peer *p = arg;
    submit(p, 0, cdb, 10, ATTR_SIMPLE);
}

static void
look_io(void *arg)
{
    struct peer *p = arg;
    atomic_store(&p->io, p->cmds[0] != NULL && p->cmds[0]->c.phase == PH_IO);
}

static void
start_reset(void *arg)
{
    struct peer *p = arg;
    memset(&p->tmf, 0, sizeof p->tmf);
    p->tmf.function = TMF_LOGICAL_UNIT_RESET;
    p->tmf.itn = p->itn;
    p->tmf.done = on_tmf;
    p->tmf_busy = true;
    scsi_tmf_submit(&p->tmf);
}

static void
take_ua(void *arg)
{
    struct peer *p = arg;
    uint16_t asc = 0;
    CU_ASSERT(ua_take(itn_nexus(p->itn, 0), &asc));
    CU_ASSERT_EQUAL(asc, 0x2903);
}

static void
gate_shut(void)
{
    int fd = open(gate, O_CREAT | O_WRONLY, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    usleep(2000); /* the layer looks once a millisecond */
}

static void
test_reset(void)
{
    static struct peer p[NW];

    memset(p, 0, sizeof p);
    gate_shut();
    for (unsigned i = 0; i < NW; i++) {
        p[i].id = i;
        call(i, open_session, &p[i]);
        call(i, start_write, &p[i]);
        for (int n = 0; n < 1000 && atomic_load(&p[i].io) == 0; n++)
            call(i, look_io, &p[i]);
        CU_ASSERT_EQUAL(atomic_load(&p[i].io), 1);
    }
    call(0, start_reset, &p[0]);
    usleep(60000);
    CU_ASSERT_EQUAL(atomic_load(&p[0].tmf_done), 0); /* the kernel has both writes */
    CU_ASSERT_EQUAL(atomic_load(&p[1].done), 0);
    unlink(gate);
    CU_ASSERT(wait_for(&p[0].tmf_done, 1));
    for (unsigned i = 0; i < NW; i++) {
        CU_ASSERT_EQUAL(atomic_load(&p[i].done), 1);
        CU_ASSERT_EQUAL(atomic_load(&p[i].aborted), 1);
    }
    CU_ASSERT_EQUAL(p[0].tmf.response, TMF_COMPLETE);
    call(1, take_ua, &p[1]);
    for (unsigned i = 0; i < NW; i++)
        call(i, close_session, &p[i]);
}

/* --- who hears of a reset has nothing older left --- */

static atomic_uint reset_ran, looks, early;

static void
reset_and_tell(void *arg)
{
    start_reset(arg);
    atomic_store(&reset_ran, 1);
}

/* Holds its worker until the reset ran on the other one: its own commands are not aborted yet. */
static void
look_early(struct worker *w, void *arg)
{
    struct peer *p = arg;
    (void)w;
    atomic_store(&looks, 1);
    while (atomic_load(&reset_ran) == 0)
        usleep(200);
    bool aborted = p->cmds[0] != NULL && p->cmds[0]->c.aborted;
    if (atomic_load(&itn_nexus(p->itn, 0)->ua) != 0 && !aborted)
        atomic_store(&early, 1);
}

static void
test_reset_order(void)
{
    static struct peer p[NW];

    memset(p, 0, sizeof p);
    atomic_store(&reset_ran, 0);
    atomic_store(&looks, 0);
    atomic_store(&early, 0);
    gate_shut();
    for (unsigned i = 0; i < NW; i++) {
        p[i].id = i;
        call(i, open_session, &p[i]);
    }
    call(1, start_write, &p[1]);
    for (int n = 0; n < 1000 && atomic_load(&p[1].io) == 0; n++)
        call(1, look_io, &p[1]);
    worker_post(ws[1], look_early, &p[1]);
    CU_ASSERT(wait_for(&looks, 1));
    call(0, reset_and_tell, &p[0]);
    unlink(gate);
    CU_ASSERT(wait_for(&p[0].tmf_done, 1));
    CU_ASSERT_EQUAL(atomic_load(&early), 0);
    CU_ASSERT_EQUAL(atomic_load(&p[1].aborted), 1);
    call(1, take_ua, &p[1]);
    for (unsigned i = 0; i < NW; i++)
        call(i, close_session, &p[i]);
}

/* --- a dead session's write on one worker, a live command on the other --- */

static void
look_parked(void *arg)
{
    struct peer *p = arg;
    atomic_store(&p->io, p->cmds[0] != NULL && p->cmds[0]->c.phase == PH_PARKED &&
                             p->cmds[0]->c.park_why == PARK_RANGE);
}

static void
abort_first(void *arg)
{
    struct peer *p = arg;
    scsi_abort(&p->cmds[0]->c);
}

static void
test_orphan(bool abort_waiter)
{
    static struct peer p[NW];

    memset(p, 0, sizeof p);
    gate_shut();
    for (unsigned i = 0; i < NW; i++) {
        p[i].id = i;
        call(i, open_session, &p[i]);
    }
    call(0, start_write, &p[0]);
    for (int n = 0; n < 1000 && atomic_load(&p[0].io) == 0; n++)
        call(0, look_io, &p[0]);
    call(0, close_session, &p[0]);
    CU_ASSERT_EQUAL(atomic_load(&lun->orphans), 1);
    call(1, start_write, &p[1]);
    for (int n = 0; n < 1000 && atomic_load(&p[1].io) == 0; n++)
        call(1, look_parked, &p[1]);
    CU_ASSERT_EQUAL(atomic_load(&p[1].io), 1);
    if (abort_waiter)
        call(1, abort_first, &p[1]);
    unlink(gate);
    CU_ASSERT(wait_for(&p[0].done, 1) && wait_for(&p[1].done, 1));
    CU_ASSERT_EQUAL(atomic_load(&p[0].aborted), 1);
    CU_ASSERT_EQUAL(atomic_load(&p[1].aborted), abort_waiter ? 1 : 0);
    CU_ASSERT_EQUAL(atomic_load(&lun->orphans), 0);
    call(1, close_session, &p[1]);
}

static void
test_orphans(void)
{
    for (int i = 0; i < 8; i++)
        test_orphan(i & 1);
}

/* --- storm ----------------------------------------------------------------------------------- */

static unsigned
roll(struct peer *p, unsigned n)
{
    p->seed = p->seed * 1103515245u + 12345u;
    return (p->seed >> 16) % n;
}

static void
next_command(struct peer *p, unsigned slot)
{
    static const uint8_t cdbs[][16] = {
        {0x28, 0, 0, 0, 0, 3, 0, 0, 1},
        {0x2a, 0, 0, 0, 0, 3, 0, 0, 1},
        {0x2a, 8, 0, 0, 0, 4, 0, 0, 1},
        {0x35},
        {0x12, 1, 0x83, 0, 255},
        {0x1a, 0, 0x3f, 0, 255},
        {0x16},
        {0x17},
        {0x03, 0, 0, 0, 18},
        {0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64},
        {0x15, 0x10, 0, 0, 24},
        {0x00},
    };
    if (p->left == 0 || p->stop)
        return;
    p->left--;
    const uint8_t *cdb = cdbs[roll(p, sizeof cdbs / sizeof cdbs[0])];
    submit(p, slot, cdb, 16, roll(p, 8) == 0 ? ATTR_ORDERED : ATTR_SIMPLE);
    if (roll(p, 40) == 0 && !p->tmf_busy)
        start_reset(p);
    if (roll(p, 30) == 0 && p->cmds[roll(p, DEEP)] != NULL) {
        struct tcmd *t = p->cmds[roll(p, DEEP)];
        if (t != NULL)
            scsi_abort(&t->c);
    }
    if (roll(p, 60) == 0) {
        itn_set_map(p->itn, maps[1]);
        itn_set_map(p->itn, maps[0]);
    }
}

static void
start_storm(void *arg)
{
    struct peer *p = arg;
    p->storm = true;
    for (unsigned i = 0; i < DEEP; i++)
        next_command(p, i);
}

/* In the place of main, which is a worker. */
static void
administer(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct lun_conf conf = *lun_conf(lun);
    struct lun_state st;
    char err[128];

    conf.write_cache = n % 3 == 0;
    snprintf(conf.product_rev, sizeof conf.product_rev, "%u", n);
    CU_ASSERT_EQUAL(lun_update(lun, &conf, err, sizeof err), 0);
    lun_set_online(lun, n % 8 != 0);
    lun_probed(lun, n % 5 == 0 ? BE_EV_GREW : 0);
    lun_state(lun, &st);
    usleep(500);
}

static void
test_storm(void)
{
    static struct peer p[NW];
    struct lun_state st;

    memcpy(data + 4, (const uint8_t[]){0x08, 0x12, 0x04}, 3); /* a MODE SELECT list */
    for (unsigned round = 0; round < 6; round++) {
        memset(p, 0, sizeof p);
        for (unsigned i = 0; i < NW; i++) {
            p[i].id = i;
            p[i].seed = 77 * round + i;
            p[i].left = 1500;
            call(i, open_session, &p[i]);
        }
        for (unsigned i = 0; i < NW; i++)
            call(i, start_storm, &p[i]);
        for (unsigned n = 0; n < 40; n++)
            call(NW, administer, &n);
        lun_set_online(lun, true);
        for (unsigned i = 0; i < NW; i++)
            call(i, close_session, &p[i]); /* in the middle of it */
        for (unsigned i = 0; i < 2000 && be_in_flight(be) != 0; i++)
            usleep(1000);
        usleep(20000);
        CU_ASSERT(atomic_load(&p[0].done) > DEEP);
        lun_state(lun, &st);
        CU_ASSERT(st.itns == 0 && !st.reserved);
        CU_ASSERT_EQUAL(atomic_load(&lun->orphans), 0);
    }
}

static int
set_up(void)
{
    char layers[256], err[256] = "";
    static const uint8_t seed[32] = {3};
    struct lun_conf conf = {.block_size = 512, .online = true, .write_cache = true};

    snprintf(layers, sizeof layers, "delay:op=write,stuck=1,when=%s", gate);
    struct be_opts bo = {.type = "null",
                         .null_size = 1 << 20,
                         .block_size = 512,
                         .write_cache = true,
                         .layers = layers};
    be = be_new(&bo, err, sizeof err);
    if (be == NULL || be_open(be) != 0)
        return 1;
    lun_ident_default(&conf.ident, seed, "threads");
    lun = lun_new(&conf, be_get(be), err, sizeof err);
    if (lun == NULL)
        return 1;
    maps[0] = lun_map_new(&(struct lun_map_entry){0, lun}, 1);
    maps[1] = lun_map_new(NULL, 0);
    return 0;
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"LUN RESET over two workers", test_reset},
        {"commands end before their session hears of a reset", test_reset_order},
        {"a dead session's write on another worker", test_orphans},
        {"storm", test_storm},
    };
    int fd = mkstemp(gate);
    if (fd < 0 || helper_pool_start(1, 4) != 0)
        return 1;
    close(fd);
    unlink(gate);
    for (unsigned i = 0; i <= NW; i++)
        if ((ws[i] = worker_start(&(struct worker_opts){.id = i})) == NULL)
            return 1;
    if (set_up() != 0)
        return 1;
    int rc = UNIT_RUN("scsi-threads", tests);
    for (unsigned i = 0; i <= NW; i++) {
        worker_stop(ws[i]);
        worker_join(ws[i]);
    }
    lun_map_put(maps[0]);
    lun_map_put(maps[1]);
    lun_put(lun);
    be_close(be);
    be_put(be);
    unlink(gate);
    return rc;
}
