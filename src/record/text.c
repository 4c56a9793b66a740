/* text.c - a history as text: a line for each step. */
#include "record/record.h"

#include "fiber/state.h"

/* "fiber 12.3 worker", "OS threads" */
static void who(struct history *h, struct vec *out, uint32_t number) {
    if (number == NOBODY) return;
    const struct strand *s = cc__strand(h, number);
    if (number == 0)
        cc__bytes_text(out, " OS thread");
    else if (s->known)
        cc__bytes_text(out, " fiber %u.%u %s", s->slot, s->generation, cc__names_text(&h->names, s->label));
    else
        cc__bytes_text(out, " fiber %u.? %s", s->slot, cc__names_text(&h->names, s->label));
}

static void place(struct history *h, struct vec *out, const char *before, uint32_t number) {
    if (number == NOBODY) return;
    const struct code_place *p = cc__names_place_at(&h->names, number);
    cc__bytes_text(out, "%s%s", before, cc__names_text(&h->names, p->function));
    if (p->line != 0) cc__bytes_text(out, " (%s:%u)", cc__names_text(&h->names, p->file), p->line);
}

static const char *event_name(unsigned number) {
    static const char *const names[] = {
#define EVENT(id, category, name, text, parameters, arguments) name,
#define EVENT_OF EVENT
#include "trace/events.def"
    };
    return number < array_len(names) ? names[number] : "?";
}

static void say(struct history *h, struct vec *out, const struct step *s) {
    const char *text = cc__names_text(&h->names, s->text);
    switch ((enum step_kind)s->kind) {
    case STEP_CREATE:
        who(h, out, s->by);
        cc__bytes_text(out, " spawns");
        who(h, out, s->fiber);
        place(h, out, ", at ", cc__strand(h, s->fiber)->site);
        break;
    case STEP_START:
        who(h, out, s->fiber);
        cc__bytes_text(out, " runs");
        break;
    case STEP_BLOCK: {
        uint32_t places[RECORD_FRAMES];
        unsigned n = cc__history_frames(h, s, places);
        who(h, out, s->fiber);
        cc__bytes_text(out, " parks, waits for: %s", cc__park_name(s->reason));
        if (s->object != 0) cc__bytes_text(out, " #%u", s->object);
        for (unsigned i = 0; i < n; i++) place(h, out, i == 0 ? ", in " : ", ", places[i]);
        break;
    }
    case STEP_STOP:
        who(h, out, s->fiber);
        cc__bytes_text(out, " yields");
        break;
    case STEP_UNBLOCK:
        who(h, out, s->by);
        cc__bytes_text(out, " wakes");
        who(h, out, s->fiber);
        cc__bytes_text(out, ", by %s", cc__wake_name(s->reason));
        break;
    case STEP_END:
        who(h, out, s->fiber);
        cc__bytes_text(out, " ends");
        break;
    case STEP_NOTE:
        who(h, out, s->fiber);
        cc__bytes_text(out, " notes: %s", text);
        break;
    case STEP_EVENT:
        who(h, out, s->fiber);
        cc__bytes_text(out, " %s: %s", event_name(s->reason), text);
        break;
    case STEP_LOST:
        cc__bytes_text(out, " %s", text);
        break;
    case STEP_RUNS:
        who(h, out, s->fiber);
        cc__bytes_text(out, " still runs");
        break;
    case STEP_REGION:
    case STEP_REGION_END:
        who(h, out, s->fiber);
        cc__bytes_text(out, " %s region %s", s->kind == STEP_REGION ? "enters" : "leaves", text);
        break;
    case STEP_SCOPE:
    case STEP_SCOPE_END:
        who(h, out, s->fiber);
        cc__bytes_text(out, " %s nursery %u %s", s->kind == STEP_SCOPE ? "opens" : "frees", s->object,
                       cc__names_text(&h->names, cc__scope_named(h, s->object)->name));
        break;
    }
    if (s->inferred) cc__bytes_text(out, " (inferred)");
}

int cc__record_lines(struct history *h, struct vec *out) {
    for (size_t i = 0; i < h->lanes.count; i++) {
        const struct lane *l = cc__lane(h, i);
        if (l->worker >= 0)
            cc__bytes_text(out, "# worker %d%s%s%s: %llu records, %llu older ones lost\n", l->worker,
                           l->island[0] != '\0' ? ", island '" : "", l->island, l->island[0] != '\0' ? "'" : "",
                           (unsigned long long)l->records, (unsigned long long)l->lost);
        else
            cc__bytes_text(out, "# other threads: %llu records, %llu older ones lost\n", (unsigned long long)l->records,
                           (unsigned long long)l->lost);
    }
    for (size_t i = 0; i < h->steps.count; i++) {
        struct step s = *cc__step(h, i);
        uint64_t ns = s.time - h->begin;
        int worker = cc__lane(h, s.lane)->worker;
        cc__bytes_text(out, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
                       (unsigned long long)(ns % 1000000000));
        if (worker >= 0)
            cc__bytes_text(out, " worker %d", worker);
        else
            cc__bytes_text(out, " thread");
        say(h, out, &s);
        cc__bytes_text(out, "\n");
    }
    return 0;
}
