/* objects.h - the loaded objects: program, shared libraries, vDSO. */
#ifndef CC_INSPECT_LINUX_OBJECTS_H
#define CC_INSPECT_LINUX_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* Where the search table (.eh_frame_hdr) of the object lies that has code at this address; 0: there is no such object,
 * or it has no table. The object may be unloaded at any moment. Any thread, not for signal handlers; allocates
 * nothing. */
uintptr_t cc__objects_table(uintptr_t pc);

/* Changes whenever an object is loaded or unloaded. */
uint64_t cc__objects_epoch(void);

#endif
