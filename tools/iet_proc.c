/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evtgtadm iet-proc: what IET's kernel module shows as /proc/net/iet/volume and session, in its
 * exact form, printed or kept as files in a directory; /proc itself cannot have them. Programs
 * parse these lines: blanks and letters are IET's own, and the newest target, session and
 * connection comes first.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/pool.h"
#include "tools/adm.h"
#include "tools/iet.h"

#define FOLLOW_S 1

static const char usage_text[] =
    "usage: evtgtadm iet-proc volume | session\n"
    "       evtgtadm iet-proc --write [DIR] | --follow [DIR]\n"
    "\n"
    "Prints what /proc/net/iet/volume or /proc/net/iet/session shows with IET.\n"
    "\n"
    "  --write     writes both as files below DIR, which is made when it is missing\n"
    "  --follow    keeps them current, once a second, until it is ended; without a daemon\n"
    "              there are no files\n"
    "  --socket P  the daemon's admin socket\n"
    "  DIR         default $EVTGT_IET_PROC, else " RUNDIR "/iet\n";

static const struct iet_file {
    const char *name;
    void (*print)(FILE *f, const json_t *data);
} files[] = {{"volume", iet_proc_volume}, {"session", iet_proc_session}};
#define NFILES (sizeof files / sizeof *files)

static const char *
str(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "";
}

static long long
num(const json_t *o, const char *name)
{
    return (long long)json_integer_value(json_object_get(o, name));
}

static bool
yes(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

/* --- the lines ------------------------------------------------------------------------------- */

void
iet_proc_lun(FILE *f, const json_t *l)
{
    const char *type = str(l, "bs_type"), *path = str(l, "path");

    fprintf(f, "\tlun:%lld state:0 iotype:%s iomode:%s blocks:%lld blocksize:%lld", num(l, "lun"),
            strcmp(type, "null") == 0 ? "nullio" : type,
            yes(l, "readonly")      ? "ro"
            : yes(l, "write_cache") ? "wb"
                                    : "wt",
            num(l, "blocks"), num(l, "block_size"));
    if (*path)
        fprintf(f, " path:%s", path);
    fputc('\n', f);
}

/* IET writes the groups of IPv6 addresses in full, in brackets. */
static void
print_address(FILE *f, const char *address)
{
    unsigned char b[16];
    char bare[64];

    snprintf(bare, sizeof bare, "%s", address);
    bare[strcspn(bare, "%")] = 0;
    if (inet_pton(AF_INET6, bare, b) != 1) {
        fputs(address, f);
        return;
    }
    for (int i = 0; i < 16; i += 2)
        fprintf(f, "%c%02x%02x", i ? ':' : '[', b[i], b[i + 1]);
    fputc(']', f);
}

void
iet_proc_conn(FILE *f, const json_t *c)
{
    fprintf(f, "\t\tcid:%lld ip:", num(c, "cid"));
    print_address(f, str(c, "address"));
    fprintf(f, " state:active hd:%s dd:%s\n", yes(c, "header_digest") ? "crc32c" : "none",
            yes(c, "data_digest") ? "crc32c" : "none");
}

static void
print_session(FILE *f, const json_t *s)
{
    const json_t *conns = json_object_get(s, "connections");
    fprintf(f, "\tsid:%lld initiator:%s\n", num(s, "sid"), str(s, "initiator"));
    for (size_t i = json_array_size(conns); i-- > 0;)
        iet_proc_conn(f, json_array_get(conns, i));
}

void
iet_proc_volume(FILE *f, const json_t *data)
{
    const json_t *all = json_object_get(data, "targets"), *l;
    size_t k;
    for (size_t i = json_array_size(all); i-- > 0;) {
        const json_t *t = json_array_get(all, i);
        fprintf(f, "tid:%lld name:%s\n", num(t, "tid"), str(t, "name"));
        json_array_foreach(json_object_get(t, "luns"), k, l) iet_proc_lun(f, l);
    }
}

void
iet_proc_session(FILE *f, const json_t *data)
{
    const json_t *all = json_object_get(data, "targets");
    for (size_t i = json_array_size(all); i-- > 0;) {
        const json_t *t = json_array_get(all, i);
        const json_t *sessions = json_object_get(t, "sessions");
        fprintf(f, "tid:%lld name:%s\n", num(t, "tid"), str(t, "name"));
        for (size_t k = json_array_size(sessions); k-- > 0;)
            print_session(f, json_array_get(sessions, k));
    }
}

/* --- the files ------------------------------------------------------------------------------- */

static const char *
place(const char *dir)
{
    const char *env = getenv("EVTGT_IET_PROC");
    return dir ? dir : env && *env ? env : RUNDIR "/iet";
}

/* A file of ours alone: others may write in the directory, and must not lead us elsewhere. */
static FILE *
open_new(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = open(path, flags, 0644);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0644);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && (!f || fchmod(fd, 0644) < 0))
        adm_die(errno, "cannot open %s: %s", path, strerror(errno));
    return f;
}

/* A new file in the old one's place: who reads sees one or the other. 0 or -errno. */
static int
write_file(const char *dir, const struct iet_file *what, const json_t *data)
{
    char *path = xasprintf("%s/%s", dir, what->name);
    char *tmp = xasprintf("%s/.%s.%ld", dir, what->name, (long)getpid());
    FILE *f = open_new(tmp);
    int rc = f ? 0 : -errno;

    if (f) {
        what->print(f, data);
        if (ferror(f) | fclose(f))
            rc = -EIO;
        else if (rename(tmp, path) < 0)
            rc = -errno;
        if (rc < 0)
            unlink(tmp);
    }
    free(tmp);
    free(path);
    return rc;
}

static json_t *
ask(const char *socket)
{
    json_t *req = json_pack("{si ss ss s{}}", "v", 1, "mode", "target", "op", "show", "args");
    json_t *reply = adm_call(socket, req);

    json_decref(req);
    if (!yes(reply, "ok"))
        adm_die(EINVAL, "%s", str(json_object_get(reply, "error"), "message"));
    json_t *data = json_incref(json_object_get(reply, "data"));
    json_decref(reply);
    return data;
}

/* False: said on stderr. */
static bool
write_all(const char *dir, const char *socket)
{
    json_t *data = ask(socket);
    bool well = true;
    for (size_t i = 0; i < NFILES && well; i++) {
        int rc = write_file(dir, &files[i], data);
        well = rc == 0;
        if (!well)
            fprintf(stderr, "%s: cannot write %s/%s: %s\n", adm_name, dir, files[i].name,
                    strerror(-rc));
    }
    json_decref(data);
    return well;
}

void
iet_proc_refresh(const char *socket)
{
    struct stat st;
    const char *dir = place(NULL);
    if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode))
        (void)write_all(dir, socket); /* what was asked for is done nevertheless */
}

static void
make_dir(const char *dir)
{
    int rc = dirs_make_above(dir);
    if (rc == 0 && mkdir(dir, 0755) < 0 && errno != EEXIST)
        rc = -errno;
    if (rc < 0)
        adm_die(-rc, "cannot make %s: %s", dir, strerror(-rc));
}

/* A child a round: one that fails says why and ends, and the next one tries again. */
static void
follow(const char *dir, const char *socket)
{
    bool there = true; /* what is wrong is said once, not every second */
    for (;;) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            if (!there && !freopen("/dev/null", "we", stderr))
                _exit(1);
            _exit(write_all(dir, socket) ? 0 : 1);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
            adm_die(errno, "cannot start a process: %s", strerror(errno));
        there = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        for (size_t i = 0; i < NFILES && !there; i++) {
            char *path = xasprintf("%s/%s", dir, files[i].name);
            unlink(path);
            free(path);
        }
        sleep(FOLLOW_S);
    }
}

static void wrong_words(void) __attribute__((noreturn));
static void
wrong_words(void)
{
    fputs(usage_text, stderr);
    exit(EINVAL);
}

int
iet_proc_main(int argc, char **argv)
{
    static const struct option longs[] = {{"write", no_argument, NULL, 'w'},
                                          {"follow", no_argument, NULL, 'f'},
                                          {"socket", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *socket = NULL;
    int c, how = 0;

    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (c == 'h') {
            fputs(usage_text, stdout);
            return 0;
        }
        if (c == '?' || (c != 's' && how))
            wrong_words();
        if (c == 's')
            socket = optarg;
        else
            how = c;
    }
    if (argc - optind > 1 || (!how && optind == argc))
        wrong_words();
    if (how) {
        const char *dir = place(argv[optind]);
        make_dir(dir);
        if (how == 'f')
            follow(dir, socket);
        return write_all(dir, socket) ? 0 : 1;
    }
    for (size_t i = 0; i < NFILES; i++) {
        if (strcmp(argv[optind], files[i].name) != 0)
            continue;
        json_t *data = ask(socket);
        files[i].print(stdout, data);
        json_decref(data);
        if (fflush(stdout) != 0 || ferror(stdout))
            adm_die(EIO, "cannot write the answer");
        return 0;
    }
    wrong_words();
}
