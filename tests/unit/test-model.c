/* SPDX-License-Identifier: BSD-2-Clause */
/* target/model.c, node.c and apply*.c on one local worker: what is published when what changes. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cstore.h"
#include "base/helper.h"
#include "base/pool.h"
#include "target/model.h"
#include "tests/unit/unit.h"

static struct worker *w;
static char dir[] = "/tmp/evtgt-model-XXXXXX";

static void
on_flag(void *arg)
{
    *(bool *)arg = true;
}

static void
publish(void)
{
    char err[256] = "";
    bool done = false;
    CU_ASSERT_EQUAL_FATAL(model_publish(on_flag, &done, err, sizeof err), 0);
    while (!done)
        worker_turn(w, true);
}

struct made {
    bool over;
    struct store *s;
    char err[512];
};

static void
on_made(struct store *s, const char *err, void *arg)
{
    struct made *m = arg;
    m->over = true;
    m->s = s;
    snprintf(m->err, sizeof m->err, "%s", err);
}

static struct made
make(const struct apply_kv *kv, unsigned n)
{
    const struct model_target t = {.tid = 1, .ids = MODEL_UNSET};
    struct made m = {.over = false};
    if (apply_lun_new(&t, 1, kv, n, "alone", on_made, &m, m.err, sizeof m.err) < 0)
        return m;
    while (!m.over)
        worker_turn(w, true);
    return m;
}

static void
drop(struct store *s)
{
    bool gone = false;
    apply_store_drop_then(s, on_flag, &gone);
    while (!gone)
        worker_turn(w, true);
}

static char *
file(const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
    close(fd);
    return path;
}

static void
test_order(void)
{
    struct model_target *c = model_target_new(3, "iqn.2001-04.a:c");
    struct model_target *a = model_target_new(1, "iqn.2001-04.a:z");
    CU_ASSERT_EQUAL(model_tid_free(), 2);
    struct model_target *b = model_target_new(2, "iqn.2001-04.a:a");
    CU_ASSERT_EQUAL(model_tid_free(), 4);
    CU_ASSERT_PTR_EQUAL(model_target_find(3), c);
    CU_ASSERT_PTR_EQUAL(model_target_by_name("iqn.2001-04.a:a"), b);
    CU_ASSERT_PTR_NULL(model_target_find(4));
    publish();
    const struct node_set *set = node_set_here();
    CU_ASSERT_EQUAL_FATAL(set->n, 3);
    for (unsigned i = 1; i < set->n; i++)
        CU_ASSERT(strcmp(set->nodes[i - 1]->name, set->nodes[i]->name) < 0);
    CU_ASSERT_EQUAL(node_find(set, "iqn.2001-04.a:z")->tid, 1);
    CU_ASSERT_PTR_NULL(node_find(set, "iqn.2001-04.a:zz"));
    model_target_free(a);
    model_target_free(b);
    model_target_free(c);
    publish();
    CU_ASSERT_EQUAL(node_set_here()->n, 0);
}

static void
test_what_changes(void)
{
    struct model_target *t = model_target_new(1, "iqn.2001-04.a:a");
    struct model_target *u = model_target_new(2, "iqn.2001-04.a:b");
    const struct apply_kv kv[] = {{"bs-type", "null"}, {"size", "1M"}};
    struct made m = make(kv, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m.s);

    model_lun_add(t, 5, m.s);
    publish();
    const struct node_set *set = node_set_here();
    const struct tgt_node *nt = node_find(set, t->name), *nu = node_find(set, u->name);
    const struct lun_map *map = nt->map;
    CU_ASSERT_EQUAL(lun_map_count(map), 1);

    model_rule_add(t, "10.0.0.1", RULE_ADDRESS);
    publish();
    set = node_set_here();
    CU_ASSERT_PTR_EQUAL(node_find(set, u->name), nu); /* untouched: the same object */
    CU_ASSERT_PTR_EQUAL(node_find(set, t->name)->map, map);
    CU_ASSERT_PTR_NOT_NULL(model_rule_find(t, "10.0.0.1", RULE_ADDRESS));
    CU_ASSERT_PTR_NULL(model_rule_find(t, "10.0.0.1", RULE_NAME));

    model_lun_add(t, 1, m.s);
    publish();
    map = node_find(node_set_here(), t->name)->map;
    CU_ASSERT_EQUAL_FATAL(lun_map_count(map), 2);
    CU_ASSERT_EQUAL(lun_map_at(map, 0)->number, 1);
    apply_store_drop(m.s);
    model_target_free(t);
    model_target_free(u);
    publish();
    while (!list_is_empty(&model.stores))
        worker_turn(w, true);
}

static void
test_bad_rule_publishes_nothing(void)
{
    struct model_target *t = model_target_new(1, "iqn.2001-04.a:a");
    char err[256] = "";
    model_rule_add(t, "1.2.3.4/99", RULE_ADDRESS);
    CU_ASSERT_EQUAL(model_publish(NULL, NULL, err, sizeof err), -EINVAL);
    CU_ASSERT(err[0] != 0);
    CU_ASSERT_EQUAL(node_set_here()->n, 0);
    model_target_free(t);
}

static void
test_luns(void)
{
    char *a = file("a"), *b = file("b"), err[512] = "";
    const struct apply_kv ka[] = {{"backing-store", a}};
    const struct apply_kv kr[] = {{"backing-store", a}, {"readonly", "1"}};
    const struct apply_kv ks[] = {{"backing-store", b}, {"scsi_sn", "S"}};
    const struct apply_kv none[] = {{"backing-store", "/nonexistent/x"}};
    const struct apply_kv wrong[] = {{"backing-store", a}, {"nonsense", "1"}};

    struct made m = make(ka, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m.s);
    struct made again = make(ka, 1);
    CU_ASSERT_PTR_EQUAL(again.s, m.s); /* the same unit */
    CU_ASSERT_PTR_NULL(make(kr, 2).s); /* other settings */
    CU_ASSERT_PTR_NULL(make(none, 1).s);
    CU_ASSERT_PTR_NULL(make(wrong, 2).s);
    struct made o = make(ks, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o.s);
    const struct apply_kv twin[] = {{"backing-store", "/nonexistent/y"}, {"scsi_sn", "S"}};
    struct made t = make(twin, 2);
    CU_ASSERT(!t.s && strstr(t.err, "scsi_sn") != NULL);

    const struct apply_kv up[] = {{"vendor_id", "ACME"}, {"online", "0"}};
    CU_ASSERT_EQUAL(apply_lun_update(m.s, up, 2, err, sizeof err), 0);
    CU_ASSERT_STRING_EQUAL(lun_conf(m.s->lun)->vendor_id, "ACME");
    const struct apply_kv bad[] = {{"vendor_id", "OTHER"}, {"lbppbe", "99"}};
    CU_ASSERT_EQUAL(apply_lun_update(m.s, bad, 2, err, sizeof err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(lun_conf(m.s->lun)->vendor_id, "ACME");

    drop(again.s);
    drop(m.s);
    drop(o.s);
    while (!list_is_empty(&model.stores))
        worker_turn(w, true);
    m = make(kr, 2); /* the file is free */
    CU_ASSERT_PTR_NOT_NULL_FATAL(m.s);
    const struct apply_kv rw[] = {{"readonly", "0"}};
    CU_ASSERT_EQUAL(apply_lun_update(m.s, rw, 1, err, sizeof err), -EINVAL);
    drop(m.s);
    free(a);
    free(b);
}

static void
test_seed(void)
{
    uint8_t first[32];
    CU_ASSERT_EQUAL(apply_seed(), 0);
    memcpy(first, model.seed, sizeof first);
    memset(model.seed, 0, sizeof model.seed);
    CU_ASSERT_EQUAL(apply_seed(), 0);
    CU_ASSERT_EQUAL(memcmp(first, model.seed, sizeof first), 0);
    /* a damaged record is an error, never a reason for another seed */
    CU_ASSERT_EQUAL(cstore_write_sync(model.cstore, "host-seed", "short", 5), 0);
    CU_ASSERT_EQUAL(apply_seed(), -EBADMSG);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"targets in order", test_order},
        {"only what changed is new", test_what_changes},
        {"a bad rule publishes nothing", test_bad_rule_publishes_nothing},
        {"units: made, shared, refused, changed, dropped", test_luns},
        {"the host's seed", test_seed},
    };
    struct worker_opts wo = {.engine = ENGINE_POOL};

    if (!mkdtemp(dir) || helper_pool_start(1, 2) < 0 || !(w = worker_new_local(&wo)))
        return 1;
    worker_set_publish(&w, 1);
    tgt_worker_init(w);
    char *state = xasprintf("%s/state", dir), *cmd = xasprintf("rm -rf %s", dir);
    struct cstore *cs = cstore_open_dir(state);
    if (!cs)
        return 1;
    model_init(w, cs);
    int rc = UNIT_RUN("model", tests);
    rc |= system(cmd) != 0;
    free(state);
    free(cmd);
    _exit(rc); /* the worker and the control store have no end in a daemon either */
}
