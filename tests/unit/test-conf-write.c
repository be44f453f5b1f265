/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/write.c and diff.c: what is written reads the same, whatever the values; what differs is
 * named. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"
#include "target/model.h"
#include "tests/unit/unit.h"

static struct conf *
parse_with(const char *text, const struct conf_checks *checks)
{
    struct conf_report r;

    conf_report_init(&r);
    struct conf *c = conf_parse("f", text, strlen(text), checks, &r);
    if (!c) {
        printf("%s\n", text);
        for (unsigned i = 0; i < r.n; i++)
            printf("%u:%u: %s\n", r.v[i].line, r.v[i].col, r.v[i].text);
        CU_FAIL_FATAL("refused");
    }
    conf_report_fini(&r);
    return c;
}

static bool
    unjudged; /* without the daemon's checks: it has none of the options that there may be */

static struct conf *
parse(const char *text)
{
    return parse_with(text, unjudged ? NULL : apply_checks());
}

static void
on_diff(void *arg, const struct conf_difference *d)
{
    static const char *const how[] = {"", "+", "-"};
    char *out = arg;
    size_t n = strlen(out);
    if (d->lun >= 0)
        snprintf(out + n, 1024 - n, "%s%s/%d ", how[d->how], d->directive, d->lun);
    else
        snprintf(out + n, 1024 - n, "%s%s ", how[d->how], d->directive);
}

/* Written and read again it is the same, and written again the same text. */
static void
round_trip(const char *text)
{
    struct conf *c = parse(text);
    char *w = conf_write(c, CONF_WRITE_SECRETS);
    struct conf *back = parse(w);
    char *again = conf_write(back, CONF_WRITE_SECRETS);
    CU_ASSERT_STRING_EQUAL(w, again);
    if (!conf_same(c, back)) {
        char diff[1024] = "";
        conf_globals_diff(c, back, on_diff, diff);
        for (unsigned i = 0; i < c->ntargets && i < back->ntargets; i++)
            conf_target_diff(&c->targets[i], &back->targets[i], on_diff, diff);
        printf("differs in %s\n%s--- written:\n%s", diff, text, w);
        CU_FAIL("not the same");
    }
    secret_free_text(w);
    secret_free_text(again);
    conf_free(c);
    conf_free(back);
}

#define T "<target iqn.2001-04.a:b>\n"
#define E "</target>\n"
#define B "<backing-store /x>\n"
#define F "</backing-store>\n"

/* Each directive with a value that is not the default. In tests the value is never the default, so
 * that a row that is not shown fails. */
static const struct {
    const char *name, *before, *line, *after;
    const char *instead; /* else nothing */
    bool unjudged;
} given[] = {
    {"portal", "", "portal 1.2.3.4:3261\nportal [::1]:3260\nportal iface:eth0", ""},
    {"portal", "portal 1.2.3.4\n" T, "portal 1.2.3.4:3260", E},
    {"group", "<portal 1.2.3.4>\n", "group 7", "</portal>\n"},
    {"advertise", "<portal 1.2.3.4>\n", "advertise san.example.com:1", "</portal>\n"},
    {"workers", "", "workers 3", ""},
    {"busy-poll", "", "busy-poll 0", ""},
    {"placement", "", "placement affine", ""},
    {"state-dir", "", "state-dir \"/a # b \"", ""},
    {"user", "", "user evtgt:disk", ""},
    {"autosave", "", "autosave off", ""},
    {"initiators-allow", "", "initiators-allow /dev/null", ""},
    {"initiators-deny", "", "initiators-deny /dev/null", ""},
    {"targets-allow", "initiators-deny /dev/null\n", "targets-allow /dev/null", ""},
    {"discovery-filter", "", "discovery-filter authenticated", ""},
    {"login-timeout", "", "login-timeout 16", ""},
    {"max-half-open", "", "max-half-open 100", ""},
    {"max-half-open-per-address", "", "max-half-open-per-address 50", ""},
    {"tcp-keepalive-idle", "", "tcp-keepalive-idle 0", ""},
    {"tcp-keepalive-interval", "", "tcp-keepalive-interval 5", ""},
    {"tcp-keepalive-count", "", "tcp-keepalive-count 3", ""},
    {"tcp-user-timeout", "", "tcp-user-timeout 60", ""},
    {"dscp", "", "dscp af31", ""},
    {"max-sessions", "", "max-sessions 64", ""},
    {"shutdown-timeout", "", "shutdown-timeout 10", ""},
    {"redirect-timeout", "", "redirect-timeout 3", ""},
    {"iSNS", "iSNSServerIP 1.2.3.4\n", "iSNS On", ""},
    {"iSNSServerIP", "", "iSNSServerIP 1.2.3.4\niSNSServerIP 1.2.3.5", ""},
    {"iSNSServer", "", "iSNSServer 1.2.3.4", ""},
    {"iSNSServerPort", "", "iSNSServerPort 3206", ""},
    {"iSNSAccessControl", "iSNS On\niSNSServerIP 1.2.3.4\n", "iSNSAccessControl On", ""},
    {"incomingdiscoveryuser", "", "incomingdiscoveryuser a 0123456789ab iqn.*", ""},
    {"outgoingdiscoveryuser", "", "outgoingdiscoveryuser b 0123456789ab", ""},
    {"login-failure-delay", "", "login-failure-delay 0", ""},
    {"chap-algorithms", "", "chap-algorithms 8,md5", ""},
    {"chap-legacy-sha1-7", "", "chap-legacy-sha1-7 off", ""},
    {"chap-algorithms", T, "chap-algorithms sha1,sha256", E},
    {"chap-legacy-sha1-7", T, "chap-legacy-sha1-7 on", E},
    {"incominguser", "", "incominguser a 0123456789ab\nincominguser b 0123456789ac", ""},
    {"outgoinguser", "", "outgoinguser \"a b\" \"0123 # 456789ab\"", ""},
    {"incominguser", T, "incominguser a 0123456789ab iqn.x* iqn.[a-f]", E},
    {"outgoinguser", T, "outgoinguser a 0123456789ab", E},
    {"backing-store", T, "backing-store \"/a b\"\nbacking-store /c#d", E},
    {"ids", "", "ids tgt", T "backing-store /a\nbacking-store /b\n" E},
    {"ids", T B "scsi_id X\n" F, "ids iet", E},
    {"ids", "", "ids iet", T "backing-store /a\nbacking-store /b\n" E},
    {"direct-store", T, "direct-store /dev/sda", E, .instead = "backing-store /dev/sda"},
    {"portal-group", T, "portal-group 1", E},
    {"initiator-address", T, "initiator-address 10.0.0.0/8\ninitiator-address ::1", E},
    {"initiator-name", T, "initiator-name iqn.a*\ninitiator-name iqn.[!a-f]", E},
    {"local-address", T, "local-address iface:eth1", E},
    {"discoverable", T, "discoverable no", E},
    {"controller_tid", T, "controller_tid 77", E},
    {"alias", T, "alias \" it's \\\"\xc3\xa4\\\" = \\# \\\\ \"", E},
    {"state", T, "state offline", E},
    {"MaxQueueCmd", T, "MaxQueueCmd 64", E},
    {"nop_interval", T, "nop_interval 0", E},
    {"nop_count", T, "nop_count 2", E},
    {"RedirectAddress", T, "RedirectAddress 1.2.3.4", E},
    {"RedirectPort", T "RedirectAddress 1.2.3.4\n", "RedirectPort 3261", E},
    {"RedirectReason", T "RedirectAddress 1.2.3.4\n", "RedirectReason Permanent", E},
    {"RedirectCallback", T, "RedirectCallback /bin/x \"a b\"", E},
    {"redirect-initiator", T,
     "redirect-initiator iqn.a* 1.2.3.4 Permanent\nredirect-initiator iqn.a:b here", E},
    {"HeaderDigest", T, "HeaderDigest CRC32C", E},
    {"InitialR2T", T, "InitialR2T Yes", E},
    {"write-cache", T B, "write-cache off", F E},
    {"scsi_id", T B, "scsi_id \" a\\\"b# \"", F E},
    {"scsi_sn", T B, "scsi_sn =x", F E},
    {"naa", T B, "naa 3000000000000001", F E},
    {"eui", T B, "eui 0123456789abcdef01234567", F E},
    {"designator", T B, "designator naa 6001\ndesignator t10 4142\ndesignator name 61", F E},
    {"scsi_sn_width", T B, "scsi_sn_width 36", F E},
    {"vendor_id", T B, "vendor_id \"'a'\"", F E},
    {"product_id", T B, "product_id \"<<a b>\"", F E},
    {"product_rev", T B, "product_rev \"a/*\"", F E},
    {"sense_format", T B, "sense_format 1", F E},
    {"removable", T B, "removable on", F E},
    {"online", T B, "online off", F E},
    {"readonly", T B, "readonly yes", F E},
    {"lbppbe", T B, "lbppbe 0", F E},
    {"la_lba", T B, "la_lba 1", F E},
    {"optimal_xfer_gran", T B, "optimal_xfer_gran 8", F E},
    {"optimal_xfer_len", T B, "optimal_xfer_len 4294967294", F E},
    {"thin-provisioning", T B, "thin-provisioning on", F E},
    {"thin_provisioning", T B, "thin_provisioning 1", F E},
    {"rotation_rate", T B, "rotation_rate 0", F E},
    {"bs-type", T B, "bs-type aio", F E},
    {"bsoflags", T B, "bsoflags direct:sync", F E},
    {"allow-in-use", T B, "allow-in-use yes", F E},
    {"block-size", T B, "block-size 4096", F E},
    {"size", T "<backing-store \"\">\nbs-type null\n", "size 10G", F E, .instead = "size 1G"},
    {"bsopts", T B, "bsopts \"a=b;c=d # e\"", F E, .unjudged = true},
    {"layer", T B, "layer delay:ms=20,op=read\nlayer error:op=write", F E},
    {"lun", T B, "lun 0", F E},
    {"mode_page", T B,
     "mode_page 0x30:0:2:1:2\nmode_page 8:0:18:0x10:0:0:0:0:0:0:0:0:0:0:20:0:0:0:0:0:0", F E},
    {"params", T B, "params vendor_id=a,removable=1", F E},
};
#define GIVEN (sizeof given / sizeof *given)

/* With and without the line: they differ, and what is written keeps the difference. */
static void
test_each_directive(void)
{
    for (size_t i = 0; i < GIVEN; i++) {
        char with[2048], without[2048];
        snprintf(with, sizeof with, "%s%s\n%s", given[i].before, given[i].line, given[i].after);
        snprintf(without, sizeof without, "%s%s\n%s", given[i].before,
                 given[i].instead ? given[i].instead : "", given[i].after);
        unjudged = given[i].unjudged;
        round_trip(with);
        struct conf *a = parse(with), *b = parse(without);
        CU_ASSERT_FALSE(conf_same(a, b));
        if (conf_same(a, b))
            printf("%s: no difference\n", given[i].name);
        conf_free(a);
        conf_free(b);
    }
}

/* Rows that are understood and change nothing that is kept. */
static const char *const not_kept[] = {
    "default-driver",
    "ignore-errors",
    "control-port",
    "syntax",
    "target",
    "include",
    "driver",
    "MaxXmitDataSegmentLength",
    "IFMarkInt",
    "OFMarkInt",
    "RDMAExtensions",
    "TargetRecvDataSegmentLength",
    "InitiatorRecvDataSegmentLength",
    "MaxOutstandingUnexpectedPDUs",
    "device-type",
};

static void
test_all_directives(void)
{
    const char *name;
    bool understood, found;

    for (unsigned i = 0; (name = conf_directive(i, &understood)); i++) {
        found = !understood;
        for (size_t k = 0; k < GIVEN; k++)
            found |= strcmp(given[k].name, name) == 0;
        for (size_t k = 0; k < sizeof not_kept / sizeof *not_kept; k++)
            found |= strcmp(not_kept[k], name) == 0;
        CU_ASSERT(found);
        if (!found)
            printf("%s has no row in this test\n", name);
    }
}

/* Values of the characters that mean something somewhere, all texts of up to `len` of them. */
static const char meaning[] = {'a', ' ', '\t', '"', '\'', '\\',   '#', '=',
                               '<', '>', '/',  '*', '\r', '\xe4', '@', ','};

static void
check_value(const char *v)
{
    struct conf_target t;

    conf_target_init(&t);
    snprintf(t.name, sizeof t.name, "%s", v);
    t.tid = 1;
    t.alias = v;
    char *w = conf_write_target(&t, 0);
    struct conf *c = parse_with(w, NULL);
    CU_ASSERT_EQUAL_FATAL(c->ntargets, 1);
    if (strcmp(c->targets[0].alias, v) != 0 || strcmp(c->targets[0].name, v) != 0) {
        printf("\"%s\" became \"%s\" and \"%s\":\n%s", v, c->targets[0].alias, c->targets[0].name,
               w);
        CU_FAIL_FATAL("another value");
    }
    conf_free(c);
    secret_free_text(w);
    conf_target_fini(&t);
}

static void
check_account(const char *user, const char *secret)
{
    struct conf_target t;

    conf_target_init(&t);
    snprintf(t.name, sizeof t.name, "t");
    t.accounts.v = xcalloc(1, sizeof *t.accounts.v);
    t.accounts.n = 1;
    t.accounts.v[0].user = xstrdup(user);
    t.accounts.v[0].secret = secret_new(secret, strlen(secret));
    char *w = conf_write_target(&t, CONF_WRITE_SECRETS);
    struct conf *c = parse_with(w, NULL);
    bool same = c->targets[0].accounts.n == 1 &&
                strcmp(c->targets[0].accounts.v[0].user, user) == 0 &&
                secret_same(c->targets[0].accounts.v[0].secret, t.accounts.v[0].secret);
    if (!same) {
        printf("user \"%s\", secret \"%s\":\n%s", user, secret, w);
        CU_FAIL_FATAL("another account");
    }
    conf_free(c);
    secret_free_text(w);
    conf_target_fini(&t);
}

static void
test_any_value(void)
{
    const size_t m = sizeof meaning;
    char v[5], u[5];

    for (size_t i = 0; i < m * m * m; i++) {
        snprintf(v, sizeof v, "%c%c%c", meaning[i % m], meaning[i / m % m], meaning[i / m / m]);
        check_value(v);
        snprintf(u, sizeof u, "%c%c", meaning[i / m % m], meaning[i / m / m]);
        check_account(u, v);
    }
    srandom(1);
    for (unsigned i = 0; i < 3000; i++) {
        char a[40], b[40];
        size_t n = 1 + (size_t)random() % 30, k = 1 + (size_t)random() % 30;
        for (size_t j = 0; j < n; j++)
            a[j] = meaning[(size_t)random() % m];
        for (size_t j = 0; j < k; j++)
            b[j] = meaning[(size_t)random() % m];
        a[n] = b[k] = 0;
        check_value(a);
        check_account(a, b);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"each directive is written and read", test_each_directive},
        {"no directive is missing here", test_all_directives},
        {"any value", test_any_value},
    };
    return UNIT_RUN("conf-write", tests);
}
