/* posix.h - what the library takes from POSIX without a stub; included before every file. */
#ifndef EXPLORE_POSIX_H
#define EXPLORE_POSIX_H

#include "explore.h"

#include <pthread.h>

#define CC_EXPLORED 1 /* wait/blocked.c: nobody but the explorer looks for deadlocks */

#define pthread_self ex_pthread_self
#define pthread_mutex_lock ex_mutex_lock
#define pthread_mutex_unlock ex_mutex_unlock

#endif
