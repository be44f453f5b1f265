/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgtadm's command line, spoken to evtgtd's admin socket; also evtgtadm with options instead of a
 * verb.  Options are checked here and become one request; the answer is printed by print.c, byte
 * for byte as tgtadm prints it.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/longopt.h"
#include "base/pool.h"
#include "tools/adm.h"

#define PASSWORD_ADVISED 12u /* bytes: 96 bits, RFC 7143 9.2.1 */

struct args {
    const char *lld, *op, *mode, *name, *value, *store, *bstype, *bsopts, *bsflags, *targetname;
    const char *address, *initiator, *local, *user, *password, *params, *device_type, *bus, *host;
    const char *blocksize, *socket, *password_file;
    long tid, sid, cid, lun; /* -1: not given */
    bool force, outgoing, json, persist;
    char given[64]; /* letters of the options that were given */
};

/* --- options --------------------------------------------------------------------------------- */

enum { O_JSON = 256, O_SOCKET, O_PASSWORD_FILE, O_PERSIST, O_LOCAL };

static const struct option tgt_longs[] = {
    {"debug", no_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {"lld", required_argument, NULL, 'L'},
    {"op", required_argument, NULL, 'o'},
    {"mode", required_argument, NULL, 'm'},
    {"tid", required_argument, NULL, 't'},
    {"sid", required_argument, NULL, 's'},
    {"cid", required_argument, NULL, 'c'},
    {"lun", required_argument, NULL, 'l'},
    {"name", required_argument, NULL, 'n'},
    {"value", required_argument, NULL, 'v'},
    {"backing-store", required_argument, NULL, 'b'},
    {"bstype", required_argument, NULL, 'E'},
    {"bsopts", required_argument, NULL, 'S'},
    {"bsoflags", required_argument, NULL, 'f'},
    {"blocksize", required_argument, NULL, 'y'},
    {"targetname", required_argument, NULL, 'T'},
    {"initiator-address", required_argument, NULL, 'I'},
    {"initiator-name", required_argument, NULL, 'Q'},
    {"user", required_argument, NULL, 'u'},
    {"password", required_argument, NULL, 'p'},
    {"host", required_argument, NULL, 'H'},
    {"force", no_argument, NULL, 'F'},
    {"params", required_argument, NULL, 'P'},
    {"bus", required_argument, NULL, 'B'},
    {"device-type", required_argument, NULL, 'Y'},
    {"outgoing", no_argument, NULL, 'O'},
    {"control-port", required_argument, NULL, 'C'},
    {NULL, 0, NULL, 0},
};
static const struct option own_longs[] = {
    {"local-address", required_argument, NULL, O_LOCAL},
    {"json", no_argument, NULL, O_JSON},
    {"socket", required_argument, NULL, O_SOCKET},
    {"password-file", required_argument, NULL, O_PASSWORD_FILE},
    {"persist", no_argument, NULL, O_PERSIST},
    {NULL, 0, NULL, 0},
};

const struct option *
tgtadm_longs(unsigned i)
{
    return i == 0 ? tgt_longs : i == 1 ? own_longs : NULL;
}

static const char shorts[] = "dhVL:o:m:t:s:c:l:n:v:b:E:f:y:T:I:Q:u:p:H:FP:B:Y:OC:S:";

static const char usage_text[] =
    "usage: %s --mode MODE --op OP [options]\n"
    "\n"
    "  --mode target --op new --tid N --targetname IQN\n"
    "  --mode target --op delete [--force] --tid N\n"
    "  --mode target --op show [--tid N]\n"
    "  --mode target --op update --tid N --name KEY --value V | --params K=V,...\n"
    "  --mode target --op bind|unbind --tid N --initiator-address A | --initiator-name I |\n"
    "        --local-address A | --params portal=ADDR:PORT | --params portal-group=N\n"
    "  --mode target --op stat --tid N\n"
    "  --mode target --op drain --tid N [--params to=ADDR[:PORT],deadline=S] | undrain --tid N\n"
    "  --mode logicalunit --op new --tid N --lun L --backing-store PATH\n"
    "        [--bstype T] [--bsopts O] [--bsoflags direct|sync] [--blocksize 512|4096]\n"
    "        [--params K=V,...] [--force]\n"
    "  --mode logicalunit --op update --tid N --lun L --params K=V,...\n"
    "  --mode logicalunit --op delete [--force] | stat --tid N --lun L\n"
    "  --mode session --op show --tid N | stat [--tid N [--sid S]] | delete --tid N --sid S\n"
    "  --mode session --op renegotiate --tid N --sid S [--params deadline=S]\n"
    "  --mode connection --op show --tid N | stat [--tid N [--sid S]]\n"
    "  --mode connection --op delete --tid N --sid S --cid C\n"
    "  --mode portal --op new --params portal=ADDR:PORT[,group=N][,advertise=HOST:PORT]\n"
    "  --mode portal --op show | delete --params portal=ADDR:PORT\n"
    "  --mode account --op new --user U --password P | --password-file FILE\n"
    "        [--initiator-name I,...]\n"
    "  --mode account --op bind|unbind --user U [--tid N] [--outgoing]\n"
    "  --mode account --op show | delete --user U\n"
    "  --mode system --op show | stat | update --name N --value V | delete\n"
    "  --mode lld --op show | start | stop\n"
    "  --mode system --op drain [--params to=ADDR[:PORT],deadline=S] | undrain\n"
    "\n"
    "  --persist          new, delete, update, bind, unbind: also save it, so that it\n"
    "                     outlives the daemon (not of sessions and connections)\n"
    "  --json             print the daemon's answer as JSON\n"
    "  --password-file F  the first line of F is the password; - is standard input\n"
    "  --socket PATH      the daemon's admin socket (default $EVTGT_SOCKET, else\n"
    "                     " RUNDIR "/evtgtd.sock)\n"
    "  --control-port N   the daemon that was started with this number (tgtd -C N)\n"
    "  --lld iscsi        accepted as tgtadm has it\n"
    "  Long options may be cut short; short ones are those of tgtadm.\n";

static void die_usage(void) __attribute__((noreturn));
static void
die_usage(void)
{
    fprintf(stderr, "Try `%s --help' for more information.\n", adm_name);
    exit(EINVAL);
}

static long
number(int opt, const char *text, long max)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 0);
    if (!*end && end != text && text[0] != '-' && !errno && v <= max)
        return v;
    fprintf(stderr, "-%c argument value '%s' %s\n", opt, text,
            *end || end == text || text[0] == '-' ? "invalid" : "out of range");
    die_usage();
}

/* clang-format off */
/* --params given more than once is as if its parts were one list. */
static const char *
join(const char *list, const char *more)
{
    static char *joined; /* until the end of the process */
    if (!list)
        return more;
    char *both = xasprintf("%s,%s", list, more);
    free(joined);
    joined = both;
    return joined;
}

/* A copy; the argument itself is blotted out, so that it shows no longer in lists of processes. */
static const char *
take_password(char *arg)
{
    static char *password; /* until the end of the process */
    free(password);
    password = xstrdup(arg);
    memset(arg, 'x', strlen(arg));
    return password;
}

static void
take_option(struct args *a, int c)
{
    switch (c) {
    case 'L': a->lld = optarg; break;
    case 'o': a->op = optarg; break;
    case 'm': a->mode = optarg; break;
    case 't': a->tid = number(c, optarg, 65535); break;
    case 's': a->sid = number(c, optarg, 0x7fffffff); break;
    case 'c': a->cid = number(c, optarg, 65535); break;
    case 'l': a->lun = number(c, optarg, 16383); break;
    case 'n': a->name = optarg; break;
    case 'v': a->value = optarg; break;
    case 'b': a->store = optarg; break;
    case 'E': a->bstype = optarg; break;
    case 'S': a->bsopts = optarg; break;
    case 'f': a->bsflags = optarg; break;
    case 'y': a->blocksize = optarg; break;
    case 'T': a->targetname = optarg; break;
    case 'I': a->address = optarg; break;
    case 'Q': a->initiator = optarg; break;
    case 'u': a->user = optarg; break;
    case 'p': a->password = take_password(optarg); break;
    case 'H': a->host = optarg; break;
    case 'F': a->force = true; break;
    case 'P': a->params = join(a->params, optarg); break;
    case 'B': a->bus = optarg; break;
    case 'Y': a->device_type = optarg; break;
    case 'O': a->outgoing = true; break;
    case 'C': adm_control_port = (unsigned)number(c, optarg, 65535); break;
    case 'd': break;
    case O_JSON: a->json = true; return;
    case O_SOCKET: a->socket = optarg; return;
    case O_PASSWORD_FILE: a->password_file = optarg; return;
    case O_LOCAL: a->local = optarg; return;
    case O_PERSIST: a->persist = true; return;
    default: return;
    }
    size_t n = strlen(a->given);
    if (n + 1 < sizeof a->given && !strchr(a->given, c)) {
        a->given[n] = (char)c;
        a->given[n + 1] = 0;
    }
}
/* clang-format on */

static void
parse(struct args *a, int argc, char **argv)
{
    int c;

    *a = (struct args){.tid = -1, .sid = -1, .cid = -1, .lun = -1};
    while ((c = longopt_next(argc, argv, shorts, tgt_longs, own_longs)) != -1) {
        if (c == 'h') {
            printf(usage_text, adm_name);
            exit(0);
        } else if (c == 'V') {
            puts(PACKAGE_VERSION);
            exit(0);
        } else if (c == '?') {
            die_usage(); /* longopt_next said what is wrong */
        }
        take_option(a, c);
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unrecognized option '%s'\n", adm_name, argv[optind]);
        die_usage();
    }
}

/* --- what is allowed where ------------------------------------------------------------------- */

static const char *
long_mode(const char *m)
{
    static const char *const names[][2] = {
        {"system", "system"},           {"sys", "system"},
        {"target", "target"},           {"tgt", "target"},
        {"logicalunit", "logicalunit"}, {"lu", "logicalunit"},
        {"portal", "portal"},           {"pt", "portal"},
        {"session", "session"},         {"sess", "session"},
        {"connection", "connection"},   {"conn", "connection"},
        {"account", "account"},         {"lld", "lld"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(m, names[i][0]) == 0)
            return names[i][1];
    }
    adm_die(1, "unknown mode: %s", m);
}

static void
check_op(const char *op)
{
    static const char *const ops[] = {"new",  "delete", "bind", "unbind", "show",    "update",
                                      "stat", "start",  "stop", "drain",  "undrain", "renegotiate"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(op, ops[i]) == 0)
            return;
    }
    adm_die(1, "unknown operation: %s", op);
}

/* allowed: letters of options besides L, m, o, C, d. */
static void
allow(const struct args *a, const char *mode, const char *allowed)
{
    for (const char *p = a->given; *p; p++) {
        if (!strchr("LmoCd", *p) && !strchr(allowed, *p))
            adm_die(EINVAL, "%s mode: option '-%c' is not allowed/supported", mode, *p);
    }
}

static void
unsupported(const char *mode, const char *op)
{
    adm_die(EINVAL, "operation %s not supported in %s mode", op, mode);
}

static bool
is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* "k=v,k=v" into an object. */
static json_t *
params_json(const char *text)
{
    json_t *o = json_object();
    while (*text) {
        size_t n = strcspn(text, ",");
        char *pair = xasprintf("%.*s", (int)n, text);
        char *eq = strchr(pair, '=');
        if (!eq)
            adm_die(EINVAL, "--params wants NAME=VALUE, not '%s'", pair);
        *eq = 0;
        if (json_object_get(o, pair))
            adm_die(EINVAL, "--params: '%s' is given twice", pair);
        if (json_object_set_new(o, pair, json_string(eq + 1)) < 0)
            adm_die(EINVAL, "--params: '%s' is no UTF-8", pair);
        free(pair);
        text += n;
        text += *text != 0;
    }
    return o;
}

static void
put_str(json_t *o, const char *name, const char *value)
{
    if (value && json_object_set_new(o, name, json_string(value)) < 0)
        adm_die(EINVAL, "the value of %s is no UTF-8", name);
}

static void
need_tid(const struct args *a)
{
    if (a->tid < 0)
        adm_die(EINVAL, "'tid' option is necessary");
}

/* --- one function a mode: checks, fills the request's arguments ------------------------------ */

/* drain, renegotiate: deadline=S, to=ADDRESS */
static void
put_params(const struct args *a, json_t *o)
{
    if (a->params)
        json_object_set_new(o, "params", params_json(a->params));
}

static void
mode_system(const struct args *a, json_t *o)
{
    if (is(a->op, "update")) {
        allow(a, "system", "nv");
        if (!a->name || !a->value)
            adm_die(EINVAL, "update operation requires 'name' and 'value' options");
        put_str(o, "name", a->name);
        put_str(o, "value", a->value);
    } else if (is(a->op, "show") || is(a->op, "delete") || is(a->op, "stat")) {
        allow(a, "system", "");
    } else if (is(a->op, "drain")) {
        allow(a, "system", "P");
        put_params(a, o);
    } else if (is(a->op, "undrain")) {
        allow(a, "system", "");
    } else {
        unsupported("system", a->op);
    }
}

static void
target_update(const struct args *a, json_t *o)
{
    json_t *p;
    allow(a, "target", "tnvP");
    if (a->params) {
        p = params_json(a->params);
    } else {
        if (!a->name || !a->value)
            adm_die(EINVAL, "update operation requires 'name' and 'value' options");
        p = json_object();
        put_str(p, a->name, a->value);
    }
    json_object_set_new(o, "params", p);
}

/* portal=, portal-group= and so on as members of the request. */
static void
portal_params(const char *params, json_t *o)
{
    json_t *p = params_json(params), *v;
    const char *name;

    json_object_foreach(p, name, v)
    {
        const char *text = json_string_value(v);
        char *end;
        if (is(name, "portal") || is(name, "advertise")) {
            json_object_set(o, name, v);
            continue;
        }
        if (!is(name, "group") && !is(name, "portal-group"))
            adm_die(EINVAL, "unknown parameter '%s'", name);
        long n = strtol(text, &end, 10);
        if (*text < '0' || *text > '9' || *end || n > 65535)
            adm_die(EINVAL, "'%s' wants a number from 0 to 65535", name);
        json_object_set_new(o, is(name, "group") ? "group" : "portal_group", json_integer(n));
    }
    json_decref(p);
}

static void
mode_target(const struct args *a, json_t *o)
{
    if (!is(a->op, "show"))
        need_tid(a);
    if (a->tid == 0)
        adm_die(EINVAL, "'tid' cannot be 0");
    if (a->tid > 0)
        json_object_set_new(o, "tid", json_integer(a->tid));
    if (is(a->op, "new")) {
        allow(a, "target", "tT");
        if (!a->targetname)
            adm_die(EINVAL, "creating new target requires a name, use --targetname");
        put_str(o, "name", a->targetname);
    } else if (is(a->op, "delete")) {
        allow(a, "target", "tF");
        if (a->force)
            json_object_set_new(o, "force", json_true());
    } else if (is(a->op, "bind") || is(a->op, "unbind")) {
        allow(a, "target", a->params ? "tP" : "tIQ");
        if (a->params)
            portal_params(a->params, o);
        else if (!!a->address + !!a->initiator + !!a->local != 1)
            adm_die(EINVAL,
                    "%s operation requires one of initiator-address, initiator-name, local-address",
                    a->op);
        put_str(o, "address", a->address);
        put_str(o, "initiator", a->initiator);
        put_str(o, "local", a->local);
    } else if (is(a->op, "update")) {
        target_update(a, o);
    } else if (is(a->op, "show") || is(a->op, "stat")) {
        allow(a, "target", "t");
    } else if (is(a->op, "drain")) {
        allow(a, "target", "tP");
        put_params(a, o);
    } else if (is(a->op, "undrain")) {
        allow(a, "target", "t");
    } else {
        unsupported("target", a->op);
    }
}

/* The daemon has another directory than we. */
static void
put_path(json_t *o, const char *name, const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/' || !path[0]) {
        put_str(o, name, path);
        return;
    }
    if (!getcwd(cwd, sizeof cwd))
        adm_die(EINVAL, "the current directory has no name");
    char *abs = xasprintf("%s/%s", cwd, path);
    put_str(o, name, abs);
    free(abs);
}

/* What tgt knows and evtgt does not have is refused by the daemon, in other words. */
static void
check_device_type(const char *type)
{
    static const char *const known[] = {"disk", "tape", "ssc", "cd", "changer", "osd", "pt"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (is(type, known[i]))
            return;
    }
    adm_die(EINVAL, "unknown target type: %s", type);
}

static void
lun_update(const struct args *a, json_t *o)
{
    json_t *p = params_json(a->params ? a->params : "");
    const char *path = json_string_value(json_object_get(p, "path"));

    if (path) {
        char *copy = xstrdup(path);
        put_path(p, "path", copy);
        free(copy);
    }
    json_object_set_new(o, "params", p);
}

static void
lun_new(const struct args *a, json_t *o)
{
    json_t *p = a->params ? params_json(a->params) : json_object();

    allow(a, "logicalunit", "ofytlbEYSPF");
    if (a->device_type)
        check_device_type(a->device_type);
    bool null = a->bstype && strncmp(a->bstype, "null", 4) == 0;
    if (!a->store && !null)
        adm_die(EINVAL, "'backing-store' option is necessary");
    if (a->store)
        put_path(p, "backing-store", a->store);
    put_str(p, "bs-type", a->bstype);
    put_str(p, "bsopts", a->bsopts);
    put_str(p, "bsoflags", a->bsflags);
    put_str(p, "block-size", a->blocksize);
    put_str(p, "device-type", a->device_type);
    if (a->force)
        put_str(p, "allow-in-use", "yes");
    json_object_set_new(o, "params", p);
}

static void
mode_lun(const struct args *a, json_t *o)
{
    need_tid(a);
    if (a->tid == 0)
        adm_die(EINVAL, "'tid' must not be 0");
    if (a->lun < 0)
        adm_die(EINVAL, "'lun' option is necessary");
    json_object_set_new(o, "tid", json_integer(a->tid));
    json_object_set_new(o, "lun", json_integer(a->lun));
    if (is(a->op, "new")) {
        lun_new(a, o);
    } else if (is(a->op, "delete")) {
        allow(a, "logicalunit", "tlF");
        if (a->force)
            json_object_set_new(o, "force", json_true());
    } else if (is(a->op, "update")) {
        allow(a, "logicalunit", "tlP");
        lun_update(a, o);
    } else if (is(a->op, "stat")) {
        allow(a, "logicalunit", "tl");
    } else {
        unsupported("logicalunit", a->op);
    }
}

static void
mode_sess(const struct args *a, const char *mode, json_t *o)
{
    bool talks = is(mode, "session") && is(a->op, "renegotiate");
    if (!is(a->op, "show") && !is(a->op, "stat") && !is(a->op, "delete") && !talks)
        unsupported(mode, a->op);
    allow(a, mode, talks ? "tsP" : "tsc");
    if (talks)
        put_params(a, o);
    if (a->tid >= 0)
        json_object_set_new(o, "tid", json_integer(a->tid));
    else if (is(a->op, "delete") || talks)
        adm_die(EINVAL, "'tid' option is necessary");
    if (is(a->op, "stat") && a->sid >= 0) {
        json_object_set_new(o, "sid", json_integer(a->sid));
        if (a->cid >= 0)
            json_object_set_new(o, "cid", json_integer(a->cid));
    }
    if (is(a->op, "delete") || talks) {
        if (a->sid >= 0)
            json_object_set_new(o, "sid", json_integer(a->sid));
        if (is(mode, "connection"))
            json_object_set_new(o, "cid", json_integer(a->cid >= 0 ? a->cid : 0));
    }
}

static void
mode_portal(const struct args *a, json_t *o)
{
    allow(a, "portal", is(a->op, "show") ? "" : "P");
    if (is(a->op, "show"))
        return;
    if (!is(a->op, "new") && !is(a->op, "delete"))
        unsupported("portal", a->op);
    if (!a->params || strncmp(a->params, "portal=", 7) != 0)
        adm_die(EINVAL, "you must specify --param portal=<portal>");
    portal_params(a->params, o);
}

static size_t weak_bytes; /* of a new account's secret that is too short; told when it is made */

/* The first line of a file, "-": of standard input. */
static const char *
read_password(const char *path)
{
    static char line[257]; /* one byte more than a password may have, and the end */
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!f)
        adm_die(EINVAL, "cannot read %s: %s", path, strerror(errno));
    if (!fgets(line, sizeof line, f))
        adm_die(EINVAL, "no password in %s", path);
    struct stat st;
    if (f != stdin && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077))
        fprintf(stderr, "%s: warning: others may read or write %s: chmod 600\n", adm_name, path);
    line[strcspn(line, "\r\n")] = 0;
    if (f != stdin)
        (void)fclose(f);
    return line;
}

static void
account_new(const struct args *a, json_t *o)
{
    allow(a, "account", "upQ");
    if (a->password && a->password_file)
        adm_die(EINVAL, "'password' and 'password-file' exclude each other");
    const char *password = a->password_file ? read_password(a->password_file) : a->password;
    if (!a->user || !password)
        adm_die(EINVAL, "'user' and 'password' options are required");
    weak_bytes = strlen(password) < PASSWORD_ADVISED ? strlen(password) : 0;
    put_str(o, "user", a->user);
    put_str(o, "password", password);
    if (!a->initiator)
        return;
    json_t *names = json_array();
    for (const char *p = a->initiator; *p;) {
        size_t n = strcspn(p, ",");
        if (json_array_append_new(names, json_stringn(p, n)) < 0)
            adm_die(EINVAL, "the value of initiator-name is no UTF-8");
        p += n;
        p += *p != 0;
    }
    json_object_set_new(o, "initiators", names);
}

static void
mode_account(const struct args *a, json_t *o)
{
    if (is(a->op, "new")) {
        account_new(a, o);
        return;
    }
    if (is(a->op, "show")) {
        allow(a, "account", "");
        return;
    }
    bool binds = is(a->op, "bind") || is(a->op, "unbind");
    if (!binds && !is(a->op, "delete"))
        unsupported("account", a->op);
    allow(a, "account", binds ? "tuO" : "u");
    if (!a->user)
        adm_die(EINVAL, "'user' option is necessary");
    put_str(o, "user", a->user);
    if (a->tid >= 0) /* else for discovery */
        json_object_set_new(o, "tid", json_integer(a->tid));
    if (a->outgoing)
        json_object_set_new(o, "outgoing", json_true());
}

static void
mode_lld(const struct args *a, json_t *o)
{
    if (!is(a->op, "show") && !is(a->op, "start") && !is(a->op, "stop"))
        unsupported("lld", a->op);
    allow(a, "lld", "");
    put_str(o, "driver", is(a->op, "show") ? NULL : a->lld);
}

/* Whether it changes what a configuration says. */
static bool
is_saved(const char *mode, const char *op)
{
    static const char *const ops[] = {"new", "delete", "update", "bind", "unbind"};
    static const char *const modes[] = {"target", "logicalunit", "portal", "account"};
    bool changes = false;

    if (is(mode, "system"))
        return is(op, "update");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        changes = changes || is(op, ops[i]);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (is(mode, modes[i]))
            return changes;
    }
    return false;
}

static json_t *
request(const struct args *a, const char *mode)
{
    json_t *o = json_object();
    if (is(mode, "system"))
        mode_system(a, o);
    else if (is(mode, "target"))
        mode_target(a, o);
    else if (is(mode, "logicalunit"))
        mode_lun(a, o);
    else if (is(mode, "portal"))
        mode_portal(a, o);
    else if (is(mode, "session") || is(mode, "connection"))
        mode_sess(a, mode, o);
    else if (is(mode, "account"))
        mode_account(a, o);
    else
        mode_lld(a, o);
    if (a->persist && !is_saved(mode, a->op))
        adm_die(EINVAL, "%s mode: --persist has nothing to save of operation %s", mode, a->op);
    if (a->persist)
        json_object_set_new(o, "persist", json_true());
    return json_pack("{si ss ss so}", "v", 1, "mode", mode, "op", a->op, "args", o);
}

int
tgtadm_main(int argc, char **argv)
{
    struct args a;
    const char *mode;

    parse(&a, argc, argv);
    if (!a.op && !a.mode && argc == 1)
        adm_die(EINVAL, "specify the operation type");
    if (!a.op)
        adm_die(EINVAL, "specify the operation type");
    if (!a.mode)
        adm_die(EINVAL, "specify the mode");
    check_op(a.op);
    mode = long_mode(a.mode);
    if (a.lld && !is(a.lld, "iscsi"))
        adm_die(EINVAL, "can't find the driver");
    json_t *req = request(&a, mode);
    json_t *reply = adm_call(a.socket, req);
    json_decref(req);
    if (a.json)
        json_dumpf(reply, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER), putchar('\n');
    if (!json_is_true(json_object_get(reply, "ok"))) {
        const json_t *e = json_object_get(reply, "error");
        const char *msg = json_string_value(json_object_get(e, "message"));
        adm_die(EINVAL, "%s", msg ? msg : "the daemon's answer makes no sense");
    }
    if (weak_bytes)
        fprintf(stderr,
                "%s: warning: the secret has %zu bytes; one of less than %u can be found by "
                "trying (RFC 7143 9.2.1)\n",
                adm_name, weak_bytes, PASSWORD_ADVISED);
    adm_print_warnings(json_object_get(reply, "data"));
    if (!a.json)
        adm_print(mode, a.op, a.tid > 0, json_object_get(reply, "data"));
    json_decref(reply);
    if (fflush(stdout) != 0 || ferror(stdout))
        adm_die(EIO, "cannot write the answer");
    return 0;
}
