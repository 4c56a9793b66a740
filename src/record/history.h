/* history.h - internals of history.c: the sorted records of all rings (moments.c), and the numbers that replace
 * addresses in a history (numbers.c).
 */
#ifndef CC_RECORD_HISTORY_H
#define CC_RECORD_HISTORY_H

#include "record/record.h"

/* inspect/unreachable.c scans all memory for addresses, also freed memory: a history stores their complement. */
#define cc__hidden(address) (~(uint64_t)(address))

/* ---- moments.c ---- */

/* A record with its ring and time. */
struct moment {
    uint64_t time, head;
    uint64_t body; /* hidden */
    uint32_t lane;
    uint32_t index; /* in its ring, for records of the same time */
};

/* False: a continuation record, which belongs to the one before it in its ring. */
bool cc__moment_has_time(uint64_t head);

/* Copies all records, sorted by time, and adds the lanes to the history. *oldest: the time from which all rings are
 * complete. running: a runtime runs and cannot stop meanwhile. 0, ENOMEM; ESRCH: as cc_record_write. */
int cc__moments_take(struct history *h, bool running, struct vec *moments, uint64_t *oldest);

/* ---- numbers.c ---- */

/* Numbers objects by the order of their first use. */
uint32_t cc__number_object(struct history *h, uint64_t address);

/* Numbers the nursery created at that address. 0: no memory. */
uint32_t cc__number_scope_opens(struct history *h, uint64_t address, uint32_t parent, const char *name);
/* The nursery at that address; 0: unknown. */
uint32_t cc__number_scope(struct history *h, uint64_t address);
void cc__number_scope_closes(struct history *h, uint64_t address);

/* These return strings. A fiber's label: "function", or "function 'name'". */
uint32_t cc__number_label(struct history *h, uint32_t fn, const char *name);
/* The text of an event: addresses differ from run to run, so "0x7f12..." becomes "#3". */
uint32_t cc__number_text(struct history *h, const char *text);
/* A region's name, copied from that address. */
uint32_t cc__number_region(struct history *h, uint64_t address);

/* The code place of a function's start. */
uint32_t cc__number_function(struct history *h, const void *fn);

#endif
