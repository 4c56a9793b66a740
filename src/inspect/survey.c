/* survey.c - groups all fibers by shape. */
#include "inspect/survey.h"

#include "base/mem.h"
#include "base/sort.h"
#include "os/clock.h"

#include <errno.h>
#include <string.h>

bool cc__survey_alike(const struct view *a, const struct view *b) {
    return a->state == b->state && a->reason == b->reason && a->moves == b->moves && a->fn == b->fn &&
           a->frames == b->frames && a->doubt.guessed == b->doubt.guessed &&
           memcmp(a->frame, b->frame, a->frames * sizeof a->frame[0]) == 0;
}

static struct shape *find(struct survey *s, const struct view *v) { /* SURVEY-1 */
    for (unsigned i = 0; i < s->count; i++)
        if (cc__survey_alike(&s->shapes[i].like, v)) return &s->shapes[i];
    if (s->count == SURVEY_SHAPES) return NULL;
    struct shape *shape = &s->shapes[s->count++];
    shape->like = *v;
    shape->count = 0;
    shape->oldest = 0;
    shape->sites_differ = false;
    return shape;
}

static void add(struct shape *shape, const struct view *v) {
    if (v->site != shape->like.site) shape->sites_differ = true;
    if (v->from != 0 && (shape->oldest == 0 || v->from < shape->oldest)) shape->oldest = v->from;
    uint64_t at = shape->count++;
    if (at >= SURVEY_NAMED) return;
    shape->named[at].slot = v->slot;
    shape->named[at].generation = v->generation;
    shape->named[at].what = cc__view_what(v);
    shape->named[at].from = v->from;
    shape->named[at].to = v->to;
    shape->named[at].worker = v->worker;
    memcpy(shape->named[at].name, v->name, sizeof v->name);
}

/* Running fibers first, then the largest shapes. */
static int more_telling_first(const void *a, const void *b) {
    const struct shape *x = a, *y = b;
    bool x_runs = x->like.state == FIBER_RUNNING, y_runs = y->like.state == FIBER_RUNNING;
    if (x_runs != y_runs) return x_runs ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->like.slot < y->like.slot ? -1 : 1; /* a stable order from dump to dump */
}

int cc__survey_take(struct survey *s) {
    *s = (struct survey){.shapes = cc__mem_alloc(SURVEY_SHAPES * sizeof *s->shapes), .now = cc__clock_now()};
    if (s->shapes == NULL) return ENOMEM;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct view v;
        if (!cc__view_take(slot, true, &v)) continue;
        s->fibers++;
        cc__view_trim(&v);
        struct shape *shape = find(s, &v);
        if (shape != NULL)
            add(shape, &v);
        else
            s->left_out++;
    }
    cc__sort(s->shapes, s->count, sizeof *s->shapes, more_telling_first);
    return 0;
}

void cc__survey_free(struct survey *s) {
    explicit_bzero(s->shapes, SURVEY_SHAPES * sizeof *s->shapes); /* unreachable.c scans all memory for addresses */
    cc__mem_free(s->shapes);
}
