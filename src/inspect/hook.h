/* hook.h - calls that the program's modules make to a shared library, led elsewhere.
 *
 * The tables through which modules call each other are rewritten, in every module that is loaded. What is loaded later,
 * and calls by addresses that were taken before, are not seen. Nothing is ever put back.
 */
#ifndef CC_INSPECT_HOOK_H
#define CC_INSPECT_HOOK_H

struct hooked_call {
    const char *name;
    const void *instead;
    void *original; /* filled in; NULL: there is no such function */
};

/* Returns how many entries were rewritten; -1: the functions are part of the program, which calls them
 * directly. The originals'
 * own module, the dynamic linker and this library, where it is a module of its own, call as before. Once. */
int cc__hook_install(struct hooked_call *hooks, unsigned count);

#endif
