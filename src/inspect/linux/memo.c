/* memo.c - the numbers of stacks that were unwound before.
 *
 * A fiber parks in the same few places again and again, and so do its siblings. If the words that a walk has read are
 * the same on another stack, relative to its stack pointer, so are the frames: a dozen loads instead of a walk.
 *
 * MEMO-1  A number is returned only if the walk would end with the frames that it was given for: it began at the same
 *         instruction, in the same epoch of the loaded objects, with a stack of the same height, and finds the same
 *         value in every word, and in every register, that it depends on.
 */
#include "base/mem.h"
#include "base/san.h"
#include "inspect/linux/step.h"

enum { SETS = 32, WAYS = 4 };

struct known {
    uintptr_t back, height; /* from the stack pointer to the top; 0: a free place */
    uint64_t epoch;
    unsigned max, number;
    struct shape shape;
};

struct unwind_memo {
    unsigned next; /* the place in a set that is given up next */
    struct known known[SETS][WAYS];
};

struct unwind_memo *cc__unwind_memo(void) {
    return cc__mem_alloc(sizeof(struct unwind_memo));
}

static bool is_same(const struct shape *s, const struct walk *w) {
    if (s->by_fp && s->fp != w->fp - w->sp) return false;
    for (unsigned i = 0; i < s->count; i++) {
        const struct shape_word *expected = &s->word[i];
        uintptr_t word = cc__stack_load(w->sp + expected->at);
        cc__san_define(&word, sizeof word);
        if ((expected->is_address ? word - w->sp : cc__registers_strip(word)) != expected->value) return false;
    }
    return true;
}

static struct known *set_of(struct unwind_memo *m, uintptr_t back, uintptr_t height) {
    uint64_t hash = ((uint64_t)back ^ (uint64_t)height << 16) * UINT64_C(0x9e3779b97f4a7c15);
    return m->known[hash >> 32 & (SETS - 1)];
}

/* Unwinds it, from the frame of `w`, and keeps its number in the set. */
static CC_NOINLINE unsigned unwind_new(struct unwind_memo *memo, struct known *set, struct walk w, struct known new,
                                       unsigned (*number_of)(const void *const *frames, unsigned count)) {
    const void *frames[UNWIND_FRAMES];
    struct doubt doubt;
    unsigned n = cc__unwind_simple(w, frames, new.max, &new.shape);
    bool is_simple = n != 0;
    if (!is_simple)
        n = cc__unwind_here((const void *)w.low, (const void *)w.top, (const void *)w.back, frames, new.max, &doubt);
    new.number = n != 0 ? number_of(frames, n) : 0;
    if (set != NULL && is_simple && new.number != 0 && new.shape.count <= SHAPE_WORDS) set[memo->next++ % WAYS] = new;
    return new.number;
}

CC_NOINLINE unsigned cc__unwind_number(struct unwind_memo *memo, const void *low, const void *top, const void *back,
                                       unsigned max, unsigned (*number_of)(const void *const *frames, unsigned count)) {
    struct walk w = {.low = (uintptr_t)low, .top = (uintptr_t)top, .back = cc__registers_strip((uintptr_t)back)};
    cc__registers_read(&w.pc, &w.sp);
    w.fp = (uintptr_t)__builtin_frame_address(0);
    uintptr_t height = w.top - w.sp;
    uint64_t epoch = cc__objects_epoch();
    if (max > UNWIND_FRAMES) max = UNWIND_FRAMES;
    struct known *set = memo != NULL ? set_of(memo, w.back, height) : NULL;
    for (unsigned i = 0; set != NULL && i < WAYS; i++) { /* MEMO-1 */
        const struct known *k = &set[i];
        if (k->height == height && k->back == w.back && k->epoch == epoch && k->max == max && is_same(&k->shape, &w))
            return k->number;
    }
    struct known new = {.back = w.back, .height = height, .epoch = epoch, .max = max};
    unsigned number = unwind_new(memo, set, w, new, number_of);
    __asm__ volatile("" ::: "memory"); /* this frame stays until then */
    return number;
}
