/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of IET's initiators.allow, initiators.deny and targets.allow, every combination: what
 * is expected here was written down from the manual of IET 1.4 and its behaviour.
 */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "target/target.h"
#include "tests/unit/unit.h"

#define T "iqn.2001-04.com.example:t"
#define U "iqn.2001-04.com.example:u"
#define I "iqn.1993-08.org.debian:01:abc"

static char err[200], warn[200];

static struct sockaddr_storage
addr(const char *text)
{
    struct sockaddr_storage sa = {0};
    struct sockaddr_in *in = (void *)&sa;
    struct sockaddr_in6 *in6 = (void *)&sa;
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        sa.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        sa.ss_family = AF_INET6;
    return sa;
}

/* "TARGET entries\n..." as the lines of a file; NULL: there is none. */
static int
fill(struct acl_files *f, enum acl_file which, const char *text)
{
    char line[256], target[128];
    if (text == NULL)
        return 0;
    acl_files_exists(f, which);
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)len, text);
        text += text[len] ? len + 1 : len;
        size_t word = strcspn(line, " ");
        snprintf(target, sizeof target, "%.*s", (int)word, line);
        int rc = acl_files_add(f, which, target, line + word, err, sizeof err, warn, sizeof warn);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct acl *
make(bool open, const char *allow, const char *deny, const char *targets, const char *target,
     const struct acl_rules *own)
{
    struct acl_files *f = acl_files_new(open);
    CU_ASSERT_EQUAL(fill(f, ACL_INITIATORS_ALLOW, allow), 0);
    CU_ASSERT_EQUAL(fill(f, ACL_INITIATORS_DENY, deny), 0);
    CU_ASSERT_EQUAL(fill(f, ACL_TARGETS_ALLOW, targets), 0);
    struct acl_rules r = own ? *own : (struct acl_rules){.addrs = NULL};
    r.files = f;
    r.target = target;
    struct acl *a = acl_make(&r, err, sizeof err, NULL, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    acl_files_free(f); /* the access list stays whole */
    return a;
}

static bool
admits(bool open, const char *allow, const char *deny, const char *from, const char *who)
{
    struct acl *a = make(open, allow, deny, NULL, T, NULL);
    struct sockaddr_storage sa = addr(from);
    bool yes = acl_admits(a, (struct sockaddr *)&sa, who);
    acl_put(a);
    return yes;
}

/* Each file: absent, without lines, a line for another target, one that names the initiator, one
 * that names somebody else. */
static void
test_combinations(void)
{
    static const char *const text[] = {NULL, "", U " ALL", T " 10.0.0.1", T " 10.0.0.2"};
    enum { ABSENT, EMPTY, OTHER, HIT, MISS, KINDS };
    static const struct {
        unsigned allow, deny;
        bool yes;
    } want[] = {
        /* no initiators.deny: only whom initiators.allow names */
        {EMPTY, ABSENT, false},
        {OTHER, ABSENT, false},
        {HIT, ABSENT, true},
        {MISS, ABSENT, false},
        /* with initiators.deny: all but whom it names and initiators.allow does not */
        {ABSENT, EMPTY, true},
        {ABSENT, OTHER, true},
        {ABSENT, HIT, false},
        {ABSENT, MISS, true},
        {EMPTY, EMPTY, true},
        {EMPTY, OTHER, true},
        {EMPTY, HIT, false},
        {EMPTY, MISS, true},
        {OTHER, EMPTY, true},
        {OTHER, OTHER, true},
        {OTHER, HIT, false},
        {OTHER, MISS, true},
        {HIT, EMPTY, true},
        {HIT, OTHER, true},
        {HIT, HIT, true},
        {HIT, MISS, true},
        {MISS, EMPTY, true},
        {MISS, OTHER, true},
        {MISS, HIT, false},
        {MISS, MISS, true},
    };
    CU_ASSERT_EQUAL(sizeof want / sizeof want[0], KINDS * KINDS - 1); /* and neither, below */
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        for (int open = 0; open < 2; open++) { /* of no consequence when one of them is there */
            bool yes = admits(open, text[want[i].allow], text[want[i].deny], "10.0.0.1", I);
            if (yes != want[i].yes)
                fprintf(stderr, "allow %u deny %u open %d: %d\n", want[i].allow, want[i].deny, open,
                        yes);
            CU_ASSERT_EQUAL(yes, want[i].yes);
        }
    }
    CU_ASSERT(admits(true, NULL, NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, NULL, NULL, "10.0.0.1", I));
}

/* The first line that names the target or ALL counts, whatever comes after. */
static void
test_order(void)
{
    CU_ASSERT(admits(false, T " 10.0.0.1\nALL 10.0.0.2", NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, T " 10.0.0.1\nALL 10.0.0.2", NULL, "10.0.0.2", I));
    CU_ASSERT(admits(false, "ALL 10.0.0.2\n" T " 10.0.0.1", NULL, "10.0.0.2", I));
    CU_ASSERT(!admits(false, "ALL 10.0.0.2\n" T " 10.0.0.1", NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, T "\n" T " ALL", NULL, "10.0.0.1", I)); /* a line without entries */
    CU_ASSERT(!admits(false, T " 10.0.0.1\n" T " 10.0.0.2", NULL, "10.0.0.2", I));
    CU_ASSERT(admits(false, U " 10.0.0.2\nALL 10.0.0.1", NULL, "10.0.0.1", I));
    CU_ASSERT(admits(false, "IQN.2001-04.com.EXAMPLE:t ALL", NULL, "10.0.0.1", I));
}

static void
test_entries(void)
{
    CU_ASSERT(admits(false, "ALL ALL", NULL, "203.0.113.1", I));
    CU_ASSERT(admits(false, "ALL ALL", NULL, "2001:db8::1", I));
    CU_ASSERT(
        admits(false, "ALL 192.168.0.0/16,  10.0.0.1 , ,[2001:db8::]/32", NULL, "10.0.0.1", I));
    CU_ASSERT(
        admits(false, "ALL 192.168.0.0/16,10.0.0.1,[2001:db8::]/32", NULL, "2001:db8:1::1", I));
    CU_ASSERT(admits(false, "ALL [2001:db8::1]", NULL, "2001:db8::1", I));
    CU_ASSERT(!admits(false, "ALL [2001:db8::1]", NULL, "2001:db8::2", I));
    CU_ASSERT(admits(false, "ALL 10.0.0.0/8", NULL, "::ffff:10.0.0.1", I));
    /* edges that IET got wrong: /32, /128, /0, and bits beyond the prefix */
    CU_ASSERT(admits(false, "ALL 10.0.0.1/32", NULL, "10.0.0.1", I));
    CU_ASSERT(admits(false, "ALL [2001:db8::1]/128", NULL, "2001:db8::1", I));
    CU_ASSERT(admits(false, "ALL 0.0.0.0/0", NULL, "10.0.0.1", I));
    CU_ASSERT(admits(false, "ALL 10.0.0.5/24", NULL, "10.0.0.77", I));
    CU_ASSERT(!admits(true, NULL, "ALL 10.0.0.5/24", "10.0.0.77", I));
}

/* Names are basic regular expressions for the whole name. */
static void
test_patterns(void)
{
    CU_ASSERT(admits(false, "ALL " I, NULL, "10.0.0.1", I));
    CU_ASSERT(admits(false, "ALL iqn.1993-08.ORG.debian:01:ABC", NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, "ALL iqn.1993-08.org.debian", NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, "ALL 01:abc", NULL, "10.0.0.1", I));
    CU_ASSERT(admits(false, "ALL iqn.*debian:.*", NULL, "10.0.0.1", I));
    CU_ASSERT(admits(false, "ALL .*:01:[a-c]*", NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, "ALL .*:01:[d-f]*", NULL, "10.0.0.1", I));
    CU_ASSERT(!admits(false, "ALL x\\|.*abc\\|iqn", NULL, "10.0.0.1", "iqn.2001-04.a:b"));
    CU_ASSERT(!admits(true, NULL, "ALL iqn.*debian:.*", "10.0.0.1", I));
    CU_ASSERT(admits(true, NULL, "ALL iqn.*redhat:.*", "10.0.0.1", I));
    CU_ASSERT(admits(true, "ALL " I, "ALL ALL", "10.0.0.1", I));
    CU_ASSERT(!admits(true, "ALL " I, "ALL ALL", "10.0.0.1", "iqn.2001-04.a:b"));
}

static void
test_refused(void)
{
    static const struct {
        enum acl_file which;
        const char *target, *entries;
    } bad[] = {
        {ACL_INITIATORS_ALLOW, "ALL", "iqn.[abc"},
        {ACL_INITIATORS_ALLOW, "ALL", "a\\{2,1\\}"},
        {ACL_INITIATORS_DENY, "ALL", "\\(a*\\)*\\1"},
        {ACL_INITIATORS_DENY, "ALL", "abc\\"},
        {ACL_TARGETS_ALLOW, "ALL", I}, /* addresses of ours only */
        {ACL_TARGETS_ALLOW, "ALL", "10.0.0.1/33"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct acl_files *f = acl_files_new(false);
        err[0] = '\0';
        CU_ASSERT(acl_files_add(f, bad[i].which, bad[i].target, bad[i].entries, err, sizeof err,
                                warn, sizeof warn) < 0);
        CU_ASSERT(err[0] != '\0');
        acl_files_free(f);
    }
    struct acl_files *f = acl_files_new(false);
    CU_ASSERT_EQUAL(acl_files_add(f, ACL_INITIATORS_ALLOW, "ALL", "10.0.0.5/24", err, sizeof err,
                                  warn, sizeof warn),
                    0);
    CU_ASSERT(warn[0] != '\0');
    acl_files_free(f);
    static const char *const wrong[] = {"10.0.0.0/33", "10.0.0.300", "127.0.0.", "[::1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        f = acl_files_new(true);
        (void)acl_files_add(f, ACL_INITIATORS_DENY, "ALL", wrong[i], err, sizeof err, warn,
                            sizeof warn);
        CU_ASSERT(warn[0] != '\0');
        acl_files_free(f);
    }
    /* names that no target can have: as IET has it, a line that never fits, and told */
    static const char *const names[] = {"a\x01", ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        f = acl_files_new(true);
        CU_ASSERT_EQUAL(acl_files_add(f, ACL_INITIATORS_ALLOW, names[i], "ALL", err, sizeof err,
                                      warn, sizeof warn),
                        0);
        CU_ASSERT(warn[0] != '\0');
        acl_files_free(f);
    }
    acl_files_free(NULL);
    CU_ASSERT(!admits(true, "other ALL", NULL, "10.0.0.1", I));
}

static bool
is_at(const char *targets, const char *local)
{
    struct acl *a = make(true, NULL, NULL, targets, T, NULL);
    struct sockaddr_storage sa = addr(local);
    bool yes = acl_is_at(a, (struct sockaddr *)&sa);
    acl_put(a);
    return yes;
}

static void
test_targets_allow(void)
{
    CU_ASSERT(is_at(NULL, "192.0.2.1"));
    CU_ASSERT(!is_at("", "192.0.2.1"));
    CU_ASSERT(!is_at(U " ALL", "192.0.2.1"));
    CU_ASSERT(is_at("ALL ALL", "192.0.2.1"));
    CU_ASSERT(is_at(T " 192.0.2.1", "192.0.2.1"));
    CU_ASSERT(!is_at(T " 192.0.2.2", "192.0.2.1"));
    CU_ASSERT(!is_at(T " 192.0.2.2\nALL ALL", "192.0.2.1"));
    CU_ASSERT(is_at(U " 192.0.2.2\nALL [2001:db8::]/32", "2001:db8::9"));
}

/* Own rules and IET's: what both admit; own local addresses and targets.allow likewise. */
static void
test_beside_own(void)
{
    static const char *const addrs[] = {"10.0.0.0/8", NULL}, *const locals[] = {"192.0.2.0/24",
                                                                                NULL};
    const struct acl_rules own = {.addrs = addrs, .local = locals};
    static const struct {
        const char *allow, *targets, *from, *local;
        bool admitted, at;
    } want[] = {
        {"ALL ALL", "ALL ALL", "10.0.0.1", "192.0.2.1", true, true},
        {"ALL ALL", "ALL ALL", "11.0.0.1", "198.51.100.1", false, false},
        {"ALL 11.0.0.0/8", "ALL 198.51.100.1", "10.0.0.1", "192.0.2.1", false, false},
        {"ALL 11.0.0.0/8", "ALL 198.51.100.1", "11.0.0.1", "198.51.100.1", false, false},
        {"ALL 10.1.0.0/16", "ALL 192.0.2.7", "10.1.0.1", "192.0.2.7", true, true},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct acl *a = make(true, want[i].allow, NULL, want[i].targets, T, &own);
        struct sockaddr_storage from = addr(want[i].from), local = addr(want[i].local);
        CU_ASSERT_EQUAL(acl_admits(a, (struct sockaddr *)&from, I), want[i].admitted);
        CU_ASSERT_EQUAL(acl_is_at(a, (struct sockaddr *)&local), want[i].at);
        acl_put(a);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"combinations", test_combinations},
        {"order", test_order},
        {"entries", test_entries},
        {"patterns", test_patterns},
        {"refused", test_refused},
        {"targets.allow", test_targets_allow},
        {"beside own rules", test_beside_own},
    };
    return UNIT_RUN("acl-files", tests);
}
