/* moments.c - copies the rings and sorts their records by time. */
#include "record/history.h"

#include "arch/cpu.h"
#include "base/mem.h"
#include "os/clock.h"
#include "sched/sched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

struct scale {
    unsigned level; /* 0 to 2 */
    bool cycles;
    uint64_t now_ns, now_cycles, since_ns, since_cycles;
};

static struct scale take_scale(void) {
    struct scale s = {.level = cc__get(&cc__recorder.recorded) - 1, .cycles = cc__get(&cc__recorder.cycles)};
    s.since_ns = cc__get(&cc__recorder.since_ns);
    s.since_cycles = cc__get(&cc__recorder.since_cycles);
    s.now_ns = cc__clock_now();
    s.now_cycles = cc__cpu_cycles();
    if (cc__clock_is_simulated() && s.now_ns < cc__get(&cc__recorder.last)) s.now_ns = cc__get(&cc__recorder.last);
    return s;
}

/* The time of a record in ns; `before`: of the previous record of its ring. */
static uint64_t time_of(const struct scale *s, struct worker *w, uint64_t head, uint64_t before) {
    uint64_t stamp = head >> RECORD_TIME_SHIFT, time, at_most;
    if (s->level == 0 && w != NULL) {
        cc__turn_log_find(&w->turn_log, stamp, &time, &at_most);
    } else {
        bool cycles = s->cycles && s->level != 0;
        uint64_t now = cycles ? s->now_cycles : s->now_ns;
        uint64_t age = (now - stamp) & RECORD_TIME_MASK; /* wraps around if the record was written after `now` */
        stamp = now - age;
        if (age > RECORD_TIME_MASK / 2) { /* that, or the stamp is of an earlier recording with another clock */
            uint64_t ahead = RECORD_TIME_MASK + 1 - age, since = (cycles ? cc__cpu_cycles() : cc__clock_now()) - now;
            stamp = now + (ahead < since ? ahead : since);
        }
        uint64_t passed = s->now_cycles - s->since_cycles;
        time = stamp;
        if (cycles && stamp <= s->since_cycles) time = s->since_ns;
        if (cycles && stamp > s->since_cycles)
            time = s->since_ns + (uint64_t)((double)(stamp - s->since_cycles) *
                                            ((double)(s->now_ns - s->since_ns) / (double)(passed != 0 ? passed : 1)));
    }
    return time > before ? time : before;
}

/* ---- copying ---- */

bool cc__moment_has_time(uint64_t head) {
    unsigned kind = cc__record_kind(head);
    return kind != REC_TEXT && kind != REC_SPAWN_AT && kind != REC_SPAWN_IN;
}

/* *oldest: raised to the time from which this ring is complete. */
static bool copy_ring(struct history *h, const struct scale *s, unsigned index, bool running, struct vec *moments,
                      uint64_t *oldest) {
    struct record_ring *r = cc__get_acquire(&cc__recorder.ring[index]);
    if (r == NULL || cc__get_acquire(&r->next) == cc__get(&r->begin)) return true;
    struct record_copy *copy = cc__mem_alloc_stack(r->size * sizeof *copy);
    struct lane *lane = cc__vec_add(&h->lanes, sizeof *lane);
    if (copy == NULL || lane == NULL) {
        cc__mem_free(copy);
        return false;
    }
    unsigned workers = running ? cc__sched.max + cc__get_acquire(&cc__sched.islands) : 0;
    struct worker *w = index != RECORDER_OTHERS && index < workers ? &cc__sched.workers[index] : NULL;
    lane->worker = index == RECORDER_OTHERS ? -1 : (int)index;
    cc__record_ring_named(r, lane->island);
    lane->records = cc__record_copy(r, copy, r->size, &lane->lost);
    h->lost += lane->lost;
    uint64_t time = s->since_ns, i = 0;
    if (lane->lost != 0)
        while (i < lane->records && !cc__moment_has_time(copy[i].head)) i++; /* the record they continue is lost */
    if (lane->lost != 0 && i < lane->records) {
        uint64_t first = time_of(s, w, copy[i].head, time);
        if (first > *oldest) *oldest = first;
    }
    for (; i < lane->records; i++) {
        struct moment *m = cc__vec_add(moments, sizeof *m);
        if (m == NULL) break;
        if (cc__moment_has_time(copy[i].head)) time = time_of(s, w, copy[i].head, time);
        *m = (struct moment){time, copy[i].head, cc__hidden(copy[i].body), (uint32_t)(h->lanes.count - 1), (uint32_t)i};
    }
    explicit_bzero(copy, r->size * sizeof *copy);
    cc__mem_free(copy);
    return !moments->failed;
}

static int compare(const void *a, const void *b) {
    const struct moment *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->lane != y->lane) return x->lane < y->lane ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int cc__moments_take(struct history *h, bool running, struct vec *moments, uint64_t *oldest) {
    struct scale scale = take_scale();
    uint64_t until = cc__get(&cc__recorder.until_ns);
    h->end = until != 0 && until < scale.now_ns ? until : scale.now_ns;
    if (scale.level == 0 && !running) return ESRCH;
    for (unsigned i = 0; i < RECORDER_RINGS; i++)
        if (!copy_ring(h, &scale, i, running, moments, oldest)) return ENOMEM;
    if (moments->count > 0) qsort(moments->at, moments->count, sizeof(struct moment), compare);
    return 0;
}
