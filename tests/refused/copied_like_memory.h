/* copied_like_memory.h - arguments and elements that are not trivially copyable; as typed_channels.h. */
#include <ccc/ccc.h>

#ifdef __cplusplus
#define ALIGNED(n) alignas(n)
struct owner {
    int *memory;
    ~owner() {
        delete memory;
    }
};
#else
#define ALIGNED(n) _Alignas(n)
#endif

CC_TASK(task, { ALIGNED(16) char bytes[64 * 1024]; }) {
    return self;
}
CC_CHILD(child, { ALIGNED(16) char bytes[64 * 1024]; }) {
    return self->bytes[0];
}

#if REFUSED == 1
CC_TASK(aligned_task, { ALIGNED(32) int x; }) {
    return self;
}
#elif REFUSED == 2
CC_CHILD(aligned_child, { ALIGNED(32) int x; }) {
    return self->x;
}
#elif REFUSED == 3
CC_TASK(large_task, { char bytes[64 * 1024 + 1]; }) {
    return self;
}
#elif REFUSED == 4
CC_CHILD(large_child, { char bytes[64 * 1024 + 1]; }) {
    return self->bytes[0];
}
#elif REFUSED == 5 && defined(__cplusplus)
CC_CHAN_OF(OwnerChan, owner);
#elif REFUSED == 6 && defined(__cplusplus)
CC_TASK(owns, { owner all; }) {
    return self;
}
CCTask start(owner &all);
CCTask start(owner &all) {
    return CC_GO(owns, .all = all);
}
#elif REFUSED == 5 || REFUSED == 6
#error "C copies everything like memory"
#endif
