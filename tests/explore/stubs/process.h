/* process.h - the scenario's side of the explorer's child process. There is one at a time. */
#ifndef EXPLORE_STUBS_PROCESS_H
#define EXPLORE_STUBS_PROCESS_H

#include <stdbool.h>

/* It returns `code`, unless it has ended. */
void stub_process_exits(int code);
/* It has ended, and its status was collected. */
bool stub_process_reaped(void);

#endif
