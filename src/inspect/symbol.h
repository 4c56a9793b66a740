/* symbol.h - names of code addresses.
 *
 * With libbacktrace (CC_BACKTRACE in CMakeLists.txt): function, file and line wherever there is debug information, and
 * the names of static functions from the symbol table. Without: what the dynamic linker knows.
 */
#ifndef CC_INSPECT_SYMBOL_H
#define CC_INSPECT_SYMBOL_H

#include "base/inspect.h" /* cc__symbol_text */

struct symbol {
    char function[128];     /* "": not known */
    char file[160];         /* its last component; "": not known */
    unsigned line;          /* 0: not known */
    bool ours;              /* this library's, by the file's place or else by the function's name */
    char module[64];        /* program or shared library, its last component; "": not known */
    size_t offset;          /* into the module */
    size_t function_offset; /* into the function; 0 where the line is known */
};

/* Of the call that returns to this address; of an instruction, when its address plus one is given. A function that was
 * inlined counts as one. Fills all of *out, as far as it is known. Any thread or fiber, not for signal handlers; takes
 * up to 7 kB of stack. Keeps errno. The first call reads all debug information: 15 ms of CPU for this library
 * and a small program, 90 where the C library has some too (measured). */
void cc__symbol_find(const void *return_address, struct symbol *out);

/* The same, and the functions that it is inlined into, innermost first. The last one, if max is above 1, exists in
 * the machine code; when there is no room for all, those before it are missing. Returns how many, at least one. */
unsigned cc__symbol_find_inlined(const void *return_address, struct symbol *out, unsigned max);

#endif
