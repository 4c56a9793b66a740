/* notice.h - a signal that asks for something. */
#ifndef CC_OS_NOTICE_H
#define CC_OS_NOTICE_H

#include <stdbool.h>

/* Calls `fn`, in the handler, when the signal comes. False: the program handles or ignores that signal itself, and goes
 * on doing so. One signal at a time. */
bool cc__notice_install(int signal, void (*fn)(void));
/* As it was before, unless somebody else has changed it since. */
void cc__notice_remove(void);

#endif
