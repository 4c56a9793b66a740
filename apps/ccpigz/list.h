/* list.h - the lines of -l. */
#ifndef CCPIGZ_LIST_H
#define CCPIGZ_LIST_H

#include "job.h"

/* A line for a job that has gone through; the first one brings the heading. */
void list_show(const struct job *job, long file_time);
/* The sum, if there were several. */
void list_end(const struct options *options);

#endif
