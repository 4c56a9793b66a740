/* describe.c - fibers, waits and durations as text. */
#include "diag/dump.h"

#include "blocking/blocking.h"
#include "chan/chan.h"
#include "inspect/symbol.h"
#include "io/fd.h"
#include "io/uring.h"
#include "lock/holder.h"
#include "lock/wait_word.h"
#include "os/descriptor.h"
#include "os/safe_copy.h"
#include "process/process.h"
#include "sched/island.h"

#include <stdio.h>

/* NULL: the worker does not belong to an island. */
static const struct worker *island_of(int worker) {
    return worker >= (int)cc__sched.max ? &cc__sched.workers[worker] : NULL;
}

void cc__describe_fiber(const struct view *v, char *text, size_t size) {
    const struct worker *island = island_of(v->worker);
    struct island_name name = {{0}};
    if (island != NULL) name = cc__island_name(island);
    snprintf(text, size, "fiber %u.%u%s%s%s%s%s%s", v->slot, v->generation, cc__quoted(v->name),
             island != NULL ? " on island '" : "", name.text, island != NULL ? "'" : "");
}

void cc__describe_record(struct fiber *f, char *text, size_t size) {
    struct view v;
    if (f != NULL && cc__view_take(cc__view_slot(f), false, &v))
        cc__describe_fiber(&v, text, size);
    else
        snprintf(text, size, "a fiber that has ended");
}

/* ---- objects ---- */

/* "channel 'jobs' (0x..., capacity 16, 3 buffered)"; *sends: it has waiting senders. */
static void describe_channel(const CCChan *at, bool *sends, char *text, size_t size) {
    CCChan ch;
    *sends = false;
    if (at == NULL || !cc__safe_copy(&ch, at, sizeof ch)) {
        snprintf(text, size, "a channel at %p", (const void *)at);
        return;
    }
    /* CHAN-1: at most one of the lists is not empty. */
    *sends = cc__get(&ch.senders.next) != &at->senders;
    ch.name[sizeof ch.name - 1] = '\0';
    snprintf(text, size, "channel%s%s%s (%p, capacity %zu, %zu buffered%s)", cc__quoted(ch.name), (const void *)at,
             ch.capacity, cc__get(&ch.count), cc__get(&ch.closed) ? ", closed" : "");
}

static void describe_end(const CCProcess *at, char *text, size_t size) {
    CCProcess p;
    if (!cc__safe_copy(&p, at, sizeof p)) {
        snprintf(text, size, "the end of a process");
        return;
    }
    p.name[sizeof p.name - 1] = '\0';
    snprintf(text, size, "the end of process %d (%s)", p.os.pid, p.name);
}

static void describe_queue(const CCChan *at, char *text, size_t size) {
    char channel[DESCRIBE_MAX];
    bool sends;
    describe_channel(at, &sends, channel, sizeof channel);
    snprintf(text, size, "%s %s", sends ? "to send on" : "to receive from", channel);
}

/* "fd 7 (TCP 127.0.0.1:8080 <- 127.0.0.1:51234) to become readable" */
static void describe_fd(const struct arm *arm, char *text, size_t size) {
    struct io_fd fd;
    char kind[200];
    bool reads = (arm->events & POLLER_READ) != 0, writes = (arm->events & POLLER_WRITE) != 0;
    if (!cc__safe_copy(&fd, arm->object, sizeof fd)) {
        snprintf(text, size, "a descriptor");
        return;
    }
    cc__os_describe(fd.number, writes && !reads, kind, sizeof kind);
    snprintf(text, size, "fd %d (%s) to become %s", fd.number, kind,
             reads && writes ? "readable or writable"
             : reads         ? "readable"
             : writes        ? "writable"
                             : "closed by its peer");
}

/* "2 children of nursery 'kitchen' (0x5500)". Without children the wait is for another caller that runs the exit hooks,
 * or for a deadline that is just firing. */
static void describe_nursery(const struct scope *at, char *text, size_t size) {
    struct scope_seen s;
    if (!cc__scope_read(at, &s) || !s.nursery)
        snprintf(text, size, "the end of a scope (%p)", (const void *)at);
    else if (s.children == 0)
        snprintf(text, size, "the end of nursery%s%s%s (%p)", cc__quoted(s.name), (const void *)at);
    else
        snprintf(text, size, "%u child%s of nursery%s%s%s (%p)", s.children, s.children == 1 ? "" : "ren",
                 cc__quoted(s.name), (const void *)at);
}

static void describe_arm(const struct arm *arm, bool select, char *text, size_t size) {
    bool sends;
    if (!select || cc__arm_is_fd(arm)) {
        describe_fd(arm, text, size);
        return;
    }
    if (arm->kind == CC_CASE_EXITED) {
        describe_end(arm->object, text, size);
        return;
    }
    if (arm->kind == CC_CASE_KEY) {
        snprintf(text, size, "wake key %p", arm->object);
        return;
    }
    if (arm->kind == CC_CASE_EVENT || arm->kind == CC_CASE_ACQUIRE) {
        snprintf(text, size, "%s %p", arm->kind == CC_CASE_EVENT ? "event" : "a permit of semaphore", arm->object);
        return;
    }
    if (arm->kind == CC_CASE_NURSERY_END) {
        describe_nursery(arm->object, text, size);
        return;
    }
    int at = snprintf(text, size, "%s ",
                      arm->kind == CC_CASE_JOIN   ? "the end of"
                      : arm->kind == CC_CASE_SEND ? "send on"
                                                  : "receive from");
    if (at < 0 || (size_t)at >= size) return;
    if (arm->kind == CC_CASE_JOIN)
        cc__describe_record(arm->object, text + at, size - (size_t)at);
    else
        describe_channel(arm->object, &sends, text + at, size - (size_t)at);
}

/* A select without an object: all its cases are deadlines, cancellations or never ready. */
static void describe_no_arms(const struct arms *all, char *text, size_t size) {
    const char *what = all->timed ? (all->cancel ? "a point in time, or a cancellation" : "a point in time")
                                  : (all->cancel ? "a cancellation" : "nothing");
    if (all->cases == 0)
        snprintf(text, size, "for %s, in a select without cases", what);
    else if (all->timed || all->cancel)
        snprintf(text, size, "for %s: nothing else can end its select of %u case%s", what, all->cases,
                 all->cases == 1 ? "" : "s");
    else
        snprintf(text, size, "for %s: none of the cases of its select (%u) can ever be ready", what, all->cases);
}

/* A select, or a wait for descriptors. */
static void describe_arms(struct wait_what what, bool select, char *text, size_t size) {
    enum { SHOWN = 3 };
    struct arms all;
    struct arm arms[SHOWN];
    uint32_t count = cc__wait_arms(what, arms, SHOWN);
    if (count == 0) {
        if (select && cc__wait_all(what, &all) && all.count == 0)
            describe_no_arms(&all, text, size);
        else
            snprintf(text, size, select ? "in a select" : "for descriptors");
        return;
    }
    if (!select || !cc__wait_all(what, &all)) all.timed = all.cancel = false;
    uint32_t ends = count + all.timed + all.cancel;
    const char *noun = !select ? "descriptors" : ends == 1 ? "case" : "cases";
    int at = select || count != 1 ? snprintf(text, size, "for the first of %u %s: ", ends, noun)
                                  : snprintf(text, size, "for ");
    for (uint32_t i = 0; i < count && i < SHOWN && at > 0 && (size_t)at < size; i++) {
        char arm[DESCRIBE_MAX];
        describe_arm(&arms[i], select, arm, sizeof arm);
        at += snprintf(text + at, size - (size_t)at, "%s%s", i == 0 ? "" : "; ", arm);
    }
    if (at > 0 && (size_t)at < size)
        snprintf(text + at, size - (size_t)at, "%s%s%s", count > SHOWN ? "; ..." : "",
                 all.timed ? "; a point in time" : "", all.cancel ? "; a cancellation" : "");
}

/* Readers leave no names. */
static uint32_t readers_of(const CCRWLock *at) {
    CCRWLock rw;
    return cc__safe_copy(&rw, at, sizeof rw) && !(rw.word & 1) ? (rw.word & ~HAS_WAITERS) / 2 : 0;
}

static void describe_lock(struct wait_what what, char *text, size_t size) {
    char holder[96] = "";
    uint64_t id = cc__wait_held_by(what);
    bool ended = id != 0 && cc__holder_has_ended(id);
    if (id & HOLDER_THREAD)
        snprintf(holder, sizeof holder, "OS thread %d%s", cc__holder_tid(id), ended ? ", which has ended" : "");
    else if (ended)
        snprintf(holder, sizeof holder, "fiber %u.%u, which has ended", (uint32_t)id - 1, (uint32_t)(id >> 32));
    else if (id != 0)
        cc__describe_record(cc__pool_find(id), holder, sizeof holder);
    enum wait_object object = cc__park_object(what.reason);
    uint32_t readers = object == OBJECT_RWLOCK ? readers_of(what.object) : 0;
    if (readers != 0) snprintf(holder, sizeof holder, "%u reader%s", readers, readers == 1 ? "" : "s");
    const char *name = object == OBJECT_MUTEX ? "mutex" : object == OBJECT_ONCE ? "once" : "reader-writer lock";
    const char *by = object == OBJECT_ONCE ? ", run by " : ", held by ";
    snprintf(text, size, "for %s %p%s%s", name, what.object, holder[0] ? by : "", holder);
}

static void describe_barrier(const CCBarrier *at, char *text, size_t size) {
    CCBarrier b;
    int n = snprintf(text, size, "for barrier %p", (const void *)at);
    if (n > 0 && (size_t)n < size && cc__safe_copy(&b, at, sizeof b))
        snprintf(text + n, size - (size_t)n, ": %u of %u have arrived", b.arrived, b.parties);
}

/* "for a blocking call, lookup at names.c:12" */
static void describe_blocking(const struct blocking_call *at, char *text, size_t size) {
    struct blocking_call call;
    char function[200];
    if (!cc__safe_copy(&call, at, sizeof call) || call.fn == NULL) {
        snprintf(text, size, "for a blocking call");
        return;
    }
    cc__symbol_text((const char *)(uintptr_t)call.fn + 1, function, sizeof function);
    snprintf(text, size, "for a blocking call%s: %s", call.state == CALL_QUEUED ? ", which has not begun" : "",
             function);
}

/* "for io_uring to read descriptor 7" */
static void describe_file(const struct uring_wait *at, char *text, size_t size) {
    struct uring_wait wait;
    if (cc__safe_copy(&wait, at, sizeof wait))
        snprintf(text, size, "for io_uring to %s descriptor %d", wait.call.kind == URING_READ ? "read" : "sync",
                 wait.call.fd);
    else
        snprintf(text, size, "for io_uring");
}

void cc__describe_wait(struct wait_what what, char *text, size_t size) {
    char name[DESCRIBE_MAX];
    switch (cc__park_object(what.reason)) {
    case OBJECT_PROCESS:
        describe_end(what.object, name, sizeof name);
        snprintf(text, size, "for %s", name);
        break;
    case OBJECT_CHANNEL:
        describe_queue(what.object, text, size);
        break;
    case OBJECT_ARMS:
        describe_arms(what, true, text, size);
        break;
    case OBJECT_FD:
        describe_arms(what, false, text, size);
        break;
    case OBJECT_TASK:
        cc__describe_record((struct fiber *)(uintptr_t)what.object, name, sizeof name);
        snprintf(text, size, "for the end of %s", name);
        break;
    case OBJECT_MUTEX:
    case OBJECT_RWLOCK:
    case OBJECT_ONCE:
        describe_lock(what, text, size);
        break;
    case OBJECT_NURSERY:
        describe_nursery(what.object, name, sizeof name);
        snprintf(text, size, "for %s", name);
        break;
    case OBJECT_CALL:
        describe_blocking(what.object, text, size);
        break;
    case OBJECT_FILE:
        describe_file(what.object, text, size);
        break;
    case OBJECT_TIME:
        snprintf(text, size,
                 what.object == SLEEP_FOREVER ? "for a cancellation: it sleeps without a deadline"
                                              : "for a point in time");
        break;
    default:
        if (what.reason == PARK_BARRIER)
            describe_barrier(what.object, text, size);
        else
            snprintf(text, size, "for %s %p", cc__park_name(what.reason), what.object);
    }
}

/* ---- time ---- */

static int put_seconds(char *text, size_t size, uint64_t ns) {
    double s = (double)ns * 1e-9;
    return snprintf(text, size, s < 10 ? "%.3g" : s < 1000 ? "%.1f" : "%.0f", s);
}

void cc__describe_since(uint64_t from, uint64_t to, uint64_t now, char *text, size_t size) {
    uint64_t least = to < now ? now - to : 0, most = from != 0 && from < now ? now - from : least;
    char a[32], b[32];
    (void)put_seconds(a, sizeof a, least);
    (void)put_seconds(b, sizeof b, most);
    /* Within a tenth: one figure is enough. */
    if (most - least <= most / 10 + 1000 * 1000)
        snprintf(text, size, "for %s s", b);
    else
        snprintf(text, size, "for %s to %s s", a, b);
}
