/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A disk that several initiators may write without a reservation: that is right for a cluster file
 * system, and the end of any other.  It is told in the log when the second one comes, once for each
 * two initiators, and shown.  lun_share_note on the nexus' worker, lun_sharers on any thread.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "scsi/priv.h"

/* The same for both orders of two names. */
static uint32_t
pair_hash(const char *a, const char *b)
{
    uint32_t h[2] = {2166136261u, 2166136261u}; /* FNV-1a */
    const char *const name[2] = {a, b};

    for (int i = 0; i < 2; i++)
        for (const char *p = name[i]; *p != '\0'; p++)
            h[i] = (h[i] ^ (uint8_t)*p) * 16777619u;
    return (h[0] ^ h[1]) + h[0] * h[1];
}

/* Lock held. */
static bool
was_told(struct lun *lun, uint32_t pair)
{
    struct lun_shared *s = &lun->shared;

    for (unsigned i = 0; i < SHARED_PAIRS; i++)
        if (s->told[i] == pair)
            return true;
    s->told[s->next++ % SHARED_PAIRS] = pair;
    return false;
}

/* Lock held. */
static bool
is_plain(struct lun *lun)
{
    struct be_info info;

    be_info(lun->be, &info);
    return !lun->conf.read_only && !lun->cur.swp && !info.read_only && lun->reserved_by == NULL;
}

void
lun_share_note(struct lun *lun, const struct nexus *nx)
{
    const char *me = nx->itn->initiator_name;
    char other[224] = "";
    uint32_t suppressed = 0;

    pthread_mutex_lock(&lun->lock);
    bool plain = is_plain(lun);
    list_each(it, &lun->nexuses) {
        const struct nexus *o = container_of(it, struct nexus, on_lun);
        if (!plain || o->dead || strcmp(o->itn->initiator_name, me) == 0)
            continue;
        snprintf(other, sizeof other, "%s", o->itn->initiator_name);
        break;
    }
    bool tell = other[0] != '\0' && !was_told(lun, pair_hash(me, other)) &&
                log_rate_ok(&lun->shared.rate, &suppressed);
    pthread_mutex_unlock(&lun->lock);
    if (tell)
        log_event(
            LL_WARN, LA_SCSI,
            "shared path=%s initiator=%s also=%s suppressed=%u why=\"both may write and there is "
            "no reservation: only a cluster file system survives that\"",
            LOG_ESC(be_path(lun->be)), LOG_ESC(me), LOG_ESC(other), suppressed);
}

unsigned
lun_sharers(struct lun *lun, char (*names)[224], unsigned max)
{
    unsigned n = 0;

    pthread_mutex_lock(&lun->lock);
    bool plain = is_plain(lun);
    list_each(it, &lun->nexuses) {
        const struct nexus *o = container_of(it, struct nexus, on_lun);
        unsigned i = 0;
        while (i < n && strcmp(names[i], o->itn->initiator_name) != 0)
            i++;
        if (plain && !o->dead && i == n && n < max)
            snprintf(names[n++], sizeof names[0], "%s", o->itn->initiator_name);
    }
    pthread_mutex_unlock(&lun->lock);
    return n > 1 ? n : 0;
}
