/* disk.h - what a node must not forget: its term and vote, its log, and a snapshot of what the log's beginning has
 * done.
 *
 * LOG-1  A record of the log has a checksum. What was being written when the power went is cut off at the next start:
 *         nobody was told of it, because nobody is told of anything before it is synced.
 * LOG-2  Term and vote, the snapshot, and the log that begins behind a snapshot are replaced as a whole. The snapshot
 *         comes before the log that relies on it; records that the snapshot covers are passed over.
 */
#ifndef CC_STORE_DISK_H
#define CC_STORE_DISK_H

#include "bytes.h"

#define NOBODY UINT64_MAX

struct entry {
    uint64_t term;
    struct bytes command;
    uint64_t end; /* where its record ends in the file */
};

struct disk {
    const char *directory;
    int log; /* descriptor; -1: none */
    uint64_t term, vote;
    struct bytes snapshot;
    uint64_t base, base_term; /* the last entry that the snapshot covers */
    struct entry *entries;    /* those behind it */
    size_t count, room;
};

/* Loads what there is. All: 0 or an errno value, after which the node must stop: what is on the disk is not known. */
int disk_open(struct disk *d, const char *directory);
void disk_close(struct disk *d);

int disk_set_vote(struct disk *d, uint64_t term, uint64_t vote);

/* Adds to the end, in memory; the copy is the log's. */
int disk_add(struct disk *d, uint64_t term, const void *command, size_t size);
/* Writes what was added since, and syncs. */
int disk_sync(struct disk *d);
/* The entries from this one on are gone. */
int disk_cut(struct disk *d, uint64_t index);
/* A snapshot takes the place of all entries up to this one. */
int disk_set_snapshot(struct disk *d, const void *data, size_t size, uint64_t index, uint64_t term);

uint64_t disk_last(const struct disk *d);
/* 0: there is no such entry, or not any more. */
uint64_t disk_term_of(const struct disk *d, uint64_t index);
const struct entry *disk_entry(const struct disk *d, uint64_t index);

#endif
