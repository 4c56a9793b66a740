/* alignment.c - the copy of a task's arguments is aligned as documented, wherever it is stored. */
#include "harness.h"

#include <ccc/ccc.h>
#include <stdalign.h>

CC_TASK(small, { alignas(CC_SPAWN_ARG_ALIGN) char bytes[16]; }) {
    CHECK_EQ((uintptr_t)self % CC_SPAWN_ARG_ALIGN, 0);
    return self->bytes[0] == 's' ? self : NULL;
}

CC_TASK(large, { alignas(CC_SPAWN_ARG_ALIGN) char bytes[4096]; }) {
    CHECK_EQ((uintptr_t)self % CC_SPAWN_ARG_ALIGN, 0);
    return self->bytes[4095] == 'e' ? self : NULL;
}

TEST_WORKERS(copies_are_aligned) {
    for (int i = 0; i < 50; i++) {
        CCTask tasks[] = {CC_GO(small, .bytes = "s"), CC_GO(large, .bytes = {[4095] = 'e'})};
        for (int k = 0; k < 2; k++) {
            void *result = NULL;
            CHECK_EQ(cc_task_join(&tasks[k], &result), 0);
            CHECK(result != NULL);
        }
    }
}
