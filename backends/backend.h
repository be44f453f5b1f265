/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backend contract: bytes, not SCSI.  A `struct backend` is one backing store (or a layer
 * over another one), opened once and owned by one LUN; `be_submit` is called by any worker and
 * completes on that worker.  Nobody above this room sees a file descriptor.
 *
 * Life: be_new (main, cheap, no system call that can block) -> be_open (helper thread, or main
 * before its loop) -> submits -> be_close (helper) -> be_put.  be_open may be tried again after
 * a failure or a vanish; the backend keeps the identity of the first successful open (device and
 * inode, or the device's WWID/size) and refuses another thing under the same path (-ESTALE).
 */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/disk.h"
#include "base/list.h"
#include "base/ref.h"

struct backend;
struct worker;
struct io;

enum io_op {
    IO_READ,
    IO_WRITE,
    IO_FLUSH,    /* everything completed before is durable when done; offset/len are hints */
    IO_DISCARD,  /* [offset, +len) reads as zeros afterwards and is deallocated as far as possible;
                    only with BE_CAP_DISCARD, else -EOPNOTSUPP */
    IO_ZERO,     /* [offset, +len) reads as zeros afterwards; stays allocated where possible */
    IO_MAP,      /* fill io->ext: what [offset, +len) holds */
    IO_READ_REF, /* as READ, but the backend lends its own memory in io->iov until
                    io_release_ref(io); only with BE_CAP_READ_REF. iov and niov are set by the
                    backend and point to its memory, not to the caller's */
    IO_OP_COUNT
};

enum io_flag {
    IO_FUA = 1, /* WRITE, ZERO, DISCARD: durable when done */
};

/* One run of IO_MAP, in order, contiguous, covering [offset, offset+len) from its start; the
 * last may be cut when ext_max is reached. */
struct io_extent {
    uint64_t len;
    bool mapped; /* false: reads as zeros and is deallocated */
};

struct io_frame {
    void (*done)(struct io *io);
    void *arg;
    uint64_t u;
};

#define BE_LAYERS_MAX 4
/* Three for the callers, one for the outermost backend, one for IO_ZERO by writes, the layers'. */
#define IO_FRAMES     (5 + BE_LAYERS_MAX)

/* Embedded in scsi_cmd; the backend's between be_submit and done. nframes must be 0 before the
 * first io_push; what is below "private" need not be initialised. */
struct io {
    /* set by the caller, kept until done */
    uint8_t op; /* enum io_op */
    uint8_t flags;
    struct worker *w;  /* the submitting worker */
    uint64_t offset;   /* bytes; multiple of info.block_size */
    uint64_t len;      /* bytes; multiple of info.block_size; = sum of iov for READ, WRITE */
    struct iovec *iov; /* the entries may be modified by the backend (short transfers) */
    unsigned niov;
    struct iovec *md; /* 8 bytes of protection information a block, or NULL */
    unsigned nmd;
    struct io_extent *ext; /* IO_MAP */
    unsigned ext_max;
    unsigned ext_n; /* out */
    /* out */
    int res;              /* 0, or -errno; READ and WRITE are whole or fail */
    uint64_t fail_offset; /* on error of READ/WRITE: first byte not transferred, as far as known */
    /* completion stack; see io_push */
    struct io_frame frames[IO_FRAMES];
    uint8_t nframes;
    /* private to the backend (and the layers' own timers) */
    struct backend *at; /* who can cancel it now; NULL: nobody (it is about to complete) */
    struct list link;
    struct disk_req disk;
    struct helper_job job;
    struct deferred ready;
    struct worker_timer timer;
    bool canceled;
    struct backend *lender; /* the store that works on it; IO_READ_REF: whose memory it is */
    uint64_t priv[4];       /* of the store, not of layers: they have their frame */
    struct {
        uint64_t off, len;
        struct iovec *iov;
        unsigned niov;
        uint8_t op;
    } saved;          /* IO_ZERO by writes: what the caller had set */
    struct iovec one; /* a single vector for whom it helps */
};

enum be_cap {
    BE_CAP_READ_REF = 1,
    BE_CAP_METADATA = 2,
    BE_CAP_MAP = 4,            /* IO_MAP tells the truth; without: everything is mapped */
    BE_CAP_DISCARD = 8,        /* IO_DISCARD works */
    BE_CAP_WRITE_AT_ONCE = 32, /* the memory of an IO_WRITE is not needed after be_submit */
    BE_CAP_ZERO = 16, /* IO_ZERO works natively (always offered: emulated by writes otherwise) */
};

/* What a device calls itself; "": it does not say. Printable ASCII, cut to what INQUIRY holds. */
struct be_ident {
    char vendor[9], product[17], rev[5], serial[64];
};

struct be_info {
    uint64_t size;       /* bytes, whole blocks */
    uint32_t block_size; /* smallest unit of offset and len, bytes */
    uint32_t phys_block_size;
    uint32_t mem_align;    /* of iov bases; buffers of base/buf.h always fit. Where lengths matter
                              to the store, it copes by itself (see fdio.h) */
    uint64_t max_io;       /* bytes in one READ/WRITE; 0: no limit */
    uint32_t discard_gran; /* bytes; 0: no discard */
    uint64_t max_discard;  /* bytes; 0: no limit */
    bool rotational;
    bool read_only;   /* the store itself cannot be written */
    bool is_volatile; /* its contents end with the daemon, or with be_put */
    unsigned caps;    /* enum be_cap */
    char kind[16];    /* "file", "block", "null", "zram" */
    struct be_ident device;
};

/* State of a backend as seen by the LUN. */
enum be_state {
    BE_CLOSED, /* never opened, or open failed (be_error) */
    BE_READY,
    BE_GONE, /* was ready; the thing vanished; be_probe brings it back */
};

/* What a probe found (bits). */
enum be_event {
    BE_EV_CAME = 1,   /* CLOSED/GONE -> READY */
    BE_EV_GONE = 2,   /* READY -> GONE */
    BE_EV_GREW = 4,   /* info.size is larger now */
    BE_EV_SHRANK = 8, /* store is smaller than info.size; size kept, reads there fail */
};

struct be_opts {
    const char *type;    /* "fileio" (also "rdwr"), "blockio", "null" (also "nullio"), "zram" */
    const char *path;    /* zram: the store's name */
    uint32_t block_size; /* logical block size of the LUN: 512 or 4096; 0: the store's own */
    bool read_only;
    bool direct;           /* O_DIRECT on files (and on devices behind fileio; blockio: always) */
    bool write_cache;      /* initial; see be_set_write_cache */
    bool allow_in_use;     /* do not refuse mounted or otherwise used stores */
    uint64_t null_size;    /* bytes, null and zram */
    const char *algorithm; /* zram, likewise what follows; NULL: lz4 */
    unsigned level;        /* 0: the algorithm's own */
    uint32_t chunk_size;   /* bytes; 0: the store's own */
    uint64_t mem_limit;    /* bytes; 0: none */
    const char *bsopts;    /* "k=v;k=v" */
    const char *layers;    /* "delay:ms=10 error:op=read,write,errno=EIO": outermost first, at most
                              BE_LAYERS_MAX; a word without '=' belongs to the value before it */
};

/* Before opener_start: messages of be_open can name other users' processes then. */
void store_user_init(void);
/* NULL and a message in err (what, where, why) for an unknown type, layer or option. */
struct backend *be_new(const struct be_opts *opts, char *err, size_t errsize);
struct backend *be_get(struct backend *be);
/* Last reference: must be closed or never opened. Whoever has an io in flight keeps a reference
 * until its done; with requests that never came back the memory is left behind. */
void be_put(struct backend *be);

/* Calls fn with every path be_open will ask the opener for (the store, files of layers). Main,
 * so that it can permit them. */
void be_each_path(const struct backend *be, void (*fn)(const char *path, bool made, void *arg),
                  void *arg);

/* Blocking. 0 or -errno; be_error tells more. -EBUSY: mounted, held, or open elsewhere (the
 * message says by whom); -ENXIO/-ENOENT: not there (retry later). */
int be_open(struct backend *be);
/* Blocking only as close(2) blocks: never waits for requests in flight; the descriptor is closed
 * (by a helper) when the last of them is done. */
void be_close(struct backend *be);
/* Last failure in words; "" when none. A copy of the calling thread, good until its next call. */
const char *be_error(const struct backend *be);
const char *be_path(const struct backend *be);
/* A text that names the store wherever it is opened from (canonical path, device WWID): the
 * default LUN identity is made of it. "" before the first successful open, and for a store that
 * has no identity of its own (null). */
const char *be_identity(const struct backend *be);

/* Blocking look at the store (helper thread): is the thing still there, the same, as large?
 * Returns be_event bits; state and size are updated atomically for submitters. A store whose
 * be_open failed is tried again, one that be_close closed is left alone. A file under the path
 * that is not the same thing leaves the store GONE, and be_error says so. */
unsigned be_probe(struct backend *be);

enum be_state be_state(const struct backend *be); /* any thread */
/* Snapshot; any thread. */
void be_info(const struct backend *be, struct be_info *out);
uint64_t be_size(const struct backend *be);

/* With the write cache off every write is durable when done (as FUA). Any thread, atomic. Writes
 * in flight when it is turned off are made durable before they complete; what completed before is
 * the caller's to flush. */
void be_set_write_cache(struct backend *be, bool on);

/* io is filled; io->done chain via io_push before. Ranges and alignment are the caller's duty:
 * debug builds abort, others answer -EINVAL and log. Completes on io->w exactly once, never
 * inside this call. -ENXIO when not READY; -EROFS on a read-only store; -EOPNOTSUPP for what
 * info.caps does not offer. A failed flush or FUA is sticky: every later FLUSH and FUA (and with
 * the cache off every write) fails with -EIO until be_clear_flush_error. Not sticky: a FUA write
 * that was canceled, or that the store refused for want of space (-ENOSPC, -EDQUOT, -EFBIG). */
void be_submit(struct backend *be, struct io *io);
/* Tries to end io early (-ECANCELED); its completion still comes, never inside this call.
 * io->w's thread, between be_submit and done. */
void be_cancel(struct io *io);
void io_release_ref(struct io *io); /* after IO_READ_REF, when the lent memory was used */
/* Somebody has said to know that a volatile store began empty. Any thread. */
void be_acknowledge(struct backend *be);
bool be_acknowledged(const struct backend *be);
/* What opts says of a store that can change it while it serves (zram: algorithm, level, mem_limit,
 * a larger null_size) holds from now on; the rest of opts is of no account. 0, or -errno and
 * be_error. Main; takes memory operations only. -EOPNOTSUPP: this type has nothing of the kind. */
int be_tune(struct backend *be, const struct be_opts *opts);
/* What all zram stores together may take of memory, bytes; 0: the default, three quarters of the
 * machine's. Holds at once. Any thread. */
void be_zram_limit(uint64_t bytes);

/* A piece of background work. */
struct be_zram_work {
    /* in */
    bool recompress;   /* else compaction */
    const char *codec; /* recompress: "zstd:9" */
    bool huge, idle;   /* recompress: chunks that are kept as they are, that were not used lately;
                          neither:   all */
    uint32_t idle_s;
    uint32_t max_ms;
    /* out */
    bool again; /* there is more to do */
    uint64_t seen, done, gained;
};
/* 0, or -errno and why: -EINVAL also for a backend that is no zram. Blocks for about max_ms: a
 * helper thread. */
int be_zram_work(struct backend *be, struct be_zram_work *work, char *err, size_t errsize);
/* Calls fn with every counter of the store; nothing for types that have none. Any thread. */
typedef void be_counter_fn(void *arg, const char *group, const char *name, uint64_t value);
void be_each_counter(const struct backend *be, be_counter_fn *fn, void *arg);
bool be_flush_failed(const struct backend *be);
void be_clear_flush_error(struct backend *be);

/* Requests submitted and not completed, all workers. */
unsigned be_in_flight(const struct backend *be);

/* Completion stack: the caller pushes its own done, layers push theirs and be_submit below. */
static inline void
io_push(struct io *io, void (*done)(struct io *io), void *arg)
{
    struct io_frame *f = &io->frames[io->nframes++];
    f->done = done;
    f->arg = arg;
    f->u = 0;
}

/* Inside a done: the frame that was pushed with it. */
static inline struct io_frame *
io_frame(struct io *io)
{
    return &io->frames[io->nframes];
}

/* Pops one frame and calls its done (which sees its frame by io_frame). Any backend ends an io
 * with this, on io->w. */
void io_complete(struct io *io, int res);
/* The same through the ready list: for what was done inside submit. */
void io_complete_later(struct io *io, int res);
/* From a foreign thread (library callbacks): batches wake-ups. */
void io_complete_remote(struct io *io, int res);

/* --- for backends and layers only --------------------------------------------------------- */

struct be_ops {
    const char *type;                 /* config name */
    void (*init)(struct backend *be); /* priv is zeroed; before configure. May be NULL */
    /* all required */
    int (*open)(struct backend *be);
    void (*close)(struct backend *be);
    unsigned (*probe)(struct backend *be);
    /* -ESHUTDOWN from a store that was closed before the request got there: becomes -ENXIO */
    void (*submit)(struct backend *be, struct io *io);
    void (*cancel)(struct backend *be, struct io *io);
    void (*release_ref)(struct backend *be, struct io *io); /* NULL without BE_CAP_READ_REF */
    /* bsopts, layer options: 0 or -EINVAL with be_set_error; key NULL: no more options come. */
    int (*configure)(struct backend *be, const char *key, const char *value);
    void (*destroy)(struct backend *be);
    /* The path open needs beside opts.path, or NULL; may be NULL itself. */
    const char *(*extra_path)(const struct backend *be);
    int (*tune)(struct backend *be, const struct be_opts *opts);              /* or NULL */
    void (*counters)(const struct backend *be, be_counter_fn *fn, void *arg); /* or NULL */
    size_t priv_size;
};

struct backend {
    const struct be_ops *ops;
    struct ref ref;
    struct backend *below;   /* layers: the next one (owned) */
    struct be_opts opts;     /* own copies of the strings */
    atomic_int state;        /* enum be_state */
    atomic_bool write_cache; /* this and the next two: of the outermost only */
    atomic_bool flush_failed;
    atomic_uint in_flight;
    atomic_uint_fast64_t size;
    atomic_bool acknowledged; /* of the outermost; see be_acknowledge */
    atomic_bool no_lend;      /* BE_CAP_READ_REF, but not as things are: set by the store */
    struct be_info info;      /* but size: fixed once `known`, which be_publish sets */
    char *identity;           /* likewise */
    atomic_bool known;
    atomic_int gone_err;     /* of a store that is GONE: -errno, the reason */
    bool want_open;          /* be_open was asked for; under op_lock */
    pthread_mutex_t op_lock; /* one open, close or probe at a time; held while they block */
    pthread_mutex_t lock;    /* error; memory operations only */
    char error[256];
    void *priv;
};

/* Is IO_READ_REF worth trying now? It may still answer -EOPNOTSUPP. Any thread. */
static inline bool
be_lends(const struct backend *be)
{
    return (be->info.caps & BE_CAP_READ_REF) != 0 &&
           !atomic_load_explicit(&be->no_lend, memory_order_relaxed);
}

extern const struct be_ops file_ops, block_ops, null_ops, zram_ops;
extern const struct be_ops layer_error_ops, layer_delay_ops, layer_trace_ops, layer_record_ops;

/* For layers: hand io to the backend below, with own done pushed before. */
void be_submit_below(struct backend *layer, struct io *io);
/* For open: what was found. The first call fixes info and identity, later ones only set the size
 * (which never shrinks); -ESTALE when block size or identity differ from the first. */
int be_publish(struct backend *be, const struct be_info *info, const char *identity);
/* For stores that cannot zero natively (or found out just now): does io, an IO_ZERO or
 * IO_DISCARD, by IO_WRITEs of zeros to be->ops->submit, one after another, then completes it. */
void be_zero_by_writes(struct backend *be, struct io *io);
/* 1 MiB of zeros, page-aligned, read-only. */
#define BE_ZEROS_LEN (1024u * 1024u)
const void *be_zeros(void);
/* The iov entry is only read from. */
struct iovec be_zero_iov(uint64_t len);
void be_set_error(struct backend *be, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
