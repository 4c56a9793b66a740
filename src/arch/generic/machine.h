/* generic/machine.h - an unsupported CPU. */

CC_INLINE void cc__machine_pause(void) {
    __asm__ volatile("" ::: "memory");
}

CC_INLINE uint64_t cc__machine_cycles(void) {
    return 0;
}

CC_INLINE uintptr_t cc__machine_sp(void) {
    uintptr_t sp;
    sp = (uintptr_t)__builtin_frame_address(0);
    return sp;
}

#define CC_RETURN_ON_STACK 0

#define CC_FRAME_CHAIN 0
#define CC_FRAME_UP(fp) ((fp)[0])
#define CC_FRAME_RETURN(fp) ((fp)[1])
#define CC_FRAME_LOWEST (0)
#define CC_FRAME_ENDS 1

#define CC_RELOCATION_IS_SLOT(type) ((void)(type), false)

CC_INLINE bool cc__code_ends_with_call(const unsigned char code[CODE_BEFORE]) {
    (void)code;
    return false;
}
