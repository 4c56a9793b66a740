/* crew.h - the runtime, which is started by the first job that has work for several.
 *
 * Most files are small: one block to compress, or less than a helper is worth. They are done by the thread that goes
 * through the names, and a program that meets no others has started nothing.
 *
 * CREW-1  Whatever spawns has called crew_start before: else the runtime would start by itself, with its own defaults.
 */
#ifndef CCPIGZ_CREW_H
#define CCPIGZ_CREW_H

#include "options.h"

/* Starts it, the first time. 0; -1: it cannot be started, which was said. OS threads. */
int crew_start(const struct options *options);
/* Starts it if need be, and runs fn(arg) as a fiber, until that has ended. 0; -1: as above. OS threads. */
int crew_run(const struct options *options, void *(*fn)(void *arg), void *arg);

#endif
