/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin socket: connections, lines, the queue.  Clients are of the daemon's own user (or
 * root, whose requests only may name what the opener has not permitted yet), but nothing they send
 * may harm: lines are bounded, idle clients are dropped, answers that
 * are not fetched end the connection.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/helper.h"
#include "base/opener.h"
#include "base/pool.h"
#include "base/secret.h"
#include "target/admin.h"
#include "target/admin_priv.h"
#include "target/places.h"

#define CLIENTS_MAX 64
#define IDLE_MS     30000
#define IN_FIRST    4096u
#define REQUEST_MS  30000
#define ACCEPT_MS   200

struct client {
    struct list link;    /* admin.clients */
    struct list waiting; /* admin.queue: has a whole line */
    struct ev_io rd, wr;
    struct worker_timer idle;
    int fd;
    bool gone;                      /* closed; freed when its request is answered */
    bool eof;                       /* sends no more; closed when it is answered */
    char *in;                       /* grows with what comes */
    size_t in_len, in_size, looked; /* bytes that have no line's end */
    char *out;
    size_t out_len, out_pos;
};

static struct {
    struct worker *w;
    int fd;
    struct ev_io accept;
    struct helper_job accepting;
    int accepted; /* by it */
    bool is_accepting;
    struct worker_timer no_answer;
    struct list clients, queue;
    unsigned nclients;
    size_t held;           /* bytes of all clients' in */
    bool busy;             /* a request is under way */
    bool reload;           /* one of our own waits */
    struct client *active; /* whose request is under way; NULL: nobody's, or our own */
    struct admin_req *req;
    struct worker_timer deadline;
    struct deferred next;
} admin = {.fd = -1};

void (*admin_stop_daemon)(void);

/* --- clients --------------------------------------------------------------------------------- */

/* Requests may hold secrets: what jansson and this file give back is wiped. */
static void
wiping_free(void *p)
{
    if (p)
        secret_wipe(p, malloc_usable_size(p));
    free(p);
}

void
admin_json_init(void)
{
    json_set_alloc_funcs(malloc, wiping_free);
    json_object_seed(0); /* before other threads make objects */
}

/* Answers may hold them as well. */
static void
out_free(struct client *c)
{
    secret_wipe(c->out, c->out_len);
    free(c->out);
    c->out = NULL;
    c->out_len = c->out_pos = 0;
}

static void
client_free(struct client *c)
{
    secret_wipe(c->in, c->in_len);
    free(c->in);
    admin.held -= c->in_size;
    out_free(c);
    free(c);
}

static void
client_close(struct client *c)
{
    struct ev_loop *loop = worker_loop(admin.w);
    if (c->gone)
        return;
    c->gone = true;
    ev_io_stop(loop, &c->rd);
    ev_io_stop(loop, &c->wr);
    worker_timer_stop(&c->idle);
    if (admin.active == c)
        opener_vouch(-1);
    close(c->fd);
    list_del(&c->link);
    list_del(&c->waiting);
    admin.nclients--;
    if (admin.active != c)
        client_free(c);
}

static void
on_idle(struct worker_timer *t)
{
    struct client *c = container_of(t, struct client, idle);
    if (admin.active == c || list_is_linked(&c->waiting))
        worker_timer_start_ms(t, IDLE_MS); /* it waits for us */
    else
        client_close(c);
}

/* True when a whole line is there. */
static bool
has_line(struct client *c)
{
    if (c->looked < c->in_len && memchr(c->in + c->looked, '\n', c->in_len - c->looked))
        return true;
    c->looked = c->in_len;
    return false;
}

/* Waits for its turn when there is a line; else reads on. */
static void
client_look(struct client *c)
{
    struct ev_loop *loop = worker_loop(admin.w);

    if (has_line(c)) {
        ev_io_stop(loop, &c->rd);
        if (!list_is_linked(&c->waiting))
            list_add_tail(&admin.queue, &c->waiting);
        worker_defer(admin.w, &admin.next);
    } else if (c->eof) {
        client_close(c);
    } else {
        ev_io_start(loop, &c->rd);
    }
}

static void
client_send(struct client *c)
{
    struct ev_loop *loop = worker_loop(admin.w);
    while (c->out_pos < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_pos, c->out_len - c->out_pos, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            ev_io_start(loop, &c->wr); /* nothing is read until this has left */
            return;
        }
        if (n < 0) {
            client_close(c);
            return;
        }
        c->out_pos += (size_t)n;
    }
    ev_io_stop(loop, &c->wr);
    out_free(c);
    client_look(c);
}

static void
on_writable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    (void)loop;
    (void)revents;
    client_send(container_of(ev, struct client, wr));
}

/* Takes over `text`. */
static void
client_answer(struct client *c, char *text)
{
    size_t n = strlen(text);
    c->out = xmalloc(n + 2); /* realloc would leave secrets behind */
    memcpy(c->out, text, n);
    c->out[n] = '\n';
    secret_free_text(text);
    c->out_len = n + 1;
    c->out_pos = 0;
    worker_timer_start_ms(&c->idle, IDLE_MS);
    client_send(c);
}

/* Twice the room, as far as the bounds go. */
static bool
grow(struct client *c)
{
    size_t size = c->in_size ? 2 * c->in_size : IN_FIRST;

    if (size > ADMIN_LINE_MAX) {
        /* no line end within the bound: nothing after it can be understood */
        log_event(LL_WARN, LA_ADMIN, "line-too-long max=%u", ADMIN_LINE_MAX);
        return false;
    }
    if (admin.held - c->in_size + size > ADMIN_HELD_MAX) {
        log_event(LL_WARN, LA_ADMIN, "clients-too-large max=%u", ADMIN_HELD_MAX);
        return false;
    }
    char *p = xmalloc(size); /* realloc would leave secrets behind */
    if (c->in_len)
        memcpy(p, c->in, c->in_len);
    if (c->in)
        secret_wipe(c->in, c->in_len);
    free(c->in);
    c->in = p;
    admin.held += size - c->in_size;
    c->in_size = size;
    return true;
}

/* What was large and is read goes back. */
static void
shrink(struct client *c)
{
    if (c->in_len || c->in_size <= IN_FIRST)
        return;
    free(c->in);
    c->in = NULL;
    admin.held -= c->in_size;
    c->in_size = 0;
}

static void
on_readable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct client *c = container_of(ev, struct client, rd);
    (void)loop;
    (void)revents;

    if (c->in_len == c->in_size && !grow(c)) {
        client_close(c);
        return;
    }
    ssize_t n = recv(c->fd, c->in + c->in_len, c->in_size - c->in_len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n < 0) {
        client_close(c);
        return;
    }
    if (n == 0) {
        c->eof = true;
        ev_io_stop(worker_loop(admin.w), &c->rd);
    }
    c->in_len += (size_t)n;
    worker_timer_start_ms(&c->idle, IDLE_MS);
    client_look(c);
}

/* --- the queue: one request at a time -------------------------------------------------------- */

static void
request_over(void)
{
    worker_timer_stop(&admin.deadline);
    admin.busy = false;
    admin.active = NULL;
    opener_vouch(-1);
    admin.req = NULL;
    worker_defer(admin.w, &admin.next);
}

static void
on_answer(struct admin_req *r, json_t *reply, void *arg)
{
    struct client *c = arg;
    char *text = json_dumps(reply, JSON_COMPACT);

    (void)r;
    json_decref(reply);
    request_over();
    if (c->gone) {
        secret_free_text(text);
        client_free(c);
    } else if (!text) {
        client_close(c);
    } else {
        client_answer(c, text);
    }
}

static void
on_deadline(struct worker_timer *t)
{
    (void)t;
    if (admin.req)
        admin_req_timeout(admin.req);
}

/* Nobody reads the answer but who reads the log. */
static void
on_reloaded(struct admin_req *r, json_t *reply, void *arg)
{
    const json_t *data = json_object_get(reply, "data");
    json_t *m;
    size_t i;

    (void)r;
    (void)arg;
    json_array_foreach(json_object_get(data, "messages"), i, m)
    {
        const char *file = json_string_value(json_object_get(m, "file"));
        const char *text = json_string_value(json_object_get(m, "text"));
        log_event(json_is_true(json_object_get(m, "error")) ? LL_ERROR : LL_WARN, LA_CONF,
                  "configuration at=%s:%d:%d why=\"%s\"", LOG_ESC(file),
                  (int)json_integer_value(json_object_get(m, "line")),
                  (int)json_integer_value(json_object_get(m, "col")), LOG_TEXT(text));
    }
    if (json_is_true(json_object_get(reply, "ok"))) {
        log_event(LL_NOTICE, LA_CONF, "reloaded changes=%zu",
                  json_array_size(json_object_get(data, "changes")));
    } else {
        const json_t *e = json_object_get(reply, "error");
        log_event(LL_ERROR, LA_CONF, "reload-failed why=\"%s\" then=\"nothing was changed\"",
                  LOG_TEXT(json_string_value(json_object_get(e, "message"))));
    }
    json_decref(reply);
    request_over();
}

static void
run_reload(void)
{
    static const char line[] = "{\"v\":1,\"mode\":\"config\",\"op\":\"reload\"}";

    admin.reload = false;
    admin.busy = true;
    worker_timer_start_ms(&admin.deadline, REQUEST_MS);
    admin_req_run(line, sizeof line - 1, &admin.req, on_reloaded, NULL);
}

void
admin_reload(void)
{
    admin.reload = true;
    if (admin.fd >= 0) /* else when the socket is there */
        worker_defer(admin.w, &admin.next);
}

static void
on_next(struct deferred *d)
{
    (void)d;
    if (admin.busy)
        return;
    if (admin.reload) {
        run_reload();
        return;
    }
    if (list_is_empty(&admin.queue))
        return;
    struct client *c = container_of(list_pop(&admin.queue), struct client, waiting);
    char *nl = memchr(c->in, '\n', c->in_len);
    size_t n = (size_t)(nl - c->in);
    char *line = xmalloc(n + 1);

    memcpy(line, c->in, n);
    line[n] = 0;
    c->in_len -= n + 1;
    memmove(c->in, nl + 1, c->in_len);
    secret_wipe(c->in + c->in_len, n + 1);
    c->looked = 0;
    shrink(c);
    admin.active = c;
    opener_vouch(c->fd);
    admin.busy = true;
    worker_timer_start_ms(&admin.deadline, REQUEST_MS);
    admin_req_run(line, n, &admin.req, on_answer, c);
    secret_wipe(line, n);
    free(line);
}

/* --- accepting ------------------------------------------------------------------------------- */

static void
take_client(int fd)
{
    if (fd < 0)
        return;
    if (admin.nclients >= CLIENTS_MAX || !places_peer_may(fd)) {
        close(fd);
        return;
    }
    struct client *c = xcalloc(1, sizeof *c);
    c->fd = fd;
    list_init(&c->waiting);
    list_add_tail(&admin.clients, &c->link);
    admin.nclients++;
    ev_io_init(&c->rd, on_readable, fd, EV_READ);
    ev_io_init(&c->wr, on_writable, fd, EV_WRITE);
    worker_timer_init(&c->idle, admin.w, on_idle);
    worker_timer_start_ms(&c->idle, IDLE_MS);
    ev_io_start(worker_loop(admin.w), &c->rd);
}

static void
job_accept(struct helper_job *job)
{
    (void)job;
    admin.accepted = places_accept();
}

static void
on_job_accepted(struct helper_job *job)
{
    (void)job;
    admin.is_accepting = false;
    worker_timer_stop(&admin.no_answer);
    if (admin.fd < 0) { /* the end has come meanwhile */
        if (admin.accepted >= 0)
            close(admin.accepted);
        return;
    }
    if (admin.accepted < 0 && admin.accepted != -EAGAIN)
        admin.accepted = places_accept_here(); /* it is gone, and the connection still waits */
    take_client(admin.accepted);
    ev_io_start(worker_loop(admin.w), &admin.accept);
}

/* The opener hangs: who only wants to look, or somebody whom the kernel vouches for, need not wait.
 */
static void
on_no_answer(struct worker_timer *t)
{
    (void)t;
    if (admin.fd >= 0)
        ev_io_start(worker_loop(admin.w), &admin.accept);
}

static void
on_accept(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    (void)revents;
    if (admin.is_accepting || !places_ask_opener()) {
        take_client(places_accept_here());
        return;
    }
    ev_io_stop(loop, ev);
    admin.is_accepting = true;
    worker_timer_start_ms(&admin.no_answer, ACCEPT_MS);
    admin.accepting = (struct helper_job){.run = job_accept, .done = on_job_accepted, .w = admin.w};
    helper_submit(&admin.accepting);
}

int
admin_start(struct worker *main_worker, const char *path, void (*stop)(void), char *err,
            size_t errsize)
{
    worker_assert_owner(main_worker);
    int fd = places_listen();
    if (fd < 0) {
        const char *why = fd == -EADDRINUSE ? "another daemon answers there"
                          : fd == -EEXIST   ? "something that is no socket is there"
                                            : strerror(-fd);
        snprintf(err, errsize, "admin socket %s: %s; --socket chooses another", path, why);
        return fd;
    }
    admin_json_init();
    admin.w = main_worker;
    admin.fd = fd;
    admin_stop_daemon = stop;
    list_init(&admin.clients);
    list_init(&admin.queue);
    worker_timer_init(&admin.deadline, main_worker, on_deadline);
    worker_timer_init(&admin.no_answer, main_worker, on_no_answer);
    deferred_init(&admin.next, on_next);
    ev_io_init(&admin.accept, on_accept, fd, EV_READ);
    ev_io_start(worker_loop(main_worker), &admin.accept);
    if (admin.reload)
        worker_defer(admin.w, &admin.next);
    return 0;
}

void
admin_end(void)
{
    if (admin.fd < 0)
        return;
    ev_io_stop(worker_loop(admin.w), &admin.accept);
    close(admin.fd);
    admin.fd = -1; /* the opener removes its name */
}
