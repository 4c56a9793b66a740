/* x86_64/machine.h - x86-64. */

CC_INLINE void cc__machine_pause(void) {
    __builtin_ia32_pause();
}

CC_INLINE uint64_t cc__machine_cycles(void) {
    return __builtin_ia32_rdtsc();
}

CC_INLINE uintptr_t cc__machine_sp(void) {
    uintptr_t sp;
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
    return sp;
}

#define CC_RETURN_ON_STACK 1

#define CC_FRAME_CHAIN 1
#define CC_FRAME_UP(fp) ((fp)[0])
#define CC_FRAME_RETURN(fp) ((fp)[1])
#define CC_FRAME_LOWEST (0)
#define CC_FRAME_ENDS 1

#define CC_RELOCATION_IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)

CC_INLINE bool cc__code_ends_with_call(const unsigned char code[CODE_BEFORE]) {
    const unsigned char *end = code + CODE_BEFORE;
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
}

#define CC_CODE_CALL_TARGET 1
CC_INLINE uintptr_t cc__code_call_target(const unsigned char code[CODE_BEFORE], uintptr_t address) {
    const unsigned char *end = code + CODE_BEFORE;
    int32_t distance;
    memcpy(&distance, end - 4, sizeof distance);
    if (end[-5] == 0xe8) return address + (uintptr_t)(intptr_t)distance;
    return 0;
}

#define CC_CODE_JUMP_TARGET 1
CC_INLINE uintptr_t cc__code_jump_target(const unsigned char code[CODE_JUMP], uintptr_t address) {
    int32_t distance;
    int conditional = code[0] == 0x0f && code[1] >> 4 == 8;
    memcpy(&distance, code + 1 + conditional, sizeof distance);
    if (code[0] == 0xe9 || conditional) return address + 5 + (uintptr_t)conditional + (uintptr_t)(intptr_t)distance;
    return 0;
}

#define CC_CODE_JUMP_SLOT 1
CC_INLINE uintptr_t cc__code_jump_slot(const unsigned char code[CODE_ENTRY], uintptr_t address) {
    static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    const unsigned char *at = code;
    int32_t distance;
    if (memcmp(at, landing, sizeof landing) == 0) at += sizeof landing;
    if (at[0] == 0xf2) at++; /* bnd */
    memcpy(&distance, at + 2, sizeof distance);
    if (at[0] == 0xff && at[1] == 0x25) return address + (uintptr_t)(at + 6 - code) + (uintptr_t)(intptr_t)distance;
    return 0;
}
