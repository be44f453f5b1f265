/* SPDX-License-Identifier: BSD-2-Clause */
/* Secrets, accounts and sets of them, their directives, and how main keeps and publishes them. */
#include "config.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "conf/conf.h"
#include "target/keys.h"
#include "target/model.h"
#include "tests/unit/unit.h"

#define SECRET "sixteen bytes..."

static char err[512];

static struct secret *
secret_of(const char *s)
{
    return secret_new(s, strlen(s));
}

/* --- secrets ---------------------------------------------------------------------------------- */

static void
test_secret(void)
{
    unsigned before = secret_count();
    struct secret *a = secret_of(SECRET), *b = secret_of(SECRET), *c = secret_of(SECRET "!");
    CU_ASSERT_EQUAL(secret_count(), before + 3);
    CU_ASSERT(secret_same(a, b) && secret_same(a, a));
    CU_ASSERT(!secret_same(a, c) && !secret_same(c, a));
    CU_ASSERT_EQUAL(secret_len(a), 16);
    CU_ASSERT_EQUAL(memcmp(secret_bytes(a), SECRET, 16), 0);
    const uint8_t *where = secret_bytes(a);
    (void)secret_get(a);
    secret_put(a);
    CU_ASSERT_EQUAL(where[0], 's');
    secret_put(a); /* the last: wiped. Slots are never unmapped, so it can be looked at */
    for (unsigned i = 0; i < SECRET_MAX; i++)
        CU_ASSERT_EQUAL(where[i], 0);
    char full[SECRET_MAX];
    memset(full, 'x', sizeof full);
    a = secret_new(full, sizeof full); /* takes the slot */
    CU_ASSERT_EQUAL(memcmp(secret_bytes(a), full, sizeof full), 0);
    CU_ASSERT(!secret_same(a, b));
    secret_put(a);
    a = secret_new("x", 1);
    CU_ASSERT_EQUAL(secret_bytes(a)[1], 0); /* nothing is left of what was there */
    secret_put(a);
    secret_put(b);
    secret_put(c);
    secret_put(NULL);
    CU_ASSERT_EQUAL(secret_count(), before);
}

static void
test_many_secrets(void)
{
    enum { N = 1000 }; /* several chunks */
    static struct secret *s[N];
    char text[32];
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(text, sizeof text, "secret number %u", i);
        s[i] = secret_of(text);
    }
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(text, sizeof text, "secret number %u", i);
        CU_ASSERT(secret_len(s[i]) == strlen(text) &&
                  memcmp(secret_bytes(s[i]), text, strlen(text)) == 0);
        secret_put(s[i]);
    }
}

/* VmFlags of the mapping that p lies in, in /proc/self/smaps: has it this one? */
static bool
has_vm_flag(const void *p, const char *flag)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = (unsigned long)p >= from && (unsigned long)p < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line + 8, flag) != NULL;
    }
    (void)fclose(f);
    return found;
}

static void
test_not_dumped(void)
{
    struct secret *s = secret_of(SECRET);
    CU_ASSERT(has_vm_flag(secret_bytes(s), " dd")); /* MADV_DONTDUMP */
    secret_put(s);
}

static void
test_forgotten_in_a_child(void)
{
    struct secret *s = secret_of(SECRET);
    char blank[16] = {0};
    secret_forget_all(); /* what the opener does after the fork */
    CU_ASSERT_EQUAL(memcmp(secret_bytes(s), blank, sizeof blank), 0);
    secret_put(s);
}

/* --- accounts --------------------------------------------------------------------------------- */

static struct account *
account(const char *user, const char *const *names)
{
    struct secret *s = secret_of(SECRET);
    struct account *a = account_new(user, s, names, err, sizeof err);
    secret_put(s);
    return a;
}

static void
test_accounts(void)
{
    static const char *const some[] = {"iqn.a:i*", "IQN.B:x", NULL};
    static const char *const wrong[] = {"a b", NULL};
    char long_name[ACCOUNT_NAME_MAX + 2];
    unsigned before = secret_count();
    memset(long_name, 'n', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    CU_ASSERT_PTR_NULL(account("", NULL));
    CU_ASSERT_PTR_NULL(account(long_name, NULL));
    long_name[ACCOUNT_NAME_MAX] = '\0';
    struct account *longest = account(long_name, NULL);
    CU_ASSERT_PTR_NOT_NULL(longest);
    account_put(longest);
    CU_ASSERT_PTR_NULL(account("u", wrong));
    CU_ASSERT(strstr(err, "a b") != NULL);
    struct account *in[3] = {account("u", some), account("u", NULL), account("v", some)};
    struct account_set *s = account_set_new(in, 3, NULL, CHAP_ALG_MD5, false);
    for (unsigned i = 0; i < 3; i++)
        account_put(in[i]); /* the set has them */
    CU_ASSERT(account_set_demands(s));
    CU_ASSERT_PTR_EQUAL(account_find(s, "u", "iqn.a:i7"), in[0]);
    CU_ASSERT_PTR_EQUAL(account_find(s, "u", "iqn.b:x"), in[0]);
    CU_ASSERT_PTR_EQUAL(account_find(s, "u", "iqn.c:x"), in[1]);
    CU_ASSERT_PTR_EQUAL(account_find(s, "v", "iqn.a:i"), in[2]);
    CU_ASSERT_PTR_NULL(account_find(s, "v", "iqn.c:x"));
    CU_ASSERT_PTR_NULL(account_find(s, "U", "iqn.a:i"));
    CU_ASSERT_PTR_NULL(account_find(s, "", "iqn.a:i"));
    CU_ASSERT(account_set_admits(s, in[1]));
    CU_ASSERT_FALSE(account_set_admits(s, NULL));
    struct account *again = account("u", NULL); /* the same words, not the same account */
    CU_ASSERT_FALSE(account_set_admits(s, again));
    CU_ASSERT(account_set_admits(NULL, NULL) && account_set_admits(NULL, again));
    account_put(again);
    CU_ASSERT_FALSE(account_set_demands(NULL));
    account_set_put(account_set_get(s));
    account_set_put(s);
    account_set_put(account_set_get(NULL));
    account_put(NULL);
    CU_ASSERT_EQUAL(secret_count(), before);
}

/* --- directives ------------------------------------------------------------------------------- */

static struct conf *
parse(const char *text, unsigned *warnings)
{
    struct conf_report r;
    conf_report_init(&r);
    struct conf *c = conf_parse("f", text, strlen(text), NULL, &r);
    for (unsigned i = 0; i < r.n && r.nerrors; i++)
        fprintf(stderr, "%u: %s\n", r.v[i].line, r.v[i].text);
    *warnings = r.n - r.nerrors;
    conf_report_fini(&r);
    return c;
}

static void
test_directives(void)
{
    unsigned warnings, before = secret_count();
    struct conf *c = parse("incominguser common 0123456789ab\n"
                           "chap-algorithms SHA256, 8\n"
                           "login-failure-delay 0\n"
                           "incomingdiscoveryuser d 0123456789abcd\n"
                           "outgoingdiscoveryuser e 0123456789abce\n"
                           "<target iqn.a:b>\n initiator-address ALL\n"
                           " incominguser 0x41 p@ssw0rd@/x12 iqn.a:i1   iqn.a:i*\n"
                           " incominguser = bob eleven-byte\n"
                           " outgoinguser o \\#hash-in-it-1\n"
                           " chap-algorithms md5,sha1,sha3-256\n chap-legacy-sha1-7 yes\n"
                           "</target>\n",
                           &warnings);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(warnings, 1); /* the short one */
    CU_ASSERT(c->chap_algs == 12 && c->login_delay_ms == 0 && c->chap_sha1_7 == CONF_UNSET);
    CU_ASSERT_EQUAL(c->accounts.n, 1);
    CU_ASSERT_EQUAL(c->discovery.n, 2);
    CU_ASSERT(!c->discovery.v[0].outgoing && c->discovery.v[1].outgoing);
    const struct conf_target *t = &c->targets[0];
    CU_ASSERT(t->chap_algs == 11 && t->chap_sha1_7 == 1);
    CU_ASSERT_EQUAL_FATAL(t->accounts.n, 3);
    const struct conf_account *a = t->accounts.v;
    CU_ASSERT_STRING_EQUAL(a[0].user, "0x41");
    CU_ASSERT(secret_len(a[0].secret) == 13 &&
              memcmp(secret_bytes(a[0].secret), "p@ssw0rd@/x12", 13) == 0);
    CU_ASSERT(a[0].nnames == 2 && strcmp(a[0].names[1], "iqn.a:i*") == 0);
    CU_ASSERT_EQUAL(memcmp(secret_bytes(a[2].secret), "#hash-in-it-1", 13), 0);
    CU_ASSERT(a[2].outgoing);
    conf_free(c);
    CU_ASSERT_EQUAL(secret_count(), before);
}

static void
put_file(const char *path, const char *text, size_t len, mode_t mode)
{
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fwrite(text, 1, len, f), len);
    (void)fclose(f);
    CU_ASSERT_EQUAL(chmod(path, mode), 0);
}

static void
test_secret_file(void)
{
    static const struct {
        const char *text;
        size_t len;
        mode_t mode;
        const char *secret, *why; /* one of them NULL */
    } cases[] = {
        {"one line", 8, 0600, "one line", NULL}, {"one\ntwo\n", 8, 0400, "one", NULL},
        {"dos\r\n", 5, 0600, "dos", NULL},       {" blanks stay ", 13, 0600, " blanks stay ", NULL},
        {"\nsecond", 7, 0600, NULL, "empty"},    {"", 0, 0600, NULL, "empty"},
        {"a\0b", 3, 0600, NULL, "NUL"},          {"open", 4, 0640, NULL, "chmod 600"},
        {"open", 4, 0604, NULL, "chmod 600"},    {"open", 4, 0620, NULL, "chmod 600"},
    };
    char dir[] = "/tmp/evtgt-account-XXXXXX", long_text[300];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    char *path = xasprintf("%s/s", dir);
    struct secret *s = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_file(path, cases[i].text, cases[i].len, cases[i].mode);
        int rc = conf_secret_file(path, &s, err, sizeof err);
        CU_ASSERT_EQUAL(rc == 0, cases[i].secret != NULL);
        if (rc == 0) {
            CU_ASSERT(secret_len(s) == strlen(cases[i].secret) &&
                      memcmp(secret_bytes(s), cases[i].secret, secret_len(s)) == 0);
            secret_put(s);
        } else {
            CU_ASSERT(cases[i].why != NULL && strstr(err, cases[i].why) != NULL);
            CU_ASSERT(strstr(err, path) != NULL);
        }
    }
    memset(long_text, 'x', sizeof long_text);
    put_file(path, long_text, 255, 0600);
    CU_ASSERT_EQUAL_FATAL(conf_secret_file(path, &s, err, sizeof err), 0);
    CU_ASSERT_EQUAL(secret_len(s), 255);
    secret_put(s);
    put_file(path, long_text, 256, 0600);
    CU_ASSERT(conf_secret_file(path, &s, err, sizeof err) < 0);
    CU_ASSERT(conf_secret_file(dir, &s, err, sizeof err) < 0);
    CU_ASSERT(unlink(path) == 0 && conf_secret_file(path, &s, err, sizeof err) < 0);
    free(path);
    CU_ASSERT_EQUAL(rmdir(dir), 0);
}

/* --- main's accounts -------------------------------------------------------------------------- */

static struct model_account *
known(const char *user, const char *secret)
{
    struct secret *s = secret_of(secret);
    struct model_account *ma = model_account_get(user, s, NULL, err, sizeof err);
    secret_put(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ma);
    return ma;
}

/* What is demanded there: "user,user>outgoing"; "-": nothing. */
static const char *
demanded(const struct model_auth *where)
{
    static char text[256];
    struct account_set *s = model_auth_set(where);
    size_t n = (size_t)snprintf(text, sizeof text, "%s", s ? "" : "-");
    for (unsigned i = 0; s && i < s->nin; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "," : "", s->in[i]->user);
    if (s && s->out)
        (void)snprintf(text + n, sizeof text - n, ">%s", s->out->user);
    account_set_put(s);
    return text;
}

static void
test_model(void)
{
    struct model_target *t = model_target_new(1, "iqn.2001-04.a:t");
    struct model_target *u = model_target_new(2, "iqn.2001-04.a:u");
    struct model_account *a = known("a", SECRET "1"), *b = known("b", SECRET "2");
    struct model_account *o = known("o", SECRET "3");
    CU_ASSERT_PTR_EQUAL(known("a", SECRET "1"), a);
    CU_ASSERT_PTR_NOT_EQUAL(known("a", SECRET "9"), a); /* another secret: another account */
    CU_ASSERT_PTR_EQUAL(model_account_find("a"), a);
    CU_ASSERT_PTR_NULL(model_account_find("c"));
    CU_ASSERT_STRING_EQUAL(demanded(&t->auth), "-");
    model_bind_add(&t->auth, o, true);
    CU_ASSERT_STRING_EQUAL(demanded(&t->auth), "-"); /* nobody to prove itself to */
    model_bind_add(&t->auth, a, false);
    model_bind_add(&t->auth, b, false);
    CU_ASSERT_STRING_EQUAL(demanded(&t->auth), "a,b>o");
    CU_ASSERT_STRING_EQUAL(demanded(&u->auth), "-");
    CU_ASSERT_STRING_EQUAL(demanded(&model.discovery), "-");
    /* those of the daemon stand in, by direction; not in discovery */
    model_bind_add(&model.auth, b, false);
    CU_ASSERT_STRING_EQUAL(demanded(&u->auth), "b");
    CU_ASSERT_STRING_EQUAL(demanded(&t->auth), "a,b>o");
    CU_ASSERT_STRING_EQUAL(demanded(&model.discovery), "-");
    model_bind_add(&u->auth, o, true);
    CU_ASSERT_STRING_EQUAL(demanded(&u->auth), "b>o");
    model_bind_add(&model.discovery, a, false);
    CU_ASSERT_STRING_EQUAL(demanded(&model.discovery), "a");
    /* one secret for both directions, also across the daemon's and the target's */
    CU_ASSERT_PTR_NOT_NULL(model_bind_clash(&t->auth, a->account, true));
    CU_ASSERT_PTR_NOT_NULL(model_bind_clash(&u->auth, b->account, true));
    CU_ASSERT_PTR_NULL(model_bind_clash(&u->auth, a->account, true));
    CU_ASSERT_PTR_NOT_NULL(model_bind_clash(&t->auth, o->account, false));
    /* algorithms: the target's, else the daemon's */
    struct account_set *s = model_auth_set(&t->auth);
    CU_ASSERT(s->algs == CHAP_ALG_ALL && !s->sha1_7);
    account_set_put(s);
    model.auth.algs = CHAP_ALG_SHA256;
    model.auth.sha1_7 = 1;
    t->auth.sha1_7 = 0;
    u->auth.algs = CHAP_ALG_MD5;
    s = model_auth_set(&t->auth);
    CU_ASSERT(s->algs == CHAP_ALG_SHA256 && !s->sha1_7);
    account_set_put(s);
    s = model_auth_set(&u->auth);
    CU_ASSERT(s->algs == CHAP_ALG_MD5 && s->sha1_7);
    account_set_put(s);
    model_bind_del(&t->auth, model_bind_find(&t->auth, "b", false));
    CU_ASSERT_PTR_NULL(model_bind_find(&t->auth, "b", false));
    CU_ASSERT_STRING_EQUAL(demanded(&t->auth), "a>o");
    CU_ASSERT(model_account_delete("a")); /* both of that name, wherever they are bound */
    CU_ASSERT_PTR_NULL(model_account_find("a"));
    CU_ASSERT_STRING_EQUAL(demanded(&t->auth), "b>o");
    CU_ASSERT_STRING_EQUAL(demanded(&model.discovery), "-");
    CU_ASSERT_FALSE(model_account_delete("a"));
    model_account_prune("b"); /* bound: it stays */
    CU_ASSERT_PTR_EQUAL(model_account_find("b"), b);
    known("b", SECRET "7");
    known("c", SECRET "8");
    model_account_prune("b"); /* of two of that name the one that nothing binds goes */
    CU_ASSERT_PTR_EQUAL(model_account_find("b"), b);
    model_bind_del(&model.auth, model_bind_find(&model.auth, "b", false));
    model_account_prune("b");
    CU_ASSERT_PTR_NULL(model_account_find("b"));
    CU_ASSERT_PTR_NOT_NULL(model_account_find("c"));
    CU_ASSERT(model_account_delete("c"));
    b = known("b", SECRET "2");
    CU_ASSERT(model_account_delete("b") && model_account_delete("o"));
    model_target_free(t);
    model_target_free(u);
}

static void
on_flag(void *arg)
{
    *(bool *)arg = true;
}

static void
publish(void)
{
    bool done = false;
    CU_ASSERT_EQUAL_FATAL(model_publish(on_flag, &done, err, sizeof err), 0);
    while (!done)
        worker_turn(model.main, true);
}

/* Each change comes to the workers with the next publication; what was published does not change,
 * and what did not change is not made anew. */
static void
test_published(void)
{
    struct model_target *t = model_target_new(1, "iqn.2001-04.a:t");
    struct model_target *u = model_target_new(2, "iqn.2001-04.a:u");
    struct model_account *a = known("a", SECRET);
    unsigned secrets = secret_count();
    publish();
    struct tgt_node *before = node_get(node_find(node_set_here(), t->name));
    struct tgt_node *other = node_find(node_set_here(), u->name);
    CU_ASSERT_PTR_NULL(before->accounts);
    model_bind_add(&t->auth, a, false);
    CU_ASSERT_PTR_NULL(node_find(node_set_here(), t->name)->accounts);
    publish();
    struct tgt_node *after = node_find(node_set_here(), t->name);
    CU_ASSERT(after != before && account_set_demands(after->accounts));
    CU_ASSERT_PTR_NULL(before->accounts);
    CU_ASSERT_PTR_EQUAL(node_find(node_set_here(), u->name), other);
    node_put(before);
    model_bind_add(&model.discovery, a, false);
    publish();
    CU_ASSERT(account_set_admits(node_set_here()->discovery, a->account));
    CU_ASSERT_FALSE(account_set_admits(node_set_here()->discovery, NULL));
    CU_ASSERT(model_account_delete("a"));
    publish();
    CU_ASSERT_PTR_NULL(node_set_here()->discovery);
    CU_ASSERT_PTR_NULL(node_find(node_set_here(), t->name)->accounts);
    CU_ASSERT_EQUAL(secret_count(), secrets - 1); /* nothing holds the secret any more */
    model_target_free(t);
    model_target_free(u);
    publish();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"secrets", test_secret},
        {"many secrets", test_many_secrets},
        {"secrets are not dumped", test_not_dumped},
        {"secrets are forgotten in a child", test_forgotten_in_a_child},
        {"accounts and sets", test_accounts},
        {"directives", test_directives},
        {"secrets in files", test_secret_file},
        {"accounts and bindings of main", test_model},
        {"published with the targets", test_published},
    };
    struct worker_opts wo = {.engine = ENGINE_POOL};
    struct worker *w = worker_new_local(&wo);
    if (!w)
        return 1;
    worker_set_publish(&w, 1);
    tgt_worker_init(w);
    model_init(w, NULL);
    int rc = UNIT_RUN("account", tests);
    _exit(rc); /* the worker has no end in a daemon either */
}
