/* describe.h - fibers, and what they wait for, in words. All of it looks from outside (view.h). */
#ifndef CC_DIAG_DESCRIBE_H
#define CC_DIAG_DESCRIBE_H

#include "inspect/view.h"
#include "wait/blocked.h"

enum { DESCRIBE_MAX = 320 };

/* "fiber 12.3 'name'" */
void cc__describe_fiber(const struct view *view, char *text, size_t size);
void cc__describe_tenant(struct fiber *f, char *text, size_t size);
void cc__describe_thread(int tid, char *text, size_t size);

/* "to receive from channel 'jobs' (0x55d0c0, capacity 16, empty)" */
void cc__describe_wait(struct wait_what what, char *text, size_t size);

/* "for 1.25 s", "for 2 to 5 s" */
void cc__describe_since(uint64_t from, uint64_t to, uint64_t now, char *text, size_t size);

#endif
