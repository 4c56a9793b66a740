/* modules.h - the program and the shared libraries of the target: where they are, their functions' names, their notes.
 */
#ifndef CCPS_MODULES_H
#define CCPS_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After the target was opened. */
void modules_find(void);

/* Calls fn for each note of that name and type; `at` is where its description is in memory. */
void modules_each_note(const char *name, uint32_t type, void (*fn)(uint64_t at, size_t size));

/* "function+0x12 (module+0x3456)", "module+0x3456", or the bare address, of the call that returns there. */
void modules_name(uint64_t return_address, char *text, size_t size);

/* Whose function it is. */
enum owner {
    OWNER_USER,      /* or not known */
    OWNER_CALL,      /* a public function of the library */
    OWNER_LIBRARY,   /* another function of the library */
    OWNER_SCHEDULER, /* what every fiber's stack begins with */
};
enum owner modules_owner(uint64_t return_address);

#endif
