/* words.c - a hash table with open addressing; nothing is removed, but entries of an earlier epoch count as free. */
#include "inspect/linux/words.h"

#include "sync/atomic.h"

enum { ENTRIES = 1024, PROBES = 8 };

static struct {
    _Atomic uint32_t busy;  /* a thread adds a word */
    _Atomic uint64_t epoch; /* the newest of all words */
    struct entry {
        _Atomic uint64_t word;
        _Atomic uintptr_t pc; /* see kept_pc; 0: none */
    } entry[ENTRIES];
} table;

static struct entry *probe(uintptr_t pc, unsigned i) {
    return &table.entry[(((uint64_t)pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) + i) % ENTRIES];
}

/* With the bits of the epoch that are not in the word, where addresses of programs have none. */
static uintptr_t kept_pc(uintptr_t pc, uint64_t epoch) {
    return pc ^ (uintptr_t)(epoch / (WORDS_EPOCH + 1)) << 48;
}

bool cc__words_find(uintptr_t pc, uint64_t epoch, uint64_t *word) { /* WORDS-1 */
    uintptr_t kept = kept_pc(pc, epoch);
    for (unsigned i = 0; i < PROBES; i++) {
        struct entry *e = probe(pc, i);
        *word = cc__get_acquire(&e->word); /* pairs with cc__words_add; so do the others */
        uintptr_t of = cc__get_acquire(&e->pc);
        if (of == 0 || ((*word ^ epoch) & WORDS_EPOCH) != 0) return false;
        if (of == kept) return cc__get_acquire(&e->word) == *word;
    }
    return false;
}

void cc__words_add(uintptr_t pc, uint64_t epoch, uint64_t word) { /* WORDS-1 */
    if (cc__swap(&table.busy, 1) != 0) return;
    if (cc__get(&table.epoch) < epoch) cc__set(&table.epoch, epoch);
    for (unsigned i = 0; i < PROBES && cc__get(&table.epoch) == epoch; i++) {
        struct entry *e = probe(pc, i);
        if (cc__get(&e->pc) != 0 && ((cc__get(&e->word) ^ epoch) & WORDS_EPOCH) == 0) continue;
        cc__set(&e->pc, 0);
        cc__set_release(&e->word, word | (epoch & WORDS_EPOCH));
        cc__set_release(&e->pc, kept_pc(pc, epoch));
        break;
    }
    cc__set_release(&table.busy, 0);
}
