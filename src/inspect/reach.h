/* reach.h - which objects are reachable, by a conservative scan of the process's memory.
 *
 * There are three kinds of memory. Skipped memory is not scanned. Private memory (the stack of a waiting fiber, its
 * arguments) is scanned once a scanned word points into it, or once it is opened because the fiber can continue. All
 * other memory is a root.
 *
 * REACH-1  A word that equals an object's address reaches it, whatever the word means: the error is on the side of
 *          reachable. Only aligned words of readable memory are scanned; an address that is stored in another form, or
 *          outside of the process, is not found.
 * REACH-2  The runtime's own pointers into private memory do not count, since no program can read them: `harmless` is
 *          asked about each.
 */
#ifndef CC_INSPECT_REACH_H
#define CC_INSPECT_REACH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    REACH_OBJECTS_LOG2 = 18, /* size of the hash table, at most half full */
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
    uintptr_t least, most; /* bounds of the objects' addresses */
    struct {
        uintptr_t at; /* 0: none */
        bool reached;
    } object[1 << REACH_OBJECTS_LOG2];
    struct reach_private private[REACH_PRIVATE_MAX]; /* after cc__reach_begin: ascending and disjoint */
    unsigned to_do[REACH_PRIVATE_MAX];               /* opened, and not yet scanned */
    struct {
        uintptr_t low, high;
    } skip[REACH_SKIPS_MAX];
    uintptr_t words[REACH_CHUNK / sizeof(uintptr_t)];
};

/* The objects to find, and the kinds of memory; all before cc__reach_begin. Too many of one set too_many. */
void cc__reach_want(struct reach *r, const void *object);
void cc__reach_skip(struct reach *r, uintptr_t low, uintptr_t high);
void cc__reach_keep_private(struct reach *r, uintptr_t low, uintptr_t high, unsigned owner);

/* Scans the roots. False: this was not possible, or they are more than `limit` bytes. */
bool cc__reach_begin(struct reach *r, uint64_t limit);

/* Scans a further range. */
void cc__reach_range(struct reach *r, uintptr_t low, uintptr_t high);
/* Opens the private range that contains the address; 0: none. */
void cc__reach_open(struct reach *r, uintptr_t at);

bool cc__reach_has(const struct reach *r, const void *object);

/* ---- the memory that the process may have written ---- */

/* Calls fn for each range of used pages, in the order of addresses: of writable mappings the pages that are resident or
 * swapped out, of read-only ones those that are also private. Some pages may turn out to be missing. False: it was not
 * possible, or there are more than `limit` bytes. Any thread; keeps errno. */
bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg);

#endif
