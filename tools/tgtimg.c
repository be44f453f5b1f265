/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgtimg's command line: makes files that serve as disks.  Tapes and CDs are refused, because
 * evtgt has no such devices.  Needs no daemon.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/adm.h"

#define MIB_MAX (UINT64_C(1) << 43) /* 8 EiB, what a file offset can say */

static const struct option longs[] = {
    {"help", no_argument, NULL, 'h'},
    {"op", required_argument, NULL, 'o'},
    {"device-type", required_argument, NULL, 'Y'},
    {"barcode", required_argument, NULL, 'b'},
    {"size", required_argument, NULL, 's'},
    {"type", required_argument, NULL, 't'},
    {"file", required_argument, NULL, 'f'},
    {"thin-provisioning", no_argument, NULL, 'T'},
    {NULL, 0, NULL, 0},
};

const struct option *
tgtimg_longs(unsigned i)
{
    return i == 0 ? longs : NULL;
}

struct args {
    const char *op, *device, *size, *type, *file;
    bool thin;
};

static const char usage_text[] =
    "usage: %s --op new --device-type disk --type disk --size MIB --file PATH\n"
    "          [--thin-provisioning]\n"
    "\n"
    "  makes a file of that many mebibytes, which a logical unit can have as its backing store.\n"
    "  Its blocks are allocated now; with --thin-provisioning, when they are written.\n"
    "  What was in the file is lost, unless a daemon serves it: then nothing is done.\n"
    "  Tapes and CDs (--device-type tape, cd), and --op show for them, are refused.\n";

static void try_help(void) __attribute__((noreturn));
static void
try_help(void)
{
    fprintf(stderr, "Try `%s --help' for more information.\n", adm_name);
    (void)fflush(NULL);
    _exit(EINVAL);
}

static void fault(const char *text) __attribute__((noreturn));
static void
fault(const char *text)
{
    fprintf(stderr, "%s: %s\n", adm_name, text);
    try_help();
}

static void
parse(struct args *a, int argc, char **argv)
{
    int c;

    *a = (struct args){.device = "tape"}; /* tgtimg's default */
    while ((c = getopt_long(argc, argv, "ho:Y:b:s:t:f:T", longs, NULL)) != -1) {
        switch (c) {
        case 'h':
            printf(usage_text, adm_name);
            exit(0);
        case 'o':
            a->op = optarg;
            break;
        case 'Y':
            a->device = optarg;
            break;
        case 'b':
            break; /* of tapes */
        case 's':
            a->size = optarg;
            break;
        case 't':
            a->type = optarg;
            break;
        case 'f':
            a->file = optarg;
            break;
        case 'T':
            a->thin = true;
            break;
        default:
            try_help(); /* getopt_long said what is wrong */
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unrecognized option '%s'\n", adm_name, argv[optind]);
        try_help();
    }
}

/* Mebibytes into bytes. */
static off_t
size_of(const char *text)
{
    char *end;

    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n >= MIB_MAX) {
        fprintf(stderr, "%s: --size wants a number of mebibytes, not '%s'\n", adm_name, text);
        try_help();
    }
    if (n == 0) {
        puts("Capacity must be > 0");
        (void)fflush(NULL);
        _exit(3);
    }
    return (off_t)(n << 20);
}

/* What is in the file is given up only when there is room for what comes. */
static int
make_room(int fd, off_t size, off_t had, bool thin)
{
    int rc = 0;

    if (!thin)
        rc = -posix_fallocate(fd, 0, size);
    else if (size > had && ftruncate(fd, size) < 0)
        rc = -errno;
    if (rc < 0 && ftruncate(fd, had) < 0)
        rc = -errno;
    return rc;
}

/* Blocks that are there read as zeros; whoever serves or changes the file holds a lock. */
static int
fill(const char *path, off_t size, bool thin, bool *made)
{
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640), rc = 0;

    *made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        rc = -errno;
    else if (!S_ISREG(st.st_mode))
        rc = -EEXIST; /* a device, say: never emptied */
    else if (fcntl(fd, F_OFD_SETLK, &fl) < 0)
        rc = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
    else
        rc = make_room(fd, size, st.st_size, thin);
    if (rc == 0 && (ftruncate(fd, 0) < 0 || ftruncate(fd, size) < 0))
        rc = -errno;
    if (rc == 0 && !thin)
        rc = -posix_fallocate(fd, 0, size);
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

static int
make_disk(const struct args *a)
{
    bool made;

    if (!a->type)
        fault("Missing media type: DISK");
    if (strcasecmp(a->type, "disk") != 0)
        fault("Media type must be DISK for disk devices");
    if (!a->size)
        fault("Missing the capacity param");
    off_t size = size_of(a->size);
    int rc = fill(a->file, size, a->thin, &made);
    if (rc < 0) {
        const char *why = rc == -EBUSY    ? "it is in use, a daemon serves it"
                          : rc == -EEXIST ? "it is no regular file"
                                          : strerror(-rc);
        if (made)
            unlink(a->file);
        fprintf(stderr, "Failed creating file: %s: %s\n", a->file, why);
        return 2;
    }
    printf("Created blank DISK image file : %s\n", a->file);
    if (fflush(stdout) != 0)
        return EIO;
    return 0;
}

int
tgtimg_main(int argc, char **argv)
{
    static const char *const absent[] = {"tape", "cd"};
    struct args a;

    parse(&a, argc, argv);
    if (!a.op)
        fault("specify the operation type");
    if (strcmp(a.op, "new") != 0 && strcmp(a.op, "show") != 0)
        adm_die(1, "unknown operation: %s", a.op);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        if (strcmp(a.device, absent[i]) == 0)
            adm_die(EINVAL,
                    "device type %s: there are no tapes and CDs here, only disks "
                    "(--device-type disk)",
                    a.device);
    }
    if (strcmp(a.device, "disk") != 0)
        adm_die(EINVAL, "unknown target type: %s", a.device);
    if (!a.file)
        fault("specify a newly created file");
    if (strcmp(a.op, "show") == 0)
        fault("unknown the operation type"); /* tgtimg's words: a disk has nothing to show */
    return make_disk(&a);
}
