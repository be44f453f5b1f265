/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw engine's way to full feature phase: URL, connection, login without authentication. */
#include "config.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/perf/load-raw.h"

#define TEXT_MAX 8192

struct place {
    char host[256], port[8], target[256];
};

/* iscsi://host[:port]/target/lun, an IPv6 address in brackets. */
static int
parse_url(const char *url, struct place *p, unsigned *lun)
{
    static const char scheme[] = "iscsi://";
    const char *h = url + sizeof scheme - 1, *slash, *last, *colon;
    char *end;

    if (strncmp(url, scheme, sizeof scheme - 1) || !(slash = strchr(h, '/')) ||
        (last = strrchr(slash, '/')) == slash)
        return -1;
    if (memchr(h, '@', (size_t)(slash - h))) {
        fputs("iscsi-load: the raw engine has no authentication\n", stderr);
        return -1;
    }
    size_t hl = (size_t)(slash - h);
    colon = memrchr(h, ':', hl);
    if (h[0] == '[') {
        const char *close = memchr(h, ']', hl);
        if (!close)
            return -1;
        colon = close[1] == ':' ? close + 1 : NULL;
        snprintf(p->host, sizeof p->host, "%.*s", (int)(close - h - 1), h + 1);
    } else {
        snprintf(p->host, sizeof p->host, "%.*s", (int)((colon ? colon : slash) - h), h);
    }
    if (colon)
        snprintf(p->port, sizeof p->port, "%.*s", (int)(slash - colon - 1), colon + 1);
    else
        snprintf(p->port, sizeof p->port, "3260");
    snprintf(p->target, sizeof p->target, "%.*s", (int)(last - slash - 1), slash + 1);
    *lun = (unsigned)strtoul(last + 1, &end, 10);
    return end == last + 1 || *end || *lun > 0x3fff ? -1 : 0;
}

static int
dial(const struct place *p)
{
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *ai, *a;
    int fd = -1, one = 1;

    if (getaddrinfo(p->host, p->port, &hint, &ai))
        return -1;
    for (a = ai; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(ai);
    if (fd >= 0) {
        /* A receive that finds nothing ends after a second, for the stall check. */
        struct timeval tv = {.tv_sec = 1};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    }
    return fd;
}

static int
read_all(int fd, void *to, size_t n)
{
    uint8_t *p = to;
    for (unsigned waits = 0; n;) {
        ssize_t k = recv(fd, p, n, 0);
        if (k == 0 || (k < 0 && ++waits > 20))
            return -1;
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
    return 0;
}

static void
add_key(char *text, uint32_t *n, const char *key, const char *value)
{
    *n += (uint32_t)snprintf(text + *n, TEXT_MAX - *n, "%s=%s", key, value) + 1;
}

/* The value of a key in n bytes of pairs, each ended by a zero; NULL: absent. */
static const char *
key_of(const char *text, uint32_t n, const char *key)
{
    size_t k = strlen(key);
    for (uint32_t at = 0; at < n; at += (uint32_t)strlen(text + at) + 1)
        if (!strncmp(text + at, key, k) && text[at + k] == '=')
            return text + at + k + 1;
    return NULL;
}

/* Sends a request with n bytes of text and receives the answer's header and text (ended by a
 * zero); its length, or -1. */
static int
exchange(struct raw *r, uint8_t h[BHS], char *text, uint32_t n)
{
    struct iovec v[2] = {{h, BHS}, {text, (n + 3) & ~3u}};

    memset(text + n, 0, 4);
    put_be24(h + 5, n);
    if (writev(r->fd, v, 2) != (ssize_t)(v[0].iov_len + v[1].iov_len) || read_all(r->fd, h, BHS))
        return -1;
    n = get_be24(h + 5);
    if (h[0] != OP_LOGIN_RSP || h[4] || n > TEXT_MAX - 8 || read_all(r->fd, text, (n + 3) & ~3u))
        return -1;
    text[n] = 0;
    return (int)n;
}

/* Whether what was asked for was agreed on: a figure with digests must not be one without. */
static int
agreed(const char *key, bool asked, bool got)
{
    if (asked == got)
        return 0;
    fprintf(stderr, "iscsi-load: login: %s=%s wanted, the target chose %s\n", key,
            asked ? "CRC32C" : "None", got ? "CRC32C" : "None");
    return -1;
}

static void
take_keys(struct raw *r, const char *text, uint32_t n)
{
    const char *v;
    if ((v = key_of(text, n, "HeaderDigest")))
        r->hd = !strcmp(v, "CRC32C");
    if ((v = key_of(text, n, "DataDigest")))
        r->dd = !strcmp(v, "CRC32C");
    if ((v = key_of(text, n, "ImmediateData")))
        r->immediate_data = !strcmp(v, "Yes");
    if ((v = key_of(text, n, "InitialR2T")))
        r->initial_r2t = !strcmp(v, "Yes");
    if ((v = key_of(text, n, "MaxRecvDataSegmentLength")))
        r->seg_theirs = (uint32_t)strtoul(v, NULL, 0);
    if ((v = key_of(text, n, "FirstBurstLength")))
        r->first_burst = (uint32_t)strtoul(v, NULL, 0);
}

static uint32_t
offer(char *text)
{
    static const char *const keys[][2] = {
        {"InitialR2T", "No"},
        {"ImmediateData", "Yes"},
        {"MaxBurstLength", "262144"},
        {"FirstBurstLength", "262144"},
        {"MaxRecvDataSegmentLength", "262144"},
        {"MaxOutstandingR2T", "1"},
        {"MaxConnections", "1"},
        {"ErrorRecoveryLevel", "0"},
        {"DefaultTime2Wait", "2"},
        {"DefaultTime2Retain", "0"},
        {"DataPDUInOrder", "Yes"},
        {"DataSequenceInOrder", "Yes"},
    };
    uint32_t n = 0;
    add_key(text, &n, "HeaderDigest", o.header_digest ? "CRC32C" : "None");
    add_key(text, &n, "DataDigest", o.data_digest ? "CRC32C" : "None");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        add_key(text, &n, keys[i][0], keys[i][1]);
    return n;
}

/* Two stages (RFC 7143 6.3): security, where no method is asked for, and operational. */
static int
stages(struct raw *r, const struct place *p, unsigned idx)
{
    static char text[TEXT_MAX]; /* sessions are opened one after the other */
    uint8_t h[BHS], isid[6] = {0x80}, csg = 0;
    uint32_t n = 0;

    put_be32(isid + 1, (uint32_t)getpid() << 8);
    put_be16(isid + 4, (uint16_t)idx);
    r->seg_theirs = 8192;
    r->first_burst = 65536;
    r->immediate_data = r->initial_r2t = true;
    add_key(text, &n, "InitiatorName", o.initiator);
    add_key(text, &n, "TargetName", p->target);
    add_key(text, &n, "SessionType", "Normal");
    add_key(text, &n, "AuthMethod", "None");
    for (unsigned round = 0; round < 10; round++) {
        memset(h, 0, sizeof h);
        h[0] = OP_LOGIN | IMMEDIATE;
        h[1] = (uint8_t)(FINAL | csg << 2 | (csg ? 3 : 1));
        memcpy(h + 8, isid, sizeof isid);
        put_be32(h + 24, r->cmdsn);
        put_be32(h + 28, r->exp_statsn);
        int got = exchange(r, h, text, n);
        if (got < 0) {
            fputs("iscsi-load: login: no answer, or not a login response\n", stderr);
            return -1;
        }
        if (h[36]) {
            fprintf(stderr, "iscsi-load: login: status class %u detail %u\n", h[36], h[37]);
            return -1;
        }
        r->exp_statsn = get_be32(h + 24) + 1;
        r->max_cmdsn = get_be32(h + 32);
        take_keys(r, text, (uint32_t)got);
        n = 0;
        if (!(h[1] & FINAL))
            continue;
        if ((h[1] & 3) == 3)
            return agreed("HeaderDigest", o.header_digest, r->hd) ||
                           agreed("DataDigest", o.data_digest, r->dd)
                       ? -1
                       : 0;
        csg = 1;
        n = offer(text);
    }
    fputs("iscsi-load: login: does not come to an end\n", stderr);
    return -1;
}

int
raw_login(struct session *s, struct raw *r, unsigned idx)
{
    struct place p;

    if (parse_url(o.url, &p, &s->lun)) {
        fprintf(stderr, "iscsi-load: %s: iscsi://host[:port]/target/lun wanted\n", o.url);
        return -1;
    }
    r->fd = dial(&p);
    if (r->fd < 0) {
        fprintf(stderr, "iscsi-load: %s port %s: no connection\n", p.host, p.port);
        return -1;
    }
    return stages(r, &p, idx);
}
