/* crew.h - some OS threads that run one function at the same time.
 *
 * They start together, at a barrier: otherwise the first threads could finish before the last one is created.
 */
#ifndef CCC_TESTS_UNIT_CREW_H
#define CCC_TESTS_UNIT_CREW_H

#include "harness.h"

#include <pthread.h>

#define CREW_MAX 64

struct crew {
    int count;
    void (*work)(int index, void *shared);
    void *shared;
    pthread_barrier_t start;
    struct crew_member {
        struct crew *crew;
        int index;
        pthread_t thread;
    } members[CREW_MAX];
};

static void *crew_main(void *arg) {
    struct crew_member *member = arg;
    pthread_barrier_wait(&member->crew->start);
    member->crew->work(member->index, member->crew->shared);
    return NULL;
}

/* Returns when all have been released. */
static inline void crew_start(struct crew *crew, int count, void (*work)(int index, void *shared), void *shared) {
    CHECK(count <= CREW_MAX);
    crew->count = count;
    crew->work = work;
    crew->shared = shared;
    CHECK_EQ(pthread_barrier_init(&crew->start, NULL, (unsigned)count + 1), 0);
    for (int i = 0; i < count; i++) {
        crew->members[i].crew = crew;
        crew->members[i].index = i;
        CHECK_EQ(pthread_create(&crew->members[i].thread, NULL, crew_main, &crew->members[i]), 0);
    }
    pthread_barrier_wait(&crew->start);
}

static inline void crew_join(struct crew *crew) {
    for (int i = 0; i < crew->count; i++) CHECK_EQ(pthread_join(crew->members[i].thread, NULL), 0);
    pthread_barrier_destroy(&crew->start);
}

static inline void crew_run(int count, void (*work)(int index, void *shared), void *shared) {
    struct crew crew;
    crew_start(&crew, count, work, shared);
    crew_join(&crew);
}

#endif
