/* ucontext/context.h - the switch for all other CPUs, and a reference for testing the native switches: POSIX ucontext.
 *
 * Slow (two system calls per switch, for the signal mask) but portable. A ucontext_t does not fit into a fiber record:
 * a fresh stack carries its own at its top, an OS thread has a thread-local one.
 */

struct context {
    void *uc; /* ucontext_t */
    void *value;
    uint64_t unused[2];
};

void cc__context_native(struct context *c);
void cc__context_inherit(struct context *c, void *top);
void cc__context_start(struct context *c, void *top, context_fn fn);
void *cc__context_switch(struct context *from, struct context *to, void *value);
CC_NORETURN void cc__context_jump(struct context *to, void *value);
void *cc__context_call(struct context *from, void *top, context_call_fn fn, void *value);
CC_NORETURN void cc__context_return(struct context *from, void *value);
