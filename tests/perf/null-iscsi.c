/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * null-iscsi: the least an iSCSI target can do and still be measured by
 * iscsi-load.  One thread, one epoll loop, one RAM region as LUN 0; every
 * request drained from a socket is answered by one sendmsg straight out of the
 * region.  It checks nothing and must never be used for anything but as the
 * ceiling of what client + loopback + protocol allow on a machine.
 *
 *   null-iscsi PORT [MiB]      (any IQN, LUN 0, listens on 127.0.0.1 only)
 *
 * It listens once its memory is filled: about a second for the default 1024.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define RBUF  (1 << 20)
#define MAXC  256
#define NTASK 4096
#define NREP  512
#define SEG   262144u

struct task {
    uint32_t itt;
    uint64_t pos;
    uint32_t total, done, goal;
};
struct conn {
    int fd;
    uint8_t hb[48];
    unsigned hlen;
    uint8_t bhs[48]; /* PDU whose data is arriving */
    uint8_t *dst;    /* where its data goes, NULL: text */
    uint32_t left, pad, tlen;
    uint8_t text[8192];
    bool in_pdu;
    uint32_t statsn, expcmdsn, seg;
    struct task t[NTASK];
    uint8_t rep[NREP][48];
    struct iovec v[NREP * 2];
    unsigned nrep, nv;
    uint8_t small[NREP][512];
};

static uint8_t *region;
static uint64_t region_len;

static uint32_t
g32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}
static uint64_t
g64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return be64toh(v);
}
static void
p32(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static void
flush(struct conn *c)
{
    struct msghdr m = {.msg_iov = c->v, .msg_iovlen = c->nv};
    while (m.msg_iovlen) {
        ssize_t r = sendmsg(c->fd, &m, MSG_NOSIGNAL);
        if (r < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        while (r && m.msg_iovlen) {
            if ((size_t)r >= m.msg_iov->iov_len) {
                r -= (ssize_t)m.msg_iov->iov_len;
                m.msg_iov++;
                m.msg_iovlen--;
            } else {
                m.msg_iov->iov_base = (uint8_t *)m.msg_iov->iov_base + r;
                m.msg_iov->iov_len -= (size_t)r;
                r = 0;
            }
        }
    }
    c->nrep = c->nv = 0;
}

/* Start a reply PDU; data must be a multiple of four bytes long. */
static uint8_t *
rep(struct conn *c, uint8_t op, uint8_t fl, uint32_t itt, const void *data, uint32_t len)
{
    if (c->nrep == NREP)
        flush(c);
    uint8_t *h = c->rep[c->nrep++];
    memset(h, 0, 48);
    h[0] = op;
    h[1] = fl;
    p32(h + 4, len);
    p32(h + 16, itt);
    p32(h + 20, 0xffffffff);
    p32(h + 28, c->expcmdsn);
    p32(h + 32, c->expcmdsn + 255);
    c->v[c->nv++] = (struct iovec){h, 48};
    if (len)
        c->v[c->nv++] = (struct iovec){(void *)(uintptr_t)data, len};
    return h;
}

static void
data_in(struct conn *c, uint32_t itt, const uint8_t *p, uint32_t len, uint32_t want)
{
    uint32_t off = 0, sn = 0;
    do {
        uint32_t k = len - off < c->seg ? len - off : c->seg;
        bool last = off + k == len;
        uint8_t *h = rep(c, 0x25, last ? 0x81 : 0, itt, p + off, k);
        p32(h + 36, sn++);
        p32(h + 40, off);
        if (last) {
            p32(h + 24, c->statsn++);
            if (want > len) {
                h[1] |= 2;
                p32(h + 44, want - len);
            }
        }
        off += k;
    } while (off < len);
}

static void
status(struct conn *c, uint32_t itt)
{
    uint8_t *h = rep(c, 0x21, 0x80, itt, NULL, 0);
    p32(h + 20, 0);
    p32(h + 24, c->statsn++);
}

static void
advance(struct conn *c, struct task *t)
{
    if (t->done == t->total) {
        status(c, t->itt);
        return;
    }
    uint32_t k = t->total - t->done < SEG ? t->total - t->done : SEG;
    uint8_t *h = rep(c, 0x31, 0x80, t->itt, NULL, 0);
    p32(h + 20, t->itt);
    p32(h + 24, c->statsn);
    p32(h + 40, t->done);
    p32(h + 44, k);
    t->goal = t->done + k;
}

static void
scsi(struct conn *c) /* a command PDU is complete */
{
    const uint8_t *h = c->bhs, *cdb = h + 32;
    uint32_t itt = g32(h + 16), want = g32(h + 20);
    uint8_t *s;

    if (c->nrep >= NREP - 8)
        flush(c);
    s = c->small[c->nrep];
    switch (cdb[0]) {
    case 0x88:
        data_in(c, itt, region + g64(cdb + 2) * 512 % region_len, want, want);
        return;
    case 0x28:
        data_in(c, itt, region + (uint64_t)g32(cdb + 2) * 512 % region_len, want, want);
        return;
    case 0x8a:
    case 0x2a: {
        struct task *t = &c->t[itt % NTASK];
        if (h[1] & 0x80) /* else unsolicited data follows */
            advance(c, t);
        return;
    }
    case 0x12:
        memset(s, 0, 512);
        s[2] = 5;
        s[3] = 2;
        s[4] = 31;
        memcpy(s + 8, "NULL    NULL            0001", 28);
        data_in(c, itt, s, want < 36 ? want & ~3u : 36, want);
        return;
    case 0x25:
        memset(s, 0, 8);
        p32(s, (uint32_t)(region_len / 512 - 1));
        p32(s + 4, 512);
        data_in(c, itt, s, 8, want);
        return;
    case 0x9e:
        memset(s, 0, 32);
        p32(s + 4, (uint32_t)(region_len / 512 - 1));
        p32(s + 8, 512);
        data_in(c, itt, s, 32, want);
        return;
    case 0xa0:
        memset(s, 0, 16);
        p32(s, 8);
        data_in(c, itt, s, 16, want);
        return;
    default:
        status(c, itt);
    }
}

static void
login(struct conn *c)
{
    const uint8_t *h = c->bhs;
    char *s = (char *)c->small[c->nrep];
    const size_t room = sizeof c->small[0];
    unsigned n = 0, csg = (h[1] >> 2) & 3;
    if (csg == 0)
        n = (unsigned)snprintf(s, room, "AuthMethod=None%cTargetPortalGroupTag=1%c", 0, 0);
    else
        n = (unsigned)snprintf(s, room,
                               "HeaderDigest=None%cDataDigest=None%cInitialR2T=No%c"
                               "ImmediateData=Yes%cMaxRecvDataSegmentLength=%u%cMaxBurstLength=%u%c"
                               "FirstBurstLength=%u%cMaxOutstandingR2T=1%cErrorRecoveryLevel=0%c"
                               "MaxConnections=1%cDataPDUInOrder=Yes%cDataSequenceInOrder=Yes%c"
                               "DefaultTime2Wait=2%cDefaultTime2Retain=0%c",
                               0, 0, 0, 0, SEG, 0, SEG, 0, SEG, 0, 0, 0, 0, 0, 0, 0, 0);
    while (n % 4)
        s[n++] = 0;
    c->text[c->tlen < sizeof c->text ? c->tlen : sizeof c->text - 1] = 0;
    static const char key[] = "MaxRecvDataSegmentLength=";
    char *k = memmem(c->text, c->tlen, key, sizeof key - 1);
    if (k)
        c->seg = (uint32_t)strtoul(k + sizeof key - 1, NULL, 10) & ~511u;
    uint8_t *r = rep(c, 0x23, h[1] & 0x8f, g32(h + 16), s, n);
    memcpy(r + 8, h + 8, 6);
    r[15] = 1;
    p32(r + 20, 0);
    p32(r + 24, c->statsn++);
}

static void
pdu_done(struct conn *c)
{
    const uint8_t *h = c->bhs;
    uint32_t itt = g32(h + 16);
    switch (h[0] & 0x3f) {
    case 0x01:
        scsi(c);
        break;
    case 0x05: {
        struct task *t = &c->t[itt % NTASK];
        if (h[1] & 0x80)
            advance(c, t);
        break;
    }
    case 0x03:
        login(c);
        break;
    case 0x06:
        p32(rep(c, 0x26, 0x80, itt, NULL, 0) + 24, c->statsn++);
        break;
    case 0x02:
        p32(rep(c, 0x22, 0x80, itt, NULL, 0) + 24, c->statsn++);
        break;
    case 0x00:
        if (itt != 0xffffffff)
            p32(rep(c, 0x20, 0x80, itt, NULL, 0) + 24, c->statsn++);
        break;
    }
}

static void
pdu_start(struct conn *c)
{
    const uint8_t *h = c->bhs;
    uint8_t op = h[0] & 0x3f;
    uint32_t len = g32(h + 4) & 0xffffff, itt = g32(h + 16);

    c->left = len;
    c->pad = (4 - len % 4) % 4;
    c->dst = NULL;
    c->tlen = 0;
    if (op <= 0x06 && op != 0x05) {
        if (!(h[0] & 0x40))
            c->expcmdsn = g32(h + 24) + 1;
        else if (op == 0x03)
            c->expcmdsn = g32(h + 24);
    }
    if (op == 0x01 && (h[32] == 0x8a || h[32] == 0x2a)) {
        struct task *t = &c->t[itt % NTASK];
        uint64_t lba = h[32] == 0x8a ? g64(h + 34) : g32(h + 34);
        *t = (struct task){
            .itt = itt, .pos = lba * 512 % region_len, .total = g32(h + 20), .done = len};
        c->dst = region + t->pos;
    } else if (op == 0x05) {
        struct task *t = &c->t[itt % NTASK];
        c->dst = region + t->pos + g32(h + 40);
        t->done = g32(h + 40) + len;
    }
    c->in_pdu = true;
}

static void
feed(struct conn *c, const uint8_t *p, size_t n)
{
    for (;;) {
        if (c->in_pdu) {
            size_t k = n < c->left ? n : c->left;
            if (c->dst) {
                memcpy(c->dst, p, k);
                c->dst += k;
            } else if (c->tlen + k <= sizeof c->text) {
                memcpy(c->text + c->tlen, p, k);
                c->tlen += (uint32_t)k;
            }
            c->left -= (uint32_t)k;
            p += k;
            n -= k;
            k = n < c->pad ? n : c->pad;
            if (!c->left) {
                c->pad -= (uint32_t)k;
                p += k;
                n -= k;
            }
            if (c->left || c->pad)
                return;
            c->in_pdu = false;
            pdu_done(c);
        }
        if (!n)
            return;
        size_t k = 48 - c->hlen < n ? 48 - c->hlen : n;
        memcpy(c->bhs + c->hlen, p, k);
        c->hlen += (unsigned)k;
        p += k;
        n -= k;
        if (c->hlen < 48)
            return;
        c->hlen = 0;
        pdu_start(c);
    }
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: null-iscsi PORT [MiB]\n", stderr);
        return 2;
    }
    region_len = (argc > 2 ? strtoull(argv[2], NULL, 0) : 1024) << 20;
    region = mmap(NULL, region_len + (16 << 20), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (region == MAP_FAILED)
        return 1;
    memset(region, 7, region_len);
    signal(SIGPIPE, SIG_IGN);
    int ls = socket(AF_INET, SOCK_STREAM, 0), one = 1, ep = epoll_create1(0);
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(ls, (void *)&sa, sizeof sa) || listen(ls, 64)) {
        perror("listen");
        return 1;
    }
    struct epoll_event ev[64], e = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    uint8_t *rb = malloc(RBUF);
    for (;;) {
        int n = epoll_wait(ep, ev, 64, -1);
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (!c) {
                int fd = accept(ls, NULL, NULL);
                if (fd < 0 || !(c = calloc(1, sizeof *c)))
                    continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                c->fd = fd;
                c->seg = 8192;
                c->statsn = 1;
                e = (struct epoll_event){.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
                continue;
            }
            ssize_t r;
            if (c->in_pdu && c->dst && c->left >= 65536) {
                /* Bulk data goes straight to its place. */
                r = recv(c->fd, c->dst, c->left, MSG_DONTWAIT);
                if (r > 0) {
                    c->dst += r;
                    c->left -= (uint32_t)r;
                    if (!c->left && !c->pad) {
                        c->in_pdu = false;
                        pdu_done(c);
                        flush(c);
                    }
                    continue;
                }
            } else {
                r = recv(c->fd, rb, RBUF, MSG_DONTWAIT);
            }
            if (r > 0) {
                feed(c, rb, (size_t)r);
                flush(c);
            } else if (r == 0 || errno != EAGAIN) {
                close(c->fd);
                free(c);
            }
        }
    }
}
