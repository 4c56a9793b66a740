/* describe.c - finding the words. */
#include "diag/dump.h"

#include "chan/chan.h"
#include "lock/wait_word.h"
#include "os/safe_copy.h"

#include <stdio.h>

void cc__describe_fiber(const struct view *v, char *text, size_t size) {
    snprintf(text, size, "fiber %u.%u%s%s%s", v->slot, v->generation, v->name[0] ? " '" : "", v->name,
             v->name[0] ? "'" : "");
}

void cc__describe_tenant(struct fiber *f, char *text, size_t size) {
    struct view v;
    if (f != NULL && cc__view_take(cc__view_slot(f), false, &v))
        cc__describe_fiber(&v, text, size);
    else
        snprintf(text, size, "a fiber that has ended");
}

/* ---- objects ---- */

/* "channel 'jobs' (0x..., capacity 16, 3 buffered)"; *sends: senders wait at it. */
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
    snprintf(text, size, "channel%s%s%s (%p, capacity %zu, %zu buffered%s)", ch.name[0] ? " '" : "", ch.name,
             ch.name[0] ? "'" : "", (const void *)at, ch.capacity, cc__get(&ch.count),
             cc__get(&ch.closed) ? ", closed" : "");
}

static void describe_queue(const CCChan *at, char *text, size_t size) {
    char channel[DESCRIBE_MAX];
    bool sends;
    describe_channel(at, &sends, channel, sizeof channel);
    snprintf(text, size, "%s %s", sends ? "to send on" : "to receive from", channel);
}

static void describe_select(struct wait_what what, char *text, size_t size) {
    enum { SHOWN = 3 };
    struct arm arms[SHOWN];
    uint32_t count = cc__wait_arms(what, arms, SHOWN);
    int at = snprintf(text, size, "for the first of %u cases", count);
    for (uint32_t i = 0; i < count && i < SHOWN && at > 0 && (size_t)at < size; i++) {
        char object[DESCRIBE_MAX];
        bool sends;
        if (arms[i].kind == CC_CASE_JOIN)
            cc__describe_tenant(arms[i].object, object, sizeof object);
        else
            describe_channel(arms[i].object, &sends, object, sizeof object);
        at += snprintf(text + at, size - (size_t)at, "%s%s %s", i == 0 ? ": " : "; ",
                       arms[i].kind == CC_CASE_JOIN   ? "the end of"
                       : arms[i].kind == CC_CASE_SEND ? "send on"
                                                      : "receive from",
                       object);
    }
    if (count > SHOWN && at > 0 && (size_t)at < size) snprintf(text + at, size - (size_t)at, "; ...");
}

static void describe_lock(struct wait_what what, char *text, size_t size) {
    char holder[96] = "";
    bool thread;
    struct fiber *f = cc__wait_holder(what, &thread);
    if (f != NULL)
        cc__describe_tenant(f, holder, sizeof holder);
    else if (thread)
        snprintf(holder, sizeof holder, "an OS thread");
    snprintf(text, size, "for %s %p%s%s", what.reason == PARK_MUTEX ? "mutex" : "reader-writer lock", what.object,
             holder[0] ? ", held by " : "", holder);
}

static void describe_nursery(const struct scope *at, char *text, size_t size) {
    struct scope_seen s;
    if (!cc__scope_read(at, &s) || !s.nursery)
        snprintf(text, size, "for the end of a scope (%p)", (const void *)at);
    else
        snprintf(text, size, "for %u child%s of nursery%s%s%s (%p)", s.children, s.children == 1 ? "" : "ren",
                 s.name[0] ? " '" : "", s.name, s.name[0] ? "'" : "", (const void *)at);
}

void cc__describe_wait(struct wait_what what, char *text, size_t size) {
    char tenant[96];
    switch (what.reason) {
    case PARK_QUEUE:
        describe_queue(what.object, text, size);
        break;
    case PARK_SELECT:
        describe_select(what, text, size);
        break;
    case PARK_JOIN:
        cc__describe_tenant((struct fiber *)(uintptr_t)what.object, tenant, sizeof tenant);
        snprintf(text, size, "for the end of %s", tenant);
        break;
    case PARK_MUTEX:
    case PARK_RWLOCK:
        describe_lock(what, text, size);
        break;
    case PARK_NURSERY:
        describe_nursery(what.object, text, size);
        break;
    case PARK_SLEEP:
        snprintf(text, size, "for a point in time");
        break;
    default:
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
    /* A tenth apart: one figure says enough. */
    if (most - least <= most / 10 + 1000 * 1000)
        snprintf(text, size, "for %s s", b);
    else
        snprintf(text, size, "for %s to %s s", a, b);
}
