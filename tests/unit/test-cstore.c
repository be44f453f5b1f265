/* SPDX-License-Identifier: BSD-2-Clause */
/* The control store: whole records, power cuts at every step, locking, damage, order. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/cstore.h"
#include "base/helper.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

static char top[] = "/tmp/evtgt-cstore-XXXXXX";
static char dir[64];

static struct cstore *
open_store(void)
{
    struct cstore *cs = cstore_open_dir(dir);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cs);
    return cs;
}

/* The record as a string; "-" when there is none. */
static const char *
get(struct cstore *cs, const char *name)
{
    static char text[4][256];
    static int slot;
    void *p = NULL;
    char *out = text[slot++ % 4];
    int64_t n = cstore_read(cs, name, &p);
    if (n == -ENOENT)
        return "-";
    CU_ASSERT_FATAL(n >= 0 && n < 256);
    memcpy(out, p, (size_t)n);
    out[n] = '\0';
    free(p);
    return out;
}

static int
put(struct cstore *cs, const char *name, const char *text)
{
    return cstore_write_sync(cs, name, text, strlen(text));
}

static void
on_name(const char *name, void *arg)
{
    char *all = arg;
    snprintf(all + strlen(all), 256 - strlen(all), "%s ", name);
}

static void
test_each(void)
{
    struct cstore *cs = open_store();
    char all[256] = "";
    CU_ASSERT_EQUAL(put(cs, "listed", "1"), 0);
    CU_ASSERT_EQUAL(put(cs, "going", "2"), 0);
    CU_ASSERT_EQUAL(cstore_write_sync(cs, "going", NULL, 0), 0);
    CU_ASSERT_EQUAL(cstore_each(cs, on_name, all), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(all, "listed "));
    CU_ASSERT_PTR_NULL(strstr(all, "going"));
    CU_ASSERT_PTR_NULL(strstr(all, "lock")); /* a file, no record */
    CU_ASSERT_EQUAL(cstore_write_sync(cs, "listed", NULL, 0), 0);
    cstore_close(cs);
}

static void
test_replace(void)
{
    struct cstore *cs = open_store();
    CU_ASSERT_STRING_EQUAL(get(cs, "seed"), "-");
    CU_ASSERT_EQUAL(put(cs, "seed", "one"), 0);
    CU_ASSERT_STRING_EQUAL(get(cs, "seed"), "one");
    CU_ASSERT_EQUAL(put(cs, "seed", "a longer second"), 0);
    CU_ASSERT_STRING_EQUAL(get(cs, "seed"), "a longer second");
    CU_ASSERT_EQUAL(put(cs, "seed", "3"), 0);
    CU_ASSERT_EQUAL(put(cs, "other", "x"), 0);
    CU_ASSERT_EQUAL(put(cs, "empty", ""), 0); /* a record of no bytes is a record */
    cstore_close(cs);
    cs = open_store();
    CU_ASSERT_STRING_EQUAL(get(cs, "seed"), "3");
    CU_ASSERT_STRING_EQUAL(get(cs, "other"), "x");
    CU_ASSERT_STRING_EQUAL(get(cs, "empty"), "");
    CU_ASSERT_EQUAL(cstore_write_sync(cs, "other", NULL, 0), 0);
    CU_ASSERT_EQUAL(cstore_write_sync(cs, "other", NULL, 0), 0);
    CU_ASSERT_STRING_EQUAL(get(cs, "other"), "-");
    cstore_close(cs);
    cstore_close(NULL);
}

static void
test_names(void)
{
    struct cstore *cs = open_store();
    char name[203];
    void *p;
    static const char *const bad[] = {"", "A", "a/b", "a b", "\xc3\xa4", "a\n"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(put(cs, bad[i], "x"), -EINVAL);
        CU_ASSERT_EQUAL(cstore_read(cs, bad[i], &p), -EINVAL);
    }
    memset(name, 'n', sizeof name);
    name[201] = '\0';
    CU_ASSERT_EQUAL(put(cs, name, "x"), -EINVAL);
    name[200] = '\0';
    CU_ASSERT_EQUAL(put(cs, name, "long"), 0);
    CU_ASSERT_STRING_EQUAL(get(cs, name), "long");
    CU_ASSERT_EQUAL(put(cs, "..", "dots"), 0); /* a name like any other */
    CU_ASSERT_STRING_EQUAL(get(cs, ".."), "dots");
    CU_ASSERT_EQUAL(cstore_write_sync(cs, "a", NULL, 5), -EINVAL);
    CU_ASSERT_EQUAL(cstore_write_sync(cs, "a", "", CSTORE_MAX + 1), -EFBIG);
    cstore_close(cs);
}

/* Power goes after any number of steps: the old record or the new one, never anything else, and
 * success is only told when the new one is there. */
static void
test_power_cut(void)
{
    bool whole = false;
    for (int steps = 0; !whole; steps++) {
        struct cstore *cs = open_store();
        CU_ASSERT_EQUAL(put(cs, "r", "old"), 0);
        cstore_fail_after(cs, steps);
        int err = put(cs, "r", "new");
        CU_ASSERT(err == 0 || err == -EIO);
        cstore_close(cs);
        cs = open_store();
        const char *now = get(cs, "r");
        if (err == 0) {
            CU_ASSERT_STRING_EQUAL(now, "new");
            CU_ASSERT_EQUAL(steps, 4); /* write, sync, rename, sync of the directory */
            whole = true;
        } else {
            CU_ASSERT(strcmp(now, "old") == 0 || strcmp(now, "new") == 0);
            CU_ASSERT(steps < 4);
            if (steps < 3)
                CU_ASSERT_STRING_EQUAL(now, "old");
        }
        /* what was half written is gone */
        DIR *d = opendir(dir);
        struct dirent *e;
        while ((e = readdir(d)) != NULL)
            CU_ASSERT_PTR_NULL(strstr(e->d_name, "new."));
        closedir(d);
        cstore_close(cs);
    }
    for (int steps = 0; steps < 2; steps++) { /* the same for a removal */
        struct cstore *cs = open_store();
        CU_ASSERT_EQUAL(put(cs, "r", "old"), 0);
        cstore_fail_after(cs, steps);
        CU_ASSERT_EQUAL(cstore_write_sync(cs, "r", NULL, 0), -EIO);
        cstore_fail_after(cs, -1);
        if (steps == 0)
            CU_ASSERT_STRING_EQUAL(get(cs, "r"), "old");
        cstore_close(cs);
    }
}

static void
test_second_opener(void)
{
    struct cstore *cs = open_store();
    errno = 0;
    CU_ASSERT_PTR_NULL(cstore_open_dir(dir));
    CU_ASSERT_EQUAL(errno, EBUSY);
    cstore_close(cs);
    cs = open_store();
    cstore_close(cs);
    char none[128];
    snprintf(none, sizeof none, "%s/no/such", top);
    CU_ASSERT_PTR_NULL(cstore_open_dir(none));
    CU_ASSERT_EQUAL(errno, ENOENT);
}

static void
test_damage(void)
{
    struct cstore *cs = open_store();
    char file[128];
    void *p = NULL;
    CU_ASSERT_EQUAL(put(cs, "d", "some bytes"), 0);
    snprintf(file, sizeof file, "%s/r.d", dir);
    int fd = open(file, O_RDWR | O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0);
    uint8_t b[64], flipped;
    ssize_t n = read(fd, b, sizeof b);
    CU_ASSERT_EQUAL(n, 26);
    for (off_t i = 0; i < n; i++) { /* any byte */
        flipped = b[i] ^ 0x10;
        CU_ASSERT_EQUAL(pwrite(fd, &flipped, 1, i), 1);
        CU_ASSERT_EQUAL(cstore_read(cs, "d", &p), -EBADMSG);
        CU_ASSERT_EQUAL(pwrite(fd, &b[i], 1, i), 1);
    }
    CU_ASSERT_STRING_EQUAL(get(cs, "d"), "some bytes");
    for (off_t cut = 0; cut < n; cut++) { /* any length */
        CU_ASSERT_EQUAL(ftruncate(fd, cut), 0);
        CU_ASSERT_EQUAL(cstore_read(cs, "d", &p), -EBADMSG);
    }
    CU_ASSERT_EQUAL(pwrite(fd, b, (size_t)n, 0), n);
    CU_ASSERT_EQUAL(pwrite(fd, "x", 1, n), 1);
    CU_ASSERT_EQUAL(cstore_read(cs, "d", &p), -EBADMSG);
    close(fd);
    CU_ASSERT_EQUAL(put(cs, "d", "fresh"), 0); /* and it can be replaced */
    CU_ASSERT_STRING_EQUAL(get(cs, "d"), "fresh");
    cstore_close(cs);
}

static int results[8];
static unsigned nresults;

static void
on_written(void *arg, int err)
{
    CU_ASSERT_PTR_NOT_NULL(worker_self());
    results[*(int *)arg] = err;
    nresults++;
}

static void
test_async(void)
{
    static int idx[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct worker_opts o = {.engine = ENGINE_POOL};
    struct cstore *cs = open_store();
    struct worker *w = worker_new_local(&o);
    nresults = 0;
    for (int i = 0; i < 8; i++)
        results[i] = 99;
    char text[] = "v0";
    for (int i = 0; i < 6; i++) {
        text[1] = (char)('0' + i);
        cstore_write(cs, "async", text, 2, w, on_written, &idx[i]);
    }
    memset(text, 'z', sizeof text); /* the bytes were copied */
    cstore_write(cs, "BAD", "x", 1, w, on_written, &idx[6]);
    cstore_write(cs, "gone", NULL, 0, w, on_written, &idx[7]);
    CU_ASSERT_EQUAL(nresults, 0);
    CU_ASSERT_EQUAL(put(cs, "async", "sync, after them"), 0);
    CU_ASSERT_STRING_EQUAL(get(cs, "async"), "sync, after them");
    while (nresults < 8)
        worker_turn(w, true);
    for (int i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(results[i], i == 6 ? -EINVAL : 0);
    CU_ASSERT_STRING_EQUAL(get(cs, "async"), "sync, after them");
    cstore_fail_after(cs, 0);
    nresults = 0;
    cstore_write(cs, "async", "lost", 4, w, on_written, &idx[0]);
    while (nresults < 1)
        worker_turn(w, true);
    CU_ASSERT_EQUAL(results[0], -EIO);
    CU_ASSERT_STRING_EQUAL(get(cs, "async"), "sync, after them");
    worker_free_local(w);
    cstore_close(cs);
}

struct writer {
    struct cstore *cs;
    char name[8];
    pthread_t t;
    int bad;
};

static void *
write_many(void *arg)
{
    struct writer *wr = arg;
    for (int i = 0; i < 20; i++) {
        char text[16];
        snprintf(text, sizeof text, "%s-%d", wr->name, i);
        wr->bad |= put(wr->cs, wr->name, text);
    }
    return NULL;
}

static void
test_threads(void)
{
    struct cstore *cs = open_store();
    struct writer wr[4];
    memset(wr, 0, sizeof wr);
    for (int i = 0; i < 4; i++) {
        wr[i].cs = cs;
        snprintf(wr[i].name, sizeof wr[i].name, "w%d", i);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&wr[i].t, NULL, write_many, &wr[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        char want[16];
        pthread_join(wr[i].t, NULL);
        CU_ASSERT_EQUAL(wr[i].bad, 0);
        snprintf(want, sizeof want, "w%d-19", i);
        CU_ASSERT_STRING_EQUAL(get(cs, wr[i].name), want);
    }
    cstore_close(cs);
}

/* A directory with something else in it was chosen: nothing of it goes. */
static void
test_others(void)
{
    static const char *const others[] = {"t.img", "new.img", "t.", "r"};
    struct cstore *cs = open_store();
    char path[128];

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, others[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        CU_ASSERT_FATAL(fd >= 0);
        close(fd);
    }
    cstore_close(cs);
    cs = open_store();
    CU_ASSERT_EQUAL(put(cs, "img", "x"), 0);
    cstore_close(cs);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, others[i]);
        CU_ASSERT_EQUAL(unlink(path), 0);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"replace, remove, reopen", test_replace},  {"names and sizes", test_names},
        {"power cut at each step", test_power_cut}, {"a second opener", test_second_opener},
        {"damaged records", test_damage},           {"asynchronous writes", test_async},
        {"writers on threads", test_threads},       {"the list of names", test_each},
        {"what others have there", test_others},
    };
    if (!mkdtemp(top) || helper_pool_start(1, 4) < 0)
        return 1;
    snprintf(dir, sizeof dir, "%s/state", top);
    int rc = UNIT_RUN("cstore", tests);
    helper_pool_stop();
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", top);
    return system(cmd) != 0 || rc;
}
