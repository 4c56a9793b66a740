/* guess.c - searches the stack for frames and verifies them by call-frame information. README.md describes how an
 * unknown frame pointer is deduced, and what is marked as a guess. */
#include "inspect/linux/step.h"

#include "os/safe_copy.h"

enum {
    WORDS_MAX = 4096, /* guess: of a frame, or of frames without information */
    CHAIN_MAX = 64,   /* frames that are followed towards the first one */
};

/* Frames from a candidate up, by their stack pointers. */
struct chain {
    unsigned count;
    uintptr_t sp[CHAIN_MAX];
};

static bool is_return(uintptr_t address, unsigned char before[CODE_BEFORE]) {
    return address > CODE_BEFORE && cc__objects_table(address) != 0 &&
           cc__safe_copy(before, (const void *)(address - CODE_BEFORE), CODE_BEFORE) && cc__code_ends_with_call(before);
}

/* Whether call-frame information leads from here to the stack's first frame. */
static bool is_anchored(const struct picture *p, struct registers regs, struct chain *chain) {
    bool exact = false;
    for (chain->count = 0; chain->count < CHAIN_MAX;) {
        chain->sp[chain->count++] = regs.value[CC_REGISTER_SP];
        enum step step = cc__unwind_step(p, &regs, &exact);
        if (step != STEP_UP) return step == STEP_END;
    }
    return true;
}

static bool is_on(const struct chain *chain, uintptr_t sp) {
    for (unsigned i = 0; i < chain->count; i++)
        if (chain->sp[i] == sp) return true;
    return false;
}

/* Whether the call before a return address calls the function: apparently not; unknown; yes. */
enum rank { CALLS_OTHER, CALLS_ANY, CALLS_IT };

/* Whether the code has a jump to the function: a tail call. */
static bool jumps(uintptr_t at, uintptr_t end, uintptr_t function) {
    enum { PIECE = 256, LARGEST = 1 << 14 };
    unsigned char code[PIECE + CODE_JUMP] = {0};
    if (end - at > LARGEST) end = at + LARGEST;
    for (; at < end; at += PIECE) {
        size_t n = end - at < PIECE ? end - at : PIECE; /* jumps start in it; one may extend past its end */
        if (!cc__safe_copy(code, (const void *)at, n + CODE_JUMP) && !cc__safe_copy(code, (const void *)at, n))
            return false;
        for (size_t i = 0; i < n; i++)
            if (cc__code_jump_target(code + i, at + i) == function) return true;
    }
    return false;
}

static enum rank rank_of(uintptr_t address, const unsigned char before[CODE_BEFORE], uintptr_t function) {
    unsigned char code[CODE_ENTRY];
    struct cfi_row row;
    uintptr_t slot, to = cc__code_call_target(before, address);
    if (to == 0 || !cc__safe_copy(code, (const void *)to, sizeof code)) return CALLS_ANY;
    if ((slot = cc__code_jump_slot(code, to)) != 0 && !cc__safe_copy(&to, (const void *)slot, sizeof to))
        return CALLS_ANY;
    if (to == function) return CALLS_IT;
    if (!cc__cfi_row(to, &row) || row.function != to) return CALLS_ANY;
    return jumps(to, row.end, function) ? CALLS_IT : CALLS_OTHER;
}

/* The best candidate so far. */
struct best {
    struct registers up;
    struct chain chain;
    bool exists;
    enum rank rank;
    bool sure; /* no other candidate is possible */
};

/* Candidates come in ascending order. Those on the chain of the best one are its callers. */
static void consider(struct best *best, const struct registers *up, const struct chain *chain, enum rank rank) {
    if (!best->exists || rank > best->rank) {
        bool sure = rank == CALLS_IT || (rank == CALLS_ANY && !best->exists);
        *best = (struct best){*up, *chain, true, rank, sure};
    } else if ((rank == best->rank || best->rank != CALLS_IT) && !is_on(&best->chain, up->value[CC_REGISTER_SP])) {
        best->sure = false;
    }
}

/* For a frame of which only the frame pointer is unknown. */
static CC_NOINLINE bool deduce(const struct picture *p, const struct cfi_row *row, struct registers *regs, bool *sure) {
    struct best best = {.exists = false};
    uintptr_t sp = regs->value[CC_REGISTER_SP], cfa = (sp + 15) & ~(uintptr_t)15;
    for (unsigned i = 0; i < WORDS_MAX && cfa <= p->top; i += 2, cfa += 16) { /* the stack is aligned at a call */
        struct registers up = *regs;
        struct chain chain;
        unsigned char before[CODE_BEFORE];
        bool exact = false;
        if (cc__unwind_apply(p, row, cfa, &up, &exact) != STEP_UP || !is_return(up.pc, before)) continue;
        if (is_anchored(p, up, &chain)) consider(&best, &up, &chain, rank_of(up.pc, before, row->function));
    }
    if (!best.exists) return false;
    *sure = *sure && best.sure;
    *regs = best.up;
    return true;
}

/* By the frame pointer, assuming that the function has one. */
static bool follow_pointer(const struct picture *p, struct registers *regs) {
    uintptr_t fp, pair[2], sp = regs->value[CC_REGISTER_SP];
    unsigned char before[CODE_BEFORE];
    if (!CC_FRAME_CHAIN || !cc__registers_get(regs, CC_REGISTER_FP, &fp)) return false;
    uintptr_t at = fp + (uintptr_t)(CC_FRAME_LOWEST * (long)sizeof(void *));
    if (at < sp || !cc__picture_word(p, at, &pair[0]) || !cc__picture_word(p, at + sizeof(void *), &pair[1]))
        return false;
    uintptr_t back = cc__registers_strip(CC_FRAME_RETURN(pair - CC_FRAME_LOWEST));
    if (!is_return(back, before)) return false;
    *regs = cc__registers_at(back, at + 2 * sizeof(void *));
    cc__registers_set(regs, CC_REGISTER_FP, CC_FRAME_UP(pair - CC_FRAME_LOWEST));
    if (!CC_FRAME_ENDS) regs->known &= ~(UINT64_C(1) << CC_REGISTER_SP); /* the frame may end further up */
    return true;
}

/* By the first word that can be a return address and leads to the stack's first frame. */
static CC_NOINLINE bool search(const struct picture *p, struct registers *regs) {
    uintptr_t word, at = regs->value[CC_REGISTER_SP];
    for (unsigned i = 0; CC_RETURN_ON_STACK && i < WORDS_MAX && cc__picture_word(p, at, &word); i++) {
        struct registers up = *regs;
        struct chain chain;
        unsigned char before[CODE_BEFORE];
        at += sizeof word;
        if (!is_return(word, before)) continue;
        up.pc = word;
        cc__registers_set(&up, CC_REGISTER_SP, at);
        if (!is_anchored(p, up, &chain)) continue;
        *regs = up;
        return true;
    }
    return false;
}

CC_NOINLINE bool cc__guess_step(const struct picture *p, struct registers *regs, bool *exact, bool *sure) {
    struct cfi_row row;
    bool described = cc__cfi_row(regs->pc - !*exact, &row);
    *exact = false;
    if (described && row.cfa == CFI_REGISTER && row.cfa_register == CC_REGISTER_FP &&
        !(regs->known >> CC_REGISTER_FP & 1))
        return deduce(p, &row, regs, sure);
    if (described && regs->known >> CC_REGISTER_SP & 1) return false; /* its row was applied, and led nowhere */
    *sure = false;
    return follow_pointer(p, regs) || search(p, regs);
}
