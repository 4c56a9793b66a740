/* crew.h - the runtime, which is started by the first job that has work for several.
 *
 * Most files are small: one block to compress, or less than a helper is worth. They are processed by the thread that
 * iterates over the names, and a program that has only such files starts no other thread.
 *
 * CREW-1  Code that spawns has called crew_start before: otherwise the runtime would start with its defaults.
 */
#ifndef CCPIGZ_CREW_H
#define CCPIGZ_CREW_H

#include "options.h"

/* Starts it, the first time. 0; -1: it cannot be started, which was reported. OS threads. */
int crew_start(const struct options *options);
/* Starts it if necessary, runs fn(arg) as a fiber, and waits for its end. 0; -1: as above. OS threads. */
int crew_run(const struct options *options, void *(*fn)(void *arg), void *arg);

#endif
