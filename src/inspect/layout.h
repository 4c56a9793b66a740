/* layout.h - the table by which a program that looks from outside finds its way in this library's memory.
 *
 * It needs no debug information, and works for programs that were stripped: a note (`.note.ccc`, an ELF note of type
 * LAYOUT_NOTE and name "ccc") says where the table is, relative to itself, and program headers lead to the note. A
 * library that holds copies of itself for sanitizers has several notes; the runtime runs in one of the copies.
 *
 * LAYOUT-1  The meaning of a table depends on its version alone; who reads it knows that version, or refuses.
 */
#ifndef CC_INSPECT_LAYOUT_H
#define CC_INSPECT_LAYOUT_H

#include <stdint.h>

#define LAYOUT_MAGIC UINT64_C(0x74756f79616c6363) /* "cclayout" in memory, with one letter less */

enum { LAYOUT_NOTE = 1, LAYOUT_VERSION = 4 };

struct layout {
    uint64_t magic;
    uint32_t version, size;
#define ADDRESS(name, object) uint64_t name;
#define SIZE(name, type) uint64_t name##_size;
#define FIELD(name, type, member) uint64_t name;
#define VALUE(name, value) uint64_t name;
#include "inspect/layout.def"
};

extern const struct layout cc__layout;

#endif
