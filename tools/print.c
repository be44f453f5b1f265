/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers in words.  Other programs parse these lines: blanks and letters are tgtadm's own.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/adm.h"

static const char *
str(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "";
}

static long long
num(const json_t *o, const char *name)
{
    return (long long)json_integer_value(json_object_get(o, name));
}

static const char *
yes(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name)) ? "Yes" : "No";
}

/* tgt's name for what serves a file. */
static const char *
bs_name(const char *type)
{
    return strcmp(type, "fileio") == 0 ? "rdwr" : type;
}

/* Called by a name of tgt: what tgt does not have is left out, since its readers take each line
 * below "ACL information:" for a rule. */
static bool
is_tgt(void)
{
    return strcmp(adm_name, "tgtadm") == 0 || strcmp(adm_name, "tgt-admin") == 0;
}

static void
print_lun_head(long long lun, const char *type, const char *id, const char *sn)
{
    printf("        LUN: %lld\n", lun);
    printf("            Type: %s\n", type);
    printf("            SCSI ID: %s\n", id);
    printf("            SCSI SN: %s\n", sn);
}

/* LUN 0 when no disk is LUN 0: tgt's controller device. */
static void
print_controller(long long tid)
{
    char id[64], sn[64];
    snprintf(id, sizeof id, "IET     %04llx%04x", tid, 0u);
    snprintf(sn, sizeof sn, "beaf%llx%x", tid, 0u);
    print_lun_head(0, "controller", id, sn);
    printf("            Size: 0 MB, Block size: 1\n"
           "            Online: Yes\n"
           "            Removable media: No\n"
           "            Prevent removal: No\n"
           "            Readonly: No\n"
           "            SWP: No\n"
           "            Thin-provisioning: No\n"
           "            Backing store type: null\n"
           "            Backing store path: None\n"
           "            Backing store flags: \n");
}

static void
print_lun(const json_t *l)
{
    unsigned long long bytes =
        (unsigned long long)num(l, "blocks") * (unsigned long long)num(l, "block_size");
    const char *path = str(l, "path");
    bool ready = json_is_true(json_object_get(l, "ready"));
    bool online = json_is_true(json_object_get(l, "online"));

    print_lun_head(num(l, "lun"), str(l, "type"), str(l, "scsi_id"), str(l, "scsi_sn"));
    printf("            Size: %llu MB, Block size: %lld\n", (bytes + 500000) / 1000000,
           num(l, "block_size"));
    printf("            Online: %s\n", online && ready ? "Yes" : "No");
    printf("            Removable media: %s\n", yes(l, "removable"));
    printf("            Prevent removal: %s\n", yes(l, "prevent_removal"));
    printf("            Readonly: %s\n", yes(l, "readonly"));
    printf("            SWP: %s\n", yes(l, "swp"));
    printf("            Thin-provisioning: %s\n", yes(l, "thin"));
    printf("            Backing store type: %s\n", bs_name(str(l, "bs_type")));
    printf("            Backing store path: %s\n", *path ? path : "None");
    printf("            Backing store flags: %s%s%s\n",
           json_is_true(json_object_get(l, "sync")) ? "sync" : "",
           json_is_true(json_object_get(l, "sync")) && json_is_true(json_object_get(l, "direct"))
               ? ":"
               : "",
           json_is_true(json_object_get(l, "direct")) ? "direct" : "");
}

static void
print_nexus(const json_t *s)
{
    const json_t *c;
    size_t i;
    const char *alias = str(s, "alias");

    printf("        I_T nexus: %lld\n", num(s, "sid"));
    printf("            Initiator: %s alias: %s\n", str(s, "initiator"), *alias ? alias : "none");
    json_array_foreach(json_object_get(s, "connections"), i, c)
    {
        printf("            Connection: %lld\n", num(c, "cid"));
        printf("                IP Address: %s\n", str(c, "address"));
    }
}

/* Of a target, or of all. */
static void
print_drain(const json_t *o)
{
    if (json_is_true(json_object_get(o, "draining")) && !is_tgt())
        printf("    Drained: new logins are %s%s\n", *str(o, "drain_to") ? "sent to " : "refused",
               str(o, "drain_to"));
}

/* Where its logins are sent: tgtadm shows nothing of it here, so only when there is something. */
static void
print_redirect(const json_t *t)
{
    const json_t *v, *all = json_object_get(t, "redirect");
    size_t i;

    if (json_array_size(all))
        printf("    Redirection:\n");
    json_array_foreach(all, i, v)
    {
        if (*json_string_value(json_array_get(v, 1)))
            printf("        %s: %s\n", json_string_value(json_array_get(v, 0)),
                   json_string_value(json_array_get(v, 1)));
    }
    print_drain(t);
}

static void
print_target(const json_t *t)
{
    const json_t *v;
    size_t i;
    bool has_zero = false;

    printf("Target %lld: %s\n", num(t, "tid"), str(t, "name"));
    printf("    System information:\n        Driver: %s\n        State: %s\n", str(t, "driver"),
           str(t, "state"));
    if (json_is_true(json_object_get(t, "nop_set")))
        printf("        Nop interval: %lld\n        Nop count: %lld\n", num(t, "nop_interval"),
               num(t, "nop_count"));
    printf("    I_T nexus information:\n");
    json_array_foreach(json_object_get(t, "sessions"), i, v) print_nexus(v);
    printf("    LUN information:\n");
    json_array_foreach(json_object_get(t, "luns"), i, v) has_zero |= num(v, "lun") == 0;
    if (!has_zero)
        print_controller(num(t, "tid"));
    json_array_foreach(json_object_get(t, "luns"), i, v) print_lun(v);
    printf("    Account information:\n");
    json_array_foreach(json_object_get(t, "accounts"), i, v)
        printf("        %s%s\n", str(v, "user"),
               json_is_true(json_object_get(v, "outgoing")) ? " (outgoing)" : "");
    printf("    ACL information:\n");
    json_array_foreach(json_object_get(t, "addresses"), i, v)
        printf("        %s\n", json_string_value(v));
    json_array_foreach(json_object_get(t, "initiators"), i, v)
        printf("        %s\n", json_string_value(v));
    if (is_tgt())
        return;
    if (json_array_size(json_object_get(t, "portals")))
        printf("    Portals:\n");
    json_array_foreach(json_object_get(t, "portals"), i, v)
    {
        if (json_object_get(v, "portal"))
            printf("        %s\n", str(v, "portal"));
        else
            printf("        group %lld\n", num(v, "group"));
    }
    print_redirect(t);
}

static const char *
key_value(const json_t *keys, const char *name)
{
    const json_t *v;
    size_t i;
    json_array_foreach(keys, i, v)
    {
        if (strcmp(json_string_value(json_array_get(v, 0)), name) == 0)
            return json_string_value(json_array_get(v, 1));
    }
    return NULL;
}

/* In tgt's order; then what tgt does not have. */
static void
print_keys(const json_t *t)
{
    static const char *const order[] = {"MaxRecvDataSegmentLength",
                                        "HeaderDigest",
                                        "DataDigest",
                                        "InitialR2T",
                                        "MaxOutstandingR2T",
                                        "ImmediateData",
                                        "FirstBurstLength",
                                        "MaxBurstLength",
                                        "DataPDUInOrder",
                                        "DataSequenceInOrder",
                                        "ErrorRecoveryLevel",
                                        "IFMarker",
                                        "OFMarker",
                                        "DefaultTime2Wait",
                                        "DefaultTime2Retain",
                                        "MaxConnections"};
    const json_t *keys = json_object_get(t, "keys"), *v;
    size_t i;

    printf("nop_interval=%lld\nnop_count=%lld\n", num(t, "nop_interval"), num(t, "nop_count"));
    for (i = 0; i < sizeof order / sizeof *order; i++) {
        const char *value = key_value(keys, order[i]);
        if (value)
            printf("%s=%s\n", order[i], value);
    }
    json_array_foreach(keys, i, v)
    {
        const char *name = json_string_value(json_array_get(v, 0));
        bool known = false;
        for (size_t k = 0; k < sizeof order / sizeof *order; k++)
            known |= strcmp(name, order[k]) == 0;
        if (!known)
            printf("%s=%s\n", name, json_string_value(json_array_get(v, 1)));
    }
    printf("MaxQueueCmd=%lld\n", num(t, "MaxQueueCmd"));
    json_array_foreach(json_object_get(t, "redirect"), i, v)
        printf("%s=%s\n", json_string_value(json_array_get(v, 0)),
               json_string_value(json_array_get(v, 1)));
}

static void
print_targets(const json_t *data, bool one)
{
    const json_t *t;
    size_t i;
    json_array_foreach(json_object_get(data, "targets"), i, t)
    {
        if (one)
            print_keys(t);
        else
            print_target(t);
    }
}

/* tgt lists the newest session first here. */
static void
print_conns(const json_t *data)
{
    const json_t *all = json_object_get(data, "sessions"), *c;
    size_t k;
    for (size_t i = json_array_size(all); i-- > 0;) {
        const json_t *s = json_array_get(all, i);
        printf("Session: %lld\n", num(s, "sid"));
        json_array_foreach(json_object_get(s, "connections"), k, c)
        {
            printf("    Connection: %lld\n", num(c, "cid"));
            printf("        Initiator: %s\n", str(s, "initiator"));
            printf("        IP Address: %s\n", str(c, "address"));
        }
    }
}

/* tgtadm's table: what went over each unit of each session. */
static void
print_units(const json_t *data)
{
    const json_t *s, *u;
    size_t i, k;

    printf("tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) wr_subm(bytes,cmds) "
           "wr_done(bytes,cmds) errs\n");
    json_array_foreach(json_object_get(data, "sessions"), i, s)
    {
        json_array_foreach(json_object_get(s, "units"), k, u) printf(
            "%3lld %3lld %3lld %12lld %6lld %12lld %6lld %12lld %6lld %12lld %6lld %4lld\n",
            num(s, "tid"), num(u, "lun"), num(s, "sid"), num(u, "rd_subm_bytes"), num(u, "rd_subm"),
            num(u, "rd_done_bytes"), num(u, "rd_done"), num(u, "wr_subm_bytes"), num(u, "wr_subm"),
            num(u, "wr_done_bytes"), num(u, "wr_done"), num(u, "errs"));
    }
}

/* And this: what went over each connection. */
static void
print_conn_stat(const json_t *data)
{
    const json_t *s, *c;
    size_t i, k;

    printf("sid cid rxdata_octets txdata_octets dataout_pdus datain_pdus cmd_pdus rsp_pdus\n");
    json_array_foreach(json_object_get(data, "sessions"), i, s)
    {
        json_array_foreach(json_object_get(s, "connections"), k, c)
            printf("%3lld %3lld %13lld %13lld %12lld %11lld %8lld %8lld\n", num(s, "sid"),
                   num(c, "cid"), num(c, "bytes_in"), num(c, "bytes_out"), num(c, "data_out"),
                   num(c, "data_in"), num(c, "cmds"), num(c, "responses"));
    }
}

static void
print_isns(const json_t *i)
{
    bool on = json_is_true(json_object_get(i, "on"));

    printf("iSNS:\n    iSNS=%s\n    iSNSServerIP=%s\n    iSNSServerPort=%lld\n"
           "    iSNSAccessControl=%s\n",
           on ? "On" : "Off", str(i, "servers"), num(i, "port"),
           json_is_true(json_object_get(i, "access_control")) ? "On" : "Off");
    if (on)
        printf("    Status: %s %s\n", str(i, "state"), str(i, "server"));
}

static void
print_system(const json_t *d)
{
    const json_t *v;
    size_t i;

    printf("System:\n    State: %s\n    debug: %s\n", str(d, "state"),
           json_is_true(json_object_get(d, "debug")) ? "on" : "off");
    print_drain(d);
    printf("LLDs:\n    iscsi: ready\n"
           "Backing stores:\n"
           "    null\n"
           "    rdwr (bsoflags sync:direct)\n"
           "    aio\n"
           "    fileio (bsoflags sync:direct)\n"
           "    blockio (bsoflags sync)\n"
           "    zram\n"
           "Device types:\n    disk\n    controller\n");
    if (json_array_size(json_object_get(d, "discovery")))
        printf("    Account information:\n\n"); /* of discovery; as tgtadm prints it */
    json_array_foreach(json_object_get(d, "discovery"), i, v)
        printf("    %s%s\n", str(v, "user"),
               json_is_true(json_object_get(v, "outgoing")) ? " (outgoing)" : "");
    print_isns(json_object_get(d, "isns"));
}

/* The first line is tgtadm's. */
static void
print_portal(const json_t *v)
{
    printf("Portal: %s,%lld\n", str(v, "portal"), num(v, "tpgt"));
    if (strcmp(str(v, "portal"), str(v, "name")) != 0)
        printf("    Of: %s\n", str(v, "name"));
    if (*str(v, "advertise"))
        printf("    Advertised as: %s\n", str(v, "advertise"));
    if (json_is_true(json_object_get(v, "absent")))
        printf("    State: no interface has the address\n");
}

static void
print_counters(json_t *data)
{
    const char *name;
    json_t *v;
    json_object_foreach(json_object_get(data, "counters"), name, v)
        printf("%s %lld\n", name, (long long)json_integer_value(v));
}

static void
print_stat(const char *mode, json_t *data)
{
    bool sess = strcmp(mode, "session") == 0, conn = strcmp(mode, "connection") == 0;

    if (!conn)
        print_units(data);
    if (sess)
        putchar('\n');
    if (sess || conn)
        print_conn_stat(data);
    if (strcmp(mode, "system") == 0 && strcmp(adm_name, "tgtadm") != 0) {
        putchar('\n');
        print_counters(data);
    }
}

/* tgt lists the newest first. */
static void
print_accounts(const json_t *data)
{
    const json_t *all = json_object_get(data, "accounts");
    if (json_array_size(all))
        printf("Account list:\n");
    for (size_t i = json_array_size(all); i-- > 0;)
        printf("    %s\n", json_string_value(json_array_get(all, i)));
}

static void
print_lld(const json_t *data)
{
    const json_t *d, *t;
    size_t i, k;
    printf("LLDs:\n");
    json_array_foreach(json_object_get(data, "drivers"), i, d)
    {
        printf("    %s: %s\n", str(d, "name"), str(d, "state"));
        json_array_foreach(json_object_get(d, "targets"), k, t)
            printf("        Target %lld: %s\n", num(t, "tid"), str(t, "name"));
    }
}

void
adm_print_warnings(const json_t *data)
{
    const json_t *v, *all = json_object_get(data, "warnings");
    size_t i;
    json_array_foreach(all, i, v)
        fprintf(stderr, "%s: warning: %s\n", adm_name, json_string_value(v));
}

void
adm_print(const char *mode, const char *op, bool one, json_t *data)
{
    const json_t *v;
    size_t i;
    bool show = strcmp(op, "show") == 0, stat = strcmp(op, "stat") == 0;

    if (!data || (!show && !stat))
        return;
    if (stat)
        print_stat(mode, data);
    else if (strcmp(mode, "system") == 0 && show)
        print_system(data);
    else if (strcmp(mode, "target") == 0 && show)
        print_targets(data, one);
    else if (strcmp(mode, "account") == 0)
        print_accounts(data);
    else if (strcmp(mode, "lld") == 0)
        print_lld(data);
    else if (strcmp(mode, "portal") == 0)
        json_array_foreach(json_object_get(data, "portals"), i, v) print_portal(v);
    else if (strcmp(mode, "session") == 0 || strcmp(mode, "connection") == 0)
        print_conns(data);
}
