/* target.h - the memory that is read: of a process, or of a core file.
 *
 * There is one target in a run of the program; os/safe_copy.h reads from it, so that the library's own unwinder
 * (src/inspect) walks stacks of the target.
 *
 * TARGET-1  Nothing that is read is trusted: every count, size and address has a bound before it is used. The target
 *           runs meanwhile, and core files may be damaged. */
#ifndef CCPS_TARGET_H
#define CCPS_TARGET_H

#include "arch/registers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file that the target has mapped. */
struct mapping {
    uint64_t start, end, offset;
    char *path; /* "": none */
    int fd;     /* of a core's target, open; -1: not yet; -2: it cannot be */
};

/* Ends the program with a message and status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Memory; fails. */
void *grow(void *old, size_t count, size_t size);

void target_open_process(int pid);
void target_open_core(const char *path);

/* Stops the process until target_continue, for `ms` at most. The calling thread is its tracer: if that ends, the
 * process continues. Only that thread may read meanwhile. Fails. */
void target_stop(unsigned ms);
void target_continue(void);
/* The limit passed before target_continue. */
bool target_went_on(void);

/* "process 123 (server)", "core.7 (server)" */
const char *target_name(void);
/* 0: a core file. */
int target_pid(void);
const struct mapping *target_mappings(size_t *count);

/* A regular file, to be read; below 0: it is none. */
int target_open_file(const char *path);

/* False: it is not there. */
bool target_read(void *to, uint64_t from, size_t n);

/* Many at once, which takes a fraction of the system calls; best in the order of their addresses. */
struct piece {
    void *to;
    uint64_t from;
    size_t size;
    bool read; /* it was there; false before */
};
void target_read_many(struct piece *pieces, size_t count);

/* A word of `size` bytes; 0 if it is not there. */
uint64_t target_word(uint64_t at, unsigned size);
/* What can be printed of a string, at most max - 1 bytes. */
void target_text(uint64_t at, char *text, size_t max);

/* A thread's registers, as far as they are known: all in a core file and while the process is stopped; pc and sp if the
 * thread waits in the kernel; else false. */
bool target_registers(int tid, struct registers *regs);

#endif
