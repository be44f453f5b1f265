/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: one row each in base/counter.c, one cell per worker and row, written by its own
 * thread (relaxed), read by any.  Shown by `evtgtadm --op stat`.
 */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdint.h>

enum counter {
    CT_CONN_ACCEPTED,
    CT_CONN_REFUSED,
    CT_LOGIN_OK,
    CT_LOGIN_FAILED,
    CT_LOGIN_MOVED,
    CT_PDU_IN,
    CT_PDU_OUT,
    CT_PDU_REJECTED,
    CT_BYTES_IN,
    CT_BYTES_OUT,
    CT_SCSI_CMDS,
    CT_SCSI_CHECK,
    CT_DIGEST_ERR_HEADER,
    CT_DIGEST_ERR_DATA,
    CT_TMF,
    CT_NOP_TIMEOUT,
    CT_DISK_SUBMITTED,
    CT_DISK_ENTERS,  /* io_uring_enter calls */
    CT_TX_SENDS,     /* gathering sends */
    CT_COUNT
};

/* Adds to the calling thread's worker's cell (or a shared atomic cell outside workers). */
void counter_add(enum counter c, uint64_t n);
uint64_t counter_sum(enum counter c);
const char *counter_name(enum counter c); /* snake case, stable */

/* Gives the calling thread a cell of its own, and takes it back (its values are kept in the
 * shared cell, so sums never fall). Nests. Called by base/worker.c when a worker starts and
 * ends. */
void counter_attach(void);
void counter_detach(void);

#endif
