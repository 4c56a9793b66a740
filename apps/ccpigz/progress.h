/* progress.h - with -v: a line on the terminal that says how far a file has come. */
#ifndef CCPIGZ_PROGRESS_H
#define CCPIGZ_PROGRESS_H

#include "job.h"

struct progress {
    struct job *job;
    CCChan *done;
    CCTask task;
};

/* Starts the line if it is wanted; stop it before anything else is said. */
void progress_start(struct progress *progress, struct job *job);
void progress_stop(struct progress *progress);

#endif
