/* find.h - searches for the beginning of a block in the middle of a deflate stream. */
#ifndef CCPIGZ_FIND_H
#define CCPIGZ_FIND_H

#include <stddef.h>
#include <stdint.h>

#define FIND_NONE SIZE_MAX
#define FIND_MARGIN 24 /* bytes behind `to` that must be there */

/* The first bit from `from` on, below `to`, at which a block may begin that has codes of its own and is not the last.
 * The code for its code lengths is complete; whether the rest is a header, the decoder has to check. */
size_t find_block(const uint8_t *in, size_t from, size_t to);

#endif
