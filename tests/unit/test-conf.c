/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/: what is understood, and the exact place and words of what is not. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/pool.h"
#include "conf/conf.h"
#include "tests/unit/unit.h"

static int
key(const char *name, const char *value, char *err, size_t errsize, void *arg)
{
    (void)arg;
    if (strcmp(name, "MaxBurstLength") != 0 && strcmp(name, "InitialR2T") != 0)
        return -ENOENT;
    if (strcmp(value, "bad") != 0)
        return 0;
    snprintf(err, errsize, "%s: 512 to 16777215", name);
    return -EINVAL;
}

static int
target_name(const char *name, char *out, char *err, size_t errsize, void *arg)
{
    (void)arg;
    if (strncmp(name, "iqn.", 4) != 0) {
        snprintf(err, errsize, "want iqn.");
        return -EINVAL;
    }
    snprintf(out, CONF_NAME_MAX + 1, "%s", name);
    return 0;
}

static int
address(const char *text, char *err, size_t errsize, char *warn, size_t warnsize, void *arg)
{
    (void)arg;
    if (strcmp(text, "nonsense") == 0) {
        snprintf(err, errsize, "no address");
        return -EINVAL;
    }
    if (strcmp(text, "10.0.0.1/8") == 0)
        snprintf(warn, warnsize, "host bits");
    return 0;
}

static const struct conf_checks checks = {
    .key = key, .target_name = target_name, .address = address};

static struct conf *
parse(const char *text, struct conf_report *r)
{
    conf_report_init(r);
    return conf_parse("f", text, strlen(text), &checks, r);
}

static struct conf *
good(const char *text)
{
    struct conf_report r;
    struct conf *c = parse(text, &r);
    if (!c) {
        for (unsigned i = 0; i < r.n; i++)
            printf("%u:%u: %s\n", r.v[i].line, r.v[i].col, r.v[i].text);
        CU_FAIL_FATAL("refused");
    }
    conf_report_fini(&r);
    return c;
}

#define T    "<target iqn.a:b>\ninitiator-address ALL\n"
#define E    "</target>\n"
#define F    "</backing-store>\n"
#define ZRAM "<backing-store z>\nbs-type zram\nsize 8M\n"

struct bad {
    const char *text;
    unsigned line, col;
    const char *words;
};

static const struct bad bads[] = {
    {"foo 1\n", 1, 1, "unknown directive \"foo\""},
    {"  worker 2\n", 1, 3, "did you mean workers?"},
    {"Target iqn.2001-04.a:b\nLun 0 Type=fileio\n", 2, 1, "Lun wants Path=FILE"},
    {"workers 0\n", 1, 9, "from 1 to 64"},
    {"workers\n", 1, 8, "wants a value"},
    {"workers 2\nworkers 3\n", 2, 1, "given twice; the first is at f:1:1"},
    {"workers 2x\n", 1, 9, "not \"2x\""},
    {"placement everywhere\n", 1, 11, "spread or affine"},
    {"busy-poll 1001\n", 1, 11, "1000"},
    {"state-dir x\n", 1, 11, "absolute"},
    {"user a:\n", 1, 6, "NAME:GROUP"},
    {"user a:b:c\n", 1, 6, "NAME:GROUP"},
    {"user \"a b\"\n", 1, 7, "NAME:GROUP"},
    {"default-driver iser\n", 1, 16, "only iscsi"},
    {"incomingdiscoveryuser a\n", 1, 23, "wants a name and a secret"},
    {"incominguser a @/nonexistent/secret\n", 1, 16, "/nonexistent/secret: No such file"},
    {"incominguser a @/etc/passwd\n", 1, 16, "others may read"},
    {"incominguser a @/dev/null\n", 1, 16, "no regular file"},
    {"incominguser a \"0123456789ab\n", 1, 16, "a quote is not closed"},
    {"incominguser a \"0123456789ab\"c\n", 1, 16, "a quote is not closed"},
    {"incominguser a \"\"\n", 1, 14, "wants a name and a secret"},
    {"outgoinguser a 0123456789ab\noutgoinguser b 0123456789abc\n", 2, 1, "a second outgoing"},
    {"outgoinguser a 0123456789ab iqn.a:i\n", 1, 29, "only an incominguser"},
    {"incominguser a 0123456789ab\noutgoinguser b 0123456789ab\n", 2, 1, "both directions"},
    {"chap-algorithms md5,md4\n", 1, 17, "md5, sha1, sha256, sha3-256"},
    {"chap-algorithms 5,\n", 1, 17, "md5, sha1, sha256, sha3-256"},
    {"chap-legacy-sha1-7 perhaps\n", 1, 20, "on or off"},
    {"login-failure-delay 10001\n", 1, 21, "from 0 to 10000"},
    {"iSNS On\n", 1, 1, "wants an iSNSServerIP"},
    {"iSNS perhaps\n", 1, 6, "on or off"},
    {"iSNSServerIP 1.2.3.4\niSNSServerIP 1.2.3.4\n", 2, 1, "given twice; the first is at f:1:1"},
    {"iSNSServerPort 65536\n", 1, 16, "from 1 to 65535"},
    {"iSNSServerIP 1.2.3.4\niSNSAccessControl On\n", 2, 1, "wants `iSNS On`"},
    {"syntax iet\n", 1, 8, "tgt"},
    {"ids lio\n", 1, 5, "evtgt, tgt or iet"},
    {"ids tgt\n" T "backing-store /a\nscsi_id 0123456789012345678901234567890123456\n" E, 4, 1,
     "at most 36"},
    {"ids iet\n" T "backing-store /a\nscsi_id 0123456789abcdefX\n" E, 4, 1, "at most 16"},
    {T "<backing-store /a>\ndesignator naa 300\n</backing-store>\n" E, 4, 12, "hexadecimal digits"},
    {T "<backing-store /a>\ndesignator x 30\n</backing-store>\n" E, 4, 12, "t10, t10-binary"},
    {"portal nowhere\n", 1, 8, "numeric address"},
    {"portal 1.2.3.4:x\n", 1, 8, "no port"},
    {"portal 1.2.3.4:70000\n", 1, 8, "no port"},
    {"portal [::1\n", 1, 8, "want [IPV6-ADDRESS]:PORT"},
    {"portal 1.2.3.4\nportal 1.2.3.4:3260\n", 2, 1, "given twice"},
    {"<portal 1.2.3.4>\ngroup 65536\n</portal>\n", 2, 7, "from 0 to 65535"},
    {"<portal 1.2.3.4>\ngroup 1\ngroup 1\n</portal>\n", 3, 1, "given twice"},
    {"<portal 1.2.3.4>\nadvertise a_b\n</portal>\n", 2, 11, "advertise: "},
    {"<portal 1.2.3.4>\nalias x\n</portal>\n", 2, 1, "in a <portal> block"},
    {"group 1\n", 1, 1, "stands in a <portal> block"},
    {"portal 1.2.3.4\n" T "portal 1.2.3.5\n" E, 4, 8, "no portal 1.2.3.5:3260"},
    {"portal 1.2.3.4\n" T "portal-group 2\n" E, 4, 14, "no portal is in group 2"},
    {T "portal-group 2\n" E, 3, 14, "no portal is in group 2"},
    {T "portal-group x\n" E, 3, 14, "from 0 to 65535"},
    {T "<portal 1.2.3.4>\n</portal>\n" E, 3, 1, "is no block"},
    {"dscp 64\n", 1, 6, "from 0 to 63"},
    {"dscp af44\n", 1, 6, "from 0 to 63"},
    {"dscp cs\n", 1, 6, "from 0 to 63"},
    {"dscp x\n", 1, 6, "from 0 to 63"},
    {"vendor_id X\n", 1, 1, "stands in a <target> block"},
    {"<target>\n</target>\n", 1, 8, "wants a value"},
    {"<target foo>\n</target>\n", 1, 9, "want iqn."},
    {"target iqn.a:b\n", 1, 1, "<target NAME>"},
    {"<target iqn.a:b>\n", 1, 1, "never closed"},
    {"<target iqn.a:b\n", 1, 1, "\">\" is missing"},
    {"</target>\n", 1, 1, "not open"},
    {T "</targets>\n", 3, 1, "closes <target> of line 1"},
    {T E T E, 4, 1, "given twice; the first is at f:1:1"},
    {T "incominguser a\n" E, 3, 14, "wants a name and a secret"},
    {T "incominguser a 0123456789ab\nincominguser a 0123456789abc\n" E, 4, 1, "given twice"},
    {T "incomingdiscoveryuser a 0123456789ab\n" E, 3, 1, "outside of any block"},
    {"outgoinguser a 0123456789ab\n" T "incominguser b 0123456789ab\n" E, 4, 1, "both directions"},
    {T "direct-store dev\n" E, 3, 14, "an absolute path"},
    {T "driver iser\n" E, 3, 8, "only iscsi"},
    {T "state up\n" E, 3, 7, "ready or offline"},
    {T "controller_tid 0\n" E, 3, 16, "from 1"},
    {T "workers 2\n" E, 3, 1, "outside of any block"},
    {T "maxburstlength 5\n" E, 3, 1, "unknown directive"},
    {T "MaxBurstLength bad\n" E, 3, 16, "512 to 16777215"},
    {T "MaxBurstLength 1\nMaxBurstLength 2\n" E, 4, 1, "given twice"},
    {T "initiator-address nonsense\n" E, 3, 19, "no address"},
    {T "backing-store a\n" E, 3, 15, "absolute path"},
    {T "backing-store\n" E, 3, 14, "wants a value"},
    {T "backing-store /a\nbacking-store /a\n" E, 4, 1, "of this target already, at f:3:1"},
    {T "backing-store /a\nmode_page 1\n" E, 4, 11, "PAGE:SUBPAGE"},
    {T "backing-store /a\nmode_page 8:0:2:1\n" E, 4, 11, "as many bytes"},
    {T "backing-store none\n" E, 3, 15, "only a removable unit"},
    {T "backing-store /a\npath /b\n" E, 4, 1, "by backing-store"},
    {T "backing-store /a\nblock-size 1000\n" E, 4, 12, "512 or 4096"},
    {T "backing-store /a\nbs-type rbd\n" E, 4, 9, "rdwr, fileio"},
    {T "backing-store /a\nbsoflags dierct\n" E, 4, 10, "direct, sync"},
    {T "backing-store /a\ndevice-type cd\n" E, 4, 13, "only disk"},
    {T "backing-store /a\nnaa 123\n" E, 4, 5, "16 hexadecimal"},
    {T "backing-store /a\nnaa 6123456789abcdef\n" E, 4, 5, "16 hexadecimal"},
    {T "backing-store /a\neui 12\n" E, 4, 5, "eui wants"},
    {T "backing-store /a\nscsi_sn "
       "0123456789012345678901234567890123456789012345678901234567890123\n" E,
     4, 9, "at most 63"},
    {T "backing-store /a\nscsi_sn \xc3\xa4\n" E, 4, 9, "printable"},
    {T "backing-store /a\nrotation_rate 7\n" E, 4, 15, "1025"},
    {T "backing-store /a\nsense_format yes\n" E, 4, 14, "0 (fixed)"},
    {T "backing-store /a\nlbppbe 16\n" E, 4, 8, "to 15"},
    {T "backing-store /a\nwrite-cache maybe\n" E, 4, 13, "on or off"},
    {T "backing-store /a\nparams foo=1\n" E, 4, 8, "\"foo\" is not known"},
    {T "backing-store /a\nparams vendor_id\n" E, 4, 8, "NAME=VALUE"},
    {T "backing-store /a\nlun 16384\n" E, 4, 5, "to 16383"},
    {T "backing-store /a\nbacking-store /b\nlun 3\n" E, 5, 1, "several backing stores"},
    {T
     "<backing-store /a>\nlun 3\n</backing-store>\n<backing-store /b>\nlun 3\n</backing-store>\n" E,
     7, 5, "LUN 3 is given twice in this target; the first is at f:4:5"},
    {T "<backing-store /a>\nsize 1G\n</backing-store>\n" E, 3, 1, "null and zram only"},
    {T ZRAM "persist /x\n" F E, 6, 1, "unknown directive"},
    {T ZRAM "durable /x\n" F E, 6, 1, "unknown directive"},
    {T ZRAM "snapshot 60\n" F E, 6, 1, "unknown directive"},
    {T ZRAM "backing-dev /x\n" F E, 6, 1, "unknown directive"},
    {T "<backing-store /a>\nbs-type null\n</backing-store>\n" E, 3, 1, "wants a size"},
    {T "<backing-store /a>\nbs-type null\nsize 1000\n</backing-store>\n" E, 3, 1, "whole number"},
    {T "<backing-store /a>\nworkers 1\n</backing-store>\n" E, 4, 1, "outside of any block"},
    {T "<backing-store /a>\ndriver iscsi\n</backing-store>\n" E, 4, 1, "<target> block"},
    {T "<backing-store /a>\nfrobnicate 1\n</backing-store>\n" E, 4, 1, "unknown directive"},
    {T "<backing-store /a>\n<x y>\n</x>\n</backing-store>\n" E, 4, 1, "unknown directive"},
    {T "<alias x>\n</alias>\n" E, 3, 1, "is no block"},
    {T "<backing-store /a>\nscsi_sn s\n</backing-store>\n<backing-store /b>\nscsi_sn s\n"
       "</backing-store>\n" E,
     7, 9, "same scsi_sn; the other is at f:4:9"},
    {T "backing-store /a\nbacking-store /b\nscsi_sn s\n" E, 4, 1, "same scsi_sn"},
    {T "<backing-store /a>\nnaa 3000000000000001\n</backing-store>\n" E
       "<target iqn.c:d>\ninitiator-address ALL\n<backing-store /b>\nnaa naa.3000000000000001\n"
       "</backing-store>\n" E,
     10, 5, "same naa"},
    {T "backing-store /a\n" E
       "<target iqn.c:d>\ninitiator-address ALL\nreadonly 1\nbacking-store /a\n" E,
     8, 1, "at f:3:1 already, with other settings"},
    {T "controller_tid 5\n" E "<target iqn.c:d>\ninitiator-address ALL\ncontroller_tid 5\n" E, 5, 1,
     "controller_tid 5 is given twice"},
    {"include x\n", 1, 1, "not allowed here"},
    {"workers \\\n  \\\n  99\n", 3, 3, "from 1 to 64"},
    {"alias <<EOF\nx\n", 1, 7, "no line \"EOF\" ends it"},
    {"alias <<\n", 1, 7, "wants a word that ends"},
    {"= 1\n", 1, 1, "without a name"},
    {"<a b>\n<a b>\n<a b>\n<a b>\n<a b>\n</a>\n</a>\n</a>\n</a>\n</a>\n", 5, 1, "nested too deep"},
};

static void
test_bad(void)
{
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        const struct bad *b = &bads[i];
        struct conf_report r;
        struct conf *c = parse(b->text, &r);
        bool hit = false;
        for (unsigned k = 0; k < r.n; k++)
            hit |= r.v[k].is_error && r.v[k].line == b->line && r.v[k].col == b->col &&
                   strstr(r.v[k].text, b->words);
        if (c || !hit) {
            printf("case %zu:\n%s-- want %u:%u %s\n", i, b->text, b->line, b->col, b->words);
            for (unsigned k = 0; k < r.n; k++)
                printf("-- got %u:%u %s\n", r.v[k].line, r.v[k].col, r.v[k].text);
            CU_FAIL("a wrong file was taken, or its error is elsewhere");
        }
        conf_free(c);
        conf_report_fini(&r);
    }
}

static void
test_all_errors_at_once(void)
{
    struct conf_report r;
    struct conf *c = parse("workers x\nfoo\n" T "state up\nbacking-store a\n" E "portal q\n", &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT_EQUAL(r.nerrors, 5);
    conf_report_fini(&r);
}

static void
test_globals(void)
{
    struct conf *c =
        good("# c\nworkers 3\nplacement affine # tail\nstate-dir \"/var/x y\"\n"
             "login-timeout = 7\nmax-half-open=9\nmax-sessions 11\nshutdown-timeout 0\n"
             "max-half-open-per-address 3\ntcp-keepalive-idle 0\ntcp-keepalive-interval 4\n"
             "tcp-keepalive-count 5\ntcp-user-timeout 6\ndscp AF31\n"
             "default-driver iscsi\nignore-errors yes\n"
             "portal 192.0.2.1:3261\nportal [2001:db8::1]:3262\nportal ::1\n");
    CU_ASSERT_EQUAL(c->workers, 3);
    CU_ASSERT_EQUAL(c->affine, 1);
    CU_ASSERT_STRING_EQUAL(c->state_dir, "/var/x y");
    CU_ASSERT_EQUAL(c->login_timeout_s, 7);
    CU_ASSERT_EQUAL(c->max_half_open, 9);
    CU_ASSERT_EQUAL(c->max_half_open_per_addr, 3);
    CU_ASSERT_EQUAL(c->keepalive_idle_s, 0);
    CU_ASSERT_EQUAL(c->keepalive_interval_s, 4);
    CU_ASSERT_EQUAL(c->keepalive_count, 5);
    CU_ASSERT_EQUAL(c->user_timeout_s, 6);
    CU_ASSERT_EQUAL(c->dscp, 26); /* RFC 2597 6: 011010 */
    CU_ASSERT_EQUAL(c->max_sessions, 11);
    CU_ASSERT_EQUAL(c->shutdown_timeout_s, 0);
    CU_ASSERT_EQUAL_FATAL(c->nportals, 3);
    CU_ASSERT_STRING_EQUAL(c->portals[0].at.name, "192.0.2.1:3261");
    CU_ASSERT_STRING_EQUAL(c->portals[1].at.name, "[2001:db8::1]:3262");
    CU_ASSERT_STRING_EQUAL(c->portals[2].at.name, "[::1]:3260");
    CU_ASSERT_EQUAL(c->portals[2].group, 1);
    CU_ASSERT_STRING_EQUAL(c->portals[2].advertise, "");
    conf_free(c);
    c = good("");
    CU_ASSERT_EQUAL(c->workers, CONF_UNSET);
    CU_ASSERT_EQUAL(c->nportals, 0);
    conf_free(c);
}

static void
test_portals(void)
{
    struct conf *c =
        good("<portal 192.0.2.1:3261>\ngroup 2\nadvertise san.example\n</portal>\n"
             "portal iface:eth0\n" T "portal-group 2\nportal-group 1\nportal iface:eth0:3260\n" E);
    CU_ASSERT_EQUAL_FATAL(c->nportals, 2);
    CU_ASSERT_EQUAL(c->portals[0].group, 2);
    CU_ASSERT_STRING_EQUAL(c->portals[0].advertise, "san.example:3261");
    CU_ASSERT_STRING_EQUAL(c->portals[1].at.iface, "eth0");
    CU_ASSERT_EQUAL(c->portals[1].group, 1);
    const struct conf_target *t = &c->targets[0];
    CU_ASSERT_EQUAL_FATAL(t->nbinds, 3);
    CU_ASSERT(t->binds[0].group == 2 && t->binds[0].name[0] == '\0');
    CU_ASSERT(t->binds[1].group == 1 && t->binds[1].name[0] == '\0');
    CU_ASSERT_STRING_EQUAL(t->binds[2].name, "iface:eth0:3260");
    conf_free(c);
    c = good(T "portal-group 1\n" E); /* that of the portals nobody wrote */
    CU_ASSERT_EQUAL(c->targets[0].nbinds, 1);
    conf_free(c);
}

static void
test_luns(void)
{
    struct conf *c = good(
        T "vendor_id ACME\nwrite-cache off\n"
          "<backing-store /dev/a>\nlun 2\nwrite-cache on\nlayer delay:ms=1\nlayer trace\n"
          "</backing-store>\n"
          "backing-store /b\nbacking-store /c d\n"
          "<backing-store \"/e # f\">\nlun 0\nbs-type aio\nbsoflags sync:direct\n"
          "params product_id=P X,rotation_rate=7200\nnaa 0x6123456789abcdef0123456789abcdef\n"
          "</backing-store>\n"
          "<backing-store none>\nbs-type nullio\nsize 2M\nblock-size 4096\n</backing-store>\n" E);
    const struct conf_target *t = &c->targets[0];
    CU_ASSERT_EQUAL_FATAL(t->nluns, 5);
    CU_ASSERT_EQUAL(t->luns[0].number, 0);
    CU_ASSERT_STRING_EQUAL(t->luns[0].path, "/e # f");
    CU_ASSERT(t->luns[0].direct && t->luns[0].sync && t->luns[0].bs == CONF_BS_FILE);
    CU_ASSERT_STRING_EQUAL(t->luns[0].product_id, "P X");
    CU_ASSERT_EQUAL(t->luns[0].rotation_rate, 7200);
    CU_ASSERT_EQUAL(t->luns[0].naa_len, 16);
    CU_ASSERT_EQUAL(t->luns[0].naa[1], 0x23);
    CU_ASSERT_STRING_EQUAL(t->luns[1].path, "/b");
    CU_ASSERT_EQUAL(t->luns[1].number, 1);
    CU_ASSERT(!t->luns[1].write_cache);
    CU_ASSERT_STRING_EQUAL(t->luns[1].vendor_id, "ACME");
    CU_ASSERT_STRING_EQUAL(t->luns[2].path, "/dev/a");
    CU_ASSERT(t->luns[2].write_cache);
    CU_ASSERT_STRING_EQUAL(t->luns[2].layers, "delay:ms=1 trace");
    CU_ASSERT_EQUAL(conf_lun_kind(&t->luns[2], NULL), CONF_BS_BLOCK);
    CU_ASSERT_STRING_EQUAL(t->luns[3].path, "/c d");
    CU_ASSERT_EQUAL(t->luns[3].number, 3);
    CU_ASSERT_EQUAL(t->luns[4].bs, CONF_BS_NULL);
    CU_ASSERT_EQUAL(t->luns[4].size, 2u << 20);
    conf_free(c);
}

static void
test_targets(void)
{
    struct conf *c =
        good(T "controller_tid 2\nalias my disk\nstate offline\nnop_interval 5\nnop_count 2\n"
               "MaxQueueCmd 32\nMaxBurstLength 1024\ninitiator-name iqn.x:*\n" E
               "<target iqn.b:c>\ninitiator-name iqn.y\n" E
               "<target iqn.b:d>\ninitiator-address 10.0.0.1/8\n" E);
    CU_ASSERT_EQUAL_FATAL(c->ntargets, 3);
    const struct conf_target *t = &c->targets[0];
    CU_ASSERT_EQUAL(t->tid, 2);
    CU_ASSERT_STRING_EQUAL(t->alias, "my disk");
    CU_ASSERT(t->offline);
    CU_ASSERT_EQUAL(t->nop_interval_s, 5);
    CU_ASSERT_EQUAL(t->nop_count, 2);
    CU_ASSERT_EQUAL(t->max_cmds, 32);
    CU_ASSERT_EQUAL(t->nkeys, 1);
    CU_ASSERT_EQUAL(t->naddrs, 1);
    CU_ASSERT_EQUAL(t->nnames, 1);
    CU_ASSERT_EQUAL(c->targets[1].tid, 1);
    CU_ASSERT_EQUAL(c->targets[2].tid, 3);
    conf_free(c);
}

static void
test_access_default(void)
{
    struct conf_report r;
    struct conf *c = parse("<target iqn.a:b>\n</target>\n", &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(c->targets[0].naddrs, 0);
    CU_ASSERT_EQUAL(r.n, 1);
    CU_ASSERT(!r.v[0].is_error && strstr(r.v[0].text, "nobody"));
    conf_free(c);
    conf_report_fini(&r);
    c = parse("<target iqn.a:b>\n</target>\nsyntax tgt\n", &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL_FATAL(c->targets[0].naddrs, 1);
    CU_ASSERT_STRING_EQUAL(c->targets[0].addrs[0].value, "ALL");
    CU_ASSERT(strstr(r.v[0].text, "everybody") != NULL);
    conf_free(c);
    conf_report_fini(&r);
}

/* The rules of the original's reader, as seen by running it. */
static void
test_reading(void)
{
    struct conf *c =
        good("\xef\xbb\xbf/* a comment\n over lines */\n" T "alias val#ue\r\n"
             "backing-store /a\\#b\n"
             "<backing-store   /c   > # tail\nscsi_sn one \\\n    two\n</backing-store>\n"
             "# not continued \\\nproduct_id \"q\\\"q\"\n"
             "state ready /* tail */\n" E);
    const struct conf_target *t = &c->targets[0];
    CU_ASSERT_STRING_EQUAL(t->alias, "val");
    CU_ASSERT_STRING_EQUAL(t->luns[0].path, "/a#b");
    CU_ASSERT_STRING_EQUAL(t->luns[1].path, "/c");
    CU_ASSERT_STRING_EQUAL(t->luns[1].scsi_sn, "one two");
    CU_ASSERT_STRING_EQUAL(t->luns[1].product_id, "q\"q");
    conf_free(c);
    struct conf_report r;
    conf_report_init(&r);
    c = conf_parse("f", "work\0ers 1\n", 11, &checks, &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT(r.v[0].line == 1 && r.v[0].col == 5 && strstr(r.v[0].text, "NUL"));
    conf_report_fini(&r);
}

static void
test_vendor_cut(void)
{
    struct conf_report r;
    struct conf *c = parse(T "backing-store /a\nvendor_id MyCompany Inc.\n" E, &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(c->targets[0].luns[0].vendor_id, "MyCompan");
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT(r.v[0].line == 4 && r.v[0].col == 11 && !r.v[0].is_error);
    conf_free(c);
    conf_report_fini(&r);
}

static void
test_sharing(void)
{
    struct conf *c = good(T "backing-store /a\n" E
                            "<target iqn.c:d>\ninitiator-address ALL\n<backing-store /a>\nlun 7\n"
                            "</backing-store>\n" E);
    CU_ASSERT(conf_lun_same(&c->targets[0].luns[0], &c->targets[1].luns[0]));
    conf_free(c);
    c = good(T "backing-store /a\nallow-in-use yes\n" E
               "<target iqn.c:d>\ninitiator-address ALL\nreadonly 1\nallow-in-use "
               "yes\nbacking-store /a\n" E);
    CU_ASSERT(!conf_lun_same(&c->targets[0].luns[0], &c->targets[1].luns[0]));
    conf_free(c);
}

/* --- files ----------------------------------------------------------------------------------- */

static char dir[] = "/tmp/evtgt-conf-XXXXXX";

static void
write_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
    free(path);
}

static struct conf *
read_file(const char *name, struct conf_report *r)
{
    char *path = xasprintf("%s/%s", dir, name);
    conf_report_init(r);
    struct conf *c = conf_read(path, &checks, r);
    free(path);
    return c;
}

static void
test_include(void)
{
    struct conf_report r;
    char *sub = xasprintf("%s/d", dir);
    mkdir(sub, 0700);
    write_file("main", "workers 2\ninclude d/*.conf\ninclude nothing-*.conf\ninclude \"d\"\n" T
                       "include part\n" E);
    write_file("d/a.conf", "");
    write_file("part", "backing-store /x\n");
    struct conf *c = read_file("main", &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(c->targets[0].nluns, 1);
    conf_free(c);
    conf_report_fini(&r);

    write_file("d/a.conf", "\n frob 1\n");
    c = read_file("main", &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT_EQUAL_FATAL(r.nerrors, 2); /* it is read twice */
    CU_ASSERT(strstr(r.v[0].file, "/d/a.conf") && r.v[0].line == 2 && r.v[0].col == 2);
    conf_report_fini(&r);

    write_file("d/a.conf", "</target>\n");
    write_file("main", T "include d/a.conf\n" E);
    c = read_file("main", &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT(strstr(r.v[0].text, "not open in this file") != NULL);
    conf_report_fini(&r);

    write_file("main", "include gone\n");
    c = read_file("main", &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT(r.v[0].line == 1 && r.v[0].col == 9 && strstr(r.v[0].text, "cannot read"));
    conf_report_fini(&r);

    write_file("main", "include main\n");
    c = read_file("main", &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT(strstr(r.v[0].text, "deep") != NULL);
    conf_report_fini(&r);

    c = read_file("absent", &r);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT_EQUAL(r.v[0].line, 0);
    conf_report_fini(&r);
    free(sub);
}

/* `syntax tgt` holds for its file and what that includes, not for who included it. */
static void
test_syntax_scope(void)
{
    struct conf_report r;
    write_file("main", "<target iqn.own:a>\n</target>\ninclude old\n");
    write_file("old", "syntax tgt\ninclude older\n");
    write_file("older", "<target iqn.old:a>\n</target>\n");
    struct conf *c = read_file("main", &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(c->targets[0].naddrs, 0);
    CU_ASSERT_EQUAL(c->targets[1].naddrs, 1);
    conf_free(c);
    conf_report_fini(&r);
}

static void
test_lun_set(void)
{
    struct conf_lun l;
    char err[256] = "", warn[256] = "";
    conf_lun_init(&l);
    CU_ASSERT_EQUAL(conf_lun_set(&l, true, "readonly", "1", err, sizeof err, warn, sizeof warn), 0);
    CU_ASSERT(l.read_only);
    CU_ASSERT_EQUAL(conf_lun_set(&l, true, "bs-type", "null", err, sizeof err, warn, sizeof warn),
                    -ENOENT);
    CU_ASSERT_EQUAL(conf_lun_set(&l, false, "bs-type", "null", err, sizeof err, warn, sizeof warn),
                    0);
    CU_ASSERT_EQUAL(conf_lun_set(&l, true, "mode_page", "1", err, sizeof err, warn, sizeof warn),
                    -EINVAL);
    CU_ASSERT_EQUAL(conf_lun_set(&l, true, "lbppbe", "99", err, sizeof err, warn, sizeof warn),
                    -EINVAL);
    CU_ASSERT_EQUAL(conf_lun_check(&l, err, sizeof err), -EINVAL);
    conf_lun_fini(&l);
}

/* Kept once a page, as it was given; WCE and D_SENSE are the settings that say the same. */
static void
test_mode_pages(void)
{
    static const char *const wrong[] = {
        "",          "8",       "8:0",       "8:0:1",   "8:0:0",    "8:0:1:256",       "63:0:1:1",
        "8:255:1:1", "8:0:2:1", "8:0:1:1:2", "a:0:1:1", "8:0:65:1", "8:0:1:1 9:0:1:1", "-8:0:1:1"};
    struct conf_lun l, copy;
    char err[512] = "", warn[256] = "";

    conf_lun_init(&l);
#define PAGE(v) conf_lun_set(&l, true, "mode_page", v, err, sizeof err, warn, sizeof warn)
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT_EQUAL(PAGE(wrong[i]), -EINVAL);
    CU_ASSERT_STRING_EQUAL(l.mode_pages, "");
    CU_ASSERT_EQUAL(PAGE("8:0:2:0:1"), 0);
    CU_ASSERT(!l.write_cache);
    CU_ASSERT_EQUAL(PAGE("0x30:1:0x2:255:0"), 0);
    CU_ASSERT_EQUAL(PAGE("8:0:2:0x14:2"), 0); /* instead of the first */
    CU_ASSERT(l.write_cache);
    CU_ASSERT_EQUAL(PAGE("10:0:1:4"), 0);
    CU_ASSERT(l.descriptor_sense);
    CU_ASSERT_STRING_EQUAL(l.mode_pages, "48:1:2:0xff:0x00 8:0:2:0x10:0x02 10:0:1:0x00");
    l.descriptor_sense = false; /* by sense_format */
    conf_lun_copy(&copy, &l);
    CU_ASSERT(conf_lun_same(&copy, &l));
    CU_ASSERT_EQUAL(PAGE("none"), 0);
    CU_ASSERT(!conf_lun_same(&copy, &l));
#undef PAGE
    conf_lun_fini(&copy);
    conf_lun_fini(&l);
}

static void
test_numbers(void)
{
    uint64_t v;
    CU_ASSERT_EQUAL(conf_parse_uint("0x10", 0, 99, &v), 0);
    CU_ASSERT_EQUAL(v, 16);
    CU_ASSERT_EQUAL(conf_parse_uint("18446744073709551615", 0, UINT64_MAX, &v), 0);
    CU_ASSERT_EQUAL(conf_parse_uint("18446744073709551616", 0, UINT64_MAX, &v), -EINVAL);
    CU_ASSERT_EQUAL(conf_parse_uint("-1", 0, 99, &v), -EINVAL);
    CU_ASSERT_EQUAL(conf_parse_uint("", 0, 99, &v), -EINVAL);
    CU_ASSERT_EQUAL(conf_parse_uint("0x", 0, 99, &v), -EINVAL);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"wrong files, each at its place", test_bad},
        {"all errors at once", test_all_errors_at_once},
        {"the daemon's directives", test_globals},
        {"portals", test_portals},
        {"logical units", test_luns},
        {"targets", test_targets},
        {"who may log in by default", test_access_default},
        {"lines, quotes, comments", test_reading},
        {"INQUIRY texts are cut with a warning", test_vendor_cut},
        {"one store, two targets", test_sharing},
        {"include", test_include},
        {"scope of syntax tgt", test_syntax_scope},
        {"single LUN settings", test_lun_set},
        {"mode pages", test_mode_pages},
        {"numbers", test_numbers},
    };
    if (!mkdtemp(dir))
        return 1;
    int rc = UNIT_RUN("conf", tests);
    char *cmd = xasprintf("rm -rf %s", dir);
    rc |= system(cmd) != 0;
    free(cmd);
    return rc;
}
