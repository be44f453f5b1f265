/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directives, one row each: where they may stand, of what type their value is (types.c), what
 * they set, what is right.  Rows without a setter are handled by name in build.c, or refused with a
 * reason.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conf/priv.h"

#define G(f)  offsetof(struct conf, f)
#define T(f)  offsetof(struct conf_target, f)
#define L(f)  offsetof(struct conf_lun, f)
#define P(f)  offsetof(struct conf_portal, f)
#define SC_TL (SC_TARGET | SC_LUN)

/* clang-format off */
static const struct directive table[] = {
    /* the daemon */
    {"default-driver", SC_GLOBAL, &type_driver, 0, 0, 0, false, NULL},
    {"ignore-errors", SC_GLOBAL, &type_ignore_errors, G(ignore_errors), 0, 0, false, NULL},
    {"control-port", SC_GLOBAL, &type_control_port, G(control_port), 0, 65535, false, NULL},
    {"ids", SC_GLOBAL, &type_ids, G(ids), 0, 0, false, NULL},
    {"syntax", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"portal", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"portal", SC_TARGET, &type_bind_portal, 0, 0, 0, true, NULL},
    {"group", SC_PORTAL, &type_uint, P(group), 0, 65535, false, NULL},
    {"advertise", SC_PORTAL, &type_advertise, 0, 0, 0, false, NULL},
    {"target", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"include", SC_GLOBAL | SC_TL, NULL, 0, 0, 0, true, NULL},
    {"workers", SC_GLOBAL, &type_uint, G(workers), 1, 64, false, NULL},
    {"busy-poll", SC_GLOBAL, &type_uint, G(busy_poll_us), 0, 1000, false, NULL},
    {"placement", SC_GLOBAL, &type_placement, G(affine), 0, 0, false, NULL},
    {"user", SC_GLOBAL, &type_user, G(user), 0, 128, false, NULL},
    {"state-dir", SC_GLOBAL, &type_state_dir, G(state_dir), 0, 4000, false, NULL},
    {"autosave", SC_GLOBAL, &type_flag, G(autosave), 0, 0, false, NULL},
    {"zram-mem-limit", SC_GLOBAL, &type_bytes, G(zram_mem_limit), 1u << 20, 1ull << 60, false, NULL},
    {"initiators-allow", SC_GLOBAL, &type_access, G(access[CONF_INITIATORS_ALLOW]), 0, 0, false,
     NULL},
    {"initiators-deny", SC_GLOBAL, &type_access, G(access[CONF_INITIATORS_DENY]), 0, 0, false,
     NULL},
    {"targets-allow", SC_GLOBAL, &type_access, G(access[CONF_TARGETS_ALLOW]), 0, 0, false, NULL},
    {"discovery-filter", SC_GLOBAL, &type_discovery_filter, G(discovery_filter), 0, 0, false, NULL},
    {"login-timeout", SC_GLOBAL, &type_uint, G(login_timeout_s), 1, 3600, false, NULL},
    {"max-half-open", SC_GLOBAL, &type_uint, G(max_half_open), 1, 65536, false, NULL},
    {"max-half-open-per-address", SC_GLOBAL, &type_uint, G(max_half_open_per_addr), 1, 65536, false,
     NULL},
    {"tcp-keepalive-idle", SC_GLOBAL, &type_uint, G(keepalive_idle_s), 0, 32767, false, NULL},
    {"tcp-keepalive-interval", SC_GLOBAL, &type_uint, G(keepalive_interval_s), 1, 32767, false, NULL},
    {"tcp-keepalive-count", SC_GLOBAL, &type_uint, G(keepalive_count), 1, 127, false, NULL},
    {"tcp-user-timeout", SC_GLOBAL, &type_uint, G(user_timeout_s), 0, 86400, false, NULL},
    {"nop_interval", SC_GLOBAL, &type_uint, G(nop_interval_s), 0, 3600, false, NULL},
    {"nop_count", SC_GLOBAL, &type_uint, G(nop_count), 1, 1000, false, NULL},
    {"dscp", SC_GLOBAL, &type_dscp, G(dscp), 0, 63, false, NULL},
    {"max-sessions", SC_GLOBAL, &type_uint, G(max_sessions), 1, 65535, false, NULL},
    {"shutdown-timeout", SC_GLOBAL, &type_uint, G(shutdown_timeout_s), 0, 600, false, NULL},
    {"redirect-timeout", SC_GLOBAL, &type_uint, G(redirect_timeout_s), 1, 60, false, NULL},
    {"iSNS", SC_GLOBAL, &type_bool, G(isns_on), 0, 0, false, NULL},
    {"iSNSServerIP", SC_GLOBAL, &type_isns_server, 0, 0, 0, true, NULL},
    {"iSNSServer", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"iSNSServerPort", SC_GLOBAL, &type_uint, G(isns_port), 1, 65535, false, NULL},
    {"iSNSAccessControl", SC_GLOBAL, &type_bool, G(isns_access), 0, 0, false, NULL},
    {"incomingdiscoveryuser", SC_GLOBAL, &type_incoming, G(discovery), 0, 0, true, NULL},
    {"outgoingdiscoveryuser", SC_GLOBAL, &type_outgoing, G(discovery), 0, 0, true, NULL},
    {"account", SC_GLOBAL, &type_incoming, G(unbound), 0, 0, true, NULL},
    {"login-failure-delay", SC_GLOBAL, &type_uint, G(login_delay_ms), 0, 10000, false, NULL},
    {"chap-algorithms", SC_GLOBAL, &type_chap_algs, G(chap_algs), 0, 0, false, NULL},
    {"chap-legacy-sha1-7", SC_GLOBAL, &type_flag, G(chap_sha1_7), 0, 0, false, NULL},
    /* the daemon (then for all targets) or a target */
    {"incominguser", SC_GLOBAL, &type_incoming, G(accounts), 0, 0, true, NULL},
    {"incominguser", SC_TARGET, &type_incoming, T(accounts), 0, 0, true, NULL},
    {"outgoinguser", SC_GLOBAL, &type_outgoing, G(accounts), 0, 0, true, NULL},
    {"outgoinguser", SC_TARGET, &type_outgoing, T(accounts), 0, 0, true, NULL},
    /* a target */
    {"backing-store", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"direct-store", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"driver", SC_TARGET, &type_driver, 0, 0, 0, false, NULL},
    {"portal-group", SC_TARGET, &type_bind_group, 0, 0, 65535, true, NULL},
    {"initiator-address", SC_TARGET, &type_initiator_address, 0, 0, 0, true, NULL},
    {"initiator-name", SC_TARGET, &type_initiator_name, 0, 0, 0, true, NULL},
    {"local-address", SC_TARGET, &type_local_address, 0, 0, 0, true, NULL},
    {"discoverable", SC_TARGET, &type_discoverable, T(hidden), 0, 0, false, NULL},
    {"ids", SC_TARGET, &type_ids, T(ids), 0, 0, false, NULL},
    {"controller_tid", SC_TARGET, &type_uint, T(tid), 1, 65535, false, NULL},
    {"alias", SC_TARGET, &type_ref, T(alias), 0, 255, false, NULL},
    {"state", SC_TARGET, &type_state, T(offline), 0, 0, false, NULL},
    {"MaxQueueCmd", SC_TARGET, &type_uint, T(max_cmds), 1, 512, false, NULL},
    {"nop_interval", SC_TARGET, &type_uint, T(nop_interval_s), 0, 3600, false, NULL},
    {"nop_count", SC_TARGET, &type_uint, T(nop_count), 1, 1000, false, NULL},
    {"RedirectAddress", SC_TARGET, &type_redirect, 0, 0, 0, false, NULL},
    {"RedirectPort", SC_TARGET, &type_redirect, 0, 0, 0, false, NULL},
    {"RedirectReason", SC_TARGET, &type_redirect, 0, 0, 0, false, NULL},
    {"RedirectCallback", SC_TARGET, &type_redirect, 0, 0, 0, false, NULL},
    {"redirect-initiator", SC_TARGET, &type_redirect, 0, 0, 0, true, NULL},
    {"MaxXmitDataSegmentLength", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"IFMarkInt", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"OFMarkInt", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"RDMAExtensions", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"TargetRecvDataSegmentLength", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"InitiatorRecvDataSegmentLength", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"MaxOutstandingUnexpectedPDUs", SC_TARGET, &type_ignored, 0, 0, 0, false, NULL},
    {"chap-algorithms", SC_TARGET, &type_chap_algs, T(chap_algs), 0, 0, false, NULL},
    {"chap-legacy-sha1-7", SC_TARGET, &type_flag, T(chap_sha1_7), 0, 0, false, NULL},
    /* logical units */
    {"write-cache", SC_TL, &type_bool, L(write_cache), 0, 0, false, NULL},
    {"scsi_id", SC_TL | SC_LIVE, &type_text, L(scsi_id), 0, 63, false, NULL},
    {"scsi_sn", SC_TL | SC_LIVE, &type_text, L(scsi_sn), 0, 63, false, NULL},
    {"naa", SC_TL | SC_LIVE, &type_naa, 0, 0, 0, false, NULL},
    {"eui", SC_TL | SC_LIVE, &type_eui, 0, 0, 0, false, NULL},
    {"designator", SC_TL, &type_designator, 0, 0, 0, true, NULL},
    {"scsi_sn_width", SC_TL | SC_LIVE, &type_uint, L(scsi_sn_width), 0, 63, false, NULL},
    {"vendor_id", SC_TL | SC_LIVE, &type_inquiry, L(vendor_id), 0, 8, false, NULL},
    {"product_id", SC_TL | SC_LIVE, &type_inquiry, L(product_id), 0, 16, false, NULL},
    {"product_rev", SC_TL | SC_LIVE, &type_inquiry, L(product_rev), 0, 4, false, NULL},
    {"sense_format", SC_TL | SC_LIVE, &type_sense_format, L(descriptor_sense), 0, 0, false, NULL},
    {"removable", SC_TL | SC_LIVE, &type_bool, L(removable), 0, 0, false, NULL},
    {"online", SC_TL | SC_LIVE, &type_bool, L(online), 0, 0, false, NULL},
    {"readonly", SC_TL | SC_LIVE, &type_bool, L(read_only), 0, 0, false, NULL},
    {"lbppbe", SC_TL | SC_LIVE, &type_uint, L(lbppbe), 0, 15, false, NULL},
    {"la_lba", SC_TL | SC_LIVE, &type_uint, L(la_lba), 0, 16383, false, NULL},
    {"optimal_xfer_gran", SC_TL | SC_LIVE, &type_uint, L(opt_xfer_gran), 0, 65535, false, NULL},
    {"optimal_xfer_len", SC_TL | SC_LIVE, &type_uint, L(opt_xfer_len), 0, 0xfffffffe, false, NULL},
    {"thin-provisioning", SC_TL, &type_bool, L(thin), 0, 0, false, NULL},
    {"thin_provisioning", SC_TL | SC_LIVE, &type_bool_alias, L(thin), 0, 0, false, NULL},
    {"rotation_rate", SC_TL | SC_LIVE, &type_rotation, 0, 0, 0, false, NULL},
    {"device-type", SC_TL, &type_device_type, 0, 0, 0, false, NULL},
    {"bs-type", SC_TL, &type_bs_type, 0, 0, 0, false, NULL},
    {"bsopts", SC_TL | SC_LIVE, &type_owned, L(bsopts), 0, 1023, false, NULL},
    {"bsoflags", SC_TL | SC_LIVE, &type_bsoflags, 0, 0, 0, false, NULL},
    {"allow-in-use", SC_TL, &type_bool, L(allow_in_use), 0, 0, false, NULL},
    {"block-size", SC_TL, &type_block_size, 0, 0, 0, false, NULL},
    {"size", SC_TL | SC_LIVE, &type_size, 0, 0, 1ull << 60, false, NULL},
    {"algorithm", SC_TL | SC_LIVE, &type_zram_algorithm, L(algorithm), 0, 0, false, NULL},
    {"comp_algorithm", SC_TL | SC_LIVE, &type_zram_algorithm_alias, L(algorithm), 0, 0, false, NULL},
    {"level", SC_TL | SC_LIVE, &type_uint, L(level), 0, 22, false, NULL},
    {"chunk-size", SC_TL, &type_chunk_size, L(chunk_size), 4096, 65536, false, NULL},
    {"mem-limit", SC_TL | SC_LIVE, &type_bytes, L(mem_limit), 1u << 20, 1ull << 60, false, NULL},
    {"mem_limit", SC_TL | SC_LIVE, &type_bytes_alias, L(mem_limit), 1u << 20, 1ull << 60, false, NULL},
    {"volatile-ack", SC_TL | SC_LIVE, &type_bool, L(volatile_ack), 0, 0, false, NULL},
    {"layer", SC_TL, &type_layer, 0, 0, 1023, true, NULL},
    {"lun", SC_TL, &type_lun, L(number), 0, 16383, false, NULL},
    {"params", SC_TL, NULL, 0, 0, 0, true, NULL},
    {"mode_page", SC_TL | SC_LIVE, &type_mode_page, 0, 0, 0, true, NULL},
    {"path", SC_LIVE, &type_owned, L(path), 0, 4095, false, NULL},
    {"path", SC_TL, NULL, 0, 0, 0, false, "a file gives a disk's path by backing-store"},
};
/* clang-format on */

#define ROWS (sizeof table / sizeof *table)

const struct directive *
table_find(const char *name, unsigned scopes)
{
    for (size_t i = 0; i < ROWS; i++) {
        if ((table[i].scopes & scopes) && strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

const struct directive *
table_row(unsigned i)
{
    return i < ROWS ? &table[i] : NULL;
}

bool
table_shown(const struct directive *d, enum conf_scope scope)
{
    if (!(d->scopes & scope) || (scope == SC_TARGET && (d->scopes & SC_LUN)))
        return false;
    return d->type && d->type->show;
}

const struct directive *
table_find_any(const char *name)
{
    return table_find(name, ~0u);
}

const char *
conf_directive(unsigned i, bool *understood)
{
    for (size_t k = 0; k < ROWS; k++) {
        if (table[k].scopes == SC_LIVE) /* stands in no file */
            continue;
        if (i-- == 0) {
            *understood = !table[k].refuse;
            return table[k].name;
        }
    }
    return NULL;
}

/* Edit distance without regard to case, `-` and `_` alike; at most `limit` + 1. */
static unsigned
distance(const char *a, const char *b)
{
    enum { M = 40 };
    unsigned prev[M + 1], cur[M + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > M || m > M)
        return 99;
    for (size_t j = 0; j <= m; j++)
        prev[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        cur[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            unsigned sub = prev[j - 1] + ((x == '-' ? '_' : x) != (y == '-' ? '_' : y));
            unsigned del = prev[j] + 1, ins = cur[j - 1] + 1;
            cur[j] = sub < del ? sub : del;
            if (ins < cur[j])
                cur[j] = ins;
        }
        memcpy(prev, cur, sizeof prev);
    }
    return prev[m];
}

void
table_suggest(const char *name, unsigned scopes, char *out, size_t size)
{
    const struct directive *best = NULL;
    unsigned best_d = 3;
    size_t n = 0;

    for (size_t i = 0; i < ROWS; i++) {
        unsigned d =
            table[i].scopes & scopes && !table[i].refuse ? distance(name, table[i].name) : 99;
        if (d < best_d) {
            best_d = d;
            best = &table[i];
        }
    }
    out[0] = 0;
    if (best) {
        snprintf(out, size, "; did you mean %s?", best->name);
        return;
    }
    for (size_t i = 0; i < ROWS && n < size; i++) {
        if ((table[i].scopes & scopes) && !table[i].refuse)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "; there are ",
                                  table[i].name);
    }
}
