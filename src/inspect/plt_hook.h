/* plt_hook.h - redirects calls from the program's modules to a shared library.
 *
 * The hooks are written to the global offset tables of all loaded modules. Modules that are loaded later, and calls by
 * function pointers that were taken before, are not redirected. Hooks are never removed.
 */
#ifndef CC_INSPECT_PLT_HOOK_H
#define CC_INSPECT_PLT_HOOK_H

struct plt_hook {
    const char *name;
    const void *instead;
    void *original; /* set by the installation; NULL: there is no such function */
};

/* Returns how many entries were rewritten; -1: the functions are linked into the program, which calls them directly.
 * Not redirected: the module that defines the functions, the dynamic linker, and this library if it is shared. Call
 * once. */
int cc__plt_hook_install(struct plt_hook *hooks, unsigned count);

#endif
