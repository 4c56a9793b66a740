/* run.c - runs a process to its end: a nursery of the process, the feeder of its input and the collectors of its
 * output.
 *
 * The first of them that fails cancels the others, and the process is stopped. The deadline and a cancellation of the
 * caller have the same effect.
 */
#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "wait/cancel.h"

#include <ccc/cc_fd.h>
#include <ccc/cc_process.h>
#include <errno.h>
#include <string.h>

enum { FIRST_SIZE = 4096 };

struct collector {
    CCProcess *process;
    int stream; /* 1, 2 */
    size_t limit;
    char *bytes;
    size_t size, room;
};

/* Doubles the room, up to one byte more than the limit, which shows that the output is too long. */
static int grow(struct collector *c) {
    size_t room = c->room == 0 ? FIRST_SIZE : c->room * 2;
    if (room > c->limit + 2) room = c->limit + 2;
    char *bytes = cc__mem_alloc_stack(room);
    if (bytes == NULL) return ENOMEM;
    if (c->size > 0) memcpy(bytes, c->bytes, c->size);
    bytes[c->size] = '\0';
    cc__mem_free(c->bytes);
    c->bytes = bytes;
    c->room = room;
    return 0;
}

static void *collect(void *arg) {
    struct collector *c = arg;
    int fd = c->stream == 1 ? cc_process_stdout(c->process) : cc_process_stderr(c->process);
    for (;;) {
        size_t n = 0;
        int error = c->size + 1 >= c->room ? grow(c) : 0;
        if (error == 0) error = cc_fd_read(fd, c->bytes + c->size, c->room - 1 - c->size, &n);
        c->size += n;
        if (c->size > c->limit) {
            c->size = c->limit;
            error = EFBIG;
        }
        if (c->bytes != NULL) c->bytes[c->size] = '\0';
        if (error != 0) return cc_fail(error, "cannot collect what a process writes");
        if (n == 0) break;
    }
    (void)cc_process_close(c->process, c->stream);
    return NULL;
}

struct feeder {
    CCProcess *process;
    const void *input;
    size_t size;
};

/* EPIPE: the process has closed its input without reading all of it. */
static void *feed(void *arg) {
    struct feeder *f = arg;
    int error = cc_fd_write(cc_process_stdin(f->process), f->input, f->size, NULL);
    (void)cc_process_close(f->process, 0);
    return error == 0 || error == EPIPE ? NULL : cc_fail(error, "cannot write what a process reads");
}

struct running {
    CCProcess *process;
    struct feeder feeder;
    struct collector collectors[2];
};

static void set_streams(CCProcessOptions *o, const CCProcessRun *run) {
    if (run->input != NULL) o->in.kind = CC_PROCESS_PIPE;
    if (o->in.kind == CC_PROCESS_INHERIT) o->in.kind = CC_PROCESS_NULL;
    if (o->out.kind == CC_PROCESS_INHERIT) o->out.kind = CC_PROCESS_PIPE;
    if (o->err.kind == CC_PROCESS_INHERIT) o->err.kind = CC_PROCESS_PIPE;
}

static int start_all(CCNursery *n, CCProcessOptions *o, const CCProcessRun *run, struct running *r) {
    size_t limit = run->limit != 0 ? run->limit : CC_PROCESS_RUN_LIMIT;
    set_streams(o, run);
    o->nursery = n;
    o->root = false;
    int error = cc_process_start(&r->process, o);
    if (error != 0) return error;
    if (cc_process_stdin(r->process) >= 0) {
        r->feeder = (struct feeder){r->process, run->input, run->input_size};
        error = cc_nursery_spawn(n, feed, &r->feeder);
    }
    const int ends[] = {cc_process_stdout(r->process), cc_process_stderr(r->process)};
    for (int i = 0; i < 2 && error == 0; i++) {
        if (ends[i] < 0) continue;
        r->collectors[i] = (struct collector){.process = r->process, .stream = i + 1, .limit = limit};
        error = cc_nursery_spawn(n, collect, &r->collectors[i]);
    }
    return error;
}

static void hand_over(CCProcessRun *run, const struct running *r) {
    run->out = r->collectors[0].bytes;
    run->out_size = r->collectors[0].size;
    run->err = r->collectors[1].bytes;
    run->err_size = r->collectors[1].size;
}

static int run_in(CCNursery *n, const CCProcessOptions *options, CCProcessRun *run) {
    struct running r = {0};
    CCProcessOptions o = *options;
    int error = start_all(n, &o, run, &r);
    if (error != 0) (void)cc_nursery_cancel(n);
    int ended = cc_nursery_wait(n);
    if (error == 0 || (error == ECANCELED && ended != 0)) error = ended; /* the reason, such as the deadline */
    if (error == 0) error = cc_process_wait_try(r.process, &run->status);
    cc_process_free(r.process);
    hand_over(run, &r);
    return error;
}

int cc_process_run(const CCProcessOptions *options, CCProcessRun *run) {
    if (options == NULL || run == NULL || options->nursery != NULL || cc__reserved_used(run)) return EINVAL;
    if (run->limit > SIZE_MAX / 4 || (run->input == NULL && run->input_size != 0)) return EINVAL;
    run->out = run->err = NULL;
    run->out_size = run->err_size = 0;
    run->status = (CCProcessStatus){0};
    CCNursery *n = NULL;
    int error = cc__cancel_nursery(&(CCNurseryConfig){.deadline = run->deadline, .name = "cc_process_run"}, &n);
    if (error != 0) return error;
    error = run_in(n, options, run);
    (void)cc_nursery_free(n);
    return error;
}

void cc_process_run_free(CCProcessRun *run) {
    if (run == NULL) return;
    cc__mem_free(run->out);
    cc__mem_free(run->err);
    run->out = run->err = NULL;
    run->out_size = run->err_size = 0;
}
