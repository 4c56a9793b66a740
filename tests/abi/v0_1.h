/* v0_1.h - the public structs and some functions as version 0.1 has them: what a program sees that was compiled then.
 *
 * Never changed after the release, except to add. tests/unit/rt/layout.c compares it with today's headers;
 * tests/programs/abi.c is a program that knows nothing else.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CCDeadline {
    uint64_t ns;
} CCDeadline;

typedef struct CCTask {
    uint64_t id;
} CCTask;

/* ---- what a program fills in ---- */

typedef struct CCRuntimeConfig {
    unsigned workers;
    size_t stack_size;
    size_t queue_slots;
    unsigned max_workers;
    bool no_membarrier;
    unsigned deadlock_status;
    uint64_t reserved[4];
} CCRuntimeConfig;

typedef struct CCSpawnOptions {
    const char *name;
    size_t stack_size;
    size_t arg_size;
    uint64_t reserved[4];
} CCSpawnOptions;

typedef struct CCChanConfig {
    size_t elem_size;
    size_t capacity;
    int mode;
    int (*on_create)(void *item, void *context);
    void (*on_reset)(void *item, void *context);
    void (*on_destroy)(void *item, void *context);
    void *context;
    bool ordered;
    const char *name;
    uint64_t reserved[4];
} CCChanConfig;

typedef struct CCNurseryConfig {
    int *result;
    struct CCNursery *parent;
    bool root;
    int mode;
    CCDeadline deadline;
    uint64_t grace_ms;
    const char *name;
    uint64_t reserved[4];
} CCNurseryConfig;

typedef struct CCCase {
    int kind;
    struct CCChan *ch;
    void *value;
    size_t size;
    CCTask *task;
    CCDeadline deadline;
    int error;
    int *status;
} CCCase;

/* ---- what the library fills in ---- */

typedef struct CCError {
    int code;
    uint64_t who;
    char name[32];
    char text[160];
    uint64_t reserved[4];
} CCError;

typedef struct CCPanic {
    uint64_t generation;
    uint64_t fiber;
    char name[32];
    char message[256];
    unsigned frame_count;
    unsigned frames_guessed;
    const void *frames[32];
    uint64_t reserved[4];
} CCPanic;

/* ---- storage in the program's frames and objects ---- */

typedef struct CCDefer {
    struct CCDefer *next;
    void (*fn)(void *arg);
    void *arg;
    struct CCDefer **list;
} CCDefer;

typedef struct CCDeadlineScope {
    CCDefer deferred;
    void *scope;
    uint64_t reserved[2];
} CCDeadlineScope;

typedef struct CCShield {
    CCDefer deferred;
    bool begun;
    uint64_t reserved[2];
} CCShield;

enum { V0_1_MUTEX = 16, V0_1_RWLOCK = 24, V0_1_COND = 16, V0_1_SEM = 16, V0_1_WAIT_GROUP = 16 };
enum { V0_1_ONCE = 24, V0_1_EVENT = 16, V0_1_BARRIER = 24 };
