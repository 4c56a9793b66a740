/* words.h - a cache of one word per pc, which is read without a lock.
 *
 * A word contains the lower bits of the epoch of the loaded objects (cc__objects_epoch), and its pc is kept together
 * with the higher ones, so a word of an object that was unloaded is not found.
 *
 * WORDS-1  A word is found only for the pc that it was added for. An entry changes at most once in an epoch, and never
 *          to an earlier one: pc = 0, the word, the pc, in this order for every reader. A reader loads the word, the
 *          pc, and the word again. If both words are equal and of the current epoch, the pc between them was stored
 *          behind that word: an earlier pc was cleared before the word was stored, and a later pc comes with a word of
 *          a later epoch.
 */
#ifndef CC_INSPECT_LINUX_WORDS_H
#define CC_INSPECT_LINUX_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum { WORDS_EPOCH = (1 << 15) - 1 }; /* these bits of a word are the lower ones of its epoch */

/* The word of the pc in that epoch. False: there is none. */
bool cc__words_find(uintptr_t pc, uint64_t epoch, uint64_t *word);

/* The caller leaves the bits of the epoch 0. Does nothing if there is no room, while another thread adds a word, or if
 * one of a later epoch was added. */
void cc__words_add(uintptr_t pc, uint64_t epoch, uint64_t word);

#endif
