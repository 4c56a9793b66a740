/* describe.c - texts for fibers and what they wait for. */
#include "describe.h"

#include "blocking/blocking.h"
#include "fiber/state.h"
#include "lock/holder.h"
#include "modules.h"
#include "os/poller.h"
#include "os/uring.h"
#include "target.h"

#include <ccc/cc_select.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    enum wait_object object;
} reasons[] = {
#define REASON(id, name, object) {name, OBJECT_##object},
#include "fiber/reasons.def"
};

/* All fibers in three orders, each sorted on first use: lists of 100,000 are searched 100,000 times. */
enum order { BY_RECORD, BY_ID, ORDERS };
struct sorted {
    uint64_t key;
    const struct fiber_seen *fiber;
};
static struct sorted *sorted[ORDERS];
static bool is_sorted[ORDERS];
static const struct fiber_seen *all;
static size_t all_count;

static uint64_t key_of(const struct fiber_seen *f, enum order order) {
    return order == BY_RECORD ? f->at : (uint64_t)f->generation << 32 | (f->slot + 1);
}

static int by_key(const void *a, const void *b) {
    const struct sorted *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

void describe_among(const struct fiber_seen *fibers, size_t count) {
    all = fibers;
    all_count = count;
    memset(is_sorted, 0, sizeof is_sorted);
}

static void sort(enum order order) {
    bool done = true;
    sorted[order] = grow(sorted[order], all_count + 1, sizeof *sorted[order]);
    for (size_t i = 0; i < all_count; i++) {
        sorted[order][i] = (struct sorted){key_of(&all[i], order), &all[i]};
        done = done && (i == 0 || sorted[order][i - 1].key <= sorted[order][i].key);
    }
    if (!done) qsort(sorted[order], all_count, sizeof *sorted[order], by_key);
    is_sorted[order] = true;
}

/* The last one whose key is not above this; NULL: there is none. */
static const struct fiber_seen *find_fiber(enum order order, uint64_t key) {
    if (!is_sorted[order]) sort(order);
    size_t low = 0, high = all_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[order][middle].key <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? sorted[order][low - 1].fiber : NULL;
}

const char *describe_reason(unsigned reason) {
    return reason < array_len(reasons) ? reasons[reason].name : "?";
}

const char *describe_state(enum fiber_is state) {
    static const char *const names[] = {"IDLE", "RUNNABLE", "RUNNING", "PARKING", "PARKED", "DONE"};
    return (unsigned)state < array_len(names) ? names[state] : "?";
}

static enum wait_object object_of(unsigned reason) {
    return reason < array_len(reasons) ? reasons[reason].object : OBJECT_OTHER;
}

bool is_timed(const struct fiber_seen *f) {
    return f->state == IS_PARKED && object_of(f->reason) == OBJECT_TIME && !f->started;
}

bool waits_for_nursery(const struct fiber_seen *f) {
    return f->state == IS_PARKED && !f->moves && object_of(f->reason) == OBJECT_NURSERY;
}

void describe_fiber(const struct fiber_seen *f, char *text, size_t size) {
    const char *name = f->name != NULL ? f->name : "";
    char island[NAME_MAX_SEEN];
    runtime_island(f->worker, island);
    snprintf(text, size, "fiber %u.%u%s%s%s%s%s%s", f->slot, f->generation, cc__quoted(name),
             island[0] ? " on island '" : "", island, island[0] ? "'" : "");
}

/* ---- objects ---- */

void describe_record(uint64_t at, char *text, size_t size) {
    const struct fiber_seen *f = find_fiber(BY_RECORD, at);
    if (f != NULL && f->at == at)
        describe_fiber(f, text, size);
    else
        snprintf(text, size, "a fiber that has ended");
}

/* *sends: senders wait at it. */
static void describe_channel(uint64_t at, bool *sends, char *text, size_t size) {
    char name[NAME_MAX_SEEN];
    uint64_t senders;
    *sends = false;
    if (at == 0 || !target_read(&senders, at + layout.chan_senders, sizeof senders)) {
        snprintf(text, size, "a channel at %#lx", (unsigned long)at);
        return;
    }
    *sends = senders != at + layout.chan_senders;
    target_text(at + layout.chan_name, name, layout.chan_name_max);
    snprintf(text, size, "channel%s%s%s (%#lx, capacity %lu, %lu buffered%s)", cc__quoted(name), (unsigned long)at,
             (unsigned long)target_word(at + layout.chan_capacity, 8),
             (unsigned long)target_word(at + layout.chan_count, 8),
             target_word(at + layout.chan_closed, 1) ? ", closed" : "");
}

static void describe_process(uint64_t at, char *text, size_t size) {
    char name[NAME_MAX_SEEN];
    target_text(at + layout.process_name, name, layout.process_name_max);
    snprintf(text, size, "the end of process %d (%s)", (int)target_word(at + layout.process_pid, 4), name);
}

/* "fd 7 (pipe:[1234]) to become readable" */
static void describe_fd(uint64_t at, uint64_t events, char *text, size_t size) {
    bool reads = (events & POLLER_READ) != 0, writes = (events & POLLER_WRITE) != 0;
    int number = (int)target_word(at + layout.fd_number, 4);
    char path[64], kind[200] = "";
    snprintf(path, sizeof path, "/proc/%d/fd/%d", target_pid(), number);
    if (target_pid() == 0 || readlink(path, kind, sizeof kind - 1) < 0) kind[0] = '\0';
    for (char *c = kind; *c != '\0'; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    snprintf(text, size, "fd %d%s%s%s to become %s", number, kind[0] ? " (" : "", kind, kind[0] ? ")" : "",
             reads && writes ? "readable or writable"
             : reads         ? "readable"
             : writes        ? "writable"
                             : "closed by its peer");
}

static void describe_nursery(uint64_t at, char *text, size_t size) {
    bool found;
    struct scope_seen s = runtime_scope(at, &found);
    if (!found || !s.nursery)
        snprintf(text, size, "the end of a scope (%#lx)", (unsigned long)at);
    else if (s.children == 0)
        snprintf(text, size, "the end of nursery%s%s%s (%#lx)", cc__quoted(s.name), (unsigned long)at);
    else
        snprintf(text, size, "%u child%s of nursery%s%s%s (%#lx)", s.children, s.children == 1 ? "" : "ren",
                 cc__quoted(s.name), (unsigned long)at);
}

static void describe_arm(uint64_t at, bool select, char *text, size_t size) {
    uint64_t kind = target_word(at + layout.arm_kind, 1), object = target_word(at + layout.arm_object, 8);
    char what[DESCRIBED_MAX];
    bool sends;
    if (!select || kind == CC_CASE_READABLE || kind == CC_CASE_WRITABLE) {
        describe_fd(object, target_word(at + layout.arm_events, 1), text, size);
    } else if (kind == CC_CASE_EXITED) {
        describe_process(object, text, size);
    } else if (kind == CC_CASE_KEY) {
        snprintf(text, size, "wake key %#lx", (unsigned long)object);
    } else if (kind == CC_CASE_EVENT || kind == CC_CASE_ACQUIRE) {
        snprintf(text, size, "%s %#lx", kind == CC_CASE_EVENT ? "event" : "a permit of semaphore",
                 (unsigned long)object);
    } else if (kind == CC_CASE_NURSERY_END) {
        describe_nursery(object, text, size);
    } else if (kind == CC_CASE_JOIN) {
        describe_record(object, what, sizeof what);
        snprintf(text, size, "the end of %.200s", what);
    } else {
        describe_channel(object, &sends, what, sizeof what);
        snprintf(text, size, "%s %.200s", kind == CC_CASE_SEND ? "send on" : "receive from", what);
    }
}

/* A select of which no case has an object that could make it ready. */
static void describe_no_arms(uint64_t at, char *text, size_t size) {
    unsigned cases = (unsigned)target_word(at + layout.arms_cases, 2);
    bool timed = target_word(at + layout.arms_timed, 1) != 0, cancel = target_word(at + layout.arms_cancel, 1) != 0;
    const char *what = timed ? (cancel ? "a point in time, or a cancellation" : "a point in time")
                             : (cancel ? "a cancellation" : "nothing");
    if (cases == 0)
        snprintf(text, size, "for %s, in a select without cases", what);
    else if (timed || cancel)
        snprintf(text, size, "for %s: nothing else can end its select of %u case%s", what, cases,
                 cases == 1 ? "" : "s");
    else
        snprintf(text, size, "for %s: none of the cases of its select (%u) can ever be ready", what, cases);
}

static void describe_arms(uint64_t at, bool select, char *text, size_t size) {
    enum { SHOWN = 3 };
    uint64_t first = target_word(at + layout.arms_first, 8), count = target_word(at + layout.arms_count, 4);
    if (select && count == 0) {
        describe_no_arms(at, text, size);
        return;
    }
    bool timed = select && target_word(at + layout.arms_timed, 1) != 0;
    bool cancel = select && target_word(at + layout.arms_cancel, 1) != 0;
    unsigned ends = (unsigned)count + timed + cancel;
    const char *noun = !select ? "descriptors" : ends == 1 ? "case" : "cases";
    int n = select || count != 1 ? snprintf(text, size, "for the first of %u %s: ", ends, noun)
                                 : snprintf(text, size, "for ");
    for (uint64_t i = 0; i < count && i < SHOWN && n > 0 && (size_t)n < size; i++) {
        char arm[DESCRIBED_MAX];
        describe_arm(first + i * layout.arm_size, select, arm, sizeof arm);
        n += snprintf(text + n, size - (size_t)n, "%s%s", i == 0 ? "" : "; ", arm);
    }
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "%s%s%s", count > SHOWN ? "; ..." : "", timed ? "; a point in time" : "",
                 cancel ? "; a cancellation" : "");
}

/* The holder as it was recorded (lock/holder.h). by: "held by". */
static void describe_holder(const char *by, uint64_t owner, char *text, size_t size) {
    text[0] = '\0';
    if (owner == 0) return;
    if (owner & HOLDER_THREAD) {
        snprintf(text, size, ", %s OS thread %d", by, HOLDER_TID(owner));
        return;
    }
    const struct fiber_seen *f = find_fiber(BY_ID, owner);
    if (f != NULL && key_of(f, BY_ID) == owner) {
        char who[256];
        describe_fiber(f, who, sizeof who);
        snprintf(text, size, ", %s %s", by, who);
    } else {
        snprintf(text, size, ", %s fiber %u.%u, which has ended", by, (uint32_t)owner - 1, (uint32_t)(owner >> 32));
    }
}

static void describe_lock(enum wait_object kind, uint64_t at, char *text, size_t size) {
    char holder[300] = "";
    bool mutex = kind == OBJECT_MUTEX;
    uint64_t word = target_word(at + (mutex ? layout.mutex_word : layout.rwlock_word), 4);
    unsigned readers = mutex || (word & 1) != 0 ? 0 : (unsigned)(word & 0x7fffffff) / 2; /* they leave no names */
    if (readers != 0)
        snprintf(holder, sizeof holder, ", held by %u reader%s", readers, readers == 1 ? "" : "s");
    else if (mutex ? word != 0 : (word & 1) != 0)
        describe_holder("held by", target_word(at + (mutex ? layout.mutex_owner : layout.rwlock_owner), 8), holder,
                        sizeof holder);
    snprintf(text, size, "for %s %#lx%s", mutex ? "mutex" : "reader-writer lock", (unsigned long)at, holder);
}

static void describe_once(uint64_t at, char *text, size_t size) {
    char runner[300];
    describe_holder("run by", target_word(at + layout.once_owner, 8), runner, sizeof runner);
    snprintf(text, size, "for once %#lx%s", (unsigned long)at, runner);
}

static void describe_call(uint64_t at, char *text, size_t size) {
    char function[DESCRIBED_MAX / 2];
    uint64_t fn = target_word(at + layout.call_fn, 8);
    modules_name(fn + 1, function, sizeof function);
    if (fn == 0)
        snprintf(text, size, "for a blocking call");
    else
        snprintf(text, size, "for a blocking call%s: %s",
                 target_word(at + layout.call_state, 4) == CALL_QUEUED ? ", which has not begun" : "", function);
}

void describe_wait(unsigned reason, uint64_t object, char *text, size_t size) {
    char what[DESCRIBED_MAX];
    bool sends;
    switch (object_of(reason)) {
    case OBJECT_PROCESS:
        describe_process(object, what, sizeof what);
        snprintf(text, size, "for %.300s", what);
        break;
    case OBJECT_CHANNEL:
        describe_channel(object, &sends, what, sizeof what);
        snprintf(text, size, "%s %.300s", sends ? "to send on" : "to receive from", what);
        break;
    case OBJECT_ARMS:
    case OBJECT_FD:
        describe_arms(object, object_of(reason) == OBJECT_ARMS, text, size);
        break;
    case OBJECT_TASK:
        describe_record(object, what, sizeof what);
        snprintf(text, size, "for the end of %.300s", what);
        break;
    case OBJECT_MUTEX:
    case OBJECT_RWLOCK:
        describe_lock(object_of(reason), object, text, size);
        break;
    case OBJECT_ONCE:
        describe_once(object, text, size);
        break;
    case OBJECT_NURSERY:
        describe_nursery(object, what, sizeof what);
        snprintf(text, size, "for %.300s", what);
        break;
    case OBJECT_CALL:
        describe_call(object, text, size);
        break;
    case OBJECT_FILE:
        snprintf(text, size, "for io_uring to %s descriptor %d",
                 target_word(object + layout.uring_kind, 4) == URING_READ ? "read" : "sync",
                 (int)target_word(object + layout.uring_fd, 4));
        break;
    case OBJECT_TIME:
        snprintf(text, size,
                 object == (uintptr_t)SLEEP_FOREVER ? "for a cancellation: it sleeps without a deadline"
                                                    : "for a point in time");
        break;
    default:
        snprintf(text, size, "for %s %#lx", describe_reason(reason), (unsigned long)object);
    }
}

/* ---- time ---- */

static void put_seconds(char *text, size_t size, uint64_t ns) {
    double s = (double)ns * 1e-9;
    snprintf(text, size, s < 10 ? "%.3g" : s < 1000 ? "%.1f" : "%.0f", s);
}

void describe_since(uint64_t from, uint64_t to, uint64_t now, char *text, size_t size) {
    uint64_t least = to < now ? now - to : 0, most = from != 0 && from < now ? now - from : least;
    char a[32], b[32];
    put_seconds(a, sizeof a, least);
    put_seconds(b, sizeof b, most);
    if (most - least <= most / 10 + 1000 * 1000) /* they differ by less than a tenth: one figure is enough */
        snprintf(text, size, "for %s s", b);
    else
        snprintf(text, size, "for %s to %s s", a, b);
}
