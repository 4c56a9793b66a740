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

/* 0 or ENOMEM. */
int cc__survey_take(struct survey *survey);
void cc__survey_free(struct survey *survey);

/* Whether two fibers are of one shape. */
bool cc__survey_alike(const struct view *a, const struct view *b);

#endif
