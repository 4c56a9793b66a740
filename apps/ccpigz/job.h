/* job.h - one input and one output: the argument of the two pipelines, pack.c and unpack.c. */
#ifndef CCPIGZ_JOB_H
#define CCPIGZ_JOB_H

#include "options.h"
#include "wrapper.h"

#include <ccc/ccc.h>
#include <stdatomic.h>
#include <stdint.h>

struct output;

struct job {
    const struct options *options;
    const char *name; /* for messages */
    int in;
    bool in_may_block;  /* a pipe or a terminal: see job_read */
    uint64_t in_size;   /* 0: not known */
    struct output *out; /* NULL: nothing is written */
    /* Decompressing: called once with the first header, before anything is written; 0, or -1: failed, with a message.
     */
    int (*begin)(struct job *job, const struct wrapper *first);
    struct wrapper wrapper;                    /* compressing: what to write; decompressing: the first header */
    uint32_t check;                            /* of the last member */
    atomic_uint_least64_t bytes_in, bytes_out; /* so far; for the progress line too */
};

/* Reads up to n bytes: what comes next, or as much as there is until the end of the input. A wait for a
 * slow writer ends when the fiber, if it is one, is cancelled. Returns the number of bytes, *error being 0 or an errno
 * value. */
size_t job_read_some(struct job *job, void *to, size_t n, int *error);
size_t job_read(struct job *job, void *to, size_t n, int *error);

/* For fibers: a pipe that is standard input or output, opened again, so that its non-blocking mode is not shared and no
 * read or write has to check first whether it would block. `fd` itself if it is something else, or cannot be reopened.
 */
int job_pipe(int fd);

/* Both return 0, or -1 after a message. OS threads. */
int pack_run(struct job *job);
int unpack_run(struct job *job);

#endif
