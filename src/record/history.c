/* history.c - from the rings to a history: copies, sorts, and lets a machine follow each fiber. README.md has its
 * states.
 *
 * MERGE-1  Each fiber's steps are a path of the machine, and each lane runs one fiber at a time: where a record is
 *            missing, because its ring has overwritten it or because two records came in the wrong order, the step is
 *            inferred and counted.
 */
#include "record/record.h"

#include "arch/cpu.h"
#include "base/mem.h"
#include "fiber/pool.h"
#include "inspect/view.h"
#include "os/clock.h"
#include "os/safe_copy.h"
#include "sched/upcalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* inspect/unreachable.c looks for addresses in all memory, also in what was freed: objects are written down as the
 * complement. */
#define hidden(address) (~(uint64_t)(address))

/* A record of any ring, in its place. */
struct moment {
    uint64_t time, head;
    uint64_t body; /* hidden */
    uint32_t lane;
    uint32_t index; /* in its ring, for records of the same time */
};

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

/* The time of a record in ns; `before`: that of the one before it in its ring. */
static uint64_t time_of(const struct scale *s, struct worker *w, uint64_t head, uint64_t before) {
    uint64_t stamp = head >> RECORD_TIME_SHIFT, time, at_most;
    if (s->level == 0 && w != NULL) {
        cc__turn_log_find(&w->turn_log, stamp, &time, &at_most);
    } else {
        bool cycles = s->cycles && s->level != 0;
        uint64_t now = cycles ? s->now_cycles : s->now_ns;
        uint64_t age = (now - stamp) & RECORD_TIME_MASK; /* or it was written since: then this is almost all */
        stamp = now - age;
        if (age > RECORD_TIME_MASK / 2) { /* or it has the stamp of another recording, which ended meanwhile */
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

static bool has_time(uint64_t head) {
    unsigned kind = cc__record_kind(head);
    return kind != REC_TEXT && kind != REC_SPAWN_AT && kind != REC_SPAWN_IN;
}

/* *oldest: the first moment from which on this ring has everything. */
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
    unsigned workers = running ? cc__sched.max + cc__get(&cc__sched.islands) : 0;
    struct worker *w = index != RECORDER_OTHERS && index < workers ? &cc__sched.workers[index] : NULL;
    lane->worker = index == RECORDER_OTHERS ? -1 : (int)index;
    cc__record_ring_named(r, lane->island);
    lane->records = cc__record_copy(r, copy, r->size, &lane->lost);
    h->lost += lane->lost;
    uint64_t time = s->since_ns, i = 0;
    if (lane->lost != 0)
        while (i < lane->records && !has_time(copy[i].head)) i++; /* what they belong to is lost */
    if (lane->lost != 0 && i < lane->records) {
        uint64_t first = time_of(s, w, copy[i].head, time);
        if (first > *oldest) *oldest = first;
    }
    for (; i < lane->records; i++) {
        struct moment *m = cc__vec_add(moments, sizeof *m);
        if (m == NULL) break;
        if (has_time(copy[i].head)) time = time_of(s, w, copy[i].head, time);
        *m = (struct moment){time, copy[i].head, hidden(copy[i].body), (uint32_t)(h->lanes.count - 1), (uint32_t)i};
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

/* ---- the machine ---- */

struct machine {
    struct history *h;
    bool running;        /* the runtime is: fibers may be looked at */
    struct vec slots;    /* of uint32_t: the strand that has the slot, plus one */
    struct map spawns;   /* by slot plus one: how many are still to come */
    uint32_t *on;        /* by lane: who runs there */
    struct moment *at;   /* all of them */
    size_t count, i;     /* where it is */
    uint64_t time, last; /* of the record, of the last step */
    uint32_t lane;
};

static void fail(struct machine *m) {
    m->h->failed = true;
}

static struct step *step(struct machine *m, enum step_kind kind, uint32_t lane, uint32_t fiber) {
    static struct step nowhere;
    struct step *s = cc__vec_add(&m->h->steps, sizeof *s);
    if (s == NULL) {
        fail(m);
        s = &nowhere;
    }
    m->last = m->time > m->last ? m->time : m->last + 1; /* no two steps have the same: a reader may sort them */
    *s = (struct step){.time = m->last, .kind = kind, .lane = lane, .fiber = fiber, .by = m->on[lane]};
    return s;
}

static void infer(struct machine *m, struct step *s) {
    s->inferred = true;
    m->h->inferred++;
}

/* A label for people: "name" or "function". */
static uint32_t label(struct history *h, uint32_t fn, const char *name) {
    char text[200];
    const char *function =
        fn != NOBODY ? cc__names_text(&h->names, cc__names_place_at(&h->names, fn)->function) : "fiber";
    if (name[0] == '\0') return cc__names_string(&h->names, function);
    snprintf(text, sizeof text, "%s '%s'", function, name);
    return cc__names_string(&h->names, text);
}

static uint32_t add_strand(struct machine *m, uint32_t slot) {
    struct strand *s = cc__vec_add(&m->h->strands, sizeof *s);
    if (s == NULL) {
        fail(m);
        return 0;
    }
    *s = (struct strand){.slot = slot, .fn = NOBODY, .site = NOBODY};
    return (uint32_t)(m->h->strands.count - 1);
}

static uint32_t *slot_of(struct machine *m, uint32_t slot) {
    static uint32_t nowhere;
    while (m->slots.count <= slot)
        if (cc__vec_add(&m->slots, sizeof(uint32_t)) == NULL) {
            fail(m);
            nowhere = 0;
            return &nowhere;
        }
    return cc__vec_at(uint32_t, &m->slots, slot);
}

static uint32_t place_of_function(struct history *h, const void *fn) {
    return cc__names_place(&h->names, (const char *)fn + 1);
}

/* One that no record introduces: it was there before the first one, or a timer has started it. */
static uint32_t introduce(struct machine *m, uint32_t slot, enum strand_state initial) {
    uint32_t number = add_strand(m, slot), *at = slot_of(m, slot);
    struct strand *s = cc__strand(m->h, number);
    if (m->h->failed) return number;
    struct view v;
    s->existed = true;
    s->initial = s->state = (uint8_t)initial;
    char name[CC_FIBER_NAME_MAX] = "";
    bool last = cc__map_find(&m->spawns, (uint64_t)slot + 1) == 0; /* the one that has the slot now was there before */
    if (m->running && last && slot < cc__pool_size() && cc__view_take(slot, false, &v)) {
        s->generation = v.generation;
        s->known = true;
        memcpy(name, v.name, sizeof name);
        s->fn = v.fn != NULL ? place_of_function(m->h, (const void *)(uintptr_t)v.fn) : NOBODY;
        s->site = v.site != NULL ? cc__names_place(&m->h->names, v.site) : NOBODY;
    }
    s->label = label(m->h, s->fn, name);
    s->named = s->fn != NOBODY || name[0] != '\0';
    *at = number + 1;
    return number;
}

/* The strand of a slot. */
static uint32_t find(struct machine *m, uint32_t slot, enum strand_state initial) {
    if (slot >= UINT32_C(1) << 28) return NOBODY; /* there are not so many */
    uint32_t number = *slot_of(m, slot);
    if (number != 0 && cc__strand(m->h, number - 1)->state != STRAND_ENDED) return number - 1;
    return introduce(m, slot, initial);
}

static void leave_lane(struct machine *m, struct strand *s, enum strand_state state) {
    m->on[s->lane] = NOBODY;
    s->state = (uint8_t)state;
}

/* The one that runs on the lane has left it, and no record says so. */
static void infer_stop(struct machine *m, uint32_t lane) {
    uint32_t number = m->on[lane];
    if (number == NOBODY) return;
    infer(m, step(m, STEP_STOP, lane, number));
    leave_lane(m, cc__strand(m->h, number), STRAND_RUNNABLE);
}

static struct step *unblock(struct machine *m, uint32_t number, unsigned reason) {
    struct strand *s = cc__strand(m->h, number);
    struct step *t = step(m, STEP_UNBLOCK, m->lane, number);
    t->reason = reason;
    t->sequence = ++s->sequence;
    s->state = STRAND_RUNNABLE;
    return t;
}

/* Says what the lane's ring has overwritten, when somebody runs there: readers want to know of whom an event is. */
static void tell_lost(struct machine *m) {
    char text[96], who[24] = "OS threads";
    struct lane *l = cc__lane(m->h, m->lane);
    if (l->lost == 0 || l->told) return;
    l->told = true;
    if (l->worker >= 0) snprintf(who, sizeof who, "worker %d", l->worker);
    snprintf(text, sizeof text, "%llu older events of %s are lost", (unsigned long long)l->lost, who);
    uint32_t string = cc__names_string(&m->h->names, text);
    step(m, STEP_LOST, m->lane, NOBODY)->text = string;
}

static void run(struct machine *m, uint32_t slot) {
    uint32_t number = find(m, slot, STRAND_RUNNABLE);
    if (number == NOBODY) return;
    if (m->on[m->lane] == number) return;
    infer_stop(m, m->lane);
    struct strand *s = cc__strand(m->h, number);
    if (s->state == STRAND_RUNNING) infer_stop(m, s->lane);
    if (s->state == STRAND_WAITING) infer(m, unblock(m, number, WAKE_OBJECT));
    s->state = STRAND_RUNNING;
    s->lane = m->lane;
    struct step *t = step(m, STEP_START, m->lane, number);
    t->sequence = ++s->sequence;
    if (s->named) t->text = s->label;
    s->named = false; /* it was said */
    m->on[m->lane] = number;
    tell_lost(m);
}

/* Who runs on a lane after that record, if it says so: a slot plus one; 0: nobody does. */
static void note_who_runs(uint64_t head, uint64_t body, uint32_t *runs) {
    switch ((enum record_kind)cc__record_kind(head)) {
    case REC_RUN:
        *runs = (uint32_t)body + 1;
        break;
    case REC_SWITCH:
        *runs = cc__record_switch_slot(body) + 1;
        break;
    case REC_PARK:
    case REC_YIELD:
    case REC_END:
        *runs = 0;
        break;
    default:
        break;
    }
}

/* Goes over what is older than the beginning. Whoever has the CPU then may have it to the end, and be the one that all
 * this is about: it runs from the beginning on. */
static void skip_to(struct machine *m, uint64_t oldest, uint32_t *runs) {
    for (; m->i < m->count && m->at[m->i].time < oldest; m->i++)
        note_who_runs(m->at[m->i].head, hidden(m->at[m->i].body), &runs[m->at[m->i].lane]);
    m->time = oldest;
    for (m->lane = 0; m->lane < m->h->lanes.count && !m->h->failed; m->lane++) {
        if (runs[m->lane] == 0) continue;
        size_t before = m->h->steps.count;
        run(m, runs[m->lane] - 1);
        if (m->h->steps.count > before) infer(m, cc__step(m->h, before)); /* its START */
    }
}

/* A number for an address that means nothing to a reader. */
static uint32_t object_number(struct history *h, uint64_t address) {
    if (address == 0) return 0;
    uint32_t number = cc__map_find(&h->objects, hidden(address));
    if (number != 0) return number;
    number = (uint32_t)h->objects.count + 1;
    return cc__map_set(&h->objects, hidden(address), number) ? number : 0;
}

static void park(struct machine *m, unsigned reason, uint64_t object, uint32_t stack) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY || number == 0) return;
    struct strand *s = cc__strand(m->h, number);
    struct step *t = step(m, STEP_BLOCK, m->lane, number);
    t->reason = reason;
    t->object = object_number(m->h, object);
    t->stack = stack;
    leave_lane(m, s, STRAND_WAITING);
    if (s->woken) (void)unblock(m, number, WAKE_OBJECT);
    s->woken = false;
}

static void leave(struct machine *m, enum step_kind kind, enum strand_state state) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY || number == 0) return;
    (void)step(m, kind, m->lane, number);
    leave_lane(m, cc__strand(m->h, number), state);
}

static void wake(struct machine *m, uint64_t head, uint64_t body) {
    uint32_t number = find(m, (uint32_t)body, STRAND_WAITING);
    if (number == NOBODY) return;
    struct strand *s = cc__strand(m->h, number);
    if (s->state == STRAND_WAITING)
        (void)unblock(m, number, cc__record_arg(head));
    else if (s->state == STRAND_RUNNING)
        s->woken = true; /* it is about to park, and the latch keeps the wake */
}

/* ---- records in several parts ---- */

/* The records behind this one that belong to it: text, and what SPAWN and SCOPE say. */
struct rest {
    char text[256];
    const void *site, *fn;
    uint64_t scope;
};

static void collect(struct machine *m, struct rest *rest) {
    size_t n = 0;
    *rest = (struct rest){0};
    for (size_t i = m->i + 1; i < m->count; i++) {
        const struct moment *next = &m->at[i];
        if (next->lane != m->lane) return;
        unsigned kind = cc__record_kind(next->head), bytes = cc__record_arg(next->head);
        if (has_time(next->head)) return;
        if (kind == REC_SPAWN_AT) {
            rest->site = (const void *)(uintptr_t)(next->head >> RECORD_TIME_SHIFT);
            rest->fn = (const void *)(uintptr_t)hidden(next->body);
        } else if (kind == REC_SPAWN_IN) {
            rest->scope = hidden(next->body);
        } else if (bytes <= RECORD_TEXT && n + bytes < sizeof rest->text) {
            char part[16];
            uint64_t first = next->head >> RECORD_TIME_SHIFT, last = hidden(next->body);
            memcpy(part, &first, 6);
            memcpy(part + 6, &last, 8);
            memcpy(rest->text + n, part, bytes);
            n += bytes;
        }
    }
}

/* The nursery at that address, 0: it is none that is known. */
static uint32_t scope_number(struct history *h, uint64_t address) {
    return address != 0 ? cc__map_find(&h->open, hidden(address)) : 0;
}

static void spawn(struct machine *m, uint64_t body) {
    struct rest rest;
    collect(m, &rest);
    uint32_t slot = (uint32_t)body;
    if (slot >= UINT32_C(1) << 28) return;
    (void)cc__map_set(&m->spawns, (uint64_t)slot + 1, cc__map_find(&m->spawns, (uint64_t)slot + 1) - 1);
    uint32_t number = add_strand(m, slot), *at = slot_of(m, slot);
    if (m->h->failed) return;
    if (*at != 0) { /* whose end was not recorded */
        struct strand *before = cc__strand(m->h, *at - 1);
        if (before->state == STRAND_RUNNING) infer_stop(m, before->lane);
        before->state = STRAND_ENDED;
    }
    *at = number + 1;
    uint32_t fn = rest.fn != NULL ? place_of_function(m->h, rest.fn) : NOBODY;
    uint32_t site = rest.site != NULL ? cc__names_place(&m->h->names, rest.site) : NOBODY;
    struct strand *s = cc__strand(m->h, number);
    s->generation = (uint32_t)(body >> 32);
    s->known = true;
    s->state = STRAND_RUNNABLE;
    s->fn = fn;
    s->site = site;
    s->scope = scope_number(m->h, rest.scope);
    s->label = label(m->h, fn, rest.text);
    s->named = rest.text[0] != '\0';
    (void)step(m, STEP_CREATE, m->lane, number);
}

static void scope_begins(struct machine *m, uint64_t address) {
    struct rest rest;
    collect(m, &rest);
    uint32_t parent = scope_number(m->h, rest.scope), name = cc__names_string(&m->h->names, rest.text);
    struct scope_named *s = cc__vec_add(&m->h->scopes, sizeof *s);
    if (s == NULL) {
        fail(m);
        return;
    }
    *s = (struct scope_named){parent, name != 0 ? name : cc__names_string(&m->h->names, "nursery")};
    if (!cc__map_set(&m->h->open, hidden(address), (uint32_t)(m->h->scopes.count - 1))) fail(m);
    step(m, STEP_SCOPE, m->lane, m->on[m->lane])->object = (uint32_t)(m->h->scopes.count - 1);
}

static void scope_ends(struct machine *m, uint64_t address) {
    uint32_t number = scope_number(m->h, address);
    if (number == 0) return;
    (void)cc__map_set(&m->h->open, hidden(address), 0); /* which is there */
    step(m, STEP_SCOPE_END, m->lane, m->on[m->lane])->object = number;
}

/* Addresses differ from run to run: "0x7f12..." becomes "#3". */
static uint32_t text_without_addresses(struct history *h, const char *text) {
    char out[280];
    size_t n = 0;
    while (*text != '\0' && n < sizeof out - 16) {
        char *end;
        if (text[0] == '0' && text[1] == 'x' && strtoull(text, &end, 16) >= 4096) {
            n += (size_t)snprintf(out + n, sizeof out - n, "#%u", object_number(h, strtoull(text, NULL, 16)));
            text = end;
        } else {
            out[n++] = *text++;
        }
    }
    out[n] = '\0';
    return cc__names_string(&h->names, out);
}

static void note(struct machine *m, enum step_kind kind, uint64_t head) {
    struct rest rest;
    collect(m, &rest);
    uint32_t text =
        kind == STEP_EVENT ? text_without_addresses(m->h, rest.text) : cc__names_string(&m->h->names, rest.text);
    struct step *s = step(m, kind, m->lane, m->on[m->lane]);
    s->reason = cc__record_arg(head);
    s->text = text;
}

static uint32_t region_name(struct history *h, uint64_t address) {
    char name[64] = "";
    for (size_t n = sizeof name - 1; n >= 1; n /= 2) /* it may end near the end of what is mapped */
        if (cc__safe_copy(name, (const void *)(uintptr_t)address, n)) break;
    name[sizeof name - 1] = '\0';
    return cc__names_string(&h->names, name);
}

static void region(struct machine *m, uint64_t address) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY) return;
    uint32_t name = region_name(m->h, address);
    struct strand *s = cc__strand(m->h, number);
    if (s->depth == array_len(s->regions)) return;
    s->regions[s->depth++] = name;
    struct step *t = step(m, STEP_REGION, m->lane, number);
    t->text = name;
    t->object = s->scope;
}

/* Ends those inside as well: they were left by a panic. */
static void region_ends(struct machine *m, uint64_t address) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY) return;
    uint32_t name = region_name(m->h, address), depth;
    struct strand *s = cc__strand(m->h, number);
    for (depth = s->depth; depth > 0 && s->regions[depth - 1] != name; depth--) {
    }
    while (depth > 0 && s->depth >= depth) {
        struct step *t = step(m, STEP_REGION_END, m->lane, number);
        t->text = s->regions[--s->depth];
        t->object = s->scope;
    }
}

static void follow(struct machine *m) {
    uint64_t head = m->at[m->i].head, body = hidden(m->at[m->i].body);
    m->time = m->at[m->i].time;
    m->lane = m->at[m->i].lane;
    switch ((enum record_kind)cc__record_kind(head)) {
    case REC_RUN:
        if (cc__record_arg(head) == REC_YIELD) leave(m, STEP_STOP, STRAND_RUNNABLE);
        if (cc__record_arg(head) == REC_END) leave(m, STEP_END, STRAND_ENDED);
        run(m, (uint32_t)body);
        break;
    case REC_PARK:
        park(m, cc__record_arg(head), body & ((UINT64_C(1) << RECORD_OBJECT_BITS) - 1),
             (uint32_t)(body >> RECORD_OBJECT_BITS));
        break;
    case REC_SWITCH:
        park(m, cc__record_arg(head), cc__record_switch_object(body), 0);
        run(m, cc__record_switch_slot(body));
        break;
    case REC_YIELD:
        leave(m, STEP_STOP, STRAND_RUNNABLE);
        break;
    case REC_END:
        leave(m, STEP_END, STRAND_ENDED);
        break;
    case REC_WAKE:
        wake(m, head, body);
        break;
    case REC_SPAWN:
        spawn(m, body);
        break;
    case REC_SCOPE:
        scope_begins(m, body);
        break;
    case REC_SCOPE_END:
        scope_ends(m, body);
        break;
    case REC_REGION:
        region(m, body);
        break;
    case REC_REGION_END:
        region_ends(m, body);
        break;
    case REC_NOTE:
        note(m, STEP_NOTE, head);
        break;
    case REC_EVENT:
        note(m, STEP_EVENT, head);
        break;
    default: /* parts of others */
        break;
    }
}

/* ---- all of it ---- */

static void count_spawns(struct machine *m, uint64_t oldest) {
    for (size_t i = 0; i < m->count && !m->h->failed; i++) {
        uint64_t slot = (uint32_t)hidden(m->at[i].body);
        if (m->at[i].time < oldest || cc__record_kind(m->at[i].head) != REC_SPAWN) continue;
        if (!cc__map_set(&m->spawns, slot + 1, cc__map_find(&m->spawns, slot + 1) + 1)) fail(m);
    }
}

static int put_together(struct history *h, struct vec *moments, uint64_t oldest, bool running) {
    struct machine m = {.h = h, .running = running, .at = moments->at, .count = moments->count};
    if (m.count > 0) qsort(m.at, m.count, sizeof m.at[0], compare);
    m.on = cc__mem_alloc((h->lanes.count + 1) * sizeof *m.on);
    uint32_t *runs = cc__mem_alloc((h->lanes.count + 1) * sizeof *runs);
    uint32_t threads = add_strand(&m, 0);
    bool ok = m.on != NULL && runs != NULL && cc__vec_add(&h->scopes, sizeof(struct scope_named)) != NULL && !h->failed;
    if (ok) {
        struct strand *s = cc__strand(h, threads);
        s->existed = true;
        s->initial = s->state = STRAND_RUNNING;
        s->label = cc__names_string(&h->names, "OS threads");
        for (uint32_t i = 0; i < h->lanes.count; i++) {
            m.on[i] = cc__lane(h, i)->worker < 0 ? threads : NOBODY;
            if (cc__lane(h, i)->worker < 0) s->lane = i;
        }
        count_spawns(&m, oldest);
        m.time = oldest;
        for (m.lane = 0; m.lane < h->lanes.count; m.lane++)
            if (m.on[m.lane] == threads) tell_lost(&m);
        for (skip_to(&m, oldest, runs); m.i < m.count && !h->failed; m.i++) follow(&m);
    }
    cc__mem_free(runs);
    cc__mem_free(m.on);
    cc__vec_free(&m.slots);
    cc__map_free(&m.spawns);
    h->begin = h->steps.count > 0 ? cc__step(h, 0)->time : h->end;
    if (h->end < m.last) h->end = m.last;
    return ok && !h->failed && !h->names.strings.failed && !h->names.places.failed ? 0 : ENOMEM;
}

int cc__history_take(struct history *h, bool inside) {
    *h = (struct history){0};
    if (cc__get_acquire(&cc__recorder.recorded) == 0) return ENODATA;
    bool outside = cc__worker() == NULL && !inside, running = !outside || cc__upcall_enter(false) == 0;
    struct scale scale = take_scale();
    struct vec moments = {0};
    uint64_t oldest = 0;
    int rc = scale.level == 0 && !running ? ESRCH : cc__names_init(&h->names) ? 0 : ENOMEM;
    for (unsigned i = 0; rc == 0 && i < RECORDER_RINGS; i++)
        if (!copy_ring(h, &scale, i, running, &moments, &oldest)) rc = ENOMEM;
    h->end = scale.now_ns;
    if (rc == 0) rc = put_together(h, &moments, oldest, running);
    cc__vec_free(&moments);
    if (outside && running) cc__upcall_leave();
    if (rc != 0) cc__history_free(h);
    return rc;
}

void cc__history_free(struct history *h) {
    cc__names_free(&h->names);
    cc__vec_free(&h->steps);
    cc__vec_free(&h->strands);
    cc__vec_free(&h->scopes);
    cc__vec_free(&h->lanes);
    cc__map_free(&h->objects);
    cc__map_free(&h->open);
}

unsigned cc__history_frames(struct history *h, const struct step *step, uint32_t *places) {
    const void *frames[RECORD_FRAMES];
    unsigned n = cc__record_stack_frames(step->stack, frames), first = 0, count = 0;
    n = n > 0 ? cc__symbol_without_own(frames, n) : 0;
    uint32_t all[RECORD_FRAMES];
    for (unsigned i = 0; i < n; i++) all[i] = cc__names_place(&h->names, frames[i]);
    while (first + 1 < n && all[first] != NOBODY && cc__names_place_at(&h->names, all[first])->ours) first++;
    for (unsigned i = first; i < n; i++)
        if (all[i] != NOBODY) places[count++] = all[i];
    return count;
}

const char *cc__record_reason(unsigned reason) {
    switch (reason) {
    case PARK_QUEUE:
        return "channel";
    case PARK_SLEEP:
    case PARK_IO:
    case PARK_FILE:
    case PARK_SELECT:
    case PARK_PROCESS:
        return cc__park_name(reason);
    case PARK_NONE:
        return "wait";
    default: {
        static const char *const names[] = {
#define REASON(id, name, object) "sync " name,
#include "fiber/reasons.def"
        };
        return reason < array_len(names) ? names[reason] : "wait";
    }
    }
}
