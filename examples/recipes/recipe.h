/* recipe.h - a hundred fibers that run one function, and how many of them were inside at the same time. */
#ifndef RECIPE_H
#define RECIPE_H

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { RECIPE_FIBERS = 100 };

static atomic_int recipe_inside, recipe_most, recipe_done;

static bool (*recipe_fn)(int i);

static int recipe_fiber(void *arg) {
    int now = atomic_fetch_add(&recipe_inside, 1) + 1, most = atomic_load(&recipe_most);
    while (now > most && !atomic_compare_exchange_weak(&recipe_most, &most, now)) {
    }
    bool good = recipe_fn((int)(intptr_t)arg);
    atomic_fetch_sub(&recipe_inside, 1);
    if (good) atomic_fetch_add(&recipe_done, 1);
    return good ? 0 : EIO;
}

/* Prints "100 of 100 answered, 87 at a time"; returns the status of the program. If calls blocked their worker, no more
 * would be inside than there are workers. */
static int recipe_run(bool (*fn)(int i)) {
    int result = 0;
    recipe_fn = fn;
    CC_NURSERY(n, .result = &result) {
        for (intptr_t i = 0; i < RECIPE_FIBERS; i++)
            if (cc_nursery_spawn_status(n, recipe_fiber, (void *)i) != 0) abort();
    }
    printf("%d of %d answered, %d at a time\n", recipe_done, RECIPE_FIBERS, recipe_most);
    return result == 0 && recipe_done == RECIPE_FIBERS ? 0 : 1;
}

#endif
