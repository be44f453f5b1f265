/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What iscsi-load and its engines share.  An engine is an initiator: it opens sessions, takes
 * commands and tells how each ended.  A session and its commands belong to one thread, which
 * calls every function of the engine for them.
 */
#ifndef TESTS_PERF_LOAD_H
#define TESTS_PERF_LOAD_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum phase { PH_FILL, PH_TIMED, PH_READBACK, PH_DONE };

struct worker;
struct session;

struct io {
    struct session *s;
    uint64_t slot;
    uint64_t t_submit;
    uint32_t gen; /* generation being written */
    bool is_write;
    unsigned char *buf; /* o.bs bytes */
    struct iovec vec;   /* all of buf; libiscsi keeps a pointer to it */
    struct io *next_free;
    uint64_t due; /* --think: when its place is free again */
    /* of the raw engine */
    uint32_t itt, len;     /* Initiator Task Tag; Expected Data Transfer Length */
    uint32_t got, data_sn; /* Data-In received so far; DataSN expected next */
    bool keep;             /* buf is to hold what is read */
    bool live;             /* the target has the command */
    struct io *next_wait;  /* of those that the command window keeps back */
    struct {
        uint32_t at, len, crc;
    } sums[8]; /* data digests of parts of buf, where its content never changes */
    unsigned nsums;
};

struct session {
    struct worker *w;
    void *priv; /* the engine's */
    unsigned lun, inflight;
    uint64_t seq; /* next slot in sequential mode */
    struct io *ios, *free;
    bool dead; /* set by load_dead only */
};

struct worker {
    pthread_t thr;
    unsigned id;
    struct session *ss;
    struct pollfd *pfds;
    unsigned n;
    unsigned inflight;
    enum phase phase;
    uint64_t now;                  /* of this turn: taken when an answer has come */
    struct io *think, **think_end; /* ended, and waiting for --think; first due first */
    uint64_t slot0, nslots;        /* slots this worker may touch */
    uint64_t cursor;               /* fill and read-back position */
    uint32_t *gen;                 /* acknowledged generation of each own slot */
    uint8_t *busy;
    uint64_t rng;
    uint64_t t_from, t_to; /* measured window */
    bool stop;
    bool stalled;
    uint64_t ops, rd, wr, bytes;
    uint64_t all_ops;
    uint64_t errors, retries, bad_blocks, bad_slots, checked;
    uint64_t lat_sum, lat_max;
    uint64_t t_last, gap_max; /* last completion of the measured window; longest time without one */
    uint64_t *hist;
    char first_error[256];
};

/* How a command ended. */
struct outcome {
    int status;      /* SCSI status, or LOAD_LOST */
    unsigned key;    /* of the sense data */
    unsigned ascq;   /* additional sense code and qualifier */
    uint32_t off_by; /* bytes of residual, or of data that did not come */
    const char *why; /* words for a message; may be NULL */
};
#define LOAD_LOST 0x0f000000

struct engine {
    const char *name;
    /* Logs in; url and names are in o. -1: failed, said on stderr. */
    int (*open)(struct session *s, unsigned idx);
    /* Waits until the unit is ready and tells its size. */
    int (*capacity)(struct session *s, uint32_t *block_bytes, uint64_t *nblk);
    /* Queues io (slot, is_write, buf). False: it cannot be. */
    bool (*issue)(struct io *io);
    /* Sends what is queued as far as the socket takes it. -1: the connection is lost. */
    int (*flush)(struct session *s);
    /* What to wait for, of POLLIN and POLLOUT. */
    short (*events)(struct session *s);
    int (*fd)(struct session *s);
    /* Takes what has come (revents), sets w->now, ends commands by load_done; `wait`: blocks for
     * up to about a second when nothing has come. -1: the connection is lost. */
    int (*service)(struct session *s, short revents, bool wait);
    bool can_wait;
    void (*close)(struct session *s); /* logs out */
};

struct options {
    const char *url;
    const char *initiator;
    const struct engine *engine;
    uint64_t bs, span;
    unsigned qd, sessions, threads;
    unsigned read_pct;
    bool random, verify, fill, fua;
    double secs, warm;
    uint64_t seed, think_ns;
    bool header_digest, data_digest;
    unsigned stall_s;
};
extern struct options o;
extern uint32_t lbs;         /* logical block size */
extern uint64_t slot_blocks; /* blocks a command */

extern const struct engine engine_libiscsi, engine_raw;

/* Ends a command: counts it, checks data, issues the next of the session. */
void load_done(struct io *io, const struct outcome *r);

/* The session's connection is lost: an error is counted once; nothing more is issued on it. */
void load_dead(struct session *s, const char *why);

/* Monotonic nanoseconds. */
uint64_t now_ns(void);

#endif
