/* membarrier.h - make every running thread of the process execute a full memory barrier. */
#ifndef CC_PLAT_MEMBARRIER_H
#define CC_PLAT_MEMBARRIER_H

#include <stdbool.h>

/* Registers the process; false where the system does not offer it. */
bool cc__membarrier_register(void);
/* Only after a registration that succeeded. */
void cc__membarrier(void);

#endif
