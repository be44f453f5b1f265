/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters.  A worker's thread writes its own cell without atomic read-modify-write; the list of
 * cells is locked, which only sums and the start and end of workers pay.  Any thread.
 */
#include "config.h"

#include "base/counter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/pool.h"

struct cell {
    struct list link;
    unsigned nested;
    atomic_uint_fast64_t v[CT_COUNT];
};

static const char *const names[CT_COUNT] = {
    [CT_CONN_ACCEPTED] = "conn_accepted",
    [CT_CONN_REFUSED] = "conn_refused",
    [CT_LOGIN_OK] = "login_ok",
    [CT_LOGIN_FAILED] = "login_failed",
    [CT_LOGIN_MOVED] = "login_moved",
    [CT_PDU_IN] = "pdu_in",
    [CT_PDU_OUT] = "pdu_out",
    [CT_PDU_REJECTED] = "pdu_rejected",
    [CT_BYTES_IN] = "bytes_in",
    [CT_BYTES_OUT] = "bytes_out",
    [CT_SCSI_CMDS] = "scsi_cmds",
    [CT_SCSI_CHECK] = "scsi_check",
    [CT_DIGEST_ERR_HEADER] = "digest_err_header",
    [CT_DIGEST_ERR_DATA] = "digest_err_data",
    [CT_TMF] = "tmf",
    [CT_NOP_TIMEOUT] = "nop_timeout",
    [CT_DISK_SUBMITTED] = "disk_submitted",
    [CT_DISK_ENTERS] = "disk_enters",
    [CT_TX_SENDS] = "tx_sends",
};

static pthread_mutex_t cells_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list cells = {&cells, &cells}; /* under cells_lock */
static atomic_uint_fast64_t shared[CT_COUNT];
static _Thread_local struct cell *own;

void
counter_add(enum counter c, uint64_t n)
{
    struct cell *cell = own;
    if (!cell) {
        atomic_fetch_add_explicit(&shared[c], n, memory_order_relaxed);
        return;
    }
    /* only this thread writes: a plain add, visible to readers */
    uint64_t old = atomic_load_explicit(&cell->v[c], memory_order_relaxed);
    atomic_store_explicit(&cell->v[c], old + n, memory_order_relaxed);
}

uint64_t
counter_sum(enum counter c)
{
    pthread_mutex_lock(&cells_lock);
    uint64_t sum = atomic_load_explicit(&shared[c], memory_order_relaxed);
    list_each(it, &cells)
        sum +=
            atomic_load_explicit(&container_of(it, struct cell, link)->v[c], memory_order_relaxed);
    pthread_mutex_unlock(&cells_lock);
    return sum;
}

const char *
counter_name(enum counter c)
{
    return (unsigned)c < CT_COUNT ? names[c] : "?";
}

void
counter_attach(void)
{
    if (own) {
        own->nested++;
        return;
    }
    struct cell *cell = xcalloc(1, sizeof *cell);
    pthread_mutex_lock(&cells_lock);
    list_add_tail(&cells, &cell->link);
    pthread_mutex_unlock(&cells_lock);
    own = cell;
}

void
counter_detach(void)
{
    struct cell *cell = own;
    if (!cell)
        return;
    if (cell->nested > 0) {
        cell->nested--;
        return;
    }
    pthread_mutex_lock(&cells_lock);
    for (unsigned i = 0; i < CT_COUNT; i++)
        atomic_fetch_add_explicit(&shared[i],
                                  atomic_load_explicit(&cell->v[i], memory_order_relaxed),
                                  memory_order_relaxed);
    list_del(&cell->link);
    pthread_mutex_unlock(&cells_lock);
    own = NULL;
    free(cell);
}
