/* event.h - what an event and once share: a word that becomes final, and its waiters. */
#ifndef CC_LOCK_EVENT_H
#define CC_LOCK_EVENT_H

#include "lock/wait_word.h"

/* Waits while the word is `pending`: 0, or the error that ended the wait. */
int cc__event_wait_slow(struct wait_word *ww, uint32_t pending, uint64_t deadline, enum park_reason reason);

/* Sets the word to `done` and wakes all waiters. */
void cc__event_finish(struct wait_word *ww, uint32_t done);

#endif
