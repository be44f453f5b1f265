/* SPDX-License-Identifier: BSD-2-Clause */
/* Redirection: addresses, settings, a program's answers, the decision (RFC 7143 11.13.5, 13.8). */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "target/redirect.h"
#include "tests/unit/unit.h"

static char err[600];

static const char *
parsed(const char *text)
{
    static struct redirect_to to;
    return redirect_parse_to(text, 3260, &to, err, sizeof err) == 0 ? to.text : "";
}

static void
test_addresses(void)
{
    static const char *const good[][2] = {
        {"192.0.2.1", "192.0.2.1:3260"},
        {"192.0.2.1:1", "192.0.2.1:1"},
        {"[2001:DB8::1]", "[2001:db8::1]:3260"},
        {"[2001:db8::1]:65535", "[2001:db8::1]:65535"},
        {"2001:db8::1", "[2001:db8::1]:3260"},
        {"a-b.example", "a-b.example:3260"},
        {"a1:5", "a1:5"},
    };
    static const char *const bad[] = {
        "",     ":",      ":3260",        "192.0.2.1:",   "192.0.2.1:0",  "192.0.2.1:65536",
        "[::1", "[::1]x", "[::1]:",       "192.0.2.1,1",  "0.0.0.0",      "[::]",
        "a b",  "a\nb",   "300.1.1.1",    "1.2.3",        "-a",           ".a",
        "a_b",  "::1::",  "192.0.2.1:+5", "192.0.2.1: 5", "fe80::1%eth0", "[192.0.2.1",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CU_ASSERT_STRING_EQUAL(parsed(good[i][0]), good[i][1]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err[0] = '\0';
        CU_ASSERT_STRING_EQUAL(parsed(bad[i]), "");
        CU_ASSERT(err[0] != '\0');
    }
    char host[300];
    memset(host, 'a', sizeof host);
    host[255] = '\0';
    CU_ASSERT_EQUAL(strlen(parsed(host)), 260);
    host[255] = 'a';
    host[256] = '\0';
    CU_ASSERT_STRING_EQUAL(parsed(host), "");
}

static void
test_answers(void)
{
    static const struct {
        const char *line, *to;
        bool ok, permanent;
    } rows[] = {
        {"", "", true, false},
        {"\nignored\n", "", true, false},
        {"  \n", "", true, false},
        {"192.0.2.1:3260:Temporary\n", "192.0.2.1:3260", true, false},
        {"192.0.2.1:77:permanent\r\n", "192.0.2.1:77", true, true},
        {"192.0.2.1:77:65535:Permanent", "192.0.2.1:77", true, true},
        {"[2001:db8::1]:77:Temporary", "[2001:db8::1]:77", true, false},
        {"h.example:77:1:Temporary", "h.example:77", true, false},
        {"192.0.2.1", "", false, false},
        {"192.0.2.1:77", "", false, false},
        {"192.0.2.1:Temporary", "", false, false},
        {"192.0.2.1:0:Temporary", "", false, false},
        {"192.0.2.1:77:x:Temporary", "", false, false},
        {"192.0.2.1:77:1:1:Temporary", "", false, false},
        {"192.0.2.1:77:1:1:1:1:1:Temporary", "", false, false},
        {"[2001:db8::1:77:Temporary", "", false, false},
        {"2001:db8::1:77:Temporary", "", false, false},
        {":77:Temporary", "", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct redirect_to to;
        err[0] = '\0';
        bool ok = redirect_read_answer(rows[i].line, &to, err, sizeof err);
        CU_ASSERT_EQUAL(ok, rows[i].ok);
        if (ok != rows[i].ok)
            printf("[%s]", rows[i].line);
        if (ok) {
            CU_ASSERT_STRING_EQUAL(to.text, rows[i].to);
            CU_ASSERT_EQUAL(to.permanent, rows[i].permanent);
        } else {
            CU_ASSERT(err[0] != '\0');
        }
    }
}

/* r with one more setting; r is let go. */
static struct redirect *
with(struct redirect *r, const char *name, const char *value)
{
    int rc = 1;
    struct redirect *n = redirect_with(r, name, value, &rc, err, sizeof err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(n);
    CU_ASSERT_EQUAL(rc, 0);
    redirect_put(r);
    return n;
}

static const char *
setting(const struct redirect *r, unsigned i)
{
    static char text[1400 + 32], value[1400];
    const char *name;
    if (!redirect_show(r, i, &name, value, sizeof value))
        return "";
    snprintf(text, sizeof text, "%s=%s", name, value);
    return text;
}

static void
test_settings(void)
{
    int rc;
    struct redirect *r = with(NULL, "RedirectAddress", "[2001:db8::5]:77"), *kept;
    CU_ASSERT_STRING_EQUAL(setting(r, 0), "RedirectAddress=2001:db8::5");
    CU_ASSERT_STRING_EQUAL(setting(r, 1), "RedirectPort=77");
    r = with(r, "redirectreason", "PERMANENT");
    CU_ASSERT_STRING_EQUAL(setting(r, 2), "RedirectReason=Permanent");
    r = with(r, "RedirectCallback", "/bin/where a");
    CU_ASSERT_STRING_EQUAL(setting(r, 3), "RedirectCallback=/bin/where a");
    kept = redirect_get(r);
    r = with(r, "redirect-initiator", "iqn.a:* 192.0.2.1");
    r = with(r, "redirect-initiator", "10.0.0.0/8   here");
    r = with(r, "redirect-initiator", "iqn.a:* 192.0.2.2:5 Permanent"); /* replaced in its place */
    CU_ASSERT_STRING_EQUAL(setting(r, 4), "redirect-initiator=iqn.a:* 192.0.2.2:5 Permanent");
    CU_ASSERT_STRING_EQUAL(setting(r, 5), "redirect-initiator=10.0.0.0/8 here");
    CU_ASSERT_STRING_EQUAL(setting(r, 6), "");
    CU_ASSERT_STRING_EQUAL(setting(kept, 4), ""); /* what was published does not change */
    redirect_put(kept);
    r = with(r, "redirect-initiator", "10.0.0.0/8 none");
    CU_ASSERT_STRING_EQUAL(setting(r, 5), "");
    CU_ASSERT_PTR_NULL(redirect_with(r, "RedirectX", "1", &rc, err, sizeof err));
    CU_ASSERT_EQUAL(rc, -ENOENT);
    static const char *const bad[][2] = {
        {"RedirectAddress", "::"},
        {"RedirectPort", "0"},
        {"RedirectReason", "Maybe"},
        {"RedirectCallback", "sh"},
        {"redirect-initiator", ""},
        {"redirect-initiator", "iqn.a"},
        {"redirect-initiator", "iqn.a 192.0.2.1 Soon"},
        {"redirect-initiator", "iqn.a 192.0.2.1 Permanent x"},
        {"redirect-initiator", "10.0.0.0/33 192.0.2.1"},
        {"redirect-initiator", "iface:lo 192.0.2.1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err[0] = '\0';
        CU_ASSERT_PTR_NULL(redirect_with(r, bad[i][0], bad[i][1], &rc, err, sizeof err));
        CU_ASSERT_EQUAL(rc, -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i][0]));
    }
    r = with(r, "RedirectAddress", "none");
    CU_ASSERT_STRING_EQUAL(setting(r, 0), "RedirectAddress=");
    redirect_put(r);
    CU_ASSERT_STRING_EQUAL(setting(NULL, 0), "");
}

static struct redirect_answer
decide(struct redirect *r, struct drain *d, const char *local, uint16_t port, const char *who)
{
    static struct conn c;
    struct sockaddr_in *peer = (void *)&c.peer;
    struct sockaddr_in6 *in6 = (void *)&c.local;
    struct tgt_node n = {.redirect = r, .drain = d};
    struct redirect_answer a;
    memset(&c, 0, sizeof c);
    peer->sin_family = AF_INET;
    inet_pton(AF_INET, "10.1.2.3", &peer->sin_addr);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    inet_pton(AF_INET6, local, &in6->sin6_addr);
    redirect_decide(&c, &n, who, &a);
    return a;
}

static void
test_decision(void)
{
    struct redirect_answer a = decide(NULL, NULL, "::1", 3260, "iqn.x");
    CU_ASSERT_EQUAL(a.status, LS_OK);
    struct redirect *r = with(NULL, "RedirectAddress", "192.0.2.1");
    a = decide(r, NULL, "::1", 3260, "iqn.x");
    CU_ASSERT_EQUAL(a.status, LS_MOVED_TEMP);
    CU_ASSERT_STRING_EQUAL(a.to, "192.0.2.1:3260");
    a = decide(r, NULL, "::ffff:192.0.2.1", 3260, "iqn.x"); /* it came in there */
    CU_ASSERT_EQUAL(a.status, LS_OK);
    a = decide(r, NULL, "::ffff:192.0.2.1", 3261, "iqn.x");
    CU_ASSERT_EQUAL(a.status, LS_MOVED_TEMP);
    r = with(r, "RedirectCallback", "/bin/where");
    CU_ASSERT_EQUAL(decide(r, NULL, "::1", 3260, "iqn.x").status, LS_ASKING);
    r = with(r, "redirect-initiator", "iqn.stay* here");
    r = with(r, "redirect-initiator", "10.0.0.0/8 192.0.2.9 Permanent");
    CU_ASSERT_EQUAL(decide(r, NULL, "::1", 3260, "iqn.stays").status, LS_OK);
    a = decide(r, NULL, "::1", 3260, "iqn.x");
    CU_ASSERT_EQUAL(a.status, LS_MOVED_PERM);
    CU_ASSERT_STRING_EQUAL(a.to, "192.0.2.9:3260");
    struct drain d = {.id = 1};
    CU_ASSERT_EQUAL(decide(r, &d, "::1", 3260, "iqn.stays").status, LS_UNAVAILABLE);
    CU_ASSERT_EQUAL(redirect_parse_to("[2001:db8::1]", 1, &d.to, err, sizeof err), 0);
    a = decide(r, &d, "::1", 3260, "iqn.stays");
    CU_ASSERT_EQUAL(a.status, LS_MOVED_TEMP);
    CU_ASSERT_STRING_EQUAL(a.to, "[2001:db8::1]:1");
    a = decide(r, &d, "2001:db8::1", 1, "iqn.stays"); /* never a circle, never in */
    CU_ASSERT_EQUAL(a.status, LS_UNAVAILABLE);
    redirect_put(r);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"addresses", test_addresses},
        {"answers of a program", test_answers},
        {"settings", test_settings},
        {"decision", test_decision},
    };
    return UNIT_RUN("redirect", tests);
}
