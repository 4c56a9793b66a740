/* riscv64/machine.h - RISC-V, 64 bits. */

CC_INLINE void cc__machine_pause(void) {
    __asm__ volatile(".insn i 0x0F, 0, x0, x0, 0x010" ::: "memory"); /* pause; a no-op fence on older cores */
}

CC_INLINE uint64_t cc__machine_cycles(void) {
    uint64_t now;
    __asm__ volatile("rdtime %0" : "=r"(now));
    return now;
}

CC_INLINE uintptr_t cc__machine_sp(void) {
    uintptr_t sp;
    __asm__ volatile("mv %0, sp" : "=r"(sp));
    return sp;
}

#define CC_RETURN_ON_STACK 0

#define CC_FRAME_CHAIN 1
#define CC_FRAME_UP(fp) ((fp)[-2])
#define CC_FRAME_RETURN(fp) ((fp)[-1])
#define CC_FRAME_LOWEST (-2)
#define CC_FRAME_ENDS 1

#define CC_RELOCATION_IS_SLOT(type) ((type) == R_RISCV_JUMP_SLOT || (type) == R_RISCV_64)

CC_INLINE bool cc__code_ends_with_call(const unsigned char code[CODE_BEFORE]) {
    const unsigned char *end = code + CODE_BEFORE;
    uint32_t word;
    uint16_t half;
    memcpy(&word, end - 4, sizeof word);
    memcpy(&half, end - 2, sizeof half);
    return (word & 0xfffu) == 0x0efu                            /* jal ra */
           || (word & 0x7fffu) == 0x00e7u                       /* jalr ra */
           || ((half & 0xf07fu) == 0x9002u && half != 0x9002u); /* c.jalr */
}
