/* history.h - what the files that make a history share: the records of all rings in one order (moments.c), and what
 * stands for addresses in a history (numbers.c).
 */
#ifndef CC_RECORD_HISTORY_H
#define CC_RECORD_HISTORY_H

#include "record/record.h"

/* inspect/unreachable.c looks for addresses in all memory, also in what was freed: objects are written down as the
 * complement. */
#define cc__hidden(address) (~(uint64_t)(address))

/* ---- moments.c ---- */

/* A record of any ring, in its place. */
struct moment {
    uint64_t time, head;
    uint64_t body; /* hidden */
    uint32_t lane;
    uint32_t index; /* in its ring, for records of the same time */
};

/* It has a time of its own; else it belongs to the one before it in its ring. */
bool cc__moment_has_time(uint64_t head);

/* All of them, by time; the lanes of the history are added. *oldest: the first moment from which on all rings have
 * everything. running: the runtime is, and stays. 0, ENOMEM; ESRCH: as cc_record_write. */
int cc__moments_take(struct history *h, bool running, struct vec *moments, uint64_t *oldest);

/* ---- numbers.c ---- */

/* A number for an address that means nothing to a reader. */
uint32_t cc__number_object(struct history *h, uint64_t address);

/* A nursery begins there: its number. 0: no memory. */
uint32_t cc__number_scope_opens(struct history *h, uint64_t address, uint32_t parent, const char *name);
/* The one at that address; 0: it is none that is known. */
uint32_t cc__number_scope(struct history *h, uint64_t address);
void cc__number_scope_closes(struct history *h, uint64_t address);

/* Strings. Of a fiber: "function", or "function 'name'". */
uint32_t cc__number_label(struct history *h, uint32_t fn, const char *name);
/* Of an event: addresses differ from run to run, and "0x7f12..." becomes "#3". */
uint32_t cc__number_text(struct history *h, const char *text);
/* Of a region, by where its name is. */
uint32_t cc__number_region(struct history *h, uint64_t address);

/* The place where a function begins. */
uint32_t cc__number_function(struct history *h, const void *fn);

#endif
