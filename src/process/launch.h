/* launch.h - what a start needs (descriptors, paths, tables for the child), prepared by the caller. */
#ifndef CC_PROCESS_LAUNCH_H
#define CC_PROCESS_LAUNCH_H

#include "process/process.h"

struct launch {
    CCProcess *process;
    CCNursery *nursery; /* NULL: none */
    CCChan *started;    /* receives the outcome, once */
    struct os_start start;
    void *tables;    /* what `start` points to */
    int to_close[3]; /* the child's ends, closed once the child has them; -1: none */
};

/* EINVAL: invalid options. */
int cc__launch_check(const CCProcessOptions *options);
/* Creates pipes and tables. 0 or an errno value; the caller calls _end in any case. */
int cc__launch_prepare(struct launch *l, CCProcess *p, const CCProcessOptions *options);
void cc__launch_end(struct launch *l);

#endif
