/* cc_island.h - islands: single-threaded domains inside the runtime.
 *
 * An island is a worker with its own OS thread. Fibers started on it run only on that thread, and switch only at waits:
 * between two waits of a fiber no other fiber of the island runs. So data that only the island uses needs no lock. Use
 * it for a SQLite handle, an interpreter, or a library that is not thread-safe or relies on thread-local variables. A
 * fiber started by a fiber of an island belongs to the same island. All calls of the library work on an island;
 * channels, locks, nurseries and joins work across islands.
 *
 *   CCIsland *db;
 *   cc_island_create(&db, &(CCIslandConfig){.name = "db", .on_start = open_database});
 *   cc_island_call(db, query, &q, NULL);          runs on the island, waits here
 *   CC_GO_ON(db, writer, .rows = rows);           a task on the island
 *   cc_island_free(db);                           waits for its fibers
 *
 * A fiber that blocks its thread blocks its island, but nothing else: no other worker steals the island's fibers. Stall
 * reports say so. Nursery deadlines that were set there are then kept by the ordinary workers. In a simulation the
 * fibers of islands are scheduled together with all others; at points, where the simulator may switch to another fiber,
 * a fiber of an island keeps running.
 */
#ifndef CCC_CC_ISLAND_H
#define CCC_CC_ISLAND_H

#include <ccc/cc_base.h>
#include <ccc/cc_task.h>

CC_BEGIN_DECLS

/* A field that is 0 or NULL means the default. */
typedef struct CCIslandConfig {
    const char *name; /* of its thread, and in dumps; copied, truncated to 15 bytes */
    /* Called on the island's thread before its first fiber and after its last one, not on a fiber. They must not wait
     * for fibers. */
    void (*on_start)(void *context);
    void (*on_end)(void *context);
    void *context;
    bool pinned;          /* pins its thread to `cpu` */
    unsigned cpu;         /* its number, from 0 */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCIslandConfig;

#define CC_ISLANDS_MAX 64u /* at a time */

/* Creates an island; config may be NULL. Starts the runtime if necessary. On failure *island is NULL. EINVAL: island
 * NULL, a CPU that the process may not use, a nonzero reserved word; ENOMEM; EAGAIN: CC_ISLANDS_MAX islands exist, or
 * no thread; ECANCELED: the runtime is shutting down. Any context; does not switch. */
CC_API int cc_island_create(CCIsland **island, const CCIslandConfig *config);

/* Waits for the island's fibers to end, runs on_end, and frees the island. Meanwhile only its own fibers may use the
 * island; they may start others. NULL is allowed. EDEADLK: the caller is a fiber of the island, or its on_start or
 * on_end; nothing is done. A shutdown of the runtime also ends the island's thread; the island must still be freed by
 * this call. Any context; switches, but is not cancelled. */
CC_API int cc_island_free(CCIsland *island);

/* As cc_spawn, on the island. CC_NO_ISLAND: on the ordinary workers, also from an island. To start a child of a nursery
 * on an island use CCSpawnOptions. EINVAL: island NULL, or the options name another one; ESRCH: the runtime was shut
 * down after the island was created; and the errors of cc_spawn. Any context; does not switch. */
CC_API int cc_island_spawn(CCIsland *island, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options);

/* Runs fn(arg) as a fiber of the island and waits for its end; *result (result may be NULL) gets its return value. A
 * cancelled caller cancels the fiber and still waits for its end, because arg may be on the caller's stack. Errors as
 * cc_island_spawn; ENOTRECOVERABLE: fn has panicked; ENOMEM: no stack for it. Any context; switches. */
CC_API int cc_island_call(CCIsland *island, CCTaskFn fn, void *arg, void **result);

/* The island of the running fiber; NULL: none, or not a fiber. Any context; does not switch. */
CC_API CCIsland *cc_island_current(void);

/* For CC_GO_ON: starts entry with a copy of `size` bytes at args. {0}: it could not be started. */
CC_API CCTask cc_island_go(CCIsland *island, CCTaskFn entry, const void *args, size_t size);

/* As CC_GO, on the island. */
#define CC_GO_ON(...) CC__GO_ON(__VA_ARGS__, )
#define CC__GO_ON(island, task_name, ...) \
    CC__GLUE(CC__GO_ON_, CC__ONE_OR_MANY(__VA_ARGS__))(island, task_name, __VA_ARGS__)
#ifndef __cplusplus
#define CC__GO_ON_ONE(island, task_name, ...) \
    cc_island_go((island), task_name##_entry, &(struct task_name##_args){0}, sizeof(struct task_name##_args))
#define CC__GO_ON_MANY(island, task_name, ...) \
    cc_island_go((island), task_name##_entry, &(struct task_name##_args){__VA_ARGS__}, sizeof(struct task_name##_args))
#endif

CC_END_DECLS

#ifdef __cplusplus
#define CC__GO_ON_ONE(island, task_name, ...) cc_island_go_cxx_((island), task_name##_entry, task_name##_args{})
#define CC__GO_ON_MANY(island, task_name, ...) CC__GO_ON_CXX(island, task_name, CC__UNIQUE(cc_args_), __VA_ARGS__)
#define CC__GO_ON_CXX(island, task_name, var, ...)                               \
    __extension__({                                                              \
        CC__SOME_FIELDS_BEGIN const task_name##_args var{__VA_ARGS__};           \
        CC__SOME_FIELDS_END cc_island_go_cxx_((island), task_name##_entry, var); \
    })
template <typename Args> inline CCTask cc_island_go_cxx_(CCIsland *island, CCTaskFn entry, const Args &args) {
    static_assert(__is_trivially_copyable(Args), "the arguments of a task are copied like memory");
    return cc_island_go(island, entry, &args, sizeof args);
}
#endif

#endif
