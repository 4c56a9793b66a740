/* x86_64/self.h - two instructions; cc__self is in self.S. */
#ifndef CC_ARCH_X86_64_SELF_H
#define CC_ARCH_X86_64_SELF_H

CC_INLINE void *cc__self_get(void) {
    void *self;
    __asm__ volatile("movq cc__self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self));
    return self;
}
CC_INLINE void cc__self_set(void *self) {
    void *offset;
    __asm__ volatile("movq cc__self@gottpoff(%%rip), %0\n\tmovq %1, %%fs:(%0)" : "=&r"(offset) : "r"(self) : "memory");
}

#endif
