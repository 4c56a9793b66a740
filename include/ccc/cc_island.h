/* cc_island.h - islands: single-threaded domains inside the runtime.
 *
 * An island is a worker with an OS thread of its own. Fibers that are started on it run on that thread and on no other,
 * and between two waits of one of them no other fiber of the island runs. So what belongs to the island needs no lock:
 * a home for a SQLite handle, an interpreter, a library that is not thread-safe or keeps something in thread-local
 * variables. A fiber that an island's fiber starts is the island's, too. All calls of the library work on an island;
 * channels, locks, nurseries and joins reach across.
 *
 *   CCIsland *db;
 *   cc_island_create(&db, &(CCIslandConfig){.name = "db", .on_start = open_database});
 *   cc_island_call(db, query, &q, NULL);          runs there, waits here
 *   CC_GO_ON(db, writer, .rows = rows);           a task there
 *   cc_island_free(db);                           waits for its fibers
 *
 * A fiber that blocks its thread blocks its island, and nothing else: nobody takes the island's fibers away. Reports of
 * stalls say so. In a simulation the fibers of islands take turns with all others; at points, where another fiber might
 * go on, the running one stays if it is an island's.
 */
#ifndef CCC_CC_ISLAND_H
#define CCC_CC_ISLAND_H

#include <ccc/cc_base.h>
#include <ccc/cc_task.h>

CC_BEGIN_DECLS

/* A field that is 0 or NULL means the default. */
typedef struct CCIslandConfig {
    const char *name; /* of its thread, and in dumps; copied, cut at 15 bytes */
    /* On its thread, before its first fiber and after its last, as an OS thread that is no worker. They must not wait
     * for fibers. */
    void (*on_start)(void *context);
    void (*on_end)(void *context);
    void *context;
    bool pinned;          /* its thread stays on one CPU: `cpu` */
    unsigned cpu;         /* its number, from 0 */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCIslandConfig;

#define CC_ISLANDS_MAX 64u /* at a time */

/* A new island; config may be NULL. Starts the runtime if need be. On failure *island is NULL: EINVAL: island NULL, a
 * CPU that the process may not use, a reserved word that is not 0; ENOMEM; EAGAIN: CC_ISLANDS_MAX islands, or no
 * thread; ECANCELED: the runtime shuts down. Any context; does not switch. */
CC_API int cc_island_create(CCIsland **island, const CCIslandConfig *config);

/* Waits for the island's fibers to end, runs on_end, and frees the island. Nobody may use the island meanwhile but its
 * own fibers, which may start others. NULL is allowed. EDEADLK: the caller is a fiber of the island, and nothing
 * happens. A shutdown of the runtime ends the thread of an island, too; the island is freed by this call all the same.
 * Any context; switches, but is not cancelled. */
CC_API int cc_island_free(CCIsland *island);

/* As cc_spawn, on the island. CC_NO_ISLAND: on the workers that are no island's, also from an island. A child of a
 * nursery starts on an island if its CCSpawnOptions say so. EINVAL: island NULL, or the options name another one;
 * ESRCH: the runtime was shut down after the island was made; and the errors of cc_spawn. Any context; does not switch.
 * */
CC_API int cc_island_spawn(CCIsland *island, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options);

/* Runs fn(arg) as a fiber of the island and waits for its end; *result (result may be NULL) is what it returns. If the
 * caller is cancelled, the fiber is cancelled, and its end is waited for all the same: arg may lie in the caller's
 * frame. 0, or as cc_island_spawn; ENOTRECOVERABLE: fn has panicked; ENOMEM: no stack for it. Any context; switches. */
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
