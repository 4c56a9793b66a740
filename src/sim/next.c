/* next.c - which fiber runs next in a simulation, and what time it is then.
 *
 * All ready fibers are in one array, out of which one is drawn: uniformly, or by random ranks that stay for a while, so
 * that some fibers fall far behind. The clock advances a little with every turn, and sometimes by more, as if the
 * machine had been busy elsewhere; when no fiber is ready it advances to the next event.
 */
#include "sim/sim.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/signals.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/next.h"

#include <string.h>

enum {
    TURN_NS = 500,
    PAUSES = 1024, /* once in this many turns the time advances by up to PAUSE_NS: about a microsecond a turn */
    PAUSE_NS = 2 * 1000 * 1000,
    RANKED_MAX = 64, /* comparing all ranks takes time */
    ROOM_MIN = 64,
};

static struct {
    struct fiber **fibers;
    uint32_t count, room;
} ready;

bool cc__sim_open(void) {
    ready.fibers = cc__mem_alloc(ROOM_MIN * sizeof(struct fiber *));
    if (ready.fibers == NULL) return false;
    ready.room = ROOM_MIN;
    ready.count = 0;
    cc__sim_turn(NULL);
    cc__sim_reseed();
    cc__set(&cc__sim.turn, TURN_PROGRAM);
    cc__sim.open = true;
    return true;
}

void cc__sim_close(void) {
    cc__sim.open = false;
    cc__mem_free(ready.fibers);
    ready.fibers = NULL;
}

/* ---- ready fibers ---- */

static bool grow(void) {
    struct fiber **more = cc__mem_alloc(2 * ready.room * sizeof(struct fiber *));
    if (more == NULL) return false;
    memcpy(more, ready.fibers, ready.count * sizeof(struct fiber *));
    cc__mem_free(ready.fibers);
    ready.fibers = more;
    ready.room *= 2;
    return true;
}

/* Those that have never run were started by the one that had the last turn (HOST-1). */
static void note_places(struct link *list) {
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) {
        struct fiber *f = cc__fiber_of(l);
        if ((cc__get(&f->word) & WORD_FRESH) && !cc__sim_spawned(f)) cc__upcall_host_gone(f);
    }
}

/* Takes the fibers of islands from their queues, and restores their owner. */
static uint32_t gather_islands(struct link *list) {
    uint32_t n = 0;
    for (unsigned i = 0; i < cc__get(&cc__sched.islands); i++) {
        struct worker *w = &cc__sched.workers[cc__sched.max + i];
        struct link own;
        cc__list_init(&own);
        cc__bias_enter(&w->runq.bias); /* its thread waits for the baton: we act as the owner */
        n += cc__runq_take_oldest(&w->runq, UINT32_MAX, true, &own);
        cc__bias_leave(&w->runq.bias);
        n += cc__inbox_take(w, &own);
        note_places(&own);
        n += cc__drivers_poll_own(w->core.owner - 1, cc__clock_now(), &own);
        for (struct link *l = cc__get(&own.next); l != &own; l = cc__get(&l->next))
            cc__state_move(cc__fiber_of(l), w->core.owner);
        cc__list_append_all(list, &own);
    }
    return n;
}

/* Collects fibers from every place where spawns and wakes put them. Those that do not fit, for lack of memory, stay. */
static void gather(struct worker *w) {
    struct link list;
    cc__list_init(&list);
    cc__bias_enter(&w->runq.bias);
    uint32_t n = cc__runq_take_oldest(&w->runq, UINT32_MAX, true, &list);
    cc__bias_leave(&w->runq.bias);
    n += cc__inbox_take(w, &list);
    n += cc__inject_take(NULL, UINT32_MAX, &list);
    note_places(&list);
    uint64_t now = cc__clock_now();
    uint32_t fired = cc__drivers_poll_own(w->core.owner - 1, now, &list) + cc__islands_poll_alarms(now, &list);
    cc__count_n(w, timers_fired, fired);
    n += fired + cc__drivers_poll_events(w->core.owner - 1, now, &list) + gather_islands(&list);
    for (; n > 0 && (ready.count < ready.room || grow()); n--)
        ready.fibers[ready.count++] = cc__fiber_of(cc__list_pop_front(&list));
    n = cc__island_route(w, &list, n);
    if (n > 0) (void)cc__runq_append(w, &list, n);
}

static bool program_ready(void) {
    const struct sim_program *p = &cc__sim.program;
    return !p->waits || cc__get_acquire(p->word) != p->seen || cc__clock_now() >= p->until; /* pairs with its waker */
}

/* ---- the draw ---- */

/* Of ready fiber i, or of the program, which is the last. By the record's number, because generations continue from one
 * start of the runtime to the next. */
static CC_NOINLINE CC_NO_TSAN uint64_t rank(uint32_t i) {
    uint64_t x = (i < ready.count ? ready.fibers[i]->slot + 1 : 0) + cc__sim.ranks * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93) ^ cc__sim.seed;
}

static uint32_t draw(uint32_t n) {
    if (cc__sim.shuffle == 0 || n > RANKED_MAX) return cc__sim_draw(n);
    if (cc__sim_draw(cc__sim.shuffle) == 0) cc__sim.ranks++;
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (rank(i) > rank(best)) best = i;
    return best;
}

static void pass_time(struct worker *w) {
    cc__clock_pass(TURN_NS);
    if (cc__sim_draw(PAUSES) == 0) cc__clock_pass(cc__sim_draw(PAUSE_NS));
    cc__turn_log_write(&w->turn_log, cc__get(&w->core.turns), cc__clock_now());
}

/* No fiber is ready. False: the runtime stops. */
static bool await_deadline(struct worker *w) {
    if (cc__get(&cc__sched.stop)) return false;
    if (cc__sched_active() == 0) {
        cc__idle_say_drained();
        if (program_ready()) return true;
    }
    uint64_t next = cc__drivers_next_due(w->core.owner - 1, true), alarm = cc__islands_next_alarm(true);
    if (alarm < next) next = alarm;
    for (unsigned i = 0; i < cc__get(&cc__sched.islands); i++) {
        uint64_t theirs = cc__drivers_next_due(cc__sched.max + i, true);
        if (theirs < next) next = theirs;
    }
    if (cc__sim.program.until < next) next = cc__sim.program.until;
    if (next != UINT64_MAX) {
        cc__clock_pass_to(next);
        return true;
    }
    cc__upcall_stuck();
    cc__sim_let_program(true); /* for ever: no thread gives the turn */
    return true;
}

struct fiber *cc__upcall_sim_next(struct worker *w) { /* SIM-3 */
    static const struct sim_program runs = {.waits = false};
    if (cc__get(&w->polled_at) != 0) { /* the first time */
        cc__set(&w->polled_at, 0);
        cc__sim_let_program(true);
    }
    for (;;) {
        cc__islands_sim_end();
        gather(w);
        uint32_t n = ready.count + program_ready();
        if (n == 0) {
            if (!await_deadline(w)) return NULL;
            continue;
        }
        pass_time(w);
        uint32_t drawn = draw(n);
        if (drawn < ready.count) {
            struct fiber *f = ready.fibers[drawn];
            ready.fibers[drawn] = ready.fibers[--ready.count];
            struct worker *worker = cc__island_worker(f);
            cc__sim_turn(f);
            if (worker == NULL) {
                cc__state_move(f, w->core.owner);
                return f;
            }
            cc__island_sim_run(worker, f);
            continue;
        }
        cc__sim.program = runs;
        cc__sim_turn(NULL);
        cc__sim_let_program(false);
    }
}
