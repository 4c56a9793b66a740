/* disk.h - the persistent state of a node: its term and vote, its log, and a snapshot of the state that the beginning
 * of the log led to.
 *
 * LOG-1  A record of the log has a checksum. A record that was being written at a power failure is cut off at the next
 *        start: it was not acknowledged, because nothing is acknowledged before it is synced.
 * LOG-2  Term and vote, the snapshot, and the log that begins after a snapshot are replaced atomically. The snapshot
 *        comes before the log that relies on it; records that the snapshot covers are skipped. */
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
    struct entry *entries;    /* the entries after it */
    size_t count, room;
};

/* Loads what there is. All: 0 or an errno value, after which the node must stop: what is on the disk is not known. */
int disk_open(struct disk *d, const char *directory);
void disk_close(struct disk *d);

int disk_set_vote(struct disk *d, uint64_t term, uint64_t vote);

/* Appends in memory; the log owns the copy. */
int disk_add(struct disk *d, uint64_t term, const void *command, size_t size);
/* Writes what was added since, and syncs. */
int disk_sync(struct disk *d);
/* Removes the entries from this one on. */
int disk_cut(struct disk *d, uint64_t index);
/* A snapshot replaces all entries up to this one. */
int disk_set_snapshot(struct disk *d, const void *data, size_t size, uint64_t index, uint64_t term);

uint64_t disk_last(const struct disk *d);
/* 0: there is no such entry, or not any more. */
uint64_t disk_term_of(const struct disk *d, uint64_t index);
const struct entry *disk_entry(const struct disk *d, uint64_t index);

#endif
