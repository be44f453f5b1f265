/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evtgtd: arguments, the order of the start, signals, the end.
 *
 * Order: configuration read -> daemon (before any thread or ring) -> opener -> helper pool ->
 * control store -> workers -> portals and stores -> ready.  The parent process waits for "ready"
 * and ends with the right status.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/cstore.h"
#include "base/dirs.h"
#include "base/helper.h"
#include "base/opener.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/admin.h"
#include "target/apply.h"
#include "target/apply_saved.h"
#include "target/isns.h"
#include "target/main_args.h"
#include "target/model.h"
#include "target/notify.h"
#include "target/places.h"
#include "target/redirect.h"

#define SPIN_US     50  /* some wake-ups' worth: docs/performance.md */
#define OPENER_MS   300 /* for the few questions that the loop itself has to ask */
#define HELPERS_MAX 256 /* made on demand; a hung store may hold one for ever */

static struct {
    struct main_options o;
    struct conf *conf, *listen; /* what it is made of, until it is in force */
    struct conf_report report;  /* its warnings, until they are in the log too */
    struct worker *main;
    struct worker *workers[WORKERS_MAX];
    unsigned nworkers;
    int ready_fd; /* to the waiting parent; -1 in the foreground */
    bool syslog, stopping;
    unsigned ending; /* parts of the end that are not over */
    struct ev_signal sigterm, sigint, sighup;
    struct worker_timer hard_stop;
} d;

/* --- failing --------------------------------------------------------------------------------- */

/* Before "ready": says why on stderr (and in the log) and ends with status 1. */
void
main_fail(const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "evtgtd: %s\n", text);
    if (d.syslog)
        log_event(LL_ERROR, LA_DAEMON, "start-failed why=\"%s\"", text);
    admin_end();
    opener_stop();
    _exit(1);
}

/* --- configuration --------------------------------------------------------------------------- */

static void
read_conf(void)
{
    struct conf_report *r = &d.report;

    conf_report_init(r);
    d.conf = main_compat_read(&d.o, apply_checks(), r, &d.listen);
    if (d.conf && d.o.test_only)
        apply_look(d.conf, r);
    for (unsigned i = 0; i < r->n; i++) {
        const struct conf_msg *m = &r->v[i];
        const char *kind = m->is_error ? "error" : "warning";
        if (m->line)
            fprintf(stderr, "%s:%u:%u: %s: %s\n", m->file, m->line, m->col, kind, m->text);
        else
            fprintf(stderr, "%s: %s: %s\n", m->file, kind, m->text);
    }
    if (!d.conf) {
        fprintf(stderr, "evtgtd: %u error%s in the configuration%s\n", r->nerrors,
                r->nerrors == 1 ? "" : "s", d.o.test_only ? "" : "; nothing was started");
        if (d.o.conf_path && access(d.o.conf_path, F_OK) < 0)
            fputs("evtgtd: -c names another file; evtgt.conf(5) shows how one is written\n",
                  stderr);
        exit(1);
    }
    if (d.o.test_only) {
        printf("%s: %u target%s, no errors", d.o.conf_path, d.conf->ntargets,
               d.conf->ntargets == 1 ? "" : "s");
        if (r->n)
            printf(", %u warning%s", r->n, r->n == 1 ? "" : "s");
        putchar('\n');
        exit(0);
    }
    if (!d.o.state_dir)
        d.o.state_dir = main_absolute(d.conf->state_dir ? d.conf->state_dir : STATEDIR);
}

/* The command line stands before the configuration. */
static void
take_settings(void)
{
    const struct conf *c = d.conf;

    apply_options(c);
    if (d.o.nop_interval_s != CONF_UNSET)
        tgt_opts.nop_interval_s = d.o.nop_interval_s;
    if (d.o.nop_count != CONF_UNSET)
        tgt_opts.nop_count = d.o.nop_count;
    tgt_opts.affine = d.o.affine >= 0 ? d.o.affine == 1 : c->affine == 1;
    if (!d.o.workers && c->workers != CONF_UNSET)
        d.o.workers = c->workers;
    if (!d.o.workers) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        d.o.workers = n < 1 ? 1 : n > 8 ? 8 : (unsigned)n;
    }
}

/* --- becoming a daemon ----------------------------------------------------------------------- */

/* Is stderr a file somebody chose? Then the log goes there, else to syslog. */
static bool
stderr_is_file(void)
{
    struct stat st;
    return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

static void
become_daemon(void)
{
    int p[2];
    char status = 1;

    if (pipe2(p, O_CLOEXEC) < 0)
        main_fail("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        main_fail("fork: %s", strerror(errno));
    if (pid > 0) {
        ssize_t n;
        close(p[1]);
        do {
            n = read(p[0], &status, 1);
        } while (n < 0 && errno == EINTR);
        _exit(n == 1 ? status : 1); /* the child said why */
    }
    close(p[0]);
    d.ready_fd = p[1];
    setsid();
    if (chdir("/") < 0)
        main_fail("chdir /: %s", strerror(errno));
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        if (null > 2)
            close(null);
    }
}

static void
tell_parent(void)
{
    char ok = 0;
    if (d.ready_fd < 0)
        return;
    if (write(d.ready_fd, &ok, 1) != 1)
        log_event(LL_WARN, LA_DAEMON, "parent-gone");
    close(d.ready_fd);
    d.ready_fd = -1;
    if (d.syslog) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0) {
            dup2(null, STDERR_FILENO);
            close(null);
        }
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static void
leave(int status)
{
    notify_send("STOPPING=1");
    redirect_stop();
    admin_end();
    opener_stop(); /* which removes socket and pid file */
    log_event(LL_NOTICE, LA_DAEMON, "ended");
    _exit(status); /* a device may hang: threads and memory are left to the system */
}

static void
on_hard_stop(struct worker_timer *t)
{
    (void)t;
    log_event(LL_WARN, LA_DAEMON, "end-forced");
    leave(0);
}

/* Sessions are gone, or the iSNS server knows that we go: both are waited for. */
static void
on_part_over(void *arg)
{
    (void)arg;
    if (--d.ending == 0)
        leave(0);
}

static void
main_stop(void)
{
    worker_assert_owner(d.main);
    if (d.stopping)
        return;
    d.stopping = true;
    log_event(LL_NOTICE, LA_DAEMON, "ending deadline_s=%u", tgt_opts.shutdown_s);
    notify_send("STOPPING=1");
    watch_stop();
    model_ifaces_stop();
    portal_close_all();
    /* whatever sess.c does: this is the last word */
    worker_timer_start_ms(&d.hard_stop, (uint64_t)tgt_opts.shutdown_s * 1000 + 2000);
    d.ending = 2;
    isns_end(on_part_over, NULL);
    sess_shutdown_all(on_part_over, NULL);
}

static void
on_term(struct ev_loop *loop, struct ev_signal *w, int revents)
{
    (void)loop;
    (void)revents;
    log_event(LL_NOTICE, LA_DAEMON, "signal number=%d", w->signum);
    main_stop();
}

static void
on_hup(struct ev_loop *loop, struct ev_signal *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
    log_event(LL_NOTICE, LA_DAEMON, "signal number=%d", SIGHUP);
    admin_reload();
}

/* --- the start ------------------------------------------------------------------------------- */

static void
on_started(void *arg, const char *why)
{
    unsigned targets = d.conf->ntargets;
    char err[512] = "";
    (void)arg;
    if (*why)
        main_fail("%s", why);
    if (admin_start(d.main, d.o.socket_path, main_stop, err, sizeof err) < 0)
        main_fail("%s", err);
    int rc = places_write_pid();
    if (rc < 0)
        main_fail("cannot write %s: %s", d.o.pid_path, strerror(-rc));
    rc = opener_settle(apply_saved_any_bad());
    if (rc < 0)
        log_event(LL_ERROR, LA_DAEMON,
                  "grants-not-kept file=%s.granted why=\"%s\" then=\"what is saved and not in the "
                  "configuration file will not be opened at the next start\"",
                  LOG_ESC(d.o.state_dir), strerror(-rc));
    opener_impatient(OPENER_MS);
    conf_free(d.conf);
    conf_free(d.listen);
    d.conf = d.listen = NULL;
    watch_start(d.main);
    model_ifaces_start();
    notify_send("READY=1");
    log_event(LL_NOTICE, LA_DAEMON, "ready version=%s targets=%u workers=%u engine=%s placement=%s",
              PACKAGE_VERSION, targets, d.nworkers,
              worker_engine(d.workers[0]) == ENGINE_RING ? "ring" : "pool",
              tgt_opts.affine ? "affine" : "spread");
    tell_parent();
}

static void
on_worker_init(struct worker *w, void *arg)
{
    (void)arg;
    tgt_worker_init(w);
}

/* Before targets are published: access by discovery domain holds from the first login. */
static void
start_isns(void)
{
    struct isns_settings s;
    char err[256];

    if (apply_isns(d.conf, &s, err, sizeof err) < 0)
        main_fail("iSNS: %s", err);
    isns_start(d.main, &s, model.seed);
}

static void
on_workers_ready(struct worker *back, void *arg)
{
    (void)arg;
    worker_assert_owner(back);
    start_isns();
    apply_start(d.conf, on_started, NULL);
}

static void
raise_limits(void)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max < 1048576 ? rl.rlim_max : 1048576;
        (void)setrlimit(RLIMIT_NOFILE, &rl);
    }
    /* memory of rings counts for a process that is not root */
    rl.rlim_cur = rl.rlim_max = RLIM_INFINITY;
    if (setrlimit(RLIMIT_MEMLOCK, &rl) < 0 && getrlimit(RLIMIT_MEMLOCK, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        (void)setrlimit(RLIMIT_MEMLOCK, &rl);
    }
}

static void
start_workers(void)
{
    for (unsigned i = 0; i < d.o.workers; i++) {
        struct worker_opts wo = {.id = i, .engine = d.o.engine, .spin_us = SPIN_US};
        if (d.conf->busy_poll_us != CONF_UNSET)
            wo.spin_us = d.conf->busy_poll_us;
        d.workers[i] = worker_start(&wo);
        if (!d.workers[i])
            main_fail("cannot start worker %u%s: %s", i,
                      d.o.engine == ENGINE_RING ? " with io_uring" : "", strerror(errno));
        d.nworkers++;
    }
    worker_set_publish(d.workers, d.nworkers);
    worker_broadcast(on_worker_init, NULL, d.main, on_workers_ready);
}

static struct cstore *
open_state(void)
{
    int rc = dirs_make_above(d.o.state_dir);
    if (rc == 0)
        rc = main_user_check_dir(d.o.state_dir);
    struct cstore *cs = rc < 0 ? NULL : cstore_open_dir(d.o.state_dir);
    if (cs)
        main_user_give(cs, d.o.state_dir);
    if (cs)
        return cs;
    int e = rc < 0 ? -rc : errno;
    main_fail("state directory %s: %s; --state-dir chooses another", d.o.state_dir,
              e == EBUSY ? "in use by another daemon"
              : e == ELOOP
                  ? "is a symbolic link, and it has to be given to the daemon's user: name the "
                    "directory itself"
                  : strerror(e));
}

/* What the file says was root's; what is saved is the word of the daemon's user. */
static void
seal(void)
{
    apply_permit(d.conf);
    int rc = opener_seal();
    if (rc < 0)
        log_event(LL_ERROR, LA_DAEMON,
                  "grants-unreadable file=%s.granted why=\"%s\" then=\"of what is saved only paths "
                  "that the configuration file has are opened\"",
                  LOG_ESC(d.o.state_dir),
                  rc == -EPERM ? "it is no file of root's alone" : strerror(-rc));
}

static void
watch_signals(void)
{
    struct ev_loop *loop = worker_loop(d.main);
    ev_signal_init(&d.sigterm, on_term, SIGTERM);
    ev_signal_init(&d.sigint, on_term, SIGINT);
    ev_signal_init(&d.sighup, on_hup, SIGHUP);
    ev_signal_start(loop, &d.sigterm);
    ev_signal_start(loop, &d.sigint);
    ev_signal_start(loop, &d.sighup);
    worker_timer_init(&d.hard_stop, d.main, on_hard_stop);
}

/* They were printed; whoever reads the log only must see them as well. */
static void
log_warnings(void)
{
    for (unsigned i = 0; d.syslog && i < d.report.n; i++) {
        const struct conf_msg *m = &d.report.v[i];
        log_event(LL_WARN, LA_CONF, "configuration at=%s:%u:%u why=\"%s\"", LOG_ESC(m->file),
                  m->line, m->col, m->text);
    }
    conf_report_fini(&d.report);
}

/* Beside the state directory, which is the daemon's user's. */
static const char *
granted_path(void)
{
    size_t n = strlen(d.o.state_dir);
    while (n > 1 && d.o.state_dir[n - 1] == '/')
        n--;
    return xasprintf("%.*s.granted", (int)n, d.o.state_dir);
}

int
main(int argc, char **argv)
{
    struct worker_opts wo = {.engine = ENGINE_POOL};
    struct sigaction ign = {.sa_handler = SIG_IGN};

    d.ready_fd = -1;
    main_args(&d.o, argc, argv);
    read_conf();
    sigaction(SIGPIPE, &ign, NULL);
    raise_limits();
    main_user_choose(d.o.user, d.conf->user);
    if (!d.o.foreground) {
        become_daemon();
        d.syslog = !stderr_is_file();
    }
    log_open("evtgtd", d.syslog);
    log_warnings();
    portal_owner_init();
    store_user_init();
    places_init(d.o.socket_path, d.o.pid_path, main_user());
    if (main_user()) {
        opener_guard();
        opener_granted(granted_path());
    }
    apply_set_file(&(struct apply_file){
        .path = d.o.empty ? NULL : d.o.conf_path, .syntax = d.o.syntax, .listen = d.o.listen});
    int rc = opener_start();
    if (rc < 0)
        main_fail("cannot start the opener: %s", strerror(-rc));
    struct cstore *cs = open_state();
    seal();
    admin_json_init();
    d.conf = apply_saved_start(cs, d.conf, d.o.listen != NULL);
    take_settings();
    notify_open();
    main_user_become();
    rc = helper_pool_start(4, HELPERS_MAX);
    if (rc < 0)
        main_fail("cannot start the helper pool: %s", strerror(-rc));
    d.main = worker_main_init(&wo);
    if (!d.main)
        main_fail("cannot make the main loop: %s", strerror(errno));
    model_init(d.main, cs);
    (void)admin_import_recover(cs); /* it logged; the records that are there are whole */
    rc = apply_seed();
    if (rc < 0)
        main_fail("state directory %s: record host-seed: %s", d.o.state_dir, strerror(-rc));
    redirect_init();
    watch_signals();
    start_workers();
    worker_run(d.main);
    return 0;
}
