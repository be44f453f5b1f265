/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit attention conditions (SAM-5 5.14): one bit each on the I_T_L nexus, set from any thread,
 * taken by the owner of the nexus in the order of importance in enum ua.
 */
#include "scsi/priv.h"

#include "base/worker.h"

static const uint16_t ua_asc[UA_COUNT] = {
    [UA_POWER_ON] = 0x2900,       [UA_LUN_RESET] = 0x2903,       [UA_NEXUS_LOSS] = 0x2907,
    [UA_MEDIUM_CHANGED] = 0x2800, [UA_LUNS_CHANGED] = 0x3f0e,    [UA_CAPACITY_CHANGED] = 0x2a09,
    [UA_MODE_CHANGED] = 0x2a01,   [UA_INQUIRY_CHANGED] = 0x3f03, [UA_CLEARED_BY_OTHER] = 0x2f00,
    [UA_THIN_THRESHOLD] = 0x3807,
};

void
ua_set(struct nexus *nx, enum ua ua)
{
    atomic_fetch_or_explicit(&nx->ua, 1u << ua, memory_order_release);
}

/* lun->lock is taken here. */
void
ua_set_lun(struct lun *lun, enum ua ua, const struct nexus *except)
{
    pthread_mutex_lock(&lun->lock);
    list_each(it, &lun->nexuses) {
        struct nexus *nx = container_of(it, struct nexus, on_lun);
        if (nx != except)
            ua_set(nx, ua);
    }
    pthread_mutex_unlock(&lun->lock);
}

bool
ua_take(struct nexus *nx, uint16_t *asc)
{
    worker_assert_owner(nx->w);
    unsigned bits = atomic_load_explicit(&nx->ua, memory_order_acquire);
    if (bits == 0)
        return false;

    unsigned ua = (unsigned)__builtin_ctz(bits);
    atomic_fetch_and_explicit(&nx->ua, ~(1u << ua), memory_order_relaxed);
    *asc = ua_asc[ua];
    if (ua == UA_MEDIUM_CHANGED)
        lun_volatile_told(nx->lun, nx->itn);
    if (ua == UA_LUNS_CHANGED) { /* told once a nexus, not once a unit (LUICLR, SPC-4 7.8.7) */
        struct itn *itn = nx->itn;
        for (unsigned i = 0; i < itn->nnx; i++)
            atomic_fetch_and_explicit(&itn->nx[i]->ua, ~(1u << UA_LUNS_CHANGED),
                                      memory_order_relaxed);
    }
    return true;
}
