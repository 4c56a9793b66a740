/* utf8.h - which bytes of a name can be shown. */
#ifndef CC_BASE_UTF8_H
#define CC_BASE_UTF8_H

#include "base/attr.h"

#include <stddef.h>

/* The length of the character at text, which ends with a 0: one of printable ASCII, or one of UTF-8 from U+00A0 on. 0:
 * neither, or the end. */
CC_INLINE unsigned cc__utf8_shown(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80) return c[0] >= ' ' && c[0] <= '~';
    unsigned n = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
    for (unsigned i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    bool too_low = (c[0] == 0xc2 && c[1] < 0xa0) || (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool too_high = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90); /* surrogates; beyond the last */
    return n == 0 || too_low || too_high ? 0 : n;
}

/* Ends the text before the first byte that cannot be shown. */
CC_INLINE void cc__utf8_cut(char *text) {
    size_t at = 0;
    for (unsigned n; (n = cc__utf8_shown(text + at)) != 0;) at += n;
    text[at] = '\0';
}

#endif
