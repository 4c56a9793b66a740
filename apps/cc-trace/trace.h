/* trace.h - a trace in memory: file.c reads it, cc-trace.c evaluates it. */
#ifndef CC_TRACE_TRACE_H
#define CC_TRACE_TRACE_H

#include "record/go_events.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The file is damaged, or there is no memory: prints that and ends the program. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* ---- lists that grow ---- */

void *grow(void *at, size_t *room, size_t count, size_t size);
#define ADD(list)                                                      \
    (list.at = grow(list.at, &list.room, list.count, sizeof *list.at), \
     memset(&list.at[list.count], 0, sizeof *list.at), &list.at[list.count++])
#define LIST(type)          \
    struct {                \
        type *at;           \
        size_t count, room; \
    }

/* ---- the file ---- */

extern size_t
    numbers_max; /* strings, stacks and fibers take more than a byte of the file each, and have numbers in order */

struct event {
    uint64_t time, order;
    uint64_t thread;
    unsigned type;
    uint64_t arg[4];
};

extern struct event_list {
    struct event *at;
    size_t count, room;
} events;

/* "-": standard input. */
void read_trace(const char *path);
/* By its number; "": there is none. */
const char *string(uint64_t id);
/* The innermost frame of a stack as text. */
const char *place(uint64_t stack, char *text, size_t size);

#endif
