/* cc_record.h - the recorder: what fibers and workers did last, and when; as a trace that other tools read.
 *
 * Each worker keeps its last events in a ring: which fiber runs, what it parks for, who wakes and who starts whom, and
 * what the program notes itself. Nothing is written while the program runs; a file is made of the rings when it is
 * asked for. Off, it costs a load at each switch and wake. CC_RECORD=file records from the start of the runtime and
 * writes at its end, on a deadlock and on a stall; CC_RECORD_LEVEL alone keeps the last 4096 events of each worker for
 * the runtime's reports.
 *
 * All calls may be made from any thread, fibers included, with or without a runtime; none switches. Those that write
 * block the thread for as long as the descriptor does.
 */
#ifndef CCC_CC_RECORD_H
#define CCC_CC_RECORD_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

/* How much is kept of each event. */
typedef enum CCRecordLevel {
    CC_RECORD_TIMES,  /* with the time, by the CPU's counter where that is a clock. The default */
    CC_RECORD_TURNS,  /* without: times are estimated from the turns of the worker, to some 50 us */
    CC_RECORD_STACKS, /* with the time and, for each wait, up to 16 frames: microseconds each, and 7 KiB of stack */
} CCRecordLevel;

#define CC_RECORD_EVENTS_DEFAULT 65536
#define CC_RECORD_EVENTS_MAX ((size_t)1 << 24)

typedef struct CCRecordConfig {
    CCRecordLevel level;
    size_t events; /* of 16 bytes, in each ring; a power of two from 64 to CC_RECORD_EVENTS_MAX; 0: the default. Rings
                      only grow: one of an earlier start that is larger stays. */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCRecordConfig;

/* Begins to record; config may be NULL. What was recorded before is forgotten, and each start of the runtime begins
 * anew. EINVAL: a value out of range; EALREADY: it records already; ENOMEM. */
CC_API int cc_record_start(const CCRecordConfig *config);

/* Ends it; what was recorded stays, for cc_record_write. EALREADY: nothing is being recorded. */
CC_API int cc_record_stop(void);

typedef enum CCRecordFormat {
    CC_RECORD_GO,       /* an execution trace of Go: `go tool trace`, `cc-trace` */
    CC_RECORD_PERFETTO, /* track events: ui.perfetto.dev, trace_processor */
    CC_RECORD_TEXT,     /* a line for each event */
} CCRecordFormat;

/* Writes what the rings hold, oldest first; fibers go on meanwhile. Of what no ring holds any more, nothing is written,
 * also if others still hold it. EINVAL: no such format; ENODATA: nothing was ever recorded; ESRCH: the level is
 * CC_RECORD_TURNS and the runtime does not run; ENOMEM; or an error of the descriptor. */
CC_API int cc_record_write(int fd, CCRecordFormat format);

/* The same to a file, which is replaced. The format is that of the name: .pftrace or .perfetto-trace, .txt; all others
 * are Go's. Errors as above, and of opening; EINVAL: NULL. */
CC_API int cc_record_snapshot(const char *path);

/* A mark in the timeline of the calling fiber or thread: what printf makes of it, up to 255 bytes. Nothing, and the
 * arguments are not formatted, while nothing is recorded. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
CC_API void
cc_note(const char *format, ...);

/* A region in the timeline of the calling fiber: from begin to end, by the same fiber. They nest. The name must last as
 * long as the process, as a literal does. NULL: nothing. An end without its begin does not count; an end also ends
 * the regions inside. */
CC_API void cc_region_begin(const char *name);
CC_API void cc_region_end(const char *name);

static inline CC_UNUSED void cc__region_leave(const char **name) {
    cc_region_end(*name);
}

/* A region from here to the end of the block: CC_REGION("parse"); */
#define CC_REGION(name)                                                                     \
    __attribute__((cleanup(cc__region_leave), unused)) const char *CC__UNIQUE(cc_region_) = \
        (cc_region_begin("" name ""), "" name "")

CC_END_DECLS

#endif
