/* graph.h - who waits for whom among fibers that stand still.
 *
 * An edge leads from a fiber that waits to one that could end its wait: the task that it joins, the holder of a lock,
 * the children of a nursery; and for a channel every fiber whose stack mentions it, which is a hint and no proof.
 */
#ifndef CC_INSPECT_GRAPH_H
#define CC_INSPECT_GRAPH_H

#include "inspect/view.h"

/* The fibers, up to `max`, that could end a wait; `self` is not among them. Returns how many there are. */
unsigned cc__graph_servers(struct wait_what what, const struct fiber *self, struct fiber **servers, unsigned max);

/* A cycle of waits: each fiber waits for something that the next one could do, and the last for the first. Stores up to
 * `max` of them and returns how many there are; 0: there is no cycle, or there are too many fibers to look at. */
struct graph_wait {
    struct fiber *fiber;
    struct wait_what what;
};
unsigned cc__graph_cycle(struct graph_wait *cycle, unsigned max);

#endif
