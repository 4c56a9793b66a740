/* reach.h - which objects can be reached, found out by looking at every word of memory that somebody could read.
 *
 * Three kinds of memory. What is skipped counts for nothing. What is private (the stack of a fiber that waits, its
 * arguments) counts once a word that counts points into it, or once it is opened because the fiber can go on. All the
 * rest counts from the beginning.
 *
 * REACH-1  A word that equals an object's address reaches it, whatever the word means: too much is reached rather than
 *          too little. Addresses are looked for in aligned words of memory that can be read; one that is kept in
 *          another form, or outside of the process, is not found.
 * REACH-2  The runtime's own words that lead into private memory do not count, since no program can read them: the
 *          owner of this is asked about each (harmless).
 */
#ifndef CC_INSPECT_REACH_H
#define CC_INSPECT_REACH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    REACH_OBJECTS_LOG2 = 18, /* places for objects, of which half are used at most */
    REACH_PRIVATE_MAX = 2 * 65536,
    REACH_SKIPS_MAX = 8192,
    REACH_CHUNK = 64 * 1024,
};

struct reach_private {
    uintptr_t low, high;
    unsigned owner; /* the caller's number for it */
    bool open;
};

struct reach {
    /* Whether a word that points into private memory is the runtime's own. */
    bool (*harmless)(void *arg, unsigned owner, uintptr_t word);
    void *arg;
    unsigned objects, privates, skips, at_skip, at_private, opened;
    bool too_many;
    uintptr_t least, most; /* of the objects' addresses */
    struct {
        uintptr_t at; /* 0: none */
        bool reached;
    } object[1 << REACH_OBJECTS_LOG2];
    struct reach_private private[REACH_PRIVATE_MAX]; /* ascending, apart, after cc__reach_begin */
    unsigned to_do[REACH_PRIVATE_MAX];               /* opened, and not yet looked at */
    struct {
        uintptr_t low, high;
    } skip[REACH_SKIPS_MAX];
    uintptr_t words[REACH_CHUNK / sizeof(uintptr_t)];
};

/* What is looked for, and the kinds of memory; all of it before the beginning. Too many of anything: too_many. */
void cc__reach_want(struct reach *r, const void *object);
void cc__reach_skip(struct reach *r, uintptr_t low, uintptr_t high);
void cc__reach_keep_private(struct reach *r, uintptr_t low, uintptr_t high, unsigned owner);

/* All that counts from the beginning. False: it could not be looked through, or is more than `limit` bytes. */
bool cc__reach_begin(struct reach *r, uint64_t limit);

/* This counts, too. */
void cc__reach_range(struct reach *r, uintptr_t low, uintptr_t high);
/* The private memory that an address lies in does; 0: none. */
void cc__reach_open(struct reach *r, uintptr_t at);

bool cc__reach_has(const struct reach *r, const void *object);

/* ---- all of the process's memory in which something may have been written ---- */

/* Calls fn for each range of pages that hold something, in order of addresses: all that is there, or swapped out, of
 * what can be written; and of what can only be read, what is the process's own. Some of it may turn out not to be
 * there. False: it could not be done, or there is more than `limit` bytes of it. Any thread; keeps errno. */
bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg);

#endif
