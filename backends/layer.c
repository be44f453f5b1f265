/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What layers share; see layer.h.
 */
#include "config.h"

#include "backends/layer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

int
layer_open(struct backend *be)
{
    int err = be_open(be->below);
    if (err != 0)
        return err;
    struct be_info in;
    be_info(be->below, &in);
    in.caps &= ~(unsigned)BE_CAP_WRITE_AT_ONCE; /* a layer may keep a request for later */
    err = be_publish(be, &in, be_identity(be->below));
    if (err != 0)
        be_close(be->below);
    return err;
}

void
layer_close(struct backend *be)
{
    be_close(be->below);
}

unsigned
layer_probe(struct backend *be)
{
    unsigned ev = be_probe(be->below);
    atomic_store(&be->size, be_size(be->below));
    return ev;
}

void
layer_release_ref(struct backend *be, struct io *io)
{
    be->below->ops->release_ref(be->below, io);
}

void
layer_destroy(struct backend *be)
{
    (void)be;
}

static const char *const op_names[IO_OP_COUNT] = {
    [IO_READ] = "read", [IO_WRITE] = "write", [IO_FLUSH] = "flush",       [IO_DISCARD] = "discard",
    [IO_ZERO] = "zero", [IO_MAP] = "map",     [IO_READ_REF] = "read_ref",
};

const char *
layer_op_name(uint8_t op)
{
    return op < IO_OP_COUNT ? op_names[op] : "?";
}

static unsigned
op_bit(const char *word, size_t len)
{
    if (len == 3 && strncmp(word, "all", len) == 0)
        return (1u << IO_OP_COUNT) - 1;
    for (unsigned op = 0; op < IO_OP_COUNT; op++) {
        if (strlen(op_names[op]) == len && strncmp(op_names[op], word, len) == 0)
            return op == IO_READ ? 1u << IO_READ | 1u << IO_READ_REF : 1u << op;
    }
    return 0;
}

unsigned
layer_parse_ops(const char *text)
{
    unsigned set = 0;
    for (;;) {
        size_t len = strcspn(text, ",");
        unsigned bit = op_bit(text, len);
        if (bit == 0)
            return 0;
        set |= bit;
        if (text[len] == '\0')
            return set;
        text += len + 1;
    }
}

bool
layer_parse_u64(const char *text, uint64_t *out)
{
    static const char units[] = "kMGT";
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    unsigned shift = unit != NULL ? (unsigned)(unit - units + 1) * 10 : 0;
    if ((unit != NULL && end[1] != '\0') || (unit == NULL && *end != '\0') ||
        v > UINT64_MAX >> shift)
        return false;
    *out = (uint64_t)v << shift;
    return true;
}

int
layer_parse_errno(const char *text)
{
    static const struct {
        const char *name;
        int err;
    } names[] = {
        {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},         {"EROFS", EROFS},
        {"ENXIO", ENXIO},   {"ENOMEM", ENOMEM}, {"ETIMEDOUT", ETIMEDOUT},   {"EAGAIN", EAGAIN},
        {"EILSEQ", EILSEQ}, {"ENODEV", ENODEV}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EBADMSG", EBADMSG},
    };
    uint64_t n;
    for (size_t i = 0; i < N(names); i++) {
        if (strcmp(names[i].name, text) == 0)
            return names[i].err;
    }
    return layer_parse_u64(text, &n) && n > 0 && n < 4096 ? (int)n : 0;
}

bool
layer_when(struct layer_when *when)
{
    if (when->path == NULL)
        return true;
    uint64_t now = clock_ms() + 1;
    if (atomic_exchange_explicit(&when->looked_ms, now, memory_order_relaxed) != now)
        atomic_store_explicit(&when->is_on, access(when->path, F_OK) == 0, memory_order_relaxed);
    return atomic_load_explicit(&when->is_on, memory_order_relaxed);
}

/* Skips what was written of the first entries. */
static void
skip(struct iovec *iov, unsigned *first, unsigned niov, size_t n)
{
    while (*first < niov && n >= iov[*first].iov_len) {
        n -= iov[*first].iov_len;
        (*first)++;
    }
    if (*first < niov) {
        iov[*first].iov_base = (char *)iov[*first].iov_base + n;
        iov[*first].iov_len -= n;
    }
}

int
layer_write_all(int fd, const struct iovec *iov, unsigned niov)
{
    struct iovec part[64];
    for (unsigned at = 0; at < niov;) {
        unsigned n = niov - at < N(part) ? niov - at : (unsigned)N(part);
        memcpy(part, &iov[at], n * sizeof(part[0]));
        for (unsigned first = 0; first < n;) {
            ssize_t r = writev(fd, &part[first], (int)(n - first));
            if (r < 0 && errno != EINTR)
                return -errno;
            if (r >= 0)
                skip(part, &first, n, (size_t)r);
        }
        at += n;
    }
    return 0;
}
