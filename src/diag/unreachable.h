/* unreachable.h - fibers that can never go on although others can: what they wait for is out of everybody's reach. */
#ifndef CC_DIAG_UNREACHABLE_H
#define CC_DIAG_UNREACHABLE_H

#include "diag/out.h"

#include <stdbool.h>

/* Writes down those of which it can be proved; the caller is inside the runtime and nothing else moves. Says why if it
 * cannot be told; patient: after some seconds of trying. Returns how many. */
unsigned cc__unreachable_print(struct out *out, bool patient);

#endif
