/* layout.c - the public structs have the layout that programs of version 0.1 were compiled with. */
#define CCDeadline V01Deadline
#define CCTask V01Task
#define CCRuntimeConfig V01RuntimeConfig
#define CCSpawnOptions V01SpawnOptions
#define CCChanConfig V01ChanConfig
#define CCNurseryConfig V01NurseryConfig
#define CCCase V01Case
#define CCError V01Error
#define CCPanic V01Panic
#define CCDefer V01Defer
#define CCDeadlineScope V01DeadlineScope
#define CCShield V01Shield
#include "../../abi/v0_1.h"
#undef CCDeadline
#undef CCTask
#undef CCRuntimeConfig
#undef CCSpawnOptions
#undef CCChanConfig
#undef CCNurseryConfig
#undef CCCase
#undef CCError
#undef CCPanic
#undef CCDefer
#undef CCDeadlineScope
#undef CCShield

#include "harness.h"

#include <ccc/ccc.h>

#define SIZE(name) _Static_assert(sizeof(CC##name) == sizeof(V01##name), "the size of CC" #name)
#define FIELD(name, field)                                                          \
    _Static_assert(offsetof(CC##name, field) == offsetof(V01##name, field) &&       \
                       sizeof((CC##name){0}.field) == sizeof((V01##name){0}.field), \
                   #name "." #field)

SIZE(RuntimeConfig);
FIELD(RuntimeConfig, workers);
FIELD(RuntimeConfig, stack_size);
FIELD(RuntimeConfig, queue_slots);
FIELD(RuntimeConfig, max_workers);
FIELD(RuntimeConfig, no_membarrier);
FIELD(RuntimeConfig, deadlock_status);

SIZE(SpawnOptions);
FIELD(SpawnOptions, name);
FIELD(SpawnOptions, stack_size);
FIELD(SpawnOptions, arg_size);

SIZE(ChanConfig);
FIELD(ChanConfig, elem_size);
FIELD(ChanConfig, capacity);
FIELD(ChanConfig, mode);
FIELD(ChanConfig, on_create);
FIELD(ChanConfig, on_reset);
FIELD(ChanConfig, on_destroy);
FIELD(ChanConfig, context);
FIELD(ChanConfig, ordered);
FIELD(ChanConfig, name);

SIZE(NurseryConfig);
FIELD(NurseryConfig, parent);
FIELD(NurseryConfig, root);
FIELD(NurseryConfig, mode);
FIELD(NurseryConfig, deadline);
FIELD(NurseryConfig, grace_ms);
FIELD(NurseryConfig, name);
FIELD(NurseryConfig, result);

SIZE(Case);
FIELD(Case, kind);
FIELD(Case, ch);
FIELD(Case, value);
FIELD(Case, size);
FIELD(Case, task);
FIELD(Case, deadline);
FIELD(Case, error);
FIELD(Case, status);

SIZE(Error);
FIELD(Error, code);
FIELD(Error, who);
FIELD(Error, name);
FIELD(Error, text);

SIZE(Panic);
FIELD(Panic, generation);
FIELD(Panic, fiber);
FIELD(Panic, name);
FIELD(Panic, message);
FIELD(Panic, frame_count);
FIELD(Panic, frames_guessed);
FIELD(Panic, frames);

SIZE(Deadline);
SIZE(Task);
SIZE(Defer);
SIZE(DeadlineScope);
SIZE(Shield);

_Static_assert(sizeof(CCMutex) == V0_1_MUTEX && sizeof(CCRWLock) == V0_1_RWLOCK && sizeof(CCCond) == V0_1_COND,
               "locks");
_Static_assert(sizeof(CCSem) == V0_1_SEM && sizeof(CCWaitGroup) == V0_1_WAIT_GROUP, "counts");
_Static_assert(sizeof(CCOnce) == V0_1_ONCE && sizeof(CCEvent) == V0_1_EVENT && sizeof(CCBarrier) == V0_1_BARRIER,
               "signals");

/* What the compiler has checked above. The counters have no fixed size: their calls take it. */
TEST(layout) {
    CHECK(sizeof(CCStats) % sizeof(uint64_t) == 0 && sizeof(CCStackStats) % sizeof(uint64_t) == 0);
}
