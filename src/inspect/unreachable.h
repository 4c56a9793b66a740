/* unreachable.h - fibers that can never go on although others can: nobody who can go on reaches what they wait for. */
#ifndef CC_INSPECT_UNREACHABLE_H
#define CC_INSPECT_UNREACHABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { UNREACHABLE_NAMED = 32 };

/* Slots, and no addresses, which the next search would find in memory. */
struct unreachable {
    unsigned count;
    uint32_t slot[UNREACHABLE_NAMED]; /* of the first ones */
};

/* The fibers of which it can be proved; the caller is inside the runtime and nothing else moves. NULL, or why it cannot
 * be told. patient: tries for some seconds. */
const char *cc__unreachable_find(struct unreachable *found, bool patient);

#endif
