/* survey.h - all fibers, grouped: those with equal stacks and wait reasons are one shape.
 *
 * SURVEY-1  The number of shapes, and of fibers named for each, is bounded; the rest is only counted.
 */
#ifndef CC_INSPECT_SURVEY_H
#define CC_INSPECT_SURVEY_H

#include "inspect/view.h"

enum { SURVEY_SHAPES = 128, SURVEY_NAMED = 8 };

struct shape {
    struct view like; /* the first of them */
    uint64_t count;
    uint64_t oldest;   /* PARKED: lower bound of when the first of them began to wait; 0: unknown */
    bool sites_differ; /* they were spawned at different call sites */
    struct {
        uint32_t slot, generation;
        struct wait_what what;
        uint64_t from, to;
        int worker;
        char name[CC_FIBER_NAME_MAX];
    } named[SURVEY_NAMED];
};

struct survey {
    struct shape *shapes; /* running ones first, then by size */
    unsigned count;
    uint64_t fibers;
    uint64_t now;      /* when it began: symbol lookup takes time */
    uint64_t left_out; /* fibers whose shapes did not fit */
};

/* Whether both have the same frames and wait for the same reason; both must be trimmed. */
bool cc__survey_alike(const struct view *a, const struct view *b);

/* 0 or ENOMEM. */
int cc__survey_take(struct survey *survey);
void cc__survey_free(struct survey *survey);

/* ---- the tree of nurseries and scopes (scopes.c) ---- */

/* The live scopes that are found through fibers: at most `max`, parents before the scopes below them. Returns their
 * number. */
struct scope_seen {
    const struct scope *at, *parent;
    uint32_t children, members;
    bool nursery, cancelled;
    uint64_t deadline; /* UINT64_MAX: none */
    unsigned depth;
    char name[CC_FIBER_NAME_MAX];
};
unsigned cc__scopes_list(struct scope_seen *seen, unsigned max);

/* Copies one; false: it is not readable. */
bool cc__scope_read(const struct scope *at, struct scope_seen *seen);

#endif
