/* cc_record.h - the recorder: the latest events of fibers and workers, exported as a trace for other tools.
 *
 * Each worker keeps its latest events in a ring: runs, parks with their reasons, wakes, spawns, and the program's own
 * notes. Nothing is written to disk while the program runs; a file is made from the rings on request. When off, it
 * costs a load at each switch and wake. CC_RECORD=file records from the start of the runtime and writes the file at its
 * end, on a deadlock and on a stall; CC_RECORD_LEVEL alone keeps the last 4096 events of each worker for the runtime's
 * reports.
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
    CC_RECORD_TIMES,  /* with timestamps, from the CPU's cycle counter if it is a reliable clock. The default */
    CC_RECORD_TURNS,  /* without timestamps: times are estimated from the worker's turns, the newest to about 50 us,
                         those of older events to half their age */
    CC_RECORD_STACKS, /* with timestamps and, for each wait, up to 16 frames: costs a tenth of a microsecond, more for
                         new frames, and up to 7 KiB of stack */
} CCRecordLevel;

#define CC_RECORD_EVENTS_DEFAULT 65536
#define CC_RECORD_EVENTS_MAX ((size_t)1 << 24)

typedef struct CCRecordConfig {
    CCRecordLevel level;
    size_t events; /* of 16 bytes, in each ring; a power of two from 64 to CC_RECORD_EVENTS_MAX; 0: the default. Rings
                      only grow: one of an earlier start that is larger stays. */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCRecordConfig;

/* Starts recording; config may be NULL. Clears earlier records, as does each start of the runtime. EINVAL: a value out
 * of range; EALREADY: already recording; ENOMEM. */
CC_API int cc_record_start(const CCRecordConfig *config);

/* Stops recording; the records are kept for cc_record_write. EALREADY: not recording. */
CC_API int cc_record_stop(void);

typedef enum CCRecordFormat {
    CC_RECORD_GO,       /* a Go execution trace: `go tool trace`, `cc-trace` */
    CC_RECORD_PERFETTO, /* track events: ui.perfetto.dev, trace_processor */
    CC_RECORD_TEXT,     /* a line for each event */
} CCRecordFormat;

/* Writes the content of the rings, oldest first, while fibers continue to run. Only the time span that all rings still
 * cover is written. EINVAL: no such format; ENODATA: nothing was ever recorded; ESRCH: the level is CC_RECORD_TURNS and
 * the runtime is not running; ENOMEM; or an error of the descriptor. */
CC_API int cc_record_write(int fd, CCRecordFormat format);

/* The same to a file, which is replaced. The suffix selects the format: .pftrace or .perfetto-trace, .txt; all others
 * mean Go's. Errors as above, and of opening; EINVAL: NULL. */
CC_API int cc_record_snapshot(const char *path);

/* Puts a mark into the timeline of the calling fiber or thread: text formatted as by printf, up to 255 bytes, with
 * control characters as spaces. Does nothing, not even formatting, while recording is off. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
CC_API void
cc_note(const char *format, ...);

/* Mark a region in the timeline of the calling fiber, which makes both calls. Regions nest. The name must live as long
 * as the process, as a literal does. NULL is ignored, and so is an end without its begin; an end also ends the regions
 * inside. */
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
