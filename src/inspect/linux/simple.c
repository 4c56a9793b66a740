/* simple.c - the frames of the calling thread.
 *
 * Most rows are simple: the CFA is the stack pointer or the frame pointer plus a constant, and the return address and
 * the caller's frame pointer are saved at constant offsets from it. Such a row fits into a word, and the words are
 * cached (words.h): the recorder unwinds a stack at each park (level 2). If a row on the stack is not simple,
 * cc__unwind unwinds that stack.
 */
#include "base/san.h"
#include "inspect/linux/step.h"
#include "inspect/linux/words.h"

/* Behind the epoch; offsets are in words, from the CFA downwards, 16 bits each. */
enum { BY_FP = WORDS_EPOCH + 1, CFA_SHIFT = 16, RETURN_SHIFT = 32, FP_SHIFT = 48 };

static uint64_t field(uint64_t word, unsigned shift) {
    return (word >> shift & UINT16_MAX) * sizeof(uintptr_t);
}

/* ---- words ---- */

/* False: it does not fit. 0 means "none", except for the CFA, which may be the frame pointer itself. */
static bool pack(uint64_t *word, int64_t bytes, unsigned shift) {
    const int64_t size = (int64_t)sizeof(uintptr_t);
    if (bytes < 0 || bytes % size != 0 || bytes / size > UINT16_MAX) return false;
    *word |= (uint64_t)(bytes / size) << shift;
    return true;
}

/* False: it is not simple. */
static bool pack_row(const struct cfi_row *row, uint64_t *word) {
    unsigned column = row->return_column;
    if (row->rule[column] == CFI_UNDEFINED) return true; /* the first frame of the stack */
    if (row->cfa != CFI_REGISTER || row->signal_frame || row->rule[CC_REGISTER_SP] != CFI_SAME) return false;
    if (row->cfa_register == CC_REGISTER_FP)
        *word |= BY_FP;
    else if (row->cfa_register != CC_REGISTER_SP)
        return false;
    if (!pack(word, row->cfa_value, CFA_SHIFT)) return false;
    int64_t back = -row->value[column], fp = -row->value[CC_REGISTER_FP];
    if (row->rule[column] != CFI_OFFSET || back == 0 || !pack(word, back, RETURN_SHIFT)) return false;
    if (row->rule[CC_REGISTER_FP] == CFI_SAME) return true;
    return row->rule[CC_REGISTER_FP] == CFI_OFFSET && fp != 0 && pack(word, fp, FP_SHIFT);
}

/* False: there is none, or it is not simple. */
static bool find_word(uintptr_t pc, uint64_t epoch, uint64_t *word) {
    struct cfi_row row;
    if (likely(cc__words_find(pc, epoch, word))) return true;
    *word = 0;
    if (!cc__cfi_row(pc, &row) || !pack_row(&row, word)) return false;
    cc__words_add(pc, epoch, *word);
    return true;
}

/* ---- the stack ---- */

/* False: it is not on the stack. */
static bool word_below(const struct walk *w, uintptr_t cfa, uintptr_t bytes, uintptr_t *word) {
    if (bytes > cfa - w->low) return false;
    *word = cc__stack_load(cfa - bytes);
    return true;
}

/* To the caller's frame. False: it takes cc__unwind. */
static bool step(struct walk *w, uint64_t word) {
    uintptr_t cfa = (word & BY_FP ? w->fp : w->sp) + (uintptr_t)field(word, CFA_SHIFT);
    uintptr_t saved = (uintptr_t)field(word, FP_SHIFT);
    if (cfa <= w->sp || cfa > w->top || cfa % sizeof cfa != 0) return false;
    if (!word_below(w, cfa, (uintptr_t)field(word, RETURN_SHIFT), &w->pc)) return false;
    if (saved != 0 && !word_below(w, cfa, saved, &w->fp)) return false;
    cc__san_define(&w->pc, offsetof(struct walk, sp)); /* what was read */
    w->pc = cc__registers_strip(w->pc);
    w->sp = cfa;
    return true;
}

/* ---- its shape ---- */

static void add_word(struct shape *s, uintptr_t at, uintptr_t value, bool is_address) {
    if (at > INT32_MAX) s->count = SHAPE_WORDS;
    if (s->count < SHAPE_WORDS) s->word[s->count] = (struct shape_word){at & INT32_MAX, is_address, value};
    s->count++;
}

/* A step by `word` from the frame `from`, whose frame pointer was saved at *fp_at (0: it is the register), to `to`. */
static void add_step(struct shape *s, uintptr_t sp, uint64_t word, const struct walk *from, const struct walk *to,
                     uintptr_t *fp_at) {
    if ((word & BY_FP) != 0 && *fp_at != 0) {
        add_word(s, *fp_at - sp, from->fp - sp, true);
    } else if ((word & BY_FP) != 0) {
        s->by_fp = true;
        s->fp = from->fp - sp;
    }
    add_word(s, to->sp - (uintptr_t)field(word, RETURN_SHIFT) - sp, to->pc, false);
    if (field(word, FP_SHIFT) != 0) *fp_at = to->sp - (uintptr_t)field(word, FP_SHIFT);
}

unsigned cc__unwind_simple(struct walk w, const void **frames, unsigned max, struct shape *shape) {
    uint64_t epoch = cc__objects_epoch(), word;
    uintptr_t sp = w.sp, fp_at = 0;
    bool begun = w.back == 0;
    unsigned n = 0;
    if (w.sp < w.low || w.sp >= w.top) return 0;
    for (unsigned steps = 0; n < max && steps < UNWIND_STEPS; steps++) {
        bool exact = steps == 0;
        begun = begun || w.pc == w.back;
        if (begun) frames[n++] = (const void *)(w.pc + exact);
        if (n == max) break;
        if (!find_word(w.pc - !exact, epoch, &word)) return 0;
        if (field(word, RETURN_SHIFT) == 0) break; /* the first frame */
        struct walk from = w;
        if (!step(&w, word)) return 0;
        if (shape != NULL) add_step(shape, sp, word, &from, &w, &fp_at);
        if (w.pc == 0) break;
    }
    return n;
}

CC_NOINLINE unsigned cc__unwind_here(const void *low, const void *top, const void *back, const void **frames,
                                     unsigned max, struct doubt *doubt) {
    struct walk w = {.low = (uintptr_t)low, .top = (uintptr_t)top, .back = cc__registers_strip((uintptr_t)back)};
    cc__registers_read(&w.pc, &w.sp);
    w.fp = (uintptr_t)__builtin_frame_address(0);
    *doubt = (struct doubt){0};
    unsigned n = cc__unwind_simple(w, frames, max < UNWIND_FRAMES ? max : UNWIND_FRAMES, NULL);
    if (n == 0) {
        struct picture p = {.regs = cc__registers_here(), .low = w.low, .top = w.top, .mapped = true, .back = w.back};
        n = cc__unwind(&p, frames, max, doubt);
    }
    if (n == 0 && back != NULL && max > 0) frames[n++] = back; /* the one frame that is known */
    __asm__ volatile("" ::: "memory");                         /* this frame stays until then */
    return n;
}
