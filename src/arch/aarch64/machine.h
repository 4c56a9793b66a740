/* aarch64/machine.h - Arm, 64 bits. */

CC_INLINE void cc__machine_pause(void) {
    __asm__ volatile("isb" ::: "memory"); /* long enough to matter; yield is a no-op on most cores */
}

CC_INLINE uint64_t cc__machine_cycles(void) {
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
}

CC_INLINE uintptr_t cc__machine_sp(void) {
    uintptr_t sp;
    __asm__ volatile("mov %0, sp" : "=r"(sp));
    return sp;
}

#define CC_RETURN_ON_STACK 0

#define CC_FRAME_CHAIN 1
#define CC_FRAME_UP(fp) ((fp)[0])
#define CC_FRAME_RETURN(fp) ((fp)[1])
#define CC_FRAME_LOWEST (0)
#define CC_FRAME_ENDS 0

#define CC_RELOCATION_IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)

CC_INLINE bool cc__code_ends_with_call(const unsigned char code[CODE_BEFORE]) {
    const unsigned char *end = code + CODE_BEFORE;
    uint32_t word;
    memcpy(&word, end - 4, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u     /* bl */
           || (word & 0xfffffc1fu) == 0xd63f0000u  /* blr */
           || (word & 0xfefff800u) == 0xd63f0800u; /* blraa and its variants */
}

#define CC_CODE_CALL_TARGET 1
CC_INLINE uintptr_t cc__code_call_target(const unsigned char code[CODE_BEFORE], uintptr_t address) {
    const unsigned char *end = code + CODE_BEFORE;
    uint32_t word;
    memcpy(&word, end - 4, sizeof word);
    if ((word & 0xfc000000u) == 0x94000000u) {
        int32_t distance = (int32_t)(word << 6) >> 4; /* 26 bits of words */
        return address - 4 + (uintptr_t)(intptr_t)distance;
    }
    return 0;
}

#define CC_CODE_JUMP_TARGET 1
CC_INLINE uintptr_t cc__code_jump_target(const unsigned char code[CODE_JUMP], uintptr_t address) {
    uint32_t word;
    memcpy(&word, code, sizeof word);
    if (address % 4 == 0 && (word & 0xfc000000u) == 0x14000000u)
        return address + (uintptr_t)(intptr_t)((int32_t)(word << 6) >> 4);
    return 0;
}
