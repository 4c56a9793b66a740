/* view.c - taking views. */
#include "inspect/view.h"

#include "base/utf8.h"
#include "inspect/layout.h"
#include "inspect/sample.h"
#include "inspect/symbol.h"
#include "lock/mutex.h"
#include "os/safe_copy.h"

#include <string.h>

/* Makes the linker include the table: a program that can view its fibers can be inspected from outside. */
__attribute__((used)) static const struct layout *const layout = &cc__layout;

/* Fields that are not atomic, because their owners do not need that; a view checks the state word after reading them.
 */
struct raw {
    uint32_t generation;
    const void *site;
    CCTaskFn fn;
    struct context context;
};

static CC_NOINLINE CC_NO_TSAN void read_raw(struct fiber *f, struct raw *raw) { /* VIEW-3 */
    const volatile struct fiber *v = f;
    raw->generation = cc__get(&f->generation) & 0x7fffffffu;
    raw->site = (const void *)v->site;
    raw->fn = v->fn;
    const volatile unsigned char *from = (const volatile unsigned char *)&v->context;
    unsigned char *to = (unsigned char *)&raw->context;
    for (size_t i = 0; i < sizeof raw->context; i++) to[i] = from[i];
}

CC_NOINLINE CC_NO_TSAN uint32_t cc__view_slot(const struct fiber *f) {
    return ((const volatile struct fiber *)f)->slot;
}

/* Copies the name as far as it can be shown, and terminates it. */
static CC_NOINLINE CC_NO_TSAN __attribute__((no_sanitize("address"))) void read_name(const volatile char *from,
                                                                                     char *to) {
    size_t n = 0;
    for (char c; n < CC_FIBER_NAME_MAX - 1 && (c = from[n]) != '\0'; n++) to[n] = c;
    to[n] = '\0';
    cc__utf8_cut(to);
}

void cc__view_name(struct fiber *f, char *name) {
    const struct stack *s = cc__get(&f->stack);
    name[0] = '\0';
    if (s == NULL) return;
    uintptr_t cold = (uintptr_t)cc__get(&s->cold), low = (uintptr_t)s->base, high = low + cc__stack_size(s);
    if (cold >= low && cold <= high - sizeof(struct fiber_cold)) read_name(((struct fiber_cold *)cold)->name, name);
}

static void find_stack(struct view *v, const struct stack *s) {
    v->started = true;
    v->low = (uintptr_t)s->base + cc__stack_guard_size(s);
    v->high = (uintptr_t)s->base + cc__stack_size(s);
    cc__view_name(v->fiber, v->name);
}

/* The stack pointer where it stopped, and its frames if wanted. */
static void find_place(struct view *v, const struct context *context, bool frames) {
    struct place place;
    if (!cc__context_place(context, &place) || place.sp < v->low || place.sp >= v->high) return;
    v->sp = place.sp;
    if (!frames) return;
    struct picture p = cc__picture_parked(&place, v->low, v->high);
    v->frames = cc__unwind(&p, v->frame, VIEW_FRAMES, &v->doubt);
}

static void find_park(struct view *v) {
    struct fiber *f = v->fiber;
    v->reason = cc__word_reason(v->word);
    v->object = cc__fiber_object(f);
    v->timed = cc__park_object(v->reason) == OBJECT_TIME && !v->started;
    v->to = UINT64_MAX;
    unsigned owner = cc__word_owner(v->word);
    if (owner != 0) cc__turn_log_find(&cc__sched.workers[owner - 1].turn_log, cc__fiber_turn(f), &v->from, &v->to);
}

/* One attempt. False: the fiber moved meanwhile. */
static bool look(struct view *v, bool frames, bool sample) {
    struct fiber *f = v->fiber;
    struct raw raw;
    read_raw(f, &raw);
    v->generation = raw.generation;
    v->site = raw.site;
    v->fn = raw.fn;
    v->scope = cc__scope_of(cc__get(&f->scope));
    v->worker = (int)cc__word_owner(v->word) - 1;
    v->frames = 0;
    v->doubt = (struct doubt){0};
    v->sp = v->low = v->high = 0;
    v->name[0] = '\0';
    const struct stack *s = cc__get(&f->stack);
    v->started = false;
    if (s != NULL) find_stack(v, s);
    if (v->state == FIBER_PARKED) find_park(v);
    if (v->started && v->state == FIBER_RUNNING) {
        int tid = v->worker >= 0 ? cc__get(&cc__sched.workers[v->worker].remote.tid) : 0;
        if (frames && sample && tid != 0)
            v->frames =
                cc__sample_thread(tid, (const void *)v->low, (const void *)v->high, v->frame, VIEW_FRAMES, &v->doubt);
    } else if (v->started) {
        find_place(v, &raw.context, frames);
    }
    return cc__get_acquire(&f->word) == v->word;
}

bool cc__view_take(uint32_t slot, bool frames, struct view *v) { /* VIEW-1 */
    struct fiber *f = cc__pool_at(slot);
    if (f == NULL) return false;
    *v = (struct view){.fiber = f, .slot = slot};
    for (int tries = 0; tries < 4; tries++) {
        v->word = cc__get_acquire(&f->word);
        v->state = cc__word_state(v->word);
        if (v->state == FIBER_IDLE || v->state == FIBER_DONE) return false;
        if (look(v, frames, tries == 0)) return true;
    }
    v->moves = true;
    v->frames = 0;
    v->object = 0;
    v->scope = NULL;
    return true;
}

uint64_t cc__view_count(void) {
    uint64_t n = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        enum fiber_state state = cc__word_state(cc__get(&cc__pool_at(slot)->word));
        n += state != FIBER_IDLE && state != FIBER_DONE;
    }
    return n;
}

/* ---- trimming ---- */

enum place_kind { PLACE_USERS = 1, PLACE_INSIDE, PLACE_SCHEDULER };

static enum place_kind find_kind(const void *address) {
    struct symbol symbol;
    cc__symbol_find(address, &symbol);
    const char *f = symbol.function;
    if (strncmp(f, "cc__run_", 8) == 0 || strcmp(f, "cc__context_first") == 0 || strcmp(f, "cc__guard") == 0 ||
        strcmp(f, "cc__context_call_on") == 0 || strncmp(f, "cc__escape", 10) == 0)
        return PLACE_SCHEDULER;
    bool is_call = strncmp(f, "cc_", 3) == 0 && f[3] != '_';
    return symbol.ours && !is_call ? PLACE_INSIDE : PLACE_USERS;
}

/* Cached: ten thousand fibers have a dozen different frames. */
static enum place_kind kind_of(const void *address) {
    static struct {
        const void *address;
        enum place_kind kind;
    } known[256];
    size_t at = ((uintptr_t)address >> 2) % array_len(known);
    if (known[at].address != address) {
        known[at].kind = find_kind(address);
        known[at].address = address;
    }
    return known[at].kind;
}

void cc__view_trim(struct view *v) {
    unsigned first = 0, end = 0;
    if (v->state != FIBER_RUNNING || v->fiber == cc__sched_current(cc__worker())) /* or it is the caller */
        while (first < v->frames && kind_of(v->frame[first]) == PLACE_INSIDE) first++;
    if (first == v->frames) first = 0; /* nothing would be left */
    for (end = first; end < v->frames && kind_of(v->frame[end]) != PLACE_SCHEDULER;) end++;
    if (end < v->frames) v->doubt.cut = false; /* the frames that are shown are complete */
    v->doubt.guessed >>= first;
    v->frames = end - first;
    memmove(v->frame, v->frame + first, v->frames * sizeof v->frame[0]);
}

/* ---- the objects of waits ---- */

/* Whether it is a fiber's record: the frame that it was read from may be in use for something else by now. */
static bool is_record(const void *object) {
    uintptr_t at = (uintptr_t)object, low = cc__pool_slab_of(at);
    return low != 0 && (at - low) % sizeof(struct fiber) == 0;
}

bool cc__wait_all(struct wait_what what, struct arms *all) {
    enum wait_object kind = cc__park_object(what.reason);
    if ((kind != OBJECT_ARMS && kind != OBJECT_FD) || !cc__safe_copy(all, what.object, sizeof *all)) return false;
    return kind != OBJECT_ARMS || (all->count <= all->cases && all->cases <= CC_SELECT_MAX);
}

uint32_t cc__wait_arms(struct wait_what what, struct arm *arms, uint32_t max) {
    struct arms all;
    if (!cc__wait_all(what, &all)) return 0;
    uint32_t n = all.count < max ? all.count : max;
    if (n > 0 && !cc__safe_copy(arms, all.first, n * sizeof *arms)) return 0;
    for (uint32_t i = 0; i < n; i++)
        if (arms[i].kind == CC_CASE_JOIN && !is_record(arms[i].object)) return 0;
    return all.count;
}

uint64_t cc__wait_held_by(struct wait_what what) {
    struct mutex mutex;
    CCRWLock rw;
    CCOnce once;
    enum wait_object object = cc__park_object(what.reason);
    if (object == OBJECT_MUTEX && cc__safe_copy(&mutex, what.object, sizeof mutex))
        return cc__get(&mutex.word) != 0 ? cc__get(&mutex.owner) : 0;
    if (object == OBJECT_RWLOCK && cc__safe_copy(&rw, what.object, sizeof rw))
        return rw.word & 1 ? rw.owner : 0; /* readers are not recorded */
    if (object == OBJECT_ONCE && cc__safe_copy(&once, what.object, sizeof once)) return once.owner; /* while it runs */
    return 0;
}

struct fiber *cc__wait_holder(struct wait_what what, enum holder *kind) {
    uint64_t holder = cc__wait_held_by(what);
    *kind = holder == 0 ? HOLDER_NOBODY : HOLDER_IS_THREAD;
    if (holder == 0 || (holder & HOLDER_THREAD)) return NULL;
    bool ended = cc__holder_has_ended(holder);
    *kind = ended ? HOLDER_HAS_ENDED : HOLDER_IS_FIBER;
    return ended ? NULL : cc__pool_find(holder);
}
