/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ietadm --op show: parameters of targets and sessions as KEY=VALUE lines in IET's order, and the
 * names of accounts.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "tools/iet.h"

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

/* The target's part of "target show"; `whole` holds it. */
static json_t *
target(unsigned tid, json_t **whole)
{
    *whole = iet_ask("target", "show", json_pack("{si}", "tid", (int)tid));
    return json_array_get(json_object_get(*whole, "targets"), 0);
}

void
iet_show_target(unsigned tid)
{
    json_t *whole, *t = target(tid, &whole), *sys = iet_ask("system", "show", json_object());
    long long interval = num(t, "nop_interval");

    printf("Wthreads=%lld\nType=0\nQueuedCommands=%lld\nNOPInterval=%lld\nNOPTimeout=%lld\n",
           num(sys, "workers"), num(t, "MaxQueueCmd"), interval, interval * num(t, "nop_count"));
    json_decref(sys);
    json_decref(whole);
}

/* --- sessions -------------------------------------------------------------------------------- */

/* IET's order. What is not in the answer about a session is "fixed", or what the target has. */
static const struct session_key {
    const char *key, *member; /* member of a session's object, or of its connection's */
    enum { OF_SESSION, OF_CONN, FIXED } where;
    const char *fixed;
} session_keys[] = {
    {"InitialR2T", "initial_r2t", OF_SESSION, NULL},
    {"ImmediateData", "immediate_data", OF_SESSION, NULL},
    {"MaxConnections", "max_connections", OF_SESSION, NULL},
    {"MaxRecvDataSegmentLength", "max_recv", OF_CONN, NULL},
    {"MaxXmitDataSegmentLength", "max_xmit", OF_CONN, NULL},
    {"MaxBurstLength", "max_burst", OF_SESSION, NULL},
    {"FirstBurstLength", "first_burst", OF_SESSION, NULL},
    {"DefaultTime2Wait", "time2wait", OF_SESSION, NULL},
    {"DefaultTime2Retain", "time2retain", OF_SESSION, NULL},
    {"MaxOutstandingR2T", "max_r2t", OF_SESSION, NULL},
    {"DataPDUInOrder", "data_pdu_in_order", OF_SESSION, NULL},
    {"DataSequenceInOrder", "data_seq_in_order", OF_SESSION, NULL},
    {"ErrorRecoveryLevel", "erl", OF_SESSION, NULL},
    {"HeaderDigest", "header_digest", OF_CONN, NULL},
    {"DataDigest", "data_digest", OF_CONN, NULL},
    {"OFMarker", NULL, FIXED, "No"}, /* RFC 7143 has done away with markers */
    {"IFMarker", NULL, FIXED, "No"},
    {"OFMarkInt", NULL, FIXED, "Reject"},
    {"IFMarkInt", NULL, FIXED, "Reject"},
};
#define NKEYS (sizeof session_keys / sizeof *session_keys)

static void
print_member(const struct session_key *k, const json_t *v)
{
    if (json_is_integer(v))
        printf("%s=%lld\n", k->key, (long long)json_integer_value(v));
    else if (strstr(k->key, "Digest"))
        printf("%s=%s\n", k->key, json_is_true(v) ? "CRC32C" : "None");
    else
        printf("%s=%s\n", k->key, json_is_true(v) ? "Yes" : "No");
}

static const char *
configured(const json_t *t, const char *key)
{
    const json_t *v;
    size_t i;
    json_array_foreach(json_object_get(t, "keys"), i, v)
    {
        if (strcmp(json_string_value(json_array_get(v, 0)), key) == 0)
            return json_string_value(json_array_get(v, 1));
    }
    return NULL;
}

static void
show_configured(const json_t *t)
{
    for (size_t i = 0; i < NKEYS; i++) {
        const struct session_key *k = &session_keys[i];
        const char *v = k->where == FIXED ? k->fixed : configured(t, k->key);
        /* what is sent at once is for the initiator to say */
        if (v)
            printf("%s=%s\n", k->key, v);
        else if (strcmp(k->key, "MaxXmitDataSegmentLength") == 0)
            printf("%s=%s\n", k->key, configured(t, "MaxRecvDataSegmentLength"));
    }
}

void
iet_show_session(unsigned tid, unsigned long long sid)
{
    json_t *whole, *t = target(tid, &whole), *s = NULL, *v;
    size_t i;

    if (sid == 0) {
        show_configured(t);
        json_decref(whole);
        return;
    }
    json_array_foreach(json_object_get(t, "sessions"), i, v)
    {
        if ((unsigned long long)num(v, "sid") == sid)
            s = v;
    }
    if (!s)
        iet_die(ENOENT, "target %u has no session %llu", tid, sid);
    const json_t *conn = json_array_get(json_object_get(s, "connections"), 0);
    for (i = 0; i < NKEYS; i++) {
        const struct session_key *k = &session_keys[i];
        if (k->where == FIXED)
            printf("%s=%s\n", k->key, k->fixed);
        else
            print_member(k, json_object_get(k->where == OF_CONN ? conn : s, k->member));
    }
    json_decref(whole);
}

/* --- accounts -------------------------------------------------------------------------------- */

void
iet_show_users(const unsigned *tid, const char *user, bool outgoing)
{
    json_t *whole, *list, *v;
    size_t i, n = 0;

    if (tid) {
        list = json_object_get(target(*tid, &whole), "accounts");
    } else {
        whole = iet_ask("account", "show", json_object());
        list = json_object_get(whole, "discovery");
    }
    json_array_foreach(list, i, v)
    {
        bool out = json_is_true(json_object_get(v, "outgoing"));
        if (user && (strcmp(user, str(v, "user")) != 0 || out != outgoing))
            continue;
        printf("%sUser %s\n", out ? "Outgoing" : "Incoming", str(v, "user"));
        n++;
    }
    if (user && !n)
        iet_die(ENOENT, "there is no such account here: %s", user);
    json_decref(whole);
}
