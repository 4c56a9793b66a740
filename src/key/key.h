/* key.h - what the rest of the library needs from wake keys. */
#ifndef CC_KEY_KEY_H
#define CC_KEY_KEY_H

/* In a forked child: resets the locks, whose holders no longer exist. */
void cc__key_forget(void);

#endif
