/* scout.h - one ordinary deflate stream, decoded by several tasks.
 *
 * A deflate stream has no marks to start at, and every block may refer to the 32 KiB of data in front of it. So the
 * input is cut anywhere, and for each part a scout searches for the first block that begins in it (find.h) and decodes
 * from there, into cells of 16 bits, with placeholders for the data that it cannot know: 0x8000 + i stands for the i-th
 * byte of the window. It stops at the first block that begins in the next part. The fiber in expand.c, which knows the
 * position in the stream, goes from part to part: if a scout began exactly there, its cells are right except for the
 * placeholders, and tasks fill in the bytes. If it did not, the part is decoded again from the true position.
 *
 * SCOUT-1  The result of a scout is used only if it began at the very bit at which the previous part ended. So a false
 *          block costs only time.
 * SCOUT-2  A scout's cells are read by the tasks that resolve them; it is returned to the pool when the last one is
 *          done.
 * SCOUT-3  A scout's memory is bounded: if its cells are full the rest of its part is decoded afterwards.
 * SCOUT-4  The walk ends if it does not pay: after every SCOUT_TRIAL parts it checks whether most scouts were right,
 *          and whether it takes less than nine tenths of the time of the decoder alone. Data that do not compress are
 *          stored, and nothing is found in them. */
#ifndef CCPIGZ_SCOUT_H
#define CCPIGZ_SCOUT_H

#include "unpack.h"

/* Compressed bytes of a part; a guess: the search for a block takes a tenth of the time then. */
#ifndef SCOUT_PART
#define SCOUT_PART ((size_t)256 * 1024)
#endif
#ifndef SCOUT_TRIAL
#define SCOUT_TRIAL 4 /* parts; a megabyte */
#endif

/* Decodes the rest of the stream that u->decoder is in, or as much of it as pays; its input is u->source. window: the
 * last DECODE_WINDOW bytes of the data so far. Pieces are sent; *last is an empty one that is still to be sent, with
 * the window in front of it. NULL: fine, and *ended says whether the stream has ended; else what is wrong. *rc is an
 * error that ends everything. */
const char *scout_expand(struct unpack *u, enum format format, const uint8_t *window, struct piece **last, bool *ended,
                         int *rc);

/* For the pool. */
void *scout_make(void *context);
void scout_free(void *scout);

#endif
