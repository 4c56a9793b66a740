/* dump.h - the complete state of the runtime, for people (dump.c) and for programs (json.c). */
#ifndef CC_DIAG_DUMP_H
#define CC_DIAG_DUMP_H

#include "inspect/survey.h"
#include "wait/blocked.h"

#include <stdio.h>

/* ---- output: a stream of the user's, or stderr without stdio (out.c) ---- */

struct out {
    FILE *file; /* NULL: stderr, by write(2) */
    size_t len;
    char text[1024];
};

void cc__out(struct out *out, const char *fmt, ...) CC_PRINTF(2, 3);
void cc__out_flush(struct out *out);

/* The plural "s" of a noun: 1 fiber, 2 fibers. */
CC_INLINE const char *cc__out_s(unsigned long long n) {
    return n == 1 ? "" : "s";
}

/* A JSON string, with its quotes. */
void cc__out_quoted(struct out *out, const char *text);

/* ---- descriptions (describe.c), of fibers that may run meanwhile (view.h) ---- */

enum { DESCRIBE_MAX = 320 };

/* "fiber 12.3 'name'" */
void cc__describe_fiber(const struct view *view, char *text, size_t size);
void cc__describe_record(struct fiber *f, char *text, size_t size);

/* "to receive from channel 'jobs' (0x55d0c0, capacity 16, empty)" */
void cc__describe_wait(struct wait_what what, char *text, size_t size);

/* "for 1.25 s", "for 2 to 5 s" */
void cc__describe_since(uint64_t from, uint64_t to, uint64_t now, char *text, size_t size);

/* A line for each pthread mutex that the fiber holds (CC_DEBUG_LOCKS, pthreads.c). */
void cc__pthreads_print(struct out *out, struct fiber *f);

/* ---- reports ---- */

/* One report at a time, or their lines would mix. */
void cc__dump_begin(void);
/* The same with a deadline, for callers that must not be blocked by a stuck writer of a report. False: timed out. */
bool cc__dump_begin_until(uint64_t until);
#define DUMP_SOON_NS UINT64_C(200000000)    /* for sysmon, and for shutdowns */
#define LEAKS_SETTLE_NS UINT64_C(100000000) /* until the last turns of ended tasks are over. Guess */
void cc__dump_end(void);

/* The parts of the text, which a deadlock report uses too. */
void cc__dump_workers(struct out *out);
bool cc__dump_is_asleep(struct worker *w);
/* The workers' inboxes, up to `max` fibers of each, for CC_DEBUG_INBOX_DUMP. While the runtime runs; only reliable when
 * nothing moves. */
enum { DUMP_INBOX_SHOWN = 32 };
void cc__dump_inboxes(struct out *out, unsigned max);
void cc__dump_nurseries(struct out *out);
/* more: prints more about a waiting fiber, after its line; may be NULL. */
void cc__dump_fibers(struct out *out, const struct survey *survey,
                     void (*more)(struct out *, struct fiber *, struct wait_what));
/* OS threads that wait in a call of the library; now: the end of their waiting times. */
void cc__dump_blocked(struct out *out, uint64_t now);
/* Blocking calls that run although no caller waits for them any more. */
void cc__dump_abandoned(struct out *out, uint64_t now);
/* Unreachable fibers, or why the search is not possible; patient: retries for some seconds. */
void cc__dump_unreachable(struct out *out, bool patient);
/* A line at the end of a report: what this build of the library cannot find out, if anything. */
void cc__dump_missing(struct out *out);
/* The last events of a worker, or of all, if they are recorded. Allocates nothing, takes no lock. */
void cc__dump_events(struct out *out, unsigned worker, const char *indent);
void cc__dump_events_all(struct out *out);
/* A line for each frame of a trimmed view. */
void cc__dump_frames(struct out *out, const struct view *view, const char *indent);

/* cc_profile_cpu; ends early, with the samples so far, once *over is not 0. over may be NULL. */
int cc__profile_cpu(int fd, CCDeadline until, const _Atomic uint32_t *over);

/* Everything; inside the runtime. 0 or ENOMEM. */
int cc__dump_text(struct out *out);
int cc__dump_json(struct out *out);

#endif
