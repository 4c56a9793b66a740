/* history.c - from the records of all rings to a history, by a state machine for each fiber (README.md).
 *
 * MERGE-1  Each fiber's steps are a path of the state machine, and each lane runs one fiber at a time. Where a record
 *          is missing, because its ring has overwritten it, or two records are in the wrong order, the step is inferred
 *          and counted.
 */
#include "record/history.h"

#include "base/mem.h"
#include "fiber/pool.h"
#include "inspect/view.h"
#include "sched/upcalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the state machine ---- */

struct machine {
    struct history *h;
    bool running;        /* the runtime runs: fiber records may be read */
    struct vec slots;    /* of uint32_t: the strand that has the slot, plus one */
    struct map spawns;   /* by slot plus one: SPAWN records still to come */
    uint32_t *on;        /* by lane: the running strand */
    struct moment *at;   /* all records */
    size_t count, i;     /* i: the current one */
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
    m->last = m->time > m->last ? m->time : m->last + 1; /* unique times: a reader may sort by them */
    *s = (struct step){.time = m->last, .kind = kind, .lane = lane, .fiber = fiber, .by = m->on[lane]};
    return s;
}

static void infer(struct machine *m, struct step *s) {
    s->inferred = true;
    m->h->inferred++;
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

/* Adds a fiber without a SPAWN record: it existed before the first record. */
static uint32_t introduce(struct machine *m, uint32_t slot, enum strand_state initial) {
    uint32_t number = add_strand(m, slot), *at = slot_of(m, slot);
    struct strand *s = cc__strand(m->h, number);
    if (m->h->failed) return number;
    struct view v;
    s->existed = true;
    s->initial = s->state = (uint8_t)initial;
    char name[CC_FIBER_NAME_MAX] = "";
    bool last = cc__map_find(&m->spawns, (uint64_t)slot + 1) == 0; /* no later SPAWN: it still has the slot */
    if (m->running && last && slot < cc__pool_size() && cc__view_take(slot, false, &v)) {
        s->generation = v.generation;
        s->known = true;
        memcpy(name, v.name, sizeof name);
        s->fn = v.fn != NULL ? cc__number_function(m->h, (const void *)(uintptr_t)v.fn) : NOBODY;
        s->site = v.site != NULL ? cc__names_place(&m->h->names, v.site) : NOBODY;
    }
    s->label = cc__number_label(m->h, s->fn, name);
    s->named = s->fn != NOBODY || name[0] != '\0';
    *at = number + 1;
    return number;
}

/* The strand of a slot. */
static uint32_t find(struct machine *m, uint32_t slot, enum strand_state initial) {
    if (slot >= UINT32_C(1) << 28) return NOBODY; /* more than the pool can have */
    uint32_t number = *slot_of(m, slot);
    if (number != 0 && cc__strand(m->h, number - 1)->state != STRAND_ENDED) return number - 1;
    return introduce(m, slot, initial);
}

static void leave_lane(struct machine *m, struct strand *s, enum strand_state state) {
    m->on[s->lane] = NOBODY;
    s->state = (uint8_t)state;
}

/* The fiber that runs on the lane has left it without a record. */
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

/* Reports how much the lane's ring has overwritten, once a fiber runs there: trace readers expect events to have one.
 */
static void tell_lost(struct machine *m) {
    char text[96], who[24] = "OS threads";
    struct lane *l = cc__lane(m->h, m->lane);
    if (l->lost == 0 || l->reported) return;
    l->reported = true;
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
    s->named = false; /* the label is in the history now */
    m->on[m->lane] = number;
    tell_lost(m);
}

/* If the record changes which fiber runs on the lane: its slot plus one, or 0 for none. */
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

/* Skips the records before `oldest`. The fiber that runs on a lane then is started at the beginning: it may run to the
 * end without a record, and be what the trace was made for. */
static void skip_to(struct machine *m, uint64_t oldest, uint32_t *runs) {
    for (; m->i < m->count && m->at[m->i].time < oldest; m->i++)
        note_who_runs(m->at[m->i].head, cc__hidden(m->at[m->i].body), &runs[m->at[m->i].lane]);
    m->time = oldest;
    for (m->lane = 0; m->lane < m->h->lanes.count && !m->h->failed; m->lane++) {
        if (runs[m->lane] == 0) continue;
        size_t before = m->h->steps.count;
        run(m, runs[m->lane] - 1);
        if (m->h->steps.count > before) infer(m, cc__step(m->h, before)); /* its START */
    }
}

static void park(struct machine *m, unsigned reason, uint64_t object, uint32_t stack) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY || number == 0) return;
    struct strand *s = cc__strand(m->h, number);
    struct step *t = step(m, STEP_BLOCK, m->lane, number);
    t->reason = reason;
    t->object = reason == PARK_SLEEP ? 0 : cc__number_object(m->h, object); /* may be SLEEP_FOREVER */
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
        s->woken = true; /* it is about to park: the wake is latched */
}

/* ---- records in several parts ---- */

/* The continuation records of the current one: text, and the arguments of SPAWN and SCOPE. */
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
        if (cc__moment_has_time(next->head)) return;
        if (kind == REC_SPAWN_AT) {
            rest->site = (const void *)(uintptr_t)(next->head >> RECORD_TIME_SHIFT);
            rest->fn = (const void *)(uintptr_t)cc__hidden(next->body);
        } else if (kind == REC_SPAWN_IN) {
            rest->scope = cc__hidden(next->body);
        } else if (bytes <= RECORD_TEXT && n + bytes < sizeof rest->text) {
            char part[16];
            uint64_t first = next->head >> RECORD_TIME_SHIFT, last = cc__hidden(next->body);
            memcpy(part, &first, 6);
            memcpy(part + 6, &last, 8);
            memcpy(rest->text + n, part, bytes);
            n += bytes;
        }
    }
}

static void spawn(struct machine *m, uint64_t body) {
    struct rest rest;
    collect(m, &rest);
    uint32_t slot = (uint32_t)body;
    if (slot >= UINT32_C(1) << 28) return;
    (void)cc__map_set(&m->spawns, (uint64_t)slot + 1, cc__map_find(&m->spawns, (uint64_t)slot + 1) - 1);
    uint32_t number = add_strand(m, slot), *at = slot_of(m, slot);
    if (m->h->failed) return;
    if (*at != 0) { /* the end of the previous fiber of the slot was not recorded */
        struct strand *before = cc__strand(m->h, *at - 1);
        if (before->state == STRAND_RUNNING) infer_stop(m, before->lane);
        before->state = STRAND_ENDED;
    }
    *at = number + 1;
    uint32_t fn = rest.fn != NULL ? cc__number_function(m->h, rest.fn) : NOBODY;
    uint32_t site = rest.site != NULL ? cc__names_place(&m->h->names, rest.site) : NOBODY;
    struct strand *s = cc__strand(m->h, number);
    s->generation = (uint32_t)(body >> 32);
    s->known = true;
    s->state = STRAND_RUNNABLE;
    s->fn = fn;
    s->site = site;
    s->scope = cc__number_scope(m->h, rest.scope);
    s->label = cc__number_label(m->h, fn, rest.text);
    s->named = rest.text[0] != '\0';
    (void)step(m, STEP_CREATE, m->lane, number);
}

static void scope_begins(struct machine *m, uint64_t address) {
    struct rest rest;
    collect(m, &rest);
    uint32_t parent = cc__number_scope(m->h, rest.scope);
    uint32_t number = cc__number_scope_opens(m->h, address, parent, rest.text);
    if (number == 0) {
        fail(m);
        return;
    }
    step(m, STEP_SCOPE, m->lane, m->on[m->lane])->object = number;
}

static void scope_ends(struct machine *m, uint64_t address) {
    uint32_t number = cc__number_scope(m->h, address);
    if (number == 0) return;
    cc__number_scope_closes(m->h, address);
    step(m, STEP_SCOPE_END, m->lane, m->on[m->lane])->object = number;
}

static void note(struct machine *m, enum step_kind kind, uint64_t head) {
    struct rest rest;
    collect(m, &rest);
    uint32_t text = kind == STEP_EVENT ? cc__number_text(m->h, rest.text) : cc__names_string(&m->h->names, rest.text);
    struct step *s = step(m, kind, m->lane, m->on[m->lane]);
    s->reason = cc__record_arg(head);
    s->text = text;
}

static void region(struct machine *m, uint64_t address) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY) return;
    uint32_t name = cc__number_region(m->h, address);
    struct strand *s = cc__strand(m->h, number);
    if (s->depth == array_len(s->regions)) return;
    s->regions[s->depth++] = name;
    struct step *t = step(m, STEP_REGION, m->lane, number);
    t->text = name;
    t->object = s->scope;
}

/* Ends the regions inside as well: a panic has left them. */
static void region_ends(struct machine *m, uint64_t address) {
    uint32_t number = m->on[m->lane];
    if (number == NOBODY) return;
    uint32_t name = cc__number_region(m->h, address), depth;
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
    uint64_t head = m->at[m->i].head, body = cc__hidden(m->at[m->i].body);
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
    default: /* continuation records */
        break;
    }
}

/* ---- taking a history ---- */

static void count_spawns(struct machine *m, uint64_t oldest) {
    for (size_t i = 0; i < m->count && !m->h->failed; i++) {
        uint64_t slot = (uint32_t)cc__hidden(m->at[i].body);
        if (m->at[i].time < oldest || cc__record_kind(m->at[i].head) != REC_SPAWN) continue;
        if (!cc__map_set(&m->spawns, slot + 1, cc__map_find(&m->spawns, slot + 1) + 1)) fail(m);
    }
}

/* A fiber may have run for seconds without a record. A reader of the trace sees that only if there is an event at the
 * end. */
static void note_who_still_runs(struct machine *m) {
    m->time = m->h->end;
    for (m->lane = 0; m->lane < m->h->lanes.count && !m->h->failed; m->lane++)
        if (m->on[m->lane] != NOBODY && m->on[m->lane] != 0) (void)step(m, STEP_RUNS, m->lane, m->on[m->lane]);
}

static int put_together(struct history *h, struct vec *moments, uint64_t oldest, bool running) {
    struct machine m = {.h = h, .running = running, .at = moments->at, .count = moments->count};
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
        note_who_still_runs(&m);
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
    struct vec moments = {0};
    uint64_t oldest = 0;
    int rc = cc__names_init(&h->names) ? cc__moments_take(h, running, &moments, &oldest) : ENOMEM;
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
