/* hello.c - the smallest program: start a task, wait for its result. The runtime starts by itself. */
#include <ccc/ccc.h>

#include <stdio.h>

static void *greet(void *name) {
    printf("Hello, %s: this is a fiber.\n", (const char *)name);
    return "Goodbye.";
}

int main(void) {
    CCTask task = cc_fiber_spawn_task(greet, "world");
    void *answer;
    int error = cc_task_join(&task, &answer);
    if (error == 0) printf("It said: %s\n", (const char *)answer);
    return error;
}
