/* x86_64/word.h - instructions on words in memory. */
#ifndef CC_ARCH_X86_64_WORD_H
#define CC_ARCH_X86_64_WORD_H

#include <stdbool.h>
#include <stdint.h>

#define CC_WORDS_IN_ASM 1

CC_INLINE bool cc__word_is_zero(const void *word) {
    bool zero;
    __asm__ volatile("cmpl $0, %1" : "=@cce"(zero) : "m"(*(const uint32_t *)word));
    return zero;
}

/* The stack pointer, without a detour by a register. */
CC_INLINE void cc__word_set_sp(void *word) {
    __asm__("movq %%rsp, %0" : "=m"(*(uint64_t *)word));
}
CC_INLINE bool cc__word_is_sp(const void *word) {
    bool is;
    __asm__ volatile("cmpq %%rsp, %1" : "=@cce"(is) : "m"(*(const uint64_t *)word));
    return is;
}

/* Neither locked nor torn. */
CC_INLINE void cc__word_increment(void *word) {
    __asm__("incq %0" : "+m"(*(uint64_t *)word));
}

#endif
