/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ietadm's command line, spoken to evtgtd's admin socket. Messages begin with IET's own word for
 * the errno, which callers know, and its exit statuses are kept (256 - errno; 255 for wrong
 * options); a second line says more.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/longopt.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "tools/adm.h"
#include "tools/iet.h"

#define SECTOR         512u
#define NULLIO_SECTORS (1u << 27) /* IET's default: 64 GiB */

enum what { TID = 1, SID = 2, CID = 4, LUN = 8, USER = 16 };
enum op { OP_NONE, OP_NEW, OP_DELETE, OP_UPDATE, OP_SHOW };

static struct {
    enum op op;
    unsigned set; /* enum what */
    unsigned tid, sid, cid, lun;
    char *params;
    const char *socket, *password_file;
} a;

static const char usage_text[] =
    "usage: ietadm --op OP [options]\n"
    "\n"
    "  --op new --tid N --params Name=IQN         a target; N 0: the lowest free number\n"
    "  --op delete --tid N                        a target without sessions\n"
    "  --op update --tid N --params K=V,...       keys of ietd.conf\n"
    "  --op show --tid N                          its parameters\n"
    "  --op show --tid N --sid S                  those of a session; S 0: those configured\n"
    "  --op new --tid N --lun L --params Path=P[,Type=fileio|blockio|nullio][,ScsiId=I]\n"
    "        [,ScsiSN=S][,IOMode=ro|wb|wt][,BlockSize=B][,Sectors=N]\n"
    "  --op delete|show --tid N --lun L\n"
    "  --op delete|show --tid N --sid S --cid C   a connection\n"
    "  --op delete --tid N --sid S                a session with all its connections\n"
    "  --op new [--tid N] --user --params IncomingUser|OutgoingUser=U,Password=P\n"
    "        an account of the target; of discovery without --tid\n"
    "  --op delete|show [--tid N] --user [--params IncomingUser|OutgoingUser=U]\n"
    "  --op delete                                ends the daemon\n"
    "\n"
    "  --password-file F  the password is the first line of F; - is standard input\n"
    "  --socket PATH      the daemon's admin socket (default $EVTGT_SOCKET, else\n"
    "                     " RUNDIR "/evtgtd.sock)\n"
    "  --version, --help\n";

/* --- failing --------------------------------------------------------------------------------- */

void
iet_die(int err, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s.\nietadm: ", strerror(err));
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    (void)fflush(NULL);
    _exit(256 - err);
}

static void unsupported(const char *why) __attribute__((noreturn));
static void
unsupported(const char *why)
{
    fprintf(stderr, "Unsupported.\nietadm: %s\n", why);
    exit(256 - EINVAL);
}

static void die_usage(void) __attribute__((noreturn));
static void
die_usage(void)
{
    fputs("Try `ietadm --help' for more information.\n", stderr);
    exit(255);
}

static void
no_daemon(const char *path)
{
    iet_die(ECONNREFUSED, "no evtgtd answers at %s", path);
}

/* What the daemon's codes are for IET; others are EINVAL. */
static int
errno_of(const char *code)
{
    static const struct {
        const char *code;
        int err;
    } map[] = {
        {"no-target", ENOENT},       {"no-lun", ENOENT},           {"no-session", ENOENT},
        {"no-connection", ENOENT},   {"no-account", ENOENT},       {"no-rule", ENOENT},
        {"target-exists", EEXIST},   {"lun-exists", EEXIST},       {"account-exists", EEXIST},
        {"outgoing-exists", EEXIST}, {"rule-exists", EEXIST},      {"target-active", EBUSY},
        {"lun-active", EBUSY},       {"removal-prevented", EBUSY}, {"timeout", ETIMEDOUT},
    };
    for (size_t i = 0; code && i < sizeof map / sizeof *map; i++) {
        if (strcmp(code, map[i].code) == 0)
            return map[i].err;
    }
    return EINVAL;
}

json_t *
iet_ask(const char *mode, const char *op, json_t *args)
{
    json_t *req = json_pack("{si ss ss so}", "v", 1, "mode", mode, "op", op, "args", args);
    json_t *reply = adm_call(a.socket, req), *data;

    json_decref(req);
    if (!json_is_true(json_object_get(reply, "ok"))) {
        const json_t *e = json_object_get(reply, "error");
        const char *words = json_string_value(json_object_get(e, "message"));
        iet_die(errno_of(json_string_value(json_object_get(e, "code"))), "%s",
                words ? words : "the daemon's answer makes no sense");
    }
    data = json_incref(json_object_get(reply, "data"));
    json_decref(reply);
    return data;
}

/* A change: done, and to be seen in the files that stand for /proc/net/iet. */
static void
change(const char *mode, const char *op, json_t *args)
{
    json_decref(iet_ask(mode, op, args));
    iet_proc_refresh(a.socket);
}

/* --- parameters ------------------------------------------------------------------------------ */

struct param {
    char *name, *value;
};

/* The next NAME=VALUE of the list; false at its end. A word without a sign belongs to the value
 * before it: HeaderDigest=CRC32C,None. */
static bool
next_param(char **rest, struct param *p)
{
    char *at = *rest, *end;

    while (at && *at == ',')
        at++;
    if (!at || !*at)
        return false;
    end = at + strcspn(at, ",");
    while (*end && !memchr(end + 1, '=', strcspn(end + 1, ",")))
        end += 1 + strcspn(end + 1, ",");
    *rest = *end ? end + 1 : end;
    *end = 0;
    p->name = at;
    p->value = strchr(at, '=');
    if (!p->value)
        iet_die(EINVAL, "--params wants NAME=VALUE, not \"%s\"", at);
    *p->value++ = 0;
    return true;
}

static void
put(json_t *o, const char *name, const char *value)
{
    if (json_object_get(o, name))
        iet_die(EINVAL, "%s is given twice", name);
    if (json_object_set_new(o, name, json_string(value)) < 0)
        iet_die(EINVAL, "the value of %s is no UTF-8", name);
}

/* --- targets --------------------------------------------------------------------------------- */

static json_t *
with_tid(void)
{
    return json_pack("{si}", "tid", (int)a.tid);
}

static void
target_new(void)
{
    json_t *o = a.tid ? with_tid() : json_object();
    char *rest = a.params;
    struct param p;

    while (next_param(&rest, &p)) {
        if (strcmp(p.name, "Name") != 0)
            iet_die(EINVAL, "a new target takes Name=IQN only; --op update sets %s", p.name);
        put(o, "name", p.value);
    }
    if (!json_object_get(o, "name"))
        iet_die(EINVAL, "a new target wants --params Name=IQN");
    change("target", "new", o);
}

/* Keys of ietd.conf that are not the daemon's own names for them; `why`: without effect here. */
static const struct target_key {
    const char *iet, *ours, *why;
} target_keys[] = {
    {"QueuedCommands", "MaxQueueCmd", NULL},
    {"NOPInterval", "nop_interval", NULL},
    {"Alias", "alias", NULL},
    {"NOPTimeout", NULL, "a connection is given up when the next ping is due (nop_count)"},
    {"Wthreads", NULL, "worker threads serve all targets"},
    {"Type", NULL, "every target serves disks"},
    {"MaxXmitDataSegmentLength", NULL, "the initiator says what it takes at once"},
    {"MaxSessions", NULL, "max-sessions in evtgt.conf limits those of the daemon"},
    {"OFMarker", NULL, "there are no markers (RFC 7143)"},
    {"IFMarker", NULL, "there are no markers (RFC 7143)"},
    {"OFMarkInt", NULL, "there are no markers (RFC 7143)"},
    {"IFMarkInt", NULL, "there are no markers (RFC 7143)"},
};
#define NTARGET_KEYS (sizeof target_keys / sizeof *target_keys)

static const struct target_key *
find_key(const char *name)
{
    for (size_t i = 0; i < NTARGET_KEYS; i++) {
        if (strcasecmp(name, target_keys[i].iet) == 0)
            return &target_keys[i];
    }
    return NULL;
}

static void
target_update(void)
{
    json_t *o = with_tid(), *params = json_object();
    char *rest = a.params;
    struct param p;
    unsigned vain = 0; /* rows of target_keys */
    bool any = false;

    while (next_param(&rest, &p)) {
        const struct target_key *k = find_key(p.name);
        any = true;
        if (k && k->why)
            vain |= 1u << (k - target_keys);
        else
            put(params, k ? k->ours : p.name, p.value);
        /* IET gives up after one ping without an answer */
        if (k && k->ours && strcmp(k->ours, "nop_interval") == 0 && strcmp(p.value, "0") != 0)
            put(params, "nop_count", "1");
    }
    if (!any)
        iet_die(EINVAL, "--op update wants --params KEY=VALUE,...");
    if (json_object_size(params)) {
        json_object_set_new(o, "params", params);
        change("target", "update", o);
    } else { /* is there such a target? */
        json_decref(params);
        json_decref(iet_ask("target", "show", o));
    }
    for (size_t i = 0; i < NTARGET_KEYS; i++) {
        if (vain & 1u << i)
            fprintf(stderr, "ietadm: %s has no effect: %s\n", target_keys[i].iet,
                    target_keys[i].why);
    }
}

static void
do_target(void)
{
    if (a.op == OP_NEW)
        target_new();
    else if (a.op == OP_UPDATE)
        target_update();
    else if (a.op == OP_DELETE)
        change("target", "delete", with_tid());
    else
        iet_show_target(a.tid);
}

/* --- logical units --------------------------------------------------------------------------- */

static json_t *
with_lun(void)
{
    return json_pack("{sisi}", "tid", (int)a.tid, "lun", (int)a.lun);
}

static void
put_path(json_t *o, const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/') {
        put(o, "backing-store", path);
        return;
    }
    if (!getcwd(cwd, sizeof cwd))
        iet_die(EINVAL, "the current directory has no name");
    char *whole = xasprintf("%s/%s", cwd, path);
    put(o, "backing-store", whole);
    free(whole);
}

static uint64_t
lun_number(const struct param *p)
{
    uint64_t n;
    if (conf_parse_uint(p->value, 1, UINT64_MAX >> 12, &n) < 0)
        iet_die(EINVAL, "%s wants a number, not \"%s\"", p->name, p->value);
    return n;
}

struct lun_wish {
    const char *type, *mode;
    uint64_t sectors, block;
};

static void
lun_param(json_t *o, struct lun_wish *w, const struct param *p)
{
    if (strcasecmp(p->name, "Path") == 0) {
        put_path(o, p->value);
    } else if (strcasecmp(p->name, "Type") == 0) {
        w->type = p->value;
    } else if (strcasecmp(p->name, "IOMode") == 0) {
        w->mode = p->value;
    } else if (strcasecmp(p->name, "ScsiId") == 0) {
        put(o, "scsi_id", p->value);
    } else if (strcasecmp(p->name, "ScsiSN") == 0) {
        put(o, "scsi_sn", p->value);
    } else if (strcasecmp(p->name, "BlockSize") == 0) {
        w->block = lun_number(p);
        put(o, "block-size", p->value);
    } else if (strcasecmp(p->name, "Sectors") == 0) {
        w->sectors = lun_number(p);
    } else {
        iet_die(EINVAL, "%s is no parameter of a logical unit", p->name);
    }
}

/* IET writes through unless IOMode=wb says otherwise, and always to a device by blockio. */
static void
lun_kind(json_t *o, const struct lun_wish *w)
{
    bool null = strcasecmp(w->type, "nullio") == 0, block = strcasecmp(w->type, "blockio") == 0;
    bool wb = strcasecmp(w->mode, "wb") == 0, ro = strcasecmp(w->mode, "ro") == 0;

    if (!null && !block && strcasecmp(w->type, "fileio") != 0)
        iet_die(EINVAL, "Type wants fileio, blockio or nullio, not \"%s\"", w->type);
    if (!wb && !ro && strcasecmp(w->mode, "wt") != 0)
        iet_die(EINVAL, "IOMode wants ro, wb or wt, not \"%s\"", w->mode);
    if (ro)
        put(o, "readonly", "1");
    if (null) {
        char *size = xasprintf("%llu", (unsigned long long)(w->sectors * w->block));
        put(o, "bs-type", "null");
        put(o, "size", size);
        free(size);
        return;
    }
    if (!json_object_get(o, "backing-store"))
        iet_die(EINVAL, "a logical unit wants --params Path=FILE");
    if (w->sectors != NULLIO_SECTORS)
        iet_die(EINVAL, "Sectors is for Type=nullio; others have the size of Path");
    if (block)
        put(o, "bs-type", "blockio");
    if (!wb || block)
        put(o, "write-cache", "off");
}

static void
lun_new(void)
{
    struct lun_wish w = {"fileio", "wt", NULLIO_SECTORS, SECTOR};
    json_t *o = with_lun(), *params = json_object();
    char *rest = a.params;
    struct param p;

    while (next_param(&rest, &p))
        lun_param(params, &w, &p);
    lun_kind(params, &w);
    json_object_set_new(o, "params", params);
    change("logicalunit", "new", o);
}

static void
lun_show(void)
{
    json_t *data = iet_ask("target", "show", with_tid()), *l;
    bool found = false;
    size_t i;

    json_array_foreach(json_object_get(json_array_get(json_object_get(data, "targets"), 0), "luns"),
                       i, l)
    {
        if (json_integer_value(json_object_get(l, "lun")) != (json_int_t)a.lun)
            continue;
        iet_proc_lun(stdout, l);
        found = true;
    }
    json_decref(data);
    if (!found)
        iet_die(ENOENT, "target %u has no LUN %u", a.tid, a.lun);
}

static void
do_lun(void)
{
    if (a.op == OP_UPDATE)
        unsupported("a logical unit is not changed: delete it and make it anew");
    if (!(a.set & TID))
        iet_die(EINVAL, "--lun wants --tid");
    if (a.op == OP_NEW) {
        lun_new();
    } else if (a.op == OP_SHOW) {
        lun_show();
    } else { /* IET takes a unit away while it is used, and callers rely on it */
        json_t *o = with_lun();
        json_object_set_new(o, "force", json_true());
        change("logicalunit", "delete", o);
    }
}

/* --- sessions and connections ---------------------------------------------------------------- */

static json_t *
with_sid(void)
{
    return json_pack("{sisi}", "tid", (int)a.tid, "sid", (int)a.sid);
}

static void
conn_show(void)
{
    json_t *data = iet_ask("target", "show", with_tid()), *s, *c;
    bool found = false;
    size_t i, k;

    json_array_foreach(
        json_object_get(json_array_get(json_object_get(data, "targets"), 0), "sessions"), i, s)
    {
        if (json_integer_value(json_object_get(s, "sid")) != (json_int_t)a.sid)
            continue;
        json_array_foreach(json_object_get(s, "connections"), k, c)
        {
            if (json_integer_value(json_object_get(c, "cid")) != (json_int_t)a.cid)
                continue;
            iet_proc_conn(stdout, c);
            found = true;
        }
    }
    json_decref(data);
    if (!found)
        iet_die(ENOENT, "session %u of target %u has no connection %u", a.sid, a.tid, a.cid);
}

static void
do_session(void)
{
    bool conn = a.set & CID;

    if (a.op == OP_NEW || a.op == OP_UPDATE)
        unsupported("sessions and connections are the initiator's to make and change");
    if (!(a.set & TID) || !(a.set & SID))
        iet_die(EINVAL, "%s", conn ? "--cid wants --tid and --sid" : "--sid wants --tid");
    if (a.op == OP_SHOW && conn) {
        conn_show();
    } else if (a.op == OP_SHOW) {
        iet_show_session(a.tid, a.sid);
    } else {
        json_t *o = with_sid();
        if (conn)
            json_object_set_new(o, "cid", json_integer(a.cid));
        change(conn ? "connection" : "session", "delete", o);
    }
}

/* --- accounts -------------------------------------------------------------------------------- */

struct user_wish {
    char *user, *password;
    bool outgoing;
};

static void
user_params(struct user_wish *w)
{
    char *rest = a.params;
    struct param p;

    while (next_param(&rest, &p)) {
        bool in = strcasecmp(p.name, "IncomingUser") == 0;
        bool out = strcasecmp(p.name, "OutgoingUser") == 0;
        char **at = in || out ? &w->user : &w->password;
        if (!in && !out && strcasecmp(p.name, "Password") != 0)
            iet_die(EINVAL, "%s is no parameter of an account", p.name);
        if (*at)
            iet_die(EINVAL, "%s is given twice", in || out ? "the user" : "the password");
        *at = p.value;
        w->outgoing |= out;
        while (in + out && **at == ' ')
            ++*at;
    }
}

/* The first line of the file; until the end of the process. */
static char *
read_password(const char *path)
{
    static char line[257]; /* one byte more than a password may have, and the end */
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (!f)
        iet_die(errno, "cannot read %s", path);
    if (!fgets(line, sizeof line, f))
        iet_die(EINVAL, "no password in %s", path);
    line[strcspn(line, "\r\n")] = 0;
    if (f != stdin)
        (void)fclose(f);
    return line;
}

static void
do_user(void)
{
    struct user_wish w = {NULL, NULL, false};

    if (a.set & ~((unsigned)TID | USER))
        iet_die(EINVAL, "--user goes with --tid only");
    if (a.op == OP_UPDATE)
        unsupported("an account is not changed: delete it and make it anew");
    user_params(&w);
    if (a.password_file && w.password)
        iet_die(EINVAL, "Password= and --password-file exclude each other");
    if (a.password_file)
        w.password = read_password(a.password_file);
    bool of_target = a.tid != 0; /* 0 is discovery, as without --tid */
    if (a.op == OP_SHOW) {
        iet_show_users(of_target ? &a.tid : NULL, w.user, w.outgoing);
        return;
    }
    if (!w.user || (a.op == OP_NEW && !w.password))
        iet_die(EINVAL, "You need to specify a user%s: --params IncomingUser=NAME%s",
                a.op == OP_NEW ? " and its password" : "",
                a.op == OP_NEW ? ",Password=SECRET" : "");
    json_t *o = of_target ? with_tid() : json_object();
    put(o, "user", w.user);
    json_object_set_new(o, "outgoing", json_boolean(w.outgoing));
    if (a.op == OP_NEW) {
        put(o, "password", w.password);
        json_object_set_new(o, "bind", json_true());
    } else {
        json_object_set_new(o, "delete", json_true());
    }
    change("account", a.op == OP_NEW ? "new" : "unbind", o);
}

/* --- the command line ------------------------------------------------------------------------ */

static enum op
find_op(const char *word)
{
    static const char *const words[] = {"", "new", "delete", "update", "show"};
    for (size_t i = 1; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0)
            return (enum op)i;
    }
    return OP_NONE;
}

static unsigned
number(const char *name, const char *text, unsigned max, enum what what)
{
    uint64_t n;
    if (conf_parse_uint(text, 0, max, &n) < 0)
        iet_die(EINVAL, "--%s wants a number from 0 to %u, not \"%s\"", name, max, text);
    a.set |= what;
    return (unsigned)n;
}

/* A copy; the argument itself is blotted out where it may hold a secret. */
static char *
take_params(char *arg)
{
    static char *copy; /* until the end of the process */
    free(copy);
    copy = xstrdup(arg);
    if (strcasestr(arg, "password="))
        memset(arg, 'x', strlen(arg));
    return copy;
}

enum { O_SOCKET = 256, O_PASSWORD_FILE };

static const struct option iet_longs[] = {
    {"op", required_argument, NULL, 'o'},  {"tid", required_argument, NULL, 't'},
    {"sid", required_argument, NULL, 's'}, {"cid", required_argument, NULL, 'c'},
    {"lun", required_argument, NULL, 'l'}, {"params", required_argument, NULL, 'p'},
    {"user", no_argument, NULL, 'u'},      {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},      {NULL, 0, NULL, 0},
};
static const struct option own_longs[] = {
    {"socket", required_argument, NULL, O_SOCKET},
    {"password-file", required_argument, NULL, O_PASSWORD_FILE},
    {NULL, 0, NULL, 0},
};

const struct option *
ietadm_longs(unsigned i)
{
    return i == 0 ? iet_longs : i == 1 ? own_longs : NULL;
}

/* clang-format off */
static void
parse(int argc, char **argv)
{
    int c;

    while ((c = longopt_next(argc, argv, "o:t:s:c:l:p:uvh", iet_longs, own_longs)) != -1) {
        switch (c) {
        case 'o': a.op = find_op(optarg); break;
        case 't': a.tid = number("tid", optarg, 65535, TID); break;
        case 's': a.sid = number("sid", optarg, 0x7fffffff, SID); break;
        case 'c': a.cid = number("cid", optarg, 65535, CID); break;
        case 'l': a.lun = number("lun", optarg, 16383, LUN); break;
        case 'p': a.params = take_params(optarg); break;
        case 'u': a.set |= USER; break;
        case 'v': puts("ietadm version " PACKAGE_VERSION " (evtgtadm)"); exit(0);
        case 'h': fputs(usage_text, stdout); exit(0);
        case O_SOCKET: a.socket = optarg; break;
        case O_PASSWORD_FILE: a.password_file = optarg; break;
        default: die_usage();
        }
    }
    if (a.op == OP_NONE) {
        fputs("You must specify the operation type\n"
              "ietadm: --op new, delete, update or show\n", stderr);
        exit(256 - EINVAL);
    }
    if (optind < argc) {
        fprintf(stderr, "unrecognized: %s\n", argv[optind]);
        die_usage();
    }
}
/* clang-format on */

int
ietadm_main(int argc, char **argv)
{
    parse(argc, argv);
    adm_no_daemon = no_daemon;
    if (a.set & USER)
        do_user();
    else if (a.set & LUN)
        do_lun();
    else if (a.set & (SID | CID))
        do_session();
    else if (a.set & TID)
        do_target();
    else if (a.op == OP_DELETE)
        json_decref(iet_ask("system", "delete", json_object()));
    else
        iet_die(EINVAL, "--tid or --user says of what; only --op delete stands alone");
    if (fflush(stdout) != 0 || ferror(stdout))
        iet_die(EIO, "cannot write the answer");
    return 0;
}
