/* signals.h - what a signal that ends the program has to clean up.
 *
 * SIGNAL-1  One path at most is remembered. It is removed in the handler, and then the signal ends the program as if
 *           there had been no handler.
 * SIGNAL-2  Between signals_hold and signals_release no such signal is delivered: a file that has just been made is
 *           remembered, and one that has got its final name is forgotten, without a gap.
 */
#ifndef CCPIGZ_SIGNALS_H
#define CCPIGZ_SIGNALS_H

/* Before the runtime starts its threads. */
void signals_install(void);
void signals_hold(void);
void signals_release(void);
/* Between hold and release; NULL: nothing. The text must stay. */
void signals_remember(const char *path);

#endif
