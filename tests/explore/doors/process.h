/* process.h - what a scenario does with the explorer's child process from outside. There is one at a time. */
#ifndef EXPLORE_DOORS_PROCESS_H
#define EXPLORE_DOORS_PROCESS_H

#include <stdbool.h>

/* It returns `code`, unless it has ended. */
void door_process_exits(int code);
/* It has ended, and its status was collected. */
bool door_process_reaped(void);

#endif
