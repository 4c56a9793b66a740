/* show.h - what ccps prints. */
#ifndef CCPS_SHOW_H
#define CCPS_SHOW_H

#include "runtime.h"

/* MANY: groups, and a line that says why. TREE_OF_MANY: some fibers of each scope. */
enum show { SHOW_EACH, SHOW_GROUPS, SHOW_MANY, SHOW_TREE, SHOW_TREE_OF_MANY };

/* Reads all that will be shown, before a stopped target continues. */
void show_collect(struct fiber_seen *fibers, size_t count, enum show how);
/* Prints it: after show_collect, or of a running target. Drops the library's own frames. */
void show_all(struct fiber_seen *fibers, size_t count, enum show how);

#endif
