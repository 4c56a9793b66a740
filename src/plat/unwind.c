/* unwind.c - searches a picture of a stack for the chain of frames.
 *
 * A word is taken for a return address if it points behind a call instruction in the code of a loaded module. A chain of
 * frames is one whose links go up and whose every return address is one.
 */
#include "plat/unwind.h"

#include "arch/code.h"
#include "arch/frame.h"
#include "base/attr.h"
#include "plat/peek.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

/* ---- the code that is loaded ---- */

enum { SEGMENTS = 256 }; /* a guess; what is in further ones is not recognised */

static struct {
    struct segment {
        uintptr_t from, to;
    } segments[SEGMENTS];
    unsigned count, of_program;
} code;

static int add_module(struct dl_phdr_info *info, size_t size, void *data) {
    bool *program = data;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && code.count < SEGMENTS; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        uintptr_t from = info->dlpi_addr + header->p_vaddr;
        code.segments[code.count++] = (struct segment){from, from + header->p_memsz};
    }
    if (*program) code.of_program = code.count; /* which comes first */
    *program = false;
    return 0;
}

/* The segment with this address; code.count: none. */
static unsigned segment_of(uintptr_t address) {
    unsigned i = 0;
    while (i < code.count && !(address >= code.segments[i].from && address < code.segments[i].to)) i++;
    return i;
}

static bool is_return(uintptr_t address) {
    unsigned char before[CODE_BEFORE];
    unsigned i = segment_of(address);
    if (i == code.count || address - code.segments[i].from < CODE_BEFORE) return false;
    /* By peek, because a module may be unloaded at any moment. */
    return cc__peek(before, (const void *)(address - CODE_BEFORE), sizeof before) && cc__code_ends_with_call(before);
}

/* The C library's segment, whose functions keep no frame pointers; code.count if it is part of the program. */
static unsigned segment_of_libc(void) {
    unsigned i = segment_of((uintptr_t)gnu_get_libc_version);
    return i < code.of_program ? code.count : i;
}

/* ---- the chain ---- */

static bool word_at(const struct picture *p, uintptr_t at, uintptr_t *word) {
    if (at < p->sp || at > p->top - sizeof *word || at % sizeof *word != 0) return false;
    size_t i = (at - p->sp) / sizeof *word;
    if (i < p->count) {
        *word = p->words[i];
        return true;
    }
    return cc__peek(word, (const void *)at, sizeof *word);
}

/* The return addresses of the chain that begins at fp. *ends: it goes to the first frame, above which there is none. */
static unsigned follow(const struct picture *p, uintptr_t fp, const void **frames, unsigned max, bool *ends) {
    unsigned n = 0;
    uintptr_t low = p->sp, up, back;
    *ends = false;
    while (n < max) {
        uintptr_t at = fp + (uintptr_t)(CC_FRAME_LOWEST * (long)sizeof(void *));
        uintptr_t pair[2];
        if (at < low || !word_at(p, at, &pair[0]) || !word_at(p, at + sizeof(void *), &pair[1])) break;
        up = CC_FRAME_UP(pair - CC_FRAME_LOWEST);
        back = CC_FRAME_RETURN(pair - CC_FRAME_LOWEST);
        if (!is_return(back)) break;
        frames[n++] = (const void *)back;
        if (up == 0) {
            *ends = true;
            break;
        }
        low = at + sizeof(void *); /* a caller's frame is further up */
        fp = up;
    }
    return n;
}

/* The lowest frame of a chain; 0: there is none. One link alone proves nothing, unless nothing is above it: then it
 * serves if there is no longer one. */
static uintptr_t search_chain(const struct picture *p) {
    const void *scratch[2];
    uintptr_t only = 0;
    for (size_t i = 0; i < p->count; i++) {
        uintptr_t fp = p->sp + (i - (size_t)CC_FRAME_LOWEST) * sizeof(void *);
        uintptr_t up = CC_FRAME_UP(&p->words[i] - CC_FRAME_LOWEST);
        bool ends;
        if (up != 0 && (up <= fp || up > p->top)) continue; /* most words are no link */
        if (follow(p, fp, scratch, 2, &ends) == 2) return fp;
        if (ends && only == 0) only = fp;
    }
    return only;
}

/* ---- below the chain ---- */

/* The address sanitizer stands between the program and the C library. */
static bool leads_home(uintptr_t back, unsigned libc) {
#ifdef CC_ASAN
    (void)libc;
    return segment_of(back) < code.of_program;
#else
    return segment_of(back) != libc;
#endif
}

/* The C library was called by a function whose frame is at fp: the ways back, up to the first that leads out of the
 * library. */
static unsigned search_callers(const struct picture *p, uintptr_t fp, unsigned libc, const void **frames,
                               unsigned max) {
    enum { MOST = 4 };
    unsigned n = 0;
    if (p->link != 0 && segment_of(p->link) != libc && is_return(p->link)) {
        if (max > 0) frames[n++] = (const void *)p->link;
        return n;
    }
    uintptr_t end = fp + (uintptr_t)(CC_FRAME_LOWEST * (long)sizeof(void *));
    for (size_t i = 0; i < p->count && p->sp + i * sizeof(void *) < end && n < max && n < MOST; i++) {
        uintptr_t word = p->words[i];
        if (!is_return(word)) continue;
        frames[n++] = (const void *)word;
        if (leads_home(word, libc)) break;
    }
    return n;
}

/* A function that calls no other may do without a frame. Its return address is where its caller has put it: in the
 * register, or right at the stack pointer. It is one if the call there goes to this function, and that makes no frame. */
static bool find_caller_of_leaf(const struct picture *p, const void **frame) {
    enum { LARGEST = 16384 }; /* a guess: functions without frames are not larger */
    unsigned char before[CODE_BEFORE], entry[CODE_ENTRY];
    uintptr_t back = p->link;
    if (back == 0 && !word_at(p, p->sp, &back)) return false;
    if (!is_return(back) || !cc__peek(before, (const void *)(back - CODE_BEFORE), sizeof before)) return false;
    uintptr_t target = cc__code_call_target(before, back);
    if (target == 0 || target > p->pc || p->pc - target > LARGEST) return false;
    if (!cc__peek(entry, (const void *)target, sizeof entry) || cc__code_makes_frame(entry)) return false;
    *frame = (const void *)back;
    return true;
}

/* Where such a function has a frame all the same: goes up to its caller's. The return address is in the register. */
static bool is_leaf_frame(const struct picture *p, uintptr_t *fp) {
#ifdef CC_FRAME_LEAF_UP
    uintptr_t pair[2], at = *fp + (uintptr_t)(CC_FRAME_LOWEST * (long)sizeof(void *));
    if (!word_at(p, at, &pair[0]) || !word_at(p, at + sizeof(void *), &pair[1])) return false;
    uintptr_t up = CC_FRAME_LEAF_UP(pair - CC_FRAME_LOWEST);
    if (up <= *fp || up > p->top || !is_return(p->link)) return false;
    *fp = up;
    return true;
#else
    (void)p, (void)fp;
    return false;
#endif
}

unsigned cc__unwind(const struct picture *p, const void **frames, unsigned max) {
    bool ends, program = true;
    if (max == 0) return 0;
    frames[0] = (const void *)(p->pc + 1);
    if (max == 1) return 1;
    code.count = code.of_program = 0;
    (void)dl_iterate_phdr(add_module, &program);

    const void *first;
    unsigned n = 1;
    uintptr_t fp = p->fp;
    if (fp != 0 && is_leaf_frame(p, &fp)) frames[n++] = (const void *)p->link;
    if (fp == 0 || follow(p, fp, &first, 1, &ends) == 0) fp = search_chain(p);
    unsigned libc = segment_of_libc();
    if (n > 1)
        ; /* known */
    else if (libc < code.count && segment_of(p->pc) == libc)
        n += search_callers(p, fp != 0 ? fp : p->top, libc, frames + n, max - n);
    else if (find_caller_of_leaf(p, &frames[n]))
        n++;
    if (fp == 0) return n;
    /* A library that does keep frame pointers: its frame's way back is already there. */
    if (n > 1 && follow(p, fp, &first, 1, &ends) == 1 && first == frames[n - 1]) n--;
    return n + follow(p, fp, frames + n, max - n, &ends);
}
