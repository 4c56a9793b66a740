/* pthreads.c - hooks the calls that lock and unlock pthread mutexes.
 *
 * A table holds the mutexes that fibers have locked, with the ticket of the fiber's state word. Every wait increments
 * the ticket: if it differs at the unlock, the fiber has waited in between.
 *
 * PTHREADS-1  An entry is added after the mutex was locked and removed before it is unlocked: no other fiber's entry
 *             for the same mutex can exist in between.
 * PTHREADS-2  OS threads are not tracked: they may wait while they hold a mutex.
 * PTHREADS-3  Each call site that locks is reported once; and once more if the mutex is then unlocked on another
 *             thread, which is undefined behaviour.
 */
#include "base/fatal.h"
#include "diag/diag.h"
#include "diag/dump.h"
#include "inspect/plt_hook.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { LOCKED_MAX = 4096, SITES_MAX = 256 };

struct held {
    const pthread_mutex_t *mutex; /* NULL: free */
    struct fiber *fiber;
    CCFiberId id; /* of the fiber: its record may be reused */
    uint64_t ticket;
    const void *site;
    int thread;
    unsigned depth; /* of a recursive mutex */
};

static struct {
    struct lock lock;
    _Atomic unsigned used; /* entries beyond were never used */
    struct held held[LOCKED_MAX];
    unsigned sites;
    const void *site[SITES_MAX];
} table;

static bool reported; /* misuse is reported; else the table is only kept */

enum { LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, UNLOCK, HOOKS };
static struct plt_hook hooks[HOOKS];

/* ---- the table ---- */

static struct held *find_locked(const pthread_mutex_t *mutex) {
    for (unsigned i = 0; i < cc__get(&table.used); i++)
        if (table.held[i].mutex == mutex) return &table.held[i];
    return NULL;
}

static void note(pthread_mutex_t *mutex, const void *site) { /* PTHREADS-1 */
    struct fiber *f = cc__sched_current(cc__worker());
    if (f == NULL) return;
    cc__lock_take(&table.lock);
    struct held *h = find_locked(mutex);
    if (h != NULL && h->id == cc__pool_id(f)) {
        h->depth++;
    } else {
        /* An existing entry is stale: its fiber has ended with the mutex locked, or unlocked it by an unhooked call. */
        if (h == NULL) h = find_locked(NULL);
        unsigned used = cc__get(&table.used);
        if (h == NULL && used < LOCKED_MAX) {
            h = &table.held[used];
            cc__set(&table.used, used + 1);
        }
        if (h != NULL)
            *h = (struct held){mutex, f, cc__pool_id(f), cc__get(&f->word) & WORD_TICKET, site, cc__thread_id(), 1};
    }
    cc__lock_release(&table.lock);
}

/* True: this is the fiber's last unlock of the mutex, and its entry is removed. A stale entry is removed too. */
static bool remove_entry(const pthread_mutex_t *mutex, struct fiber *f, struct held *was) {
    bool last = false;
    cc__lock_take(&table.lock);
    struct held *h = find_locked(mutex);
    if (h != NULL) {
        *was = *h;
        last = h->id != cc__pool_id(f) || --h->depth == 0;
        if (last) h->mutex = NULL;
    }
    cc__lock_release(&table.lock);
    return last && was->id == cc__pool_id(f);
}

static bool is_new(const void *site, bool moved) { /* PTHREADS-3 */
    site = (const char *)site + moved;             /* a key of its own: no two return addresses are adjacent */
    cc__lock_take(&table.lock);
    bool known = table.sites == SITES_MAX;
    for (unsigned i = 0; i < table.sites && !known; i++) known = table.site[i] == site;
    if (!known) table.site[table.sites++] = site;
    cc__lock_release(&table.lock);
    return !known;
}

/* ---- reports ---- */

static void report(const struct held *was, uint64_t waits, bool moved, const void *unlocked_at) {
    struct out out = {0};
    char who[96], locked[400], unlocked[400];
    cc__describe_record(was->fiber, who, sizeof who);
    cc__symbol_text(was->site, locked, sizeof locked);
    cc__symbol_text(unlocked_at, unlocked, sizeof unlocked);
    cc__dump_begin();
    cc__out(&out, "ccc: locks: %s held pthread mutex %p across %llu waits%s\n", who, (const void *)was->mutex,
            (unsigned long long)waits, moved ? ", and has unlocked it on another OS thread, which is undefined" : "");
    cc__out(&out, "    locked by %s\n    unlocked by %s\n", locked, unlocked);
    cc__out(&out, "    a CCMutex may be held across waits; reported once per call site\n");
    cc__out_flush(&out);
    cc__dump_end();
}

void cc__pthreads_print(struct out *out, struct fiber *f) {
    for (unsigned i = 0; i < cc__get(&table.used); i++) {
        cc__lock_take(&table.lock);
        struct held h = table.held[i];
        cc__lock_release(&table.lock);
        if (h.mutex == NULL || h.id != cc__pool_id(f)) continue;
        char locked[400];
        cc__symbol_text(h.site, locked, sizeof locked);
        cc__out(out, "      holds pthread mutex %p, locked by %s\n", (const void *)h.mutex, locked);
    }
}

/* ---- the hooks ---- */

typedef int (*lock_fn)(pthread_mutex_t *);

/* PTHREADS-2. EOWNERDEAD: the last holder of a robust mutex has died, and the caller holds it now. */
#define WATCHED(name, which, parameters, arguments)                                \
    static int name parameters {                                                   \
        int rc = ((int(*) parameters)(uintptr_t)hooks[which].original)arguments;   \
        if (rc == 0 || rc == EOWNERDEAD) note(mutex, __builtin_return_address(0)); \
        return rc;                                                                 \
    }
WATCHED(watched_lock, LOCK, (pthread_mutex_t * mutex), (mutex))
WATCHED(watched_trylock, TRYLOCK, (pthread_mutex_t * mutex), (mutex))
WATCHED(watched_timedlock, TIMEDLOCK, (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until))
WATCHED(watched_clocklock, CLOCKLOCK, (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until),
        (mutex, clock, until))

static int watched_unlock(pthread_mutex_t *mutex) {
    lock_fn unlock = (lock_fn)(uintptr_t)hooks[UNLOCK].original;
    struct fiber *f = cc__sched_current(cc__worker());
    struct held was;
    if (f == NULL || !remove_entry(mutex, f, &was)) return unlock(mutex);
    uint64_t waits = ((cc__get(&f->word) & WORD_TICKET) - was.ticket) / WORD_TICKET_ONE;
    bool moved = was.thread != cc__thread_id();
    const void *here = __builtin_return_address(0);
    int rc = unlock(mutex);
    if (reported && (waits != 0 || moved) && is_new(was.site, moved)) report(&was, waits, moved, here);
    return rc;
}

static struct plt_hook hooks[HOOKS] = {
    [LOCK] = {"pthread_mutex_lock", (const void *)watched_lock, NULL},
    [TRYLOCK] = {"pthread_mutex_trylock", (const void *)watched_trylock, NULL},
    [TIMEDLOCK] = {"pthread_mutex_timedlock", (const void *)watched_timedlock, NULL},
    [CLOCKLOCK] = {"pthread_mutex_clocklock", (const void *)watched_clocklock, NULL},
    [UNLOCK] = {"pthread_mutex_unlock", (const void *)watched_unlock, NULL},
};

static void watch(void) {
    if (cc__plt_hook_install(hooks, HOOKS) < 0 && reported)
        cc__warn("CC_DEBUG_LOCKS: calls of pthread_mutex_lock cannot be watched: %s",
                 cc__inspect_missing() != NULL ? cc__inspect_missing() : "it is linked into the program");
}

void cc__diag_watch_locks(bool report) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    reported = report;
    pthread_once(&once, watch);
}

/* Only in a simulation, where nothing changes the table meanwhile. */
bool cc__upcall_holds_mutex(struct fiber *f) {
    for (unsigned i = 0; i < cc__get(&table.used); i++)
        if (table.held[i].mutex != NULL && table.held[i].id == cc__pool_id(f)) return true;
    return false;
}
