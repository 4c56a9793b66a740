/* dump_signal.h - the signal that asks for a dump. */
#ifndef CC_OS_DUMP_SIGNAL_H
#define CC_OS_DUMP_SIGNAL_H

#include <stdbool.h>

/* Calls `fn`, in the handler, when the signal comes. False: the program handles or ignores that signal itself, and goes
 * on doing so. One signal at a time. */
bool cc__dump_signal_install(int signal, void (*fn)(void));
/* As it was before, unless somebody else has changed it since. */
void cc__dump_signal_remove(void);

#endif
