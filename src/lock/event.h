/* event.h - what once shares with the event: waiting for a word to be final, and making it so. */
#ifndef CC_LOCK_EVENT_H
#define CC_LOCK_EVENT_H

#include "lock/wait_word.h"

/* Waits until the word is `done`: 0, or what ended the wait. */
int cc__event_wait_slow(struct wait_word *ww, uint32_t done, uint64_t deadline);

/* Makes it `done` and wakes everybody. */
void cc__event_finish(struct wait_word *ww, uint32_t done);

#endif
