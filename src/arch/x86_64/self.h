/* x86_64/self.h - two instructions; cc__self is in self.S. */

CC_INLINE void *cc__self_get(void) {
    void *self;
    __asm__ volatile("movq cc__self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self));
    return self;
}
CC_INLINE void cc__self_set(void *self) {
    void *offset;
    __asm__ volatile("movq cc__self@gottpoff(%%rip), %0\n\tmovq %1, %%fs:(%0)" : "=&r"(offset) : "r"(self) : "memory");
}
