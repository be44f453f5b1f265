/* SPDX-License-Identifier: BSD-2-Clause */
/* Task sets: ordering, aborts in every phase, task management functions, dead sessions and the
 * writes they leave behind, reservations.  One worker; several in test-scsi-threads.c. */
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>

static struct fake f;
static uint8_t buf[8][65536];

static char gate[] = "/tmp/evtgt-gate-XXXXXX"; /* the layer holds requests while it is there */
static char layers[256];

static void
gate_shut(void)
{
    int fd = open(gate, O_CREAT | O_WRONLY, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    usleep(2000); /* the layer looks once a millisecond */
}

static void
gate_open(void)
{
    unlink(gate);
    usleep(2000);
}

/* how: "stuck" (cancelling does not help) or "hang" (it does). */
static void
open_gated(const char *how, const char *op)
{
    snprintf(layers, sizeof layers, "delay:op=%s,%s=1,when=%s", op, how, gate);
    gate_open();
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 22, .layers = layers});
}

static struct itn *
session(uint8_t n)
{
    struct itn_params p = {.initiator_name = "iqn.2026-01.example:other",
                           .isid = {0x40, 0, 0, 0, 0, n},
                           .target_name = "iqn.2026-01.example:target",
                           .tpgt = 1,
                           .budget = &f.budget,
                           .map = f.map};
    struct itn *itn = itn_new(f.w, &p);
    uint16_t asc;
    while (itn_nexus(itn, 0) != NULL && ua_take(itn_nexus(itn, 0), &asc))
        ;
    return itn;
}

static void
start_by(struct itn *itn, struct fcmd *c, uint8_t attr, const uint8_t *cdb, size_t len, unsigned i,
         uint32_t exp_in, uint32_t exp_out)
{
    fake_init(&f, c, cdb, len, buf[i], exp_in, buf[i], exp_out);
    c->c.itn = itn;
    c->c.attr = attr;
    fake_submit(c);
}

#define READ1(lba)  CDB(0x28, 0, 0, 0, 0, (lba), 0, 0, 1, 0)
#define WRITE1(lba) CDB(0x2a, 0, 0, 0, 0, (lba), 0, 0, 1, 0)

static void
start_read(struct fcmd *c, uint8_t attr)
{
    start_by(f.itn, c, attr, READ1(0), 0, 512, 0);
}

static void
start_write(struct fcmd *c, uint8_t attr)
{
    start_by(f.itn, c, attr, WRITE1(0), 1, 0, 512);
}

static void
turns(int n)
{
    while (n-- > 0)
        worker_turn(f.w, false);
}

static void
finish(struct fcmd *c)
{
    fake_wait(&f, c);
    fake_release(c);
}

/* Commands in the order in which they ended. */
static struct fcmd *ended[8];
static unsigned n_ended;

static void
on_done(struct scsi_cmd *cmd)
{
    fake_done(cmd);
    if (n_ended < 8)
        ended[n_ended++] = (struct fcmd *)(void *)cmd;
}

static const struct scsi_xport log_xport = {fake_pull, fake_push, on_done};

/* --- ordering -------------------------------------------------------------------------------- */

static void
test_ordered(void)
{
    struct fcmd s1, o1, s2, o2, h, q;
    open_gated("stuck", "write");
    gate_shut();
    start_write(&s1, ATTR_SIMPLE);
    turns(10);
    CU_ASSERT_EQUAL(s1.c.phase, PH_IO);
    start_read(&o1, ATTR_ORDERED);
    start_read(&s2, ATTR_SIMPLE);
    start_read(&o2, ATTR_ORDERED);
    start_read(&h, ATTR_HEAD);
    start_by(f.itn, &q, ATTR_ORDERED, CDB(0x12, 0, 0, 0, 36, 0), 5, 36, 0); /* implicit head */
    finish(&h);
    CU_ASSERT_EQUAL(h.c.status, SAM_GOOD);
    finish(&q);
    turns(10);
    CU_ASSERT(!s1.done && !o1.done && !s2.done && !o2.done);
    CU_ASSERT(o1.c.park_why == PARK_ORDER && s2.c.park_why == PARK_ORDER);
    n_ended = 0;
    s1.c.xport = o1.c.xport = s2.c.xport = o2.c.xport = &log_xport;
    gate_open();
    finish(&o2);
    CU_ASSERT(n_ended == 4 && ended[0] == &s1 && ended[1] == &o1 && ended[2] == &s2 &&
              ended[3] == &o2);
    CU_ASSERT(s1.c.status == 0 && o1.c.status == 0 && s2.c.status == 0 && o2.c.status == 0);
    fake_release(&s1);
    fake_release(&o1);
    fake_release(&s2);
    CU_ASSERT_EQUAL(itn_active(f.itn), 0);
    fake_close(&f);
}

/* An ORDERED command that is aborted while it waits lets go those behind it. */
static void
test_ordered_aborted(void)
{
    struct fcmd s1, o1, s2;
    open_gated("stuck", "write");
    gate_shut();
    start_write(&s1, ATTR_SIMPLE);
    start_read(&o1, ATTR_ORDERED);
    start_read(&s2, ATTR_SIMPLE);
    turns(10);
    scsi_abort(&o1.c);
    finish(&s2);
    CU_ASSERT(o1.done && o1.c.aborted && s2.c.status == SAM_GOOD && !s2.c.aborted);
    fake_release(&o1);
    gate_open();
    finish(&s1);
    fake_close(&f);
}

/* Order is per nexus. */
static void
test_ordered_two(void)
{
    struct fcmd s1, o1;
    open_gated("stuck", "write");
    struct itn *other = session(2);
    gate_shut();
    start_write(&s1, ATTR_ORDERED);
    start_by(other, &o1, ATTR_ORDERED, READ1(5), 2, 512, 0);
    finish(&o1);
    CU_ASSERT_FALSE(s1.done);
    gate_open();
    finish(&s1);
    itn_free(other);
    fake_close(&f);
}

/* What is checked at arrival is checked again when a command had to wait. */
static void
test_recheck(void)
{
    struct fcmd s1, o1;
    open_gated("stuck", "write");
    gate_shut();
    start_write(&s1, ATTR_SIMPLE);
    start_read(&o1, ATTR_ORDERED);
    turns(10);
    lun_set_online(f.lun, false);
    gate_open();
    finish(&o1);
    CU_ASSERT(fake_failed(&o1, 2, 0x0412));
    CU_ASSERT_EQUAL(s1.c.status, SAM_GOOD);
    fake_release(&s1);
    fake_close(&f);
}

/* --- aborts ---------------------------------------------------------------------------------- */

static void
aborted(struct fcmd *c)
{
    scsi_abort(&c->c);
    CU_ASSERT_FALSE(c->done); /* never inside */
    scsi_abort(&c->c);        /* again: nothing */
    finish(c);
    CU_ASSERT(c->c.aborted);
}

static void
test_abort_phases(void)
{
    struct fcmd c;
    open_gated("hang", "read,write,flush");

    start_read(&c, ATTR_SIMPLE); /* ending or in the backend, whichever null does */
    aborted(&c);

    fake_init(&f, &c, WRITE1(0), NULL, 0, buf[0], 512); /* waits for data */
    c.hold = true;
    fake_submit(&c);
    CU_ASSERT_EQUAL(c.c.phase, PH_PULL);
    aborted(&c);

    fake_init(&f, &c, CDB(0x28, 0, 0, 0, 0, 0, 0, 0x10, 0, 0), malloc(1 << 21), 1 << 21, NULL, 0);
    c.hold = true; /* two windows */
    fake_submit(&c);
    for (int i = 0; i < 10 && c.c.phase != PH_PUSH; i++)
        worker_turn(f.w, false);
    CU_ASSERT_EQUAL(c.c.phase, PH_PUSH);
    aborted(&c);
    free(c.in);

    gate_shut(); /* the backend has it and gives it back */
    start_write(&c, ATTR_SIMPLE);
    turns(5);
    CU_ASSERT_EQUAL(c.c.phase, PH_IO);
    aborted(&c);
    CU_ASSERT_EQUAL(atomic_load(&f.lun->orphans), 0);
    gate_open();

    start_by(f.itn, &c, ATTR_SIMPLE, CDB(0xff), 0, 0, 0); /* ending */
    aborted(&c);
    CU_ASSERT_EQUAL(itn_active(f.itn), 0);
    CU_ASSERT_EQUAL(f.budget.used, 0);
    fake_close(&f);
}

static void
test_abort_memory(void)
{
    struct fcmd c;
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20, .budget = 8192});
    CU_ASSERT_FATAL(budget_take(&f.budget, 8192));
    start_write(&c, ATTR_SIMPLE);
    turns(3);
    CU_ASSERT(c.c.phase == PH_PARKED && c.c.park_why == PARK_MEMORY);
    aborted(&c);
    start_write(&c, ATTR_SIMPLE);
    turns(3);
    budget_give(&f.budget, 8192); /* granted, not yet told, and aborted */
    aborted(&c);
    CU_ASSERT_EQUAL(f.budget.used, 0);
    CU_ASSERT_FATAL(budget_take(&f.budget, 8192));
    start_write(&c, ATTR_SIMPLE);
    turns(3);
    budget_give(&f.budget, 8192);
    finish(&c);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(f.budget.used, 0);
    fake_close(&f);
}

static void
test_data_phase(void)
{
    struct fcmd c;
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20});
    fake_init(&f, &c, WRITE1(0), NULL, 0, buf[0], 512);
    c.pull_err = -EIO;
    c.pull_asc = 0x0c0d;
    fake_submit(&c);
    finish(&c);
    CU_ASSERT(fake_failed(&c, 0xb, 0x0c0d));
    fake_init(&f, &c, WRITE1(0), NULL, 0, buf[0], 512);
    c.pull_err = -ECANCELED;
    fake_submit(&c);
    finish(&c);
    CU_ASSERT(c.c.aborted);
    scsi_pulled(&c.c, 0, 0); /* late answers have no effect */
    scsi_pushed(&c.c);
    scsi_abort(&c.c);
    fake_close(&f);
}

/* --- task management functions --------------------------------------------------------------- */

struct tmf {
    struct scsi_tmf t; /* first */
    bool done;
    struct fcmd *after[4]; /* must be done before */
};

static void
on_tmf(struct scsi_tmf *t)
{
    struct tmf *m = (struct tmf *)(void *)t;
    CU_ASSERT_FALSE_FATAL(m->done);
    m->done = true;
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT(m->after[i] == NULL || (m->after[i]->done && m->after[i]->c.aborted));
}

static void
tmf_start(struct tmf *m, struct itn *itn, uint8_t function, struct fcmd *ref)
{
    m->t.function = function;
    m->t.itn = itn;
    m->t.ref = ref != NULL ? &ref->c : NULL;
    m->t.done = on_tmf;
    scsi_tmf_submit(&m->t);
    CU_ASSERT_FALSE(m->done);
}

static uint8_t
tmf_finish(struct tmf *m)
{
    while (!m->done)
        worker_turn(f.w, true);
    return m->t.response;
}

static void
test_tmf_abort_task(void)
{
    struct fcmd c;
    struct tmf m = {.after = {&c}};
    open_gated("hang", "write");
    fake_init(&f, &c, WRITE1(0), NULL, 0, buf[0], 512);
    c.hold = true;
    fake_submit(&c);
    tmf_start(&m, f.itn, TMF_ABORT_TASK, &c);
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    fake_release(&c);
    struct tmf none = {0};
    tmf_start(&none, f.itn, TMF_ABORT_TASK, NULL);
    CU_ASSERT_EQUAL(tmf_finish(&none), TMF_NO_TASK);
    struct tmf over = {0};
    start_read(&c, ATTR_SIMPLE);
    fake_wait(&f, &c);
    tmf_start(&over, f.itn, TMF_ABORT_TASK, &c);
    CU_ASSERT_EQUAL(tmf_finish(&over), TMF_NO_TASK);
    fake_release(&c);
    static const uint8_t unsupported[] = {TMF_CLEAR_ACA, TMF_TARGET_COLD_RESET, TMF_TASK_REASSIGN,
                                          0, 99};
    for (size_t i = 0; i < sizeof unsupported; i++) {
        struct tmf u = {0};
        tmf_start(&u, f.itn, unsupported[i], NULL);
        CU_ASSERT_EQUAL(tmf_finish(&u), TMF_NOT_SUPPORTED);
    }
    fake_close(&f);
}

/* The answer waits until the kernel has let go, and two functions may wait for one command. */
static void
test_tmf_waits(void)
{
    struct fcmd c;
    struct tmf m = {.after = {&c}}, n = {.after = {&c}}, gone = {0};
    open_gated("stuck", "write");
    gate_shut();
    start_write(&c, ATTR_SIMPLE);
    turns(5);
    tmf_start(&m, f.itn, TMF_ABORT_TASK, &c);
    tmf_start(&n, f.itn, TMF_LOGICAL_UNIT_RESET, NULL);
    tmf_start(&gone, f.itn, TMF_ABORT_TASK_SET, NULL);
    scsi_tmf_forget(&gone.t);
    turns(50);
    CU_ASSERT(!m.done && !n.done && !c.done);
    gate_open();
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    CU_ASSERT_EQUAL(tmf_finish(&n), TMF_COMPLETE);
    turns(5);
    CU_ASSERT_FALSE(gone.done);
    fake_release(&c);
    fake_close(&f);
}

static void
test_tmf_set(uint8_t function)
{
    struct fcmd a, b, o, x;
    struct tmf m = {.after = {&a, &b, &o}};
    open_gated("hang", "write");
    struct itn *other = session(2);
    gate_shut();
    start_write(&a, ATTR_SIMPLE);
    fake_init(&f, &b, WRITE1(9), NULL, 0, buf[2], 512);
    b.hold = true;
    fake_submit(&b);
    start_read(&o, ATTR_ORDERED);
    fake_init(&f, &x, WRITE1(20), NULL, 0, buf[3], 512);
    x.c.itn = other;
    x.hold = true;
    fake_submit(&x);
    turns(5);
    tmf_start(&m, f.itn, function, NULL);
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    fake_release(&a);
    fake_release(&b);
    fake_release(&o);
    turns(5);
    uint16_t asc = 0;
    if (function == TMF_LOGICAL_UNIT_RESET) {
        CU_ASSERT(x.done && x.c.aborted);
        CU_ASSERT(ua_take(itn_nexus(other, 0), &asc) && asc == 0x2903);
        CU_ASSERT(ua_take(itn_nexus(f.itn, 0), &asc) && asc == 0x2903); /* SAM-5 6.3.3: all */
    } else { /* the other nexus has a task set of its own */
        CU_ASSERT_FALSE(x.done);
        CU_ASSERT_FALSE(ua_take(itn_nexus(other, 0), &asc));
        CU_ASSERT_EQUAL(ua_take(itn_nexus(f.itn, 0), &asc), function == TMF_I_T_NEXUS_RESET);
        CU_ASSERT_EQUAL(asc, function == TMF_I_T_NEXUS_RESET ? 0x2907 : 0);
        gate_open();
        fake_continue(&x);
        fake_wait(&f, &x);
        CU_ASSERT_EQUAL(x.c.status, SAM_GOOD);
    }
    fake_release(&x);
    gate_open();
    itn_free(other);
    fake_close(&f);
}

static void
test_tmf_sets(void)
{
    test_tmf_set(TMF_ABORT_TASK_SET);
    test_tmf_set(TMF_CLEAR_TASK_SET);
    test_tmf_set(TMF_LOGICAL_UNIT_RESET);
    test_tmf_set(TMF_I_T_NEXUS_RESET);
}

static void
test_tmf_units(void)
{
    open_gated("hang", "write");
    static const uint8_t absent[8] = {0, 7}, wlun[8] = {0xc1, 0x01};
    static const uint8_t functions[] = {TMF_ABORT_TASK_SET, TMF_CLEAR_TASK_SET,
                                        TMF_LOGICAL_UNIT_RESET};
    for (size_t i = 0; i < sizeof functions; i++) {
        struct tmf m = {0}, w = {0};
        memcpy(m.t.lun, absent, 8);
        tmf_start(&m, f.itn, functions[i], NULL);
        CU_ASSERT_EQUAL(tmf_finish(&m), TMF_NO_LUN);
        memcpy(w.t.lun, wlun, 8);
        tmf_start(&w, f.itn, functions[i], NULL);
        CU_ASSERT_EQUAL(tmf_finish(&w), TMF_COMPLETE);
    }
    fake_close(&f);
}

static void
run(struct itn *itn, struct fcmd *c, const uint8_t *cdb, size_t len, uint32_t exp_in,
    uint32_t exp_out)
{
    start_by(itn, c, ATTR_SIMPLE, cdb, len, 7, exp_in, exp_out);
    finish(c);
}

/* A reset ends reservations and prevention, brings back saved mode values and starts the unit. */
static void
test_reset_state(void)
{
    struct fcmd c;
    struct tmf m = {0};
    open_gated("hang", "read");
    struct itn *other = session(2);
    run(other, &c, CDB(0x16, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(other, &c, CDB(0x1e, 0, 0, 0, 1, 0), 0, 0);
    CU_ASSERT_EQUAL(f.lun->prevent, 1);
    static const uint8_t list[24] = {0, 0, 0, 0, 0x08, 0x12};
    memcpy(buf[7], list, 24);
    run(other, &c, CDB(0x15, 0x10, 0, 0, 24, 0), 0, 24);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_FALSE(atomic_load(&f.be->write_cache));
    tmf_start(&m, f.itn, TMF_TARGET_WARM_RESET, NULL);
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    CU_ASSERT(atomic_load(&f.be->write_cache));
    CU_ASSERT_EQUAL(f.lun->prevent, 0);
    CU_ASSERT_PTR_NULL(f.lun->reserved_by);
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2903));
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2a01)); /* from the MODE SELECT */
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(other, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2903));
    itn_free(other);
    fake_close(&f);
}

/* --- sessions that die ----------------------------------------------------------------------- */

static void
test_orphan(void)
{
    struct fcmd w, over, beside, all, r;
    open_gated("stuck", "write");
    struct itn *dying = session(2);
    gate_shut();
    start_by(dying, &w, ATTR_SIMPLE, WRITE1(10), 0, 0, 512);
    turns(5);
    CU_ASSERT_EQUAL(w.c.phase, PH_IO);
    itn_free(dying);
    turns(20);
    CU_ASSERT_FALSE(w.done); /* nothing waited for it */
    CU_ASSERT_EQUAL(worker_orphan_count(f.w), 1);
    CU_ASSERT_EQUAL(atomic_load(&f.lun->orphans), 1);

    start_by(f.itn, &r, ATTR_SIMPLE, READ1(10), 1, 512, 0);
    start_by(f.itn, &over, ATTR_SIMPLE, CDB(0x2a, 0, 0, 0, 0, 8, 0, 0, 4, 0), 2, 0, 2048);
    start_by(f.itn, &all, ATTR_SIMPLE, CDB(0x41, 0, 0, 0, 0, 0, 0, 0x08, 0, 0), 3, 0, 512);
    start_by(f.itn, &beside, ATTR_SIMPLE, READ1(11), 4, 512, 0);
    finish(&beside);
    turns(20);
    CU_ASSERT(!r.done && !over.done && !all.done);
    CU_ASSERT(r.c.park_why == PARK_RANGE && over.c.park_why == PARK_RANGE);
    scsi_abort(&over.c);
    finish(&over);
    CU_ASSERT(over.c.aborted);
    gate_open();
    finish(&w);
    CU_ASSERT(w.c.aborted);
    finish(&r);
    finish(&all);
    CU_ASSERT_EQUAL(r.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(all.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(worker_orphan_count(f.w), 0);
    CU_ASSERT_EQUAL(atomic_load(&f.lun->orphans), 0);
    fake_close(&f);
}

/* A reset by another session waits for the writes of a dead one too. */
static void
test_orphan_reset(void)
{
    struct fcmd w;
    struct tmf m = {0};
    open_gated("stuck", "write");
    struct itn *dying = session(2);
    gate_shut();
    start_by(dying, &w, ATTR_SIMPLE, WRITE1(10), 0, 0, 512);
    turns(5);
    itn_free(dying);
    tmf_start(&m, f.itn, TMF_LOGICAL_UNIT_RESET, NULL);
    turns(50);
    CU_ASSERT_FALSE(m.done);
    struct lun_state st;
    lun_state(f.lun, &st);
    CU_ASSERT_EQUAL(st.itns, 1);
    gate_open();
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    CU_ASSERT(w.done && w.c.aborted);
    fake_release(&w);
    fake_close(&f);
}

/* A reset takes effect before it returns: what the initiator sends next is not aborted with the
 * rest but hears of the reset. */
static void
test_reset_at_once(void)
{
    struct fcmd x, next;
    struct tmf m = {0};
    open_gated("hang", "write");
    struct itn *other = session(2);
    fake_init(&f, &x, WRITE1(20), NULL, 0, buf[3], 512);
    x.c.itn = other;
    x.hold = true;
    fake_submit(&x);
    tmf_start(&m, f.itn, TMF_LOGICAL_UNIT_RESET, NULL);
    CU_ASSERT(x.c.aborted);
    fake_init(&f, &next, CDB(0, 0, 0, 0, 0, 0), NULL, 0, NULL, 0);
    fake_submit(&next);
    finish(&next);
    CU_ASSERT_FALSE(next.c.aborted);
    CU_ASSERT_EQUAL(next.c.status, SAM_CHECK);
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    fake_wait(&f, &x);
    fake_release(&x);
    itn_free(other);
    fake_close(&f);
}

/* Commands in all phases; the session's budget is whole again at once. */
static void
test_die(void)
{
    struct fcmd io, pull, order, park, loose;
    struct budget own;
    struct tmf m = {0};
    open_gated("stuck", "write");
    budget_init(&own, worker_budget(f.w), f.w, 8192);
    struct itn_params p = {
        .target_name = "iqn.2026-01.example:target", .tpgt = 1, .budget = &own, .map = f.map};
    struct itn *itn = itn_new(f.w, &p);
    uint16_t asc;
    ua_take(itn_nexus(itn, 0), &asc);
    gate_shut();
    start_by(itn, &io, ATTR_SIMPLE, WRITE1(1), 0, 0, 512);
    fake_init(&f, &pull, WRITE1(2), NULL, 0, buf[1], 512);
    pull.c.itn = itn;
    pull.hold = true;
    fake_submit(&pull);
    start_by(itn, &park, ATTR_SIMPLE, WRITE1(3), 2, 0, 512);
    start_by(itn, &order, ATTR_ORDERED, READ1(4), 3, 512, 0);
    fake_init(&f, &loose, CDB(0x12, 0, 0, 0, 36, 0), buf[4], 36, NULL, 0);
    loose.c.itn = itn;
    loose.c.lun[1] = 9;
    fake_submit(&loose);
    turns(5);
    CU_ASSERT(io.c.phase == PH_IO && pull.c.phase == PH_PULL && park.c.park_why == PARK_MEMORY &&
              order.c.park_why == PARK_ORDER && loose.done);
    fake_release(&loose);
    tmf_start(&m, itn, TMF_ABORT_TASK, &io);
    scsi_tmf_forget(&m.t);
    itn_free(itn);
    CU_ASSERT_EQUAL(own.used, 0);
    budget_fini(&own);
    turns(10);
    CU_ASSERT(pull.done && park.done && order.done && !io.done);
    CU_ASSERT(pull.c.aborted && park.c.aborted && order.c.aborted);
    fake_release(&pull);
    fake_release(&park);
    fake_release(&order);
    gate_open();
    finish(&io);
    turns(3);
    CU_ASSERT_FALSE(m.done);
    CU_ASSERT_EQUAL(atomic_load(&worker_budget(f.w)->used), 0);
    fake_close(&f);
}

/* A unit leaves the map: its commands end, the others' do not. */
static void
test_unmapped(void)
{
    struct fcmd w, c;
    open_gated("stuck", "write");
    struct lun_map_entry e[2] = {{0, f.lun}, {1, f.lun}};
    struct lun_map *two = lun_map_new(e, 2);
    itn_set_map(f.itn, two);
    for (int i = 0; i < 4; i++) {
        fake_init(&f, &c, CDB(0, 0, 0, 0, 0, 0), NULL, 0, NULL, 0);
        c.c.lun[1] = (uint8_t)(i & 1);
        fake_submit(&c);
        finish(&c);
    }
    gate_shut();
    fake_init(&f, &w, WRITE1(1), NULL, 0, buf[0], 512);
    w.c.lun[1] = 1;
    fake_submit(&w);
    turns(5);
    itn_set_map(f.itn, f.map);
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x3f0e));
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_init(&f, &c, CDB(0, 0, 0, 0, 0, 0), NULL, 0, NULL, 0);
    c.c.lun[1] = 1;
    fake_submit(&c);
    finish(&c);
    CU_ASSERT(fake_failed(&c, 5, 0x2500));
    gate_open();
    finish(&w);
    CU_ASSERT(w.c.aborted);
    lun_map_put(two);
    fake_close(&f);
}

/* SAM-5 6.3.4: what the nexus held goes with it; what others hold, and mode pages, stay. */
static void
test_tmf_nexus_loss(void)
{
    struct fcmd c;
    struct tmf m = {0}, n = {0};
    static const uint8_t lun0[8], absent[8] = {0, 9}, report_luns[8] = {0xc1, 1};
    open_gated("hang", "write");
    struct itn *other = session(2);
    run(f.itn, &c, CDB(0x16, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(f.itn, &c, CDB(0x1e, 0, 0, 0, 1, 0), 0, 0);
    CU_ASSERT_EQUAL(f.lun->prevent, 1);
    tmf_start(&m, other, TMF_I_T_NEXUS_RESET, NULL);
    CU_ASSERT_EQUAL(tmf_finish(&m), TMF_COMPLETE);
    CU_ASSERT(f.lun->prevent == 1 && f.lun->reserved_by == itn_nexus(f.itn, 0));
    CU_ASSERT_EQUAL(scsi_tmf_query(f.itn, TMF_QUERY_ASYNC_EVENT, lun0, false), TMF_COMPLETE);
    tmf_start(&n, f.itn, TMF_I_T_NEXUS_RESET, NULL);
    CU_ASSERT_EQUAL(tmf_finish(&n), TMF_COMPLETE);
    CU_ASSERT(f.lun->prevent == 0 && f.lun->reserved_by == NULL);
    CU_ASSERT_EQUAL(scsi_tmf_query(f.itn, TMF_QUERY_ASYNC_EVENT, lun0, false), TMF_SUCCEEDED);
    CU_ASSERT_EQUAL(scsi_tmf_query(f.itn, TMF_QUERY_ASYNC_EVENT, absent, false), TMF_NO_LUN);
    CU_ASSERT_EQUAL(scsi_tmf_query(f.itn, TMF_QUERY_ASYNC_EVENT, report_luns, true), TMF_COMPLETE);
    CU_ASSERT_EQUAL(scsi_tmf_query(f.itn, TMF_QUERY_TASK, report_luns, true), TMF_SUCCEEDED);
    run(other, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2907));
    run(other, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    itn_free(other);
    fake_close(&f);
}

/* --- reservations (SPC-2) -------------------------------------------------------------------- */

static void
test_reserve(void)
{
    struct fcmd c;
    open_gated("hang", "write");
    struct itn *other = session(2);
    run(f.itn, &c, CDB(0x16, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(f.itn, &c, CDB(0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0, 0); /* again by the holder */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    static const uint8_t conflicts[][16] = {
        {0x00},
        {0x28, 0, 0, 0, 0, 0, 0, 0, 1},
        {0x2a, 0, 0, 0, 0, 0, 0, 0, 1},
        {0x16},
        {0x56},
        {0x1a, 8, 8, 0, 0xff},
        {0x15, 0x10},
        {0x1b, 0, 0, 0, 1},
        {0x1e, 0, 0, 0, 1},
        {0x35},
        {0x2f, 0, 0, 0, 0, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof conflicts / sizeof conflicts[0]; i++) {
        run(other, &c, conflicts[i], 16, 512, 512);
        CU_ASSERT_EQUAL(c.c.status, SAM_RESERVATION_CONFLICT);
        CU_ASSERT_EQUAL(c.c.sense_len, 0);
    }
    static const uint8_t allowed[][16] = {
        {0x12, 0, 0, 0, 36},
        {0x03, 0, 0, 0, 18},
        {0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64},
        {0x25},
        {0x1e, 0, 0, 0, 0},
        {0x17}, /* not the holder: GOOD, no effect */
        {0x57},
    };
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        run(other, &c, allowed[i], 16, 512, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    }
    run(other, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0); /* still reserved */
    CU_ASSERT_EQUAL(c.c.status, SAM_RESERVATION_CONFLICT);
    run(f.itn, &c, READ1(0), 512, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(f.itn, &c, CDB(0x17, 0, 0, 0, 0, 0), 0, 0);
    run(other, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(other, &c, CDB(0x16, 0, 0, 0, 0, 0), 0, 0);
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_RESERVATION_CONFLICT);
    run(other, &c, CDB(0x1e, 0, 0, 0, 1, 0), 0, 0);
    CU_ASSERT_EQUAL(f.lun->prevent, 1);
    itn_free(other); /* both end with the session */
    CU_ASSERT_EQUAL(f.lun->prevent, 0);
    run(f.itn, &c, CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_close(&f);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"ORDERED", test_ordered},
        {"ORDERED, aborted", test_ordered_aborted},
        {"ORDERED, two nexuses", test_ordered_two},
        {"state is checked again", test_recheck},
        {"abort in each phase", test_abort_phases},
        {"abort while waiting for memory", test_abort_memory},
        {"data phase", test_data_phase},
        {"ABORT TASK", test_tmf_abort_task},
        {"functions wait", test_tmf_waits},
        {"task sets and reset", test_tmf_sets},
        {"I_T NEXUS RESET, queries", test_tmf_nexus_loss},
        {"functions on absent units", test_tmf_units},
        {"reset of state", test_reset_state},
        {"writes of a dead session", test_orphan},
        {"reset waits for orphans", test_orphan_reset},
        {"a reset takes effect at once", test_reset_at_once},
        {"death in each phase", test_die},
        {"a unit leaves", test_unmapped},
        {"RESERVE and RELEASE", test_reserve},
    };
    int fd = mkstemp(gate);
    if (fd < 0)
        return 1;
    close(fd);
    int rc = UNIT_RUN("scsi-task", tests);
    unlink(gate);
    return rc;
}
