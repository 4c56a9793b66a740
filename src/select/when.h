/* when.h - what select.c leaves to when.c. */
#ifndef CC_SELECT_WHEN_H
#define CC_SELECT_WHEN_H

#include "base/attr.h"

#include <ccc/cc_when.h>

CC_INLINE CCCase *cc__when_cases(CCWhen *when) {
    return (CCCase *)(void *)(when + 1);
}

/* Finishes a select that returned rc; same result as cc_when_choose. */
bool cc__when_ended(CCWhen *when, int rc, size_t chosen);

#endif
