/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Units whose contents end with the daemon.  Each I_T nexus is told once that the medium may have
 * changed (28/00) for the life of the contents; who asked for it has the unit not ready until
 * somebody has acknowledged that it is empty.  lun_volatile_ua and _told on the nexus' worker, the
 * others on main.
 */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "scsi/priv.h"

static uint64_t
mix(uint64_t h, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u; /* FNV-1a */
    return h;
}

/* SAM-5 4.8: initiator port and target port.  0 stands for none. */
static uint64_t
nexus_hash(const struct itn *itn)
{
    uint64_t h = 0xcbf29ce484222325u;

    h = mix(h, itn->initiator_name, strlen(itn->initiator_name) + 1);
    h = mix(h, itn->isid, sizeof itn->isid);
    h = mix(h, itn->target_name, strlen(itn->target_name) + 1);
    h = mix(h, &itn->tpgt, sizeof itn->tpgt);
    return h != 0 ? h : 1;
}

static bool
is_volatile(struct lun *lun)
{
    struct be_info info;

    be_info(lun->be, &info);
    return info.is_volatile;
}

unsigned
lun_volatile_ua(struct lun *lun, const struct itn *itn)
{
    bool told = false;

    if (!is_volatile(lun))
        return 0;
    uint64_t h = nexus_hash(itn);
    pthread_mutex_lock(&lun->lock);
    for (unsigned i = 0; i < VOLATILE_TOLD && !told; i++)
        told = lun->told.v[i] == h;
    pthread_mutex_unlock(&lun->lock);
    return told ? 0 : 1u << UA_MEDIUM_CHANGED;
}

void
lun_volatile_told(struct lun *lun, const struct itn *itn)
{
    bool have = false;

    if (!is_volatile(lun))
        return;
    uint64_t h = nexus_hash(itn);
    pthread_mutex_lock(&lun->lock);
    for (unsigned i = 0; i < VOLATILE_TOLD && !have; i++)
        have = lun->told.v[i] == h;
    if (!have) /* who falls out is told once more: no harm */
        lun->told.v[lun->told.next++ % VOLATILE_TOLD] = h;
    pthread_mutex_unlock(&lun->lock);
}

bool
lun_awaits_ack(struct lun *lun)
{
    return atomic_load_explicit(&lun->must_ack, memory_order_relaxed) && is_volatile(lun) &&
           !be_acknowledged(lun->be);
}

void
lun_volatile_set(struct lun *lun, bool ack)
{
    /* of contents that are in use nobody asks any more */
    atomic_store(&lun->must_ack, ack);
    be_acknowledge(lun->be);
}

bool
lun_acknowledge(struct lun *lun)
{
    if (!lun_awaits_ack(lun))
        return false;
    pthread_mutex_lock(&lun->lock);
    be_acknowledge(lun->be);
    atomic_fetch_add_explicit(&lun->generation, 1, memory_order_release);
    pthread_mutex_unlock(&lun->lock);
    ua_set_lun(lun, UA_MEDIUM_CHANGED, NULL);
    return true;
}
