/* words.c - a hash table with open addressing; nothing is removed, but entries of an earlier epoch count as free. */
#include "inspect/linux/words.h"

#include "sync/atomic.h"

enum { ENTRIES = 1024, PROBES = 8 };

static struct {
    _Atomic uint32_t busy; /* a thread adds a word */
    struct entry {
        _Atomic uint64_t word;
        _Atomic uintptr_t pc; /* 0: none */
    } entry[ENTRIES];
} table;

static struct entry *probe(uintptr_t pc, unsigned i) {
    return &table.entry[(((uint64_t)pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) + i) % ENTRIES];
}

bool cc__words_find(uintptr_t pc, uint64_t epoch, uint64_t *word) { /* WORDS-1 */
    for (unsigned i = 0; i < PROBES; i++) {
        struct entry *e = probe(pc, i);
        *word = cc__get_acquire(&e->word); /* pairs with cc__words_add; so do the others */
        uintptr_t of = cc__get_acquire(&e->pc);
        if (of == 0 || (*word & WORDS_EPOCH) != epoch) return false;
        if (of == pc) return cc__get_acquire(&e->word) == *word;
    }
    return false;
}

void cc__words_add(uintptr_t pc, uint64_t word) { /* WORDS-1 */
    if (cc__swap(&table.busy, 1) != 0) return;
    for (unsigned i = 0; i < PROBES; i++) {
        struct entry *e = probe(pc, i);
        if (cc__get(&e->pc) != 0 && ((cc__get(&e->word) ^ word) & WORDS_EPOCH) == 0) continue;
        cc__set(&e->pc, 0);
        cc__set_release(&e->word, word);
        cc__set_release(&e->pc, pc);
        break;
    }
    cc__set_release(&table.busy, 0);
}
