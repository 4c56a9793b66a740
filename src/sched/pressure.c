/* pressure.c - whether there are enough workers, judged by sampling: the path of a fiber counts nothing for it.
 *
 * Pressure is the number of fibers in all queues, less the workers that search or sleep. Workers are added when it is
 * positive and a worker is stuck: it has been in one turn of one fiber for longer than `stuck_ns`. The reason matters:
 *
 *   blocked       the system reports that its thread sleeps: a CPU is free, and one more worker would use it
 *   computing     its thread has used the CPU, much of the time or for `stuck_ns`: no CPU is free, and one more worker
 *                 helps only if otherwise no waiting fiber gets a turn
 *   descheduled   its thread is runnable but not running, or naps because a thread that holds a lock of the library is
 *                 not running: more threads make that worse
 *   unknown       the system does not report it, as in a sandbox without /proc: treated as computing, so that a machine
 *                 that is busy with other processes does not look like one with free CPUs
 *
 * PRESSURE-1  While a worker is blocked, fewer than `base` are not, and fibers wait, workers are added, up to `max`:
 *             half as many again at a time. While a worker that was asked for has no thread, a worker that is blocked
 *             at the time of a tick counts, however short the time.
 * PRESSURE-2  While all are stuck and fibers wait, the same.
 * PRESSURE-3  When no fiber waits, no worker counts as stuck, however long it computes.
 */
#include "sched/pressure.h"

#include "os/clock.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/policy.h"
#include "trace/trace.h"

static _Atomic uint64_t stuck_ns = POLICY_STUCK_NS, grow_ns = POLICY_GROW_NS;

static struct {
    _Atomic uint64_t positive_samples, negative_samples, neg_streak_max, promoted;
    _Atomic int64_t current_pressure;
    _Atomic uint64_t gates[GATE_KINDS];
} stats;

/* Used by the sysmon thread only. */
static struct {
    uint64_t grow_at; /* not before */
    uint64_t neg_streak;
    enum gate last; /* reported last */
    bool failure_said;
} mine;

void cc__sysmon_set_pace(uint64_t stuck, uint64_t grow) {
    cc__set(&stuck_ns, stuck);
    cc__set(&grow_ns, grow);
}

uint64_t cc__pressure_pace(void) {
    return cc__get(&stuck_ns);
}

const char *cc__gate_name(enum gate gate) {
    static const char *const names[GATE_KINDS] = {
        [GATE_PASSED] = "passed",           [GATE_NO_WORK] = "no_work",     [GATE_IDLE_CAPACITY] = "idle_capacity",
        [GATE_NONPOSITIVE] = "nonpositive", [GATE_NOT_STUCK] = "not_stuck", [GATE_AT_CAP] = "at_cap",
        [GATE_DESCHEDULED] = "descheduled", [GATE_PROGRESS] = "progress",   [GATE_RATE_LIMITED] = "rate_limited",
        [GATE_NO_THREAD] = "no_thread",
    };
    return names[gate];
}

void cc__pressure_reset(void) {
    cc__set(&stats.positive_samples, 0);
    cc__set(&stats.negative_samples, 0);
    cc__set(&stats.neg_streak_max, 0);
    cc__set(&stats.promoted, 0);
    cc__set(&stats.current_pressure, 0);
    for (int i = 0; i < GATE_KINDS; i++) cc__set(&stats.gates[i], 0);
    mine.grow_at = mine.neg_streak = 0;
    mine.last = GATE_KINDS;
    mine.failure_said = false;
}

void cc__sysmon_stats(struct sysmon_stats *to) {
    to->positive_samples = cc__get(&stats.positive_samples);
    to->negative_samples = cc__get(&stats.negative_samples);
    to->neg_streak_max = cc__get(&stats.neg_streak_max);
    to->current_pressure = cc__get(&stats.current_pressure);
    to->promoted = cc__get(&stats.promoted);
    for (int i = 0; i < GATE_KINDS; i++) to->gates[i] = cc__get(&stats.gates[i]);
}

/* ---- how much waits ---- */

/* Fibers that wait for a worker. A heap whose first timer is due counts as one. */
static uint64_t waiting(uint64_t now) {
    uint64_t n = cc__inject_len();
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *w = &cc__sched.workers[i];
        n += cc__get(&w->runq.count) + cc__get(&w->remote.inbox_len);
        if (cc__drivers_next_due(i, false) <= now) n++;
    }
    if (cc__islands_next_alarm(false) <= now) n++;
    return n;
}

static int64_t record_pressure(uint64_t waits, uint64_t want) {
    int64_t pressure = (int64_t)waits - want_searching(want) - want_idle(want);
    cc__set(&stats.current_pressure, pressure);
    if (pressure > 0) cc__bump(&stats.positive_samples);
    if (pressure < 0) cc__bump(&stats.negative_samples);
    mine.neg_streak = pressure < 0 ? mine.neg_streak + 1 : 0;
    if (mine.neg_streak > cc__get(&stats.neg_streak_max)) cc__set(&stats.neg_streak_max, mine.neg_streak);
    return pressure;
}

/* ---- stuck workers ---- */

enum stuck { GETS_ON, DESCHEDULED, COMPUTING, UNKNOWN, BLOCKED };

/* The state of its thread; 'R' also if it has napped meanwhile. */
static char thread_state(struct worker *w) {
    uint32_t naps = cc__get(&w->remote.naps);
    char state = cc__thread_state(cc__get(&w->remote.tid));
    bool napped = naps % 2 != 0 || cc__get(&w->remote.naps) != naps;
    return napped ? 'R' : state;
}

/* The worker has been in one turn since sample->since: the first call reads its CPU time, later ones compare it. */
static enum stuck classify(struct worker *w, struct worker_sample *sample, uint64_t now, uint64_t threshold) {
    uint64_t cpu = cc__thread_cpu(w->thread);
    if (sample->cpu_at == 0) {
        sample->cpu_at = now;
        sample->cpu = cpu;
        return GETS_ON;
    }
    if (now - sample->since < threshold) return GETS_ON;
    if (cc__get(&w->remote.naps) % 2 != 0) return DESCHEDULED;
    uint64_t used = cpu != UINT64_MAX && sample->cpu != UINT64_MAX ? cpu - sample->cpu : 0;
    /* On a machine that is busy enough every thread's share stays small. */
    if (used > (now - sample->cpu_at) / COMPUTING_SHARE || used >= threshold) return COMPUTING;
    char state = thread_state(w);
    return state == 'R' ? DESCHEDULED : state == 0 ? UNKNOWN : BLOCKED;
}

struct census {
    unsigned open, kinds[BLOCKED + 1];
    uint64_t due;     /* when a worker that is not yet stuck will be */
    unsigned longest; /* the worker that has been stuck for the longest time, for the report */
    uint64_t ns;
};

/* Whether its thread sleeps in the middle of a turn. */
static bool blocked_now(struct worker *w) {
    if (cc__get(&w->core.current) == NULL) return false;
    char state = thread_state(w);
    return state != 'R' && state != 0;
}

static void take_census(struct worker_sample *samples, uint64_t now, struct census *c) {
    uint64_t threshold = cc__get(&stuck_ns);
    bool held_back = cc__sched_open() < cc__sched.asked;
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *w = &cc__sched.workers[i];
        if (!cc__worker_open(w)) continue;
        c->open++;
        /* A worker whose present turn is sampled for the first time is not stuck. */
        enum stuck kind = samples[i].since < now ? classify(w, &samples[i], now, threshold) : GETS_ON;
        if (kind == GETS_ON && held_back && blocked_now(w)) kind = BLOCKED;
        c->kinds[kind]++;
        if (kind == GETS_ON) {
            uint64_t due = samples[i].since + threshold;
            if (due < c->due) c->due = due > now ? due : now + threshold / 4 + 1;
        } else if (now - samples[i].since >= c->ns) {
            c->ns = now - samples[i].since;
            c->longest = i;
        }
    }
}

/* ---- more of them ---- */

static enum gate grow(const struct census *c, uint64_t waits, uint64_t now) {
    int error;
    unsigned added = cc__elastic_open(cc__policy_grow_by(c->open), &error);
    cc__set(&stats.promoted, cc__get(&stats.promoted) + added);
    mine.grow_at = now + cc__get(&grow_ns);
    if (added > 0)
        cc__event(workers_added, waits, c->kinds[BLOCKED], c->open, c->kinds[COMPUTING] + c->kinds[UNKNOWN],
                  c->kinds[DESCHEDULED], c->longest, c->ns, added, cc__sched_open());
    if (error == 0) return GATE_PASSED;
    mine.grow_at = now + NO_THREAD_NS;
    if (!mine.failure_said) cc__event(worker_failed, error);
    mine.failure_said = true;
    return GATE_NO_THREAD;
}

static enum gate decide(struct worker_sample *samples, uint64_t now, uint64_t waits, int64_t pressure, uint64_t *due) {
    if (waits == 0) return GATE_NO_WORK; /* PRESSURE-3 */
    if (want_idle(cc__get(&cc__sched.want)) != 0) return GATE_IDLE_CAPACITY;
    if (pressure <= 0) return GATE_NONPOSITIVE;
    struct census c = {.due = UINT64_MAX};
    take_census(samples, now, &c);
    *due = c.due;
    if (c.kinds[GETS_ON] == c.open) return GATE_NOT_STUCK;
    if (c.open >= cc__sched.max) return GATE_AT_CAP;
    if (c.kinds[DESCHEDULED] + c.kinds[GETS_ON] == c.open) return GATE_DESCHEDULED;
    bool cpu_free = c.kinds[BLOCKED] > 0 && c.open - c.kinds[BLOCKED] < cc__get(&cc__sched.base);
    if (!cpu_free && c.kinds[GETS_ON] > 0) return GATE_PROGRESS; /* PRESSURE-2 */
    if (now < mine.grow_at) {
        if (mine.grow_at < *due) *due = mine.grow_at;
        return GATE_RATE_LIMITED;
    }
    return grow(&c, waits, now);
}

uint64_t cc__pressure_sample(struct worker_sample *samples, uint64_t now) {
    uint64_t waits = waiting(now), due = UINT64_MAX;
    int64_t pressure = record_pressure(waits, cc__get(&cc__sched.want));
    enum gate gate = decide(samples, now, waits, pressure, &due);
    cc__bump(&stats.gates[gate]);
    if (gate != mine.last && gate != GATE_PASSED) cc__event(workers_kept, cc__sched_open(), waits, pressure, gate);
    mine.last = gate;
    return due;
}
