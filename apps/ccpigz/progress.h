/* progress.h - with -v: a line on the terminal that shows the progress of a file. */
#ifndef CCPIGZ_PROGRESS_H
#define CCPIGZ_PROGRESS_H

#include "job.h"

struct progress {
    struct job *job;
    CCChan *done;
    CCTask task;
};

/* Starts the line if it is enabled; stop it before anything else is printed. */
void progress_start(struct progress *progress, struct job *job);
void progress_stop(struct progress *progress);

#endif
