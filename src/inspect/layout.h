/* layout.h - the table that describes this library's memory layout to another process.
 *
 * It needs no debug information and works for stripped programs: a note (`.note.ccc`, an ELF note of type LAYOUT_NOTE
 * and name "ccc"), found through the program headers, holds the table's offset relative to itself. A library that
 * contains copies of itself for sanitizers has several notes; the runtime runs in one of the copies.
 *
 * LAYOUT-1  The meaning of a table depends only on its version; a reader rejects versions that it does not know.
 */
#ifndef CC_INSPECT_LAYOUT_H
#define CC_INSPECT_LAYOUT_H

#include <stdint.h>

#define LAYOUT_MAGIC UINT64_C(0x74756f79616c6363) /* in memory: "cclayout" */

enum { LAYOUT_NOTE = 1, LAYOUT_VERSION = 6 };

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
