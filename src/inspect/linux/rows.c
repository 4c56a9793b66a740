/* rows.c - a cache of rows of call-frame information.
 *
 * Ten thousand fibers have a dozen different frames, and finding a row takes some twenty system calls. A thread that
 * finds the cache in use bypasses it: no thread waits here.
 */
#include "inspect/linux/cfi.h"

#include <stdatomic.h>

enum { SETS = 32, WAYS = 4, KEPT = SETS * WAYS }; /* set-associative */

static struct {
    _Atomic int busy;
    uint64_t epoch; /* of the loaded objects (cc__objects_epoch) */
    struct kept {
        uintptr_t pc; /* 0: none */
        struct cfi_row row;
    } kept[KEPT];
} memory;

static bool enter(void) {
    if (atomic_exchange(&memory.busy, 1) != 0) return false;
    uint64_t epoch = cc__objects_epoch();
    if (epoch != memory.epoch)
        for (unsigned i = 0; i < KEPT; i++) memory.kept[i].pc = 0;
    memory.epoch = epoch;
    return true;
}

static bool find(uintptr_t pc, struct cfi_row *row) {
    uintptr_t table = cc__objects_table(pc), fde;
    if (table != 0) return cc__cfi_find(table, pc, row);
    fde = cc__objects_record(pc);
    return fde != 0 && cc__cfi_read(0, fde, pc, row);
}

/* The entry of a pc, or the one to replace. */
static struct kept *place_of(uintptr_t pc) {
    static unsigned turn; /* round-robin replacement */
    struct kept *set = &memory.kept[(pc * UINT64_C(0x9e3779b97f4a7c15) >> 59) * WAYS];
    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].pc == pc) return &set[i];
    return &set[turn++ % WAYS];
}

bool cc__cfi_row(uintptr_t pc, struct cfi_row *row) {
    if (!enter()) return find(pc, row);
    struct kept *k = place_of(pc);
    bool found = true;
    if (k->pc != pc) {
        k->pc = 0;
        found = find(pc, &k->row);
        if (found) k->pc = pc;
    }
    if (found) *row = k->row;
    atomic_store(&memory.busy, 0);
    return found;
}
