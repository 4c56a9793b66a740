/* table.h - decoding tables for the codes of DEFLATE.
 *
 * An entry of 32 bits has all that is needed to consume a symbol:
 *
 *   bits 0-7    how many bits to drop, extra bits included
 *   bits 8-13   how many of them are the code; for a pointer: how many bits the second table is indexed by
 *   bit 13-15   what it is, see below; none of them: a length or a distance
 *   bits 16-30  the literal, the base of the length or distance, or where the second table begins
 *   bit 31      it is a literal
 */
#ifndef CCPIGZ_TABLE_H
#define CCPIGZ_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define ENTRY_LITERAL 0x80000000u
#define ENTRY_ODD 0x8000u     /* a pointer, the end of the block, or no code at all */
#define ENTRY_POINTER 0x4000u /* with ODD */
#define ENTRY_END 0x2000u     /* with ODD */
#define ENTRY_DROP(e) ((e)&0xffu)
#define ENTRY_CODE(e) (((e) >> 8) & 0x1fu)
#define ENTRY_BASE(e) (((e) >> 16) & 0x7fffu)

enum table_kind { TABLE_LENGTHS, TABLE_LITLEN, TABLE_DISTANCE };

/* Makes a table that is indexed by `bits` bits, for `n` symbols of these lengths (0: unused, at most 15). False: the
 * lengths are no code: too many, or too few. As with zlib, no symbol at all is allowed, and, except for TABLE_LENGTHS,
 * one of one bit. */
bool table_make(uint32_t *table, unsigned bits, const uint8_t *lengths, unsigned n, enum table_kind kind);

#endif
