/* serve.c - a server: an accept loop, a fiber for each connection, graceful shutdown.
 *
 * SERVE-1  All handlers are children of the server's own nursery, which ends before the server does: the server owns
 *          their shared state.
 * SERVE-2  Each accepted connection is closed once, whatever its handler does, and releases its slot (`slots`) after
 *          that.
 */
#include "base/error.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "net/listen.h"
#include "nursery/nursery.h"

#include <ccc/cc_nursery.h>
#include <ccc/cc_select.h>
#include <ccc/cc_sync.h>
#include <errno.h>

enum { BACKOFF_FIRST_MS = 4, BACKOFF_MS = 1000, SHED_AT_A_TIME = 64 };

struct server {
    CCListener *listener;
    CCConnFn fn;
    void *arg;
    CCServeOptions options;
    CCNursery *handlers;
    CCSem slots;
    CCEvent ended;         /* a handler has ended, while the server lacks resources */
    _Atomic uint64_t open; /* handlers of this server that have not ended, unlike the listener's count */
    _Atomic uint32_t is_short;
    _Atomic uint32_t has_no_stack; /* no stack could be allocated for a handler */
    int reserve;                   /* a spare descriptor for when they run out; -1: none at present */
    uint64_t pause_ms;             /* the last pause; 0: no shortage */
};

/* ---- one connection ---- */

struct handler {
    struct server *server;
    CCConn *conn;
    int status;
    bool returned;
};

/* Both of these also run after a panic, the second also after a panic in the first. */
static void tell(void *arg) {
    struct handler *h = arg;
    struct server *s = h->server;
    struct serve_counts *counts = &s->listener->counts;
    int code = h->returned ? h->status : ENOTRECOVERABLE;
    if (!h->returned) (void)cc__add(&counts->panicked, 1);
    if (code == 0 || (code == ECANCELED && cc_cancelled())) return; /* as a child of a nursery */
    (void)cc__add(&counts->failed, 1);
    if (s->options.failed != NULL) s->options.failed(h->conn, code, s->arg);
}

static void finish(void *arg) {
    struct handler *h = arg;
    struct server *s = h->server;
    struct serve_counts *counts = &s->listener->counts;
    if (!cc__get(&h->conn->closed)) cc_close(h->conn); /* SERVE-2 */
    cc__conn_drop(h->conn);
    (void)cc__sub(&counts->open, 1);
    (void)cc__sub(&s->open, 1);
    if (s->options.max_conns != 0) (void)cc_sem_release(&s->slots, 1);
    if (cc__get(&s->is_short)) (void)cc_event_set(&s->ended);
}

/* No stack could be allocated for the handler: aborts the connection, and the server pauses. */
static void refuse(void *arg) {
    struct handler *h = arg;
    struct server *s = h->server;
    struct serve_counts *counts = &s->listener->counts;
    (void)cc__sub(&counts->accepted, 1);
    (void)cc__sub(&counts->open, 1);
    (void)cc__sub(&s->open, 1);
    (void)cc__add(&counts->shed, 1);
    cc__set(&s->has_no_stack, 1);
    cc_abort(h->conn);
    cc__conn_drop(h->conn);
    if (s->options.max_conns != 0) (void)cc_sem_release(&s->slots, 1);
}

static void *handle(void *arg) {
    struct handler h = *(struct handler *)arg;
    CC_DEFER(finish, &h);
    CC_DEFER(tell, &h);
    h.status = h.server->fn(h.conn, h.server->arg);
    h.returned = true;
    return NULL;
}

/* 0, or the error of the spawn: then the connection is closed. */
static int start_handler(struct server *s, CCConn *conn) {
    struct serve_counts *counts = &s->listener->counts;
    struct handler h = {.server = s, .conn = conn};
    cc__conn_keep(conn); /* the handler may close it, and it is accessed afterwards */
    (void)cc__add(&s->open, 1);
    uint64_t open = cc__add(&counts->open, 1) + 1, most = cc__get(&counts->most_open);
    while (open > most && !cc__cas(&counts->most_open, &most, open)) continue;
    (void)cc__add(&counts->accepted, 1);
    int error = cc_nursery_go(s->handlers, handle, &h, sizeof h);
    if (error == 0) return 0;
    (void)cc__sub(&counts->open, 1);
    (void)cc__sub(&s->open, 1);
    (void)cc__sub(&counts->accepted, 1);
    (void)cc__add(&counts->shed, 1);
    cc__conn_drop(conn);
    cc_abort(conn);
    return error;
}

/* ---- shortage of resources ---- */

static bool is_want(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Whether there is a descriptor besides the spare one. */
static bool has_descriptor(void) {
    int fd = cc__os_spare_fd();
    if (fd >= 0) (void)cc__os_close(fd);
    return fd >= 0;
}

/* Accepts with the spare descriptor and aborts, so that waiting clients get an answer; until others are free. */
static void shed(struct server *s) {
    CCConn *conn;
    for (int i = 0; i < SHED_AT_A_TIME && s->reserve >= 0 && !has_descriptor(); i++) {
        (void)cc__os_close(s->reserve);
        bool accepted = cc_accept_try(s->listener, &conn) == 0;
        if (accepted) {
            (void)cc__add(&s->listener->counts.shed, 1);
            cc_abort(conn);
        }
        s->reserve = cc__os_spare_fd();
        if (!accepted) return;
    }
}

/* Pauses until a handler has ended, or for a while. */
static int back_off(struct server *s, int error) {
    static _Atomic uint32_t said;
    uint64_t longest = s->options.backoff_ms != 0 ? s->options.backoff_ms : BACKOFF_MS;
    if (!cc__swap(&said, 1))
        cc__warn("cc_serve cannot accept connections: %s; it pauses and tries again%s", cc__error_name(error),
                 error == EMFILE ? " (raise the limit of descriptors, ulimit -n, or set max_conns below it)" : "");
    if (s->pause_ms >= longest && (error == EMFILE || error == ENFILE)) shed(s);
    s->pause_ms = s->pause_ms == 0 ? BACKOFF_FIRST_MS : s->pause_ms * 2;
    if (s->pause_ms > longest) s->pause_ms = longest;
    (void)cc__add(&s->listener->counts.pauses, 1);
    cc__set_seq(&s->is_short, 1);
    int why = cc_event_wait_until(&s->ended, cc_after_ms(s->pause_ms));
    cc__set(&s->is_short, 0);
    (void)cc_event_reset(&s->ended);
    return why == ETIMEDOUT || why == ENOMEM ? 0 : why;
}

/* ---- the loop ---- */

/* Takes a slot; 0, or the error that ends the server. Also waits for `stopped`: without accepting it would not notice
 * that the listener was closed. */
static int take_slot(struct server *s) {
    if (cc_cancelled()) return ECANCELED;
    if (s->options.max_conns == 0 || cc_sem_acquire_try(&s->slots) == 0) return 0;
    CCCase cases[] = {CC_EVENT_CASE(&s->listener->stopped), CC_ACQUIRE_CASE(&s->slots)};
    size_t chosen = 0;
    int error = cc_select_ordered(cases, array_len(cases), CC_SELECT_FIRST, CC_FOREVER, &chosen);
    return error != 0 ? error : chosen == 0 ? EBADF : 0;
}

static int accept_all(struct server *s) {
    for (;;) {
        CCConn *conn;
        if (s->reserve < 0) s->reserve = cc__os_spare_fd(); /* another thread was faster at the last shedding */
        int error = take_slot(s);
        if (error != 0) return error;
        if (cc__get(&s->has_no_stack)) {
            cc__set(&s->has_no_stack, 0);
            error = ENOMEM;
        } else {
            error = cc_accept(s->listener, &conn);
        }
        if (error == 0) {
            s->pause_ms = 0;
            error = start_handler(s, conn);
            if (error == 0) continue;
        }
        if (s->options.max_conns != 0) (void)cc_sem_release(&s->slots, 1);
        if (is_want(error)) error = back_off(s, error);
        if (error != 0) return error;
    }
}

/* Cancels the handlers after the grace period, which applies to all of them or only to shielded ones. */
static void drain(struct server *s) {
    bool shielded = cc_shield_begin(), has_grace = s->options.grace_ms != 0;
    bool for_shields = has_grace && s->options.grace_for_shields;
    if (for_shields) (void)cc_nursery_cancel(s->handlers);
    int error = has_grace ? cc_nursery_wait_until(s->handlers, cc_after_ms(s->options.grace_ms)) : ETIMEDOUT;
    if (error == ETIMEDOUT || error == ECANCELED) {
        (void)cc__add(&s->listener->counts.cancelled, cc__get(&s->open));
        (void)cc_nursery_cancel(s->handlers);
        if (for_shields) cc__scope_pierce(&s->handlers->scope);
    }
    (void)cc_nursery_wait(s->handlers); /* its result was counted already */
    (void)cc_nursery_free(s->handlers); /* SERVE-1 */
    cc_shield_end(shielded);
}

static int serve(struct server *s) {
    int error = accept_all(s);
    cc__listener_stop(s->listener);
    drain(s);
    if (s->reserve >= 0) (void)cc__os_close(s->reserve);
    cc__listener_drop(s->listener);
    cc__mem_free(s);
    return error == ECANCELED || error == EBADF ? 0 : error;
}

static void *serve_in_nursery(void *arg) {
    int error = serve(arg);
    return error == 0 ? NULL : cc_fail(error, "a server cannot accept connections any more");
}

int cc_serve(CCNursery *nursery, CCListener *listener, CCConnFn fn, void *arg, const CCServeOptions *options) {
    CC_KEEP_ERRNO;
    if (listener == NULL || fn == NULL) return EINVAL;
    if (options != NULL && (cc__reserved_used(options) || options->max_conns > CC_SEM_MAX)) return EINVAL;
    struct server *s = cc__mem_alloc_small(sizeof *s);
    if (s == NULL) return ENOMEM;
    s->listener = listener;
    s->fn = fn;
    s->arg = arg;
    if (options != NULL) s->options = *options;
    s->slots = (CCSem)CC_SEM_INIT(s->options.max_conns);
    s->handlers =
        cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .mode = CC_NURSERY_KEEP_GOING, .name = "cc_serve"});
    int error = s->handlers == NULL ? ENOMEM : 0;
    if (error == 0) s->handlers->unstarted = refuse;
    cc__listener_keep(listener);
    s->reserve = cc__os_spare_fd();
    if (error == 0 && nursery == NULL) return serve(s);
    if (error == 0)
        error = cc_nursery_spawn_ex(nursery, NULL, serve_in_nursery, s, &(CCSpawnOptions){.name = "cc_serve"});
    if (error != 0) {
        if (s->handlers != NULL) (void)cc_nursery_free(s->handlers);
        if (s->reserve >= 0) (void)cc__os_close(s->reserve);
        cc__listener_drop(listener);
        cc__mem_free(s);
    }
    return error;
}

int cc_serve_stats(CCListener *l, CCServeStats *stats) {
    if (l == NULL || stats == NULL) return EINVAL;
    struct serve_counts *c = &l->counts;
    *stats = (CCServeStats){
        .accepted = cc__get(&c->accepted),
        .open = cc__get(&c->open),
        .most_open = cc__get(&c->most_open),
        .failed = cc__get(&c->failed),
        .panicked = cc__get(&c->panicked),
        .pauses = cc__get(&c->pauses),
        .shed = cc__get(&c->shed),
        .cancelled = cc__get(&c->cancelled),
    };
    return 0;
}
