/* code.h - what machine code around calls looks like. */
#ifndef CC_ARCH_CODE_H
#define CC_ARCH_CODE_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How much of the code before an address is looked at. */
enum { CODE_BEFORE = 8 };

/* Whether these bytes end with a call: then what comes after them may be a return address. */
CC_INLINE bool cc__code_ends_with_call(const unsigned char code[CODE_BEFORE]) {
    const unsigned char *end = code + CODE_BEFORE;
#if defined(__x86_64__)
    if (end[-5] == 0xe8) return true; /* relative */
    for (int length = 2; length <= 7; length++) {
        const unsigned char *at = end - length;
        if (at[0] != 0xff || ((at[1] >> 3) & 7) != 2) continue; /* FF /2: through a register or memory */
        int mode = at[1] >> 6, base = at[1] & 7, size = 2;
        if (mode != 3 && base == 4) {
            if (length == 2) continue;
            size++; /* an index byte */
            if (mode == 0 && (at[2] & 7) == 5) size += 4;
        } else if (mode == 0 && base == 5) {
            size += 4;
        }
        if (mode == 1) size += 1;
        if (mode == 2) size += 4;
        if (size == length) return true;
    }
    return false;
#elif defined(__aarch64__)
    uint32_t word;
    memcpy(&word, end - 4, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u     /* bl */
           || (word & 0xfffffc1fu) == 0xd63f0000u  /* blr */
           || (word & 0xfefff800u) == 0xd63f0800u; /* blraa and its kin */
#elif defined(__riscv)
    uint32_t word;
    uint16_t half;
    memcpy(&word, end - 4, sizeof word);
    memcpy(&half, end - 2, sizeof half);
    return (word & 0xfffu) == 0x0efu                            /* jal ra */
           || (word & 0x7fffu) == 0x00e7u                       /* jalr ra */
           || ((half & 0xf07fu) == 0x9002u && half != 0x9002u); /* c.jalr */
#else
    (void)end;
    return false;
#endif
}

/* Where the direct call that ends before `address` goes; 0: there is none, or it is not known on this CPU. */
CC_INLINE uintptr_t cc__code_call_target(const unsigned char code[CODE_BEFORE], uintptr_t address) {
    const unsigned char *end = code + CODE_BEFORE;
    (void)end, (void)address;
#if defined(__x86_64__)
    int32_t distance;
    memcpy(&distance, end - 4, sizeof distance);
    if (end[-5] == 0xe8) return address + (uintptr_t)(intptr_t)distance;
#elif defined(__aarch64__)
    uint32_t word;
    memcpy(&word, end - 4, sizeof word);
    if ((word & 0xfc000000u) == 0x94000000u) {
        int32_t distance = (int32_t)(word << 6) >> 4; /* 26 bits of words */
        return address - 4 + (uintptr_t)(intptr_t)distance;
    }
#endif
    return 0;
}

enum { CODE_ENTRY = 16, CODE_JUMP = 6 };

/* Where the direct jump goes that these bytes, at `address`, may be; 0: they are none, or it is not known on this CPU. */
CC_INLINE uintptr_t cc__code_jump_target(const unsigned char code[CODE_JUMP], uintptr_t address) {
    (void)code, (void)address;
#if defined(__x86_64__)
    int32_t distance;
    int conditional = code[0] == 0x0f && code[1] >> 4 == 8;
    memcpy(&distance, code + 1 + conditional, sizeof distance);
    if (code[0] == 0xe9 || conditional) return address + 5 + (uintptr_t)conditional + (uintptr_t)(intptr_t)distance;
#elif defined(__aarch64__)
    uint32_t word;
    memcpy(&word, code, sizeof word);
    if (address % 4 == 0 && (word & 0xfc000000u) == 0x14000000u)
        return address + (uintptr_t)(intptr_t)((int32_t)(word << 6) >> 4);
#endif
    return 0;
}

/* Code that jumps to where a word in memory says, as the procedure linkage table does: the word's address; 0: it does
 * something else, or it is not known on this CPU. */
CC_INLINE uintptr_t cc__code_jump_slot(const unsigned char code[CODE_ENTRY], uintptr_t address) {
    (void)code, (void)address;
#if defined(__x86_64__)
    static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    const unsigned char *at = code;
    int32_t distance;
    if (memcmp(at, landing, sizeof landing) == 0) at += sizeof landing;
    if (at[0] == 0xf2) at++; /* bnd */
    memcpy(&distance, at + 2, sizeof distance);
    if (at[0] == 0xff && at[1] == 0x25) return address + (uintptr_t)(at + 6 - code) + (uintptr_t)(intptr_t)distance;
#endif
    return 0;
}

#endif
