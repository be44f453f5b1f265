/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compressed RAM store alone, and the kernel's zram beside it, turn by turn in one run:
 * sequential transfers of 1 MiB from and to memory, by one thread and by two.
 *
 *   zram-bench [--algorithm A[:LEVEL]] [--chunk BYTES] [--rounds N] [--size BYTES]
 *              [--kernel /dev/zramN] [zeros|random|FILE]...
 *
 * The kernel's device must be unused; it is set up for each corpus and reset (needs root). A file
 * is cut to --size. Figures are the best round; "memory" is what the store and the kernel say
 * they use (mem_used_total), "RSS" what the process grew by. "core" is a second of one core's
 * time: on a machine that does something else as well it tells more than the wall clock.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/zram_store.h"
#include "base/clock.h"

#define PIECE       (1024u * 1024u)
#define MAX_THREADS 2u

static struct {
    struct zram_codec codec;
    uint32_t chunk;
    unsigned rounds;
    uint64_t size;
    const char *kernel; /* device, or NULL */
} opt = {.codec = {ZRAM_ALG_LZ4, 1}, .chunk = 4096, .rounds = 3, .size = 256u << 20};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fprintf(stderr, "zram-bench: ");
    (void)vfprintf(stderr, fmt, ap);
    (void)fprintf(stderr, "\n");
    va_end(ap);
    exit(1);
}

/* --- corpora --------------------------------------------------------------------------------- */

struct corpus {
    const char *name;
    uint8_t *data;
    uint64_t len; /* whole PIECEs */
};

static uint8_t *
pages(uint64_t len)
{
    void *p =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED)
        die("no memory for %" PRIu64 " bytes", len);
    return p;
}

static void
fill_random(uint8_t *p, uint64_t len)
{
    uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; i < len; i += sizeof(x)) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(p + i, &x, sizeof(x));
    }
}

static void
load_file(struct corpus *c)
{
    struct stat st;
    int fd = open(c->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        die("%s: %s", c->name, strerror(errno));
    c->len = (uint64_t)st.st_size < opt.size ? (uint64_t)st.st_size : opt.size;
    c->len -= c->len % PIECE;
    if (c->len == 0)
        die("%s: less than 1 MiB", c->name);
    c->data = pages(c->len);
    for (uint64_t at = 0; at < c->len;) {
        ssize_t n = read(fd, c->data + at, c->len - at);
        if (n <= 0)
            die("%s: cannot be read", c->name);
        at += (uint64_t)n;
    }
    close(fd);
}

static struct corpus
corpus_load(const char *name)
{
    struct corpus c = {.name = name, .len = opt.size - opt.size % PIECE};
    bool zeros = strcmp(name, "zeros") == 0, noise = strcmp(name, "random") == 0;
    if (!zeros && !noise) {
        load_file(&c);
        return c;
    }
    c.data = pages(c.len);
    if (noise)
        fill_random(c.data, c.len);
    return c;
}

/* --- one pass -------------------------------------------------------------------------------- */

struct pass {
    const struct corpus *c;
    struct zram_store *st; /* or */
    int fd;
    bool write, check;
    atomic_uint_fast64_t next;
};

static void
move_piece(struct pass *p, uint64_t at, uint8_t *buf)
{
    struct iovec iov = {.iov_base = p->write ? p->c->data + at : buf, .iov_len = PIECE};
    if (p->st != NULL) {
        int err = p->write ? zram_store_write(p->st, at, &iov, 1, NULL)
                           : zram_store_read(p->st, at, &iov, 1, NULL);
        if (err != 0)
            die("store: %s", strerror(-err));
    } else {
        ssize_t n = p->write ? pwrite(p->fd, iov.iov_base, PIECE, (off_t)at)
                             : pread(p->fd, buf, PIECE, (off_t)at);
        if (n != (ssize_t)PIECE)
            die("%s: %s", opt.kernel, n < 0 ? strerror(errno) : "short transfer");
    }
    if (p->check && memcmp(buf, p->c->data + at, PIECE) != 0)
        die("wrong data at %" PRIu64, at);
}

static void *
pass_thread(void *arg)
{
    struct pass *p = arg;
    uint8_t *buf = pages(PIECE);
    for (;;) {
        uint64_t at = atomic_fetch_add(&p->next, PIECE);
        if (at >= p->c->len)
            break;
        move_piece(p, at, buf);
    }
    munmap(buf, PIECE);
    return NULL;
}

static uint64_t
cpu_us(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0)
        die("getrusage: %s", strerror(errno));
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct speed {
    double wall, cpu; /* MB a second, and a second of one core's time */
};

static struct speed
pass_run(struct pass *p, unsigned threads)
{
    pthread_t ids[MAX_THREADS];
    atomic_store(&p->next, 0);
    uint64_t t0 = clock_us(), c0 = cpu_us();
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, pass_thread, p) != 0)
            die("no thread");
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    uint64_t us = clock_us() - t0, cpu = cpu_us() - c0;
    return (struct speed){.wall = (double)p->c->len / (double)(us > 0 ? us : 1),
                          .cpu = (double)p->c->len / (double)(cpu > 0 ? cpu : 1)};
}

/* --- sides ----------------------------------------------------------------------------------- */

struct figures {
    struct speed write[MAX_THREADS], read[MAX_THREADS];
    uint64_t compr, used, rss, left; /* bytes; left: RSS after discarding all */
};

static void
best(struct speed *a, struct speed b)
{
    a->wall = b.wall > a->wall ? b.wall : a->wall;
    a->cpu = b.cpu > a->cpu ? b.cpu : a->cpu;
}

static uint64_t
rss(void)
{
    unsigned long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%lu %lu", &all, &resident) != 2)
        die("/proc/self/statm cannot be read");
    (void)fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
store_round(const struct corpus *c, struct figures *f, bool check)
{
    char err[128];
    struct zram_store *st;
    struct zram_store_opts o = {.size = c->len, .chunk_size = opt.chunk, .codec = opt.codec};
    for (unsigned n = 1; n <= MAX_THREADS; n++) {
        uint64_t before = rss();
        if (zram_store_open(&o, &st, err, sizeof(err)) != 0)
            die("%s", err);
        struct pass p = {.c = c, .st = st, .write = true};
        best(&f->write[n - 1], pass_run(&p, n));
        struct zram_stats s;
        zram_store_stats(st, &s);
        f->compr = s.compr_data_size;
        f->used = s.mem_used_total;
        f->rss = rss() - before;
        p.write = false;
        p.check = check;
        struct speed speed = pass_run(&p, n);
        if (!check)
            best(&f->read[n - 1], speed);
        if (zram_store_discard(st, 0, c->len) != 0)
            die("discard failed");
        uint64_t after = rss();
        f->left = after > before ? after - before : 0;
        zram_store_close(st);
    }
}

static const char *
kernel_name(void)
{
    const char *slash = strrchr(opt.kernel, '/');
    return slash != NULL ? slash + 1 : opt.kernel;
}

static bool
kernel_set(const char *attr, const char *value)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "/sys/block/%s/%s", kernel_name(), attr);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, value, strlen(value));
    close(fd);
    return n == (ssize_t)strlen(value);
}

static void
kernel_stat(struct figures *f)
{
    char path[256];
    uint64_t orig;
    (void)snprintf(path, sizeof(path), "/sys/block/%s/mm_stat", kernel_name());
    FILE *s = fopen(path, "re");
    if (s == NULL || fscanf(s, "%" SCNu64 " %" SCNu64 " %" SCNu64, &orig, &f->compr, &f->used) != 3)
        die("%s cannot be read", path);
    (void)fclose(s);
}

/* A device that somebody closed just now may still be looked at by udev. */
static void
kernel_reset(void)
{
    for (unsigned i = 0; i < 50 && !kernel_set("reset", "1"); i++)
        clock_pause_ms(20);
}

static bool
kernel_round(const struct corpus *c, struct figures *f)
{
    char size[32];
    (void)snprintf(size, sizeof(size), "%" PRIu64, c->len);
    for (unsigned n = 1; n <= MAX_THREADS; n++) {
        kernel_reset();
        if (!kernel_set("comp_algorithm", zram_codec_name(opt.codec.alg)))
            return false;
        if (!kernel_set("disksize", size))
            die("%s: its size cannot be set", opt.kernel);
        int fd = open(opt.kernel, O_RDWR | O_DIRECT | O_CLOEXEC);
        if (fd < 0)
            die("%s: %s", opt.kernel, strerror(errno));
        struct pass p = {.c = c, .fd = fd, .write = true};
        best(&f->write[n - 1], pass_run(&p, n));
        kernel_stat(f);
        p.write = false;
        best(&f->read[n - 1], pass_run(&p, n));
        close(fd);
        kernel_reset();
    }
    return true;
}

static void
show_speeds(const char *who, const struct figures *f)
{
    printf("  %-8s write %6.0f %6.0f core %6.0f %6.0f | read %6.0f %6.0f core %6.0f %6.0f\n", who,
           f->write[0].wall, f->write[1].wall, f->write[0].cpu, f->write[1].cpu, f->read[0].wall,
           f->read[1].wall, f->read[0].cpu, f->read[1].cpu);
}

static void
show_sizes(const char *who, const struct corpus *c, const struct figures *f)
{
    double ratio = f->compr > 0 ? (double)c->len / (double)f->compr : 0;
    printf("  %-8s ratio %6.3f memory %6.2f %%", who, ratio,
           100.0 * (double)f->used / (double)c->len);
    if (f->rss > 0)
        printf(", RSS %6.2f %%, %" PRIu64 " KiB left", 100.0 * (double)f->rss / (double)c->len,
               f->left / 1024);
    if (f->compr > 0)
        printf(", beyond the objects %.2f %%", 100.0 * ((double)f->used / (double)f->compr - 1));
    printf("\n");
}

static struct speed
by(struct speed a, struct speed b)
{
    return (struct speed){.wall = a.wall / b.wall, .cpu = a.cpu / b.cpu};
}

static void
show_ratio(const struct figures *a, const struct figures *b)
{
    struct speed w1 = by(a->write[0], b->write[0]), w2 = by(a->write[1], b->write[1]);
    struct speed r1 = by(a->read[0], b->read[0]), r2 = by(a->read[1], b->read[1]);
    printf("  %-8s write %6.2f %6.2f core %6.2f %6.2f | read %6.2f %6.2f core %6.2f %6.2f\n",
           "/ kernel", w1.wall, w2.wall, w1.cpu, w2.cpu, r1.wall, r2.wall, r1.cpu, r2.cpu);
    if (a->compr > 0 && b->used > 0)
        printf("  %-8s ratio %6.4f memory %6.3f, RSS to its memory %6.3f\n", "/ kernel",
               (double)b->compr / (double)a->compr, (double)a->used / (double)b->used,
               (double)a->rss / (double)b->used);
}

static void
bench(const char *name)
{
    struct corpus c = corpus_load(name);
    struct figures ours = {0}, kernel = {0};
    bool have = opt.kernel != NULL;
    store_round(&c, &ours, true);
    for (unsigned i = 0; i < opt.rounds; i++) {
        store_round(&c, &ours, false);
        have = have && kernel_round(&c, &kernel);
    }
    char codec[32];
    printf("%s, %" PRIu64 " MiB, %s, chunks of %u KiB; MB/s by 1 and 2 threads\n", name,
           c.len / PIECE, zram_codec_show(opt.codec, codec, sizeof(codec)), opt.chunk / 1024);
    show_speeds("store", &ours);
    if (have)
        show_speeds("kernel", &kernel);
    show_sizes("store", &c, &ours);
    if (have) {
        show_sizes("kernel", &c, &kernel);
        show_ratio(&ours, &kernel);
    }
    (void)fflush(stdout);
    munmap(c.data, c.len);
}

int
main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"algorithm", required_argument, NULL, 'a'}, {"chunk", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},    {"size", required_argument, NULL, 's'},
        {"kernel", required_argument, NULL, 'k'},    {NULL, 0, NULL, 0}};
    char err[128];
    int o;
    while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (o == 'a' && zram_codec_parse(optarg, &opt.codec, err, sizeof(err)) != 0)
            die("%s", err);
        else if (o == 'c')
            opt.chunk = (uint32_t)strtoul(optarg, NULL, 10);
        else if (o == 'r')
            opt.rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (o == 's')
            opt.size = strtoull(optarg, NULL, 10);
        else if (o == 'k')
            opt.kernel = optarg;
        else if (o == '?')
            return 2;
    }
    if (optind == argc) {
        bench("zeros");
        bench("random");
    }
    for (int i = optind; i < argc; i++)
        bench(argv[i]);
    return 0;
}
