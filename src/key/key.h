/* key.h - what the rest of the library needs of wake keys. */
#ifndef CC_KEY_KEY_H
#define CC_KEY_KEY_H

/* In a forked child: whoever held the locks is gone. */
void cc__key_forget(void);

#endif
