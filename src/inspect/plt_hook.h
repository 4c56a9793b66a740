/* plt_hook.h - redirects calls from the program's modules to a shared library.
 *
 * The hooks are written to the global offset tables of every module that is loaded. Modules that are loaded later, and
 * calls by addresses that were taken before, are not redirected. Nothing is ever put back.
 */
#ifndef CC_INSPECT_PLT_HOOK_H
#define CC_INSPECT_PLT_HOOK_H

struct plt_hook {
    const char *name;
    const void *instead;
    void *original; /* filled in; NULL: there is no such function */
};

/* Returns how many entries were rewritten; -1: the functions are part of the program, which calls them directly. The
 * module that defines the functions, the dynamic linker and this library, where it is a module of its own, call as
 * before. Once. */
int cc__plt_hook_install(struct plt_hook *hooks, unsigned count);

#endif
