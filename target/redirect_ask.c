/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program that says where a login goes (RedirectCallback).  Called on the connection's worker;
 * the program runs from a helper thread, a few at once, without a shell, with a deadline.
 *
 * It gets the target's name and the initiator's address as its arguments, as tgt passes them, and
 * the initiator's name in the environment.  Its first line says ADDRESS:PORT:REASON; an empty one
 * sends the login nowhere.  Whoever asks a program wants its word before a login goes on: if it
 * fails, says nonsense or takes too long, the login is refused with 03/01, which initiators try
 * again.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/pool.h"
#include "target/redirect.h"

#define RUNNING_MAX 4u   /* programs at once */
#define ASKING_MAX  256u /* logins that wait for one */
#define OUTPUT_MAX  1023u
#define WORDS_MAX   16u
#define POLL_MS     10
#define READS_MAX   256u /* at once: a program that never stops printing is not waited for */

struct ask {
    struct helper_job job; /* first */
    struct list link;      /* st.asks */
    struct conn *c;        /* a reference */
    void (*done)(struct conn *c, const struct redirect_answer *a);
    struct redirect *r; /* a reference: of the node that was asked for */
    char target[ISCSI_NAME_MAX + 1], initiator[ISCSI_NAME_MAX + 1], address[64];
    uint64_t deadline_ms;
    /* the outcome */
    bool ok;
    char err[400];
    char output[OUTPUT_MAX + 1];
};

static struct {
    struct helper_lane lane;
    pthread_mutex_t lock; /* of all below */
    struct list asks;     /* until they are over */
    unsigned nasks;
    pid_t running[RUNNING_MAX]; /* a pid in it is not reaped */
    bool stopping;
} st = {.lock = PTHREAD_MUTEX_INITIALIZER, .asks = {&st.asks, &st.asks}};

/* --- a helper thread ------------------------------------------------------------------------- */

static bool
note_pid(pid_t pid)
{
    bool stopping;
    pthread_mutex_lock(&st.lock);
    for (unsigned i = 0; i < RUNNING_MAX; i++) {
        if (st.running[i] == 0) {
            st.running[i] = pid;
            break;
        }
    }
    stopping = st.stopping;
    pthread_mutex_unlock(&st.lock);
    return !stopping;
}

/* True: it has ended and is reaped. */
static bool
reap(pid_t pid, int *status)
{
    pthread_mutex_lock(&st.lock);
    pid_t rc = waitpid(pid, status, WNOHANG);
    bool ended = rc != 0;
    if (rc < 0)
        *status = 127 << 8; /* not ours any more: how it ended is not known */
    for (unsigned i = 0; ended && i < RUNNING_MAX; i++) {
        if (st.running[i] == pid)
            st.running[i] = 0;
    }
    pthread_mutex_unlock(&st.lock);
    return ended;
}

/* A process group of its own, so that what it started can be ended with it. */
static int
spawn(const struct ask *a, int out, pid_t *pid)
{
    char path[1024], name_env[ISCSI_NAME_MAX + 32];
    char *argv[WORDS_MAX + 3], *envp[3], *save = NULL;
    char target[sizeof a->target], address[sizeof a->address];
    char path_env[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none, all;
    unsigned n = 0;

    snprintf(path, sizeof path, "%s", redirect_callback(a->r));
    for (char *w = strtok_r(path, " \t", &save); w != NULL; w = strtok_r(NULL, " \t", &save)) {
        if (n == WORDS_MAX)
            return E2BIG;
        argv[n++] = w;
    }
    memcpy(target, a->target, sizeof target);
    memcpy(address, a->address, sizeof address);
    argv[n++] = target;
    argv[n++] = address;
    argv[n] = NULL;
    snprintf(name_env, sizeof name_env, "EVTGT_INITIATOR=%s", a->initiator);
    envp[0] = path_env;
    envp[1] = name_env;
    envp[2] = NULL;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int rc = posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn(pid, argv[0], &fa, &attr, argv, envp);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    return rc;
}

/* What is there to read. More than fits is read and dropped: a program must not block on it. */
static void
take_output(struct ask *a, int fd, size_t *len)
{
    char more[512];
    ssize_t n;
    for (unsigned i = 0; i < READS_MAX && (n = read(fd, more, sizeof more)) > 0; i++) {
        size_t fits = OUTPUT_MAX - *len < (size_t)n ? OUTPUT_MAX - *len : (size_t)n;
        memcpy(a->output + *len, more, fits);
        *len += fits;
    }
    a->output[*len] = '\0';
}

/* Until the program has ended: what it left running in the background may keep the pipe. */
static bool
await(struct ask *a, pid_t pid, int fd, int *status)
{
    size_t len = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        bool ended = reap(pid, status);
        int rc = poll(&p, 1, ended ? 0 : POLL_MS);
        if (rc > 0 && (p.revents & POLLIN))
            take_output(a, fd, &len);
        else if (rc > 0 && !ended)
            (void)poll(NULL, 0, POLL_MS); /* it closed its output and still runs */
        if (ended)
            return true;
        if (clock_ms() >= a->deadline_ms)
            return false;
    }
}

static void
run_program(struct ask *a, int rd, int wr)
{
    int status = 0;
    pid_t pid;
    int rc = spawn(a, wr, &pid);

    close(wr);
    if (rc != 0) {
        snprintf(a->err, sizeof a->err, "cannot be run: %s", strerror(rc));
        return;
    }
    bool in_time = note_pid(pid) && await(a, pid, rd, &status);
    if (!in_time) {
        kill(-pid, SIGKILL);
        while (!reap(pid, &status))
            (void)poll(NULL, 0, POLL_MS);
        snprintf(a->err, sizeof a->err, "no answer in time");
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        snprintf(a->err, sizeof a->err, "ended with %s %d", WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    } else {
        a->ok = true;
    }
}

static void
on_run(struct helper_job *job)
{
    struct ask *a = container_of(job, struct ask, job);
    int fd[2];

    if (clock_ms() >= a->deadline_ms) {
        snprintf(a->err, sizeof a->err, "too many programs run already");
        return;
    }
    if (pipe2(fd, O_CLOEXEC) < 0) {
        snprintf(a->err, sizeof a->err, "no pipe: %s", strerror(errno));
        return;
    }
    if (fcntl(fd[0], F_SETFL, O_NONBLOCK) < 0)
        snprintf(a->err, sizeof a->err, "no pipe: %s", strerror(errno)), close(fd[1]);
    else
        run_program(a, fd[0], fd[1]);
    close(fd[0]);
}

/* --- the connection's worker ----------------------------------------------------------------- */

/* How many of the address's logins wait; IPv6 by its /64, of which one host may have all. */
static unsigned
count_of(const struct sockaddr_storage *peer)
{
    unsigned n = 0;
    list_each(it, &st.asks)
        n += half_same_host(peer, &container_of(it, struct ask, link)->c->peer);
    return n;
}

/* One address may have as many as are left for all others: however many it asks for, others can
 * ask, too. */
static bool
enter(struct ask *a)
{
    pthread_mutex_lock(&st.lock);
    bool ok = count_of(&a->c->peer) < ASKING_MAX - st.nasks;
    if (ok) {
        list_add_tail(&st.asks, &a->link);
        st.nasks++;
    }
    pthread_mutex_unlock(&st.lock);
    return ok;
}

static void
ask_free(struct ask *a)
{
    conn_put(a->c);
    redirect_put(a->r);
    free(a);
}

static void
leave(struct ask *a)
{
    pthread_mutex_lock(&st.lock);
    list_del(&a->link);
    st.nasks--;
    pthread_mutex_unlock(&st.lock);
}

static void
on_ran(struct helper_job *job)
{
    static _Thread_local struct log_rate rate;
    struct ask *a = container_of(job, struct ask, job);
    struct redirect_answer answer = {.status = LS_OK, .why = ""};
    struct redirect_to to;
    uint32_t suppressed;

    worker_assert_owner(a->c->w);
    leave(a);
    if (a->ok)
        a->ok = redirect_read_answer(a->output, &to, a->err, sizeof a->err);
    if (!a->ok) {
        if (log_rate_ok(&rate, &suppressed))
            log_event(LL_ERROR, LA_LOGIN,
                      "redirect-callback program=%s target=%s peer=%s why=\"%s\" suppressed=%u",
                      LOG_ESC(redirect_callback(a->r)), a->target, a->c->peer_text,
                      LOG_TEXT(a->err), (unsigned)suppressed);
        answer.status = LS_UNAVAILABLE;
        answer.why = "the program that is asked about redirection failed";
    } else if (to.text[0] != '\0') {
        redirect_moved(a->c, &to, &answer);
    } else {
        redirect_static(a->c, a->r, &answer);
    }
    a->done(a->c, &answer);
    ask_free(a);
}

/* The peer's address alone. */
static void
address_of(const char *peer_text, char *out, size_t size)
{
    const char *end = strrchr(peer_text, ':');
    size_t n = end != NULL ? (size_t)(end - peer_text) : strlen(peer_text);
    if (peer_text[0] == '[' && n > 2) {
        peer_text++;
        n -= 2;
    }
    snprintf(out, size, "%.*s", (int)n, peer_text);
}

bool
redirect_ask(struct conn *c, const struct tgt_node *n, const char *initiator,
             void (*done)(struct conn *c, const struct redirect_answer *a))
{
    worker_assert_owner(c->w);
    struct ask *a = xcalloc(1, sizeof *a);
    a->job = (struct helper_job){.run = on_run, .done = on_ran, .w = c->w, .lane = &st.lane};
    a->c = c;
    a->done = done;
    a->r = redirect_get(n->redirect);
    a->deadline_ms = clock_ms() + tgt_opts.redirect_timeout_s * 1000ull;
    snprintf(a->target, sizeof a->target, "%s", n->name);
    snprintf(a->initiator, sizeof a->initiator, "%s", initiator);
    address_of(c->peer_text, a->address, sizeof a->address);
    conn_get(c);
    if (!enter(a)) {
        ask_free(a);
        return false;
    }
    helper_submit(&a->job);
    return true;
}

void
redirect_forget(struct conn *c)
{
    struct ask *a = NULL;
    worker_assert_owner(c->w);
    pthread_mutex_lock(&st.lock);
    list_each(it, &st.asks) {
        if (container_of(it, struct ask, link)->c == c)
            a = container_of(it, struct ask, link);
    }
    pthread_mutex_unlock(&st.lock);
    /* Only this worker ends it. One whose program runs is over with the program. */
    if (a == NULL || !helper_cancel(&a->job))
        return;
    leave(a);
    ask_free(a);
}

/* --- main ------------------------------------------------------------------------------------ */

void
redirect_init(void)
{
    signal(SIGCHLD, SIG_DFL); /* who starts the daemon may have it ignored: no status then */
    helper_lane_init(&st.lane, RUNNING_MAX);
}

void
redirect_stop(void)
{
    pthread_mutex_lock(&st.lock);
    st.stopping = true;
    for (unsigned i = 0; i < RUNNING_MAX; i++) {
        if (st.running[i] > 0)
            kill(-st.running[i], SIGKILL);
    }
    pthread_mutex_unlock(&st.lock);
}
