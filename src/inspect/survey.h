/* survey.h - all fibers at a glance: those that stand in the same place for the same reason count as one shape.
 *
 * SURVEY-1  Bounded: so many shapes, so many fibers named for each; the rest is counted.
 */
#ifndef CC_INSPECT_SURVEY_H
#define CC_INSPECT_SURVEY_H

#include "inspect/view.h"

enum { SURVEY_SHAPES = 128, SURVEY_NAMED = 8 };

struct shape {
    struct view like; /* the first of them */
    uint64_t count;
    uint64_t oldest;   /* PARKED: the first of them waits since then, or later; 0: not known */
    bool sites_differ; /* they were not all started by the same call */
    struct {
        uint32_t slot, generation;
        struct wait_what what;
        uint64_t from, to;
        int worker;
        char name[CC_FIBER_NAME_MAX];
    } named[SURVEY_NAMED];
};

struct survey {
    struct shape *shapes; /* those that run, then the largest first */
    unsigned count;
    uint64_t fibers;
    uint64_t now;      /* when it was begun: names of addresses take their time */
    uint64_t left_out; /* fibers of shapes that found no place */
};

/* They stand in the same place, for the same reason; both are trimmed. */
bool cc__survey_alike(const struct view *a, const struct view *b);

/* 0 or ENOMEM. */
int cc__survey_take(struct survey *survey);
void cc__survey_free(struct survey *survey);

/* ---- the tree of nurseries and scopes (scopes.c) ---- */

/* The scopes that live, as far as fibers lead to them: at most `max`, parents before what is below them. Returns how
 * many were found. */
struct scope_seen {
    const struct scope *at, *parent;
    uint32_t children, members;
    bool nursery, cancelled;
    uint64_t deadline; /* UINT64_MAX: none */
    unsigned depth;
    char name[CC_FIBER_NAME_MAX];
};
unsigned cc__scopes_list(struct scope_seen *seen, unsigned max);

/* One of them; false: it is not there. */
bool cc__scope_read(const struct scope *at, struct scope_seen *seen);

#endif
