/* membarrier.h - make every running thread of the process execute a full memory barrier. */
#ifndef CC_OS_MEMBARRIER_H
#define CC_OS_MEMBARRIER_H

#include <stdbool.h>

/* Registers the process; false if the system does not support it. */
bool cc__membarrier_register(void);
/* Only after a successful registration. */
void cc__membarrier(void);

#endif
