/* symbol.h - names of code addresses.
 *
 * With libbacktrace (CC_BACKTRACE in CMakeLists.txt): function, file and line wherever there is debug information, and
 * the names of static functions from the symbol table. Without it: what the dynamic linker knows.
 */
#ifndef CC_INSPECT_SYMBOL_H
#define CC_INSPECT_SYMBOL_H

#include "base/inspect.h" /* cc__symbol_text */

struct symbol {
    char function[128];     /* "": unknown */
    char file[160];         /* its last component; "": unknown */
    unsigned line;          /* 0: unknown */
    bool ours;              /* in this library, by the file's path or else by the function's name */
    char module[64];        /* program or shared library, its last component; "": unknown */
    size_t offset;          /* into the module */
    size_t function_offset; /* into the function; 0 where the line is known */
};

/* The symbol of the call that returns to this address; for an instruction, pass its address plus one. An inlined
 * function counts as one. Fields that are unknown are empty. Any thread or fiber, not in signal handlers; takes up to
 * 7 kB of stack. Keeps errno. The first call reads all debug information: 15 ms of CPU for this library and a small
 * program, 90 where the C library has some too (measured). */
void cc__symbol_find(const void *return_address, struct symbol *out);

/* The same, and the functions that it is inlined into, innermost first. If max is above 1, the last one is the function
 * that was not inlined: where there are more than max, those right before it are missing. Returns how many, at least
 * one. */
unsigned cc__symbol_find_inlined(const void *return_address, struct symbol *out, unsigned max);

#endif
