/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers that stand outside of targets: which directive sets which option of the daemon, and
 * which of them are heeded while it runs.  Main only; workers read the options as they come.
 */
#include "config.h"

#include <stddef.h>

#include "target/apply.h"

#define C(f) offsetof(struct conf, f)
#define O(f) (int)offsetof(struct tgt_opts, f)

const struct apply_opt apply_opts[] = {
    {"workers", C(workers), -1, CONF_UNSET},
    {"busy-poll", C(busy_poll_us), -1, CONF_UNSET},
    {"placement", C(affine), -1, 0},
    {"login-timeout", C(login_timeout_s), O(login_timeout_s), 0},
    {"max-half-open", C(max_half_open), O(max_half_open), 0},
    {"max-half-open-per-address", C(max_half_open_per_addr), O(max_half_open_per_addr), 0},
    {"tcp-keepalive-idle", C(keepalive_idle_s), O(keepalive_idle_s), 0},
    {"tcp-keepalive-interval", C(keepalive_interval_s), O(keepalive_interval_s), 0},
    {"tcp-keepalive-count", C(keepalive_count), O(keepalive_count), 0},
    {"tcp-user-timeout", C(user_timeout_s), O(user_timeout_s), 0},
    {"dscp", C(dscp), O(dscp), 0},
    {"max-sessions", C(max_sessions), O(max_sessions), 0},
    {"shutdown-timeout", C(shutdown_timeout_s), O(shutdown_s), 0},
    {"redirect-timeout", C(redirect_timeout_s), O(redirect_timeout_s), 0},
    {"login-failure-delay", C(login_delay_ms), O(login_delay_ms), 0},
};
const unsigned apply_nopts = sizeof apply_opts / sizeof *apply_opts;

static atomic_uint *
field(const struct apply_opt *o)
{
    return (atomic_uint *)(void *)((char *)&tgt_opts + o->opt);
}

unsigned
apply_opt_of(const struct apply_opt *o, const struct conf *c)
{
    static unsigned began[sizeof apply_opts / sizeof *apply_opts];
    static bool known;

    for (unsigned i = 0; i < apply_nopts && !known; i++)
        began[i] = apply_opts[i].opt >= 0 ? *field(&apply_opts[i]) : apply_opts[i].initial;
    known = true;
    unsigned v = *(const unsigned *)(const void *)((const char *)c + o->conf);
    return v != CONF_UNSET ? v : began[o - apply_opts];
}

void
apply_options(const struct conf *c)
{
    for (unsigned i = 0; i < apply_nopts; i++) {
        unsigned v = apply_opt_of(&apply_opts[i], c);
        if (apply_opts[i].opt >= 0)
            atomic_store(field(&apply_opts[i]), v);
    }
}
