/* abi.c - a program that was compiled with the structs of version 0.1, and one that was compiled for a later version,
 * run with this library.
 * variants: shared
 *
 * It includes no header of the library except tests/abi/v0_1.h.
 */
#include "../abi/v0_1.h"
#include "harness.h"

#include <errno.h>
#include <string.h>

typedef struct CCChan CCChan;
typedef struct CCNursery CCNursery;

int cc_runtime_init(const CCRuntimeConfig *config);
int cc_runtime_shutdown(uint64_t timeout_ms);
unsigned cc_worker_count(void);
const char *cc_fiber_name(void);
int cc_spawn(CCTask *task, void *(*fn)(void *), void *arg, const CCSpawnOptions *options);
int cc_task_join(CCTask *task, void **result);
CCChan *cc_chan_create_ex(const CCChanConfig *config);
int cc_chan_send(CCChan *ch, const void *value, size_t size);
size_t cc_chan_cap(CCChan *ch);
void cc_chan_free(CCChan *ch);
CCNursery *cc_nursery_create_ex(const CCNurseryConfig *config);
CCNursery *cc_nursery_enter(const CCNurseryConfig *config);
void cc_nursery_leave(CCNursery **nursery);
int cc_nursery_spawn(CCNursery *nursery, void *(*fn)(void *), void *arg);
int cc_nursery_wait(CCNursery *nursery);
int cc_nursery_failure(CCNursery *nursery, size_t index, CCError *error);
int cc_nursery_free(CCNursery *nursery);
void *cc_fail(int code, const char *format, ...);
int cc_select(CCCase *cases, size_t n, CCDeadline deadline, size_t *chosen);
int cc_try(void (*fn)(void *), void *arg, CCPanic *info);
void cc_panic(const char *fmt, ...);
CCDeadlineScope *cc_deadline_enter(CCDeadlineScope *scope, CCDeadline deadline);
void cc_deadline_leave(CCDeadlineScope *scope);
CCShield *cc_shield_enter(CCShield *shield);
void cc_shield_leave(CCShield *shield);
int cc_stats(void *out, size_t size);

typedef struct CCConn CCConn;
typedef struct CCListener CCListener;
int cc_listen(CCListener **listener, const char *where, const CCListenOptions *options);
int cc_accept(CCListener *listener, CCConn **conn);
int cc_listener_addr(CCListener *listener, CCAddr *addr);
void cc_listener_close(CCListener *listener);
int cc_dial(CCConn **conn, const char *where, const CCDialOptions *options);
int cc_dial_addr(CCConn **conn, const CCAddr *addr, const CCDialOptions *options, CCDeadline deadline);
int cc_write(CCConn *conn, const void *bytes, size_t size, size_t *n);
int cc_reader_init(CCReader *reader, CCConn *conn, size_t most);
int cc_reader_line(CCReader *reader, char **line, size_t *n);
void cc_reader_free(CCReader *reader);
void cc_close(CCConn *conn);
int cc_serve(CCNursery *nursery, CCListener *listener, int (*fn)(CCConn *, void *), void *arg,
             const CCServeOptions *options);
int cc_serve_stats(CCListener *listener, CCServeStats *stats);
int cc_conn_create(CCConn **conn, const CCConnOps *ops, void *state);
int cc_conn_layer(const char *name, const CCConnLayer *layer);

/* A guard word after each struct that the library fills in: it must not be overwritten. */
enum { MARK = 0x5a };

#define GUARDED(type)             \
    struct {                      \
        type it;                  \
        unsigned char behind[64]; \
    }
#define GUARD(g) memset(&(g), MARK, sizeof(g))
#define CHECK_GUARD(g)                                                                   \
    do {                                                                                 \
        for (size_t i_ = 0; i_ < sizeof(g).behind; i_++) CHECK_EQ((g).behind[i_], MARK); \
        for (size_t i_ = 0; i_ < 4; i_++) CHECK_EQ((g).it.reserved[i_], 0);              \
    } while (0)

/* ---- an older program ---- */

static void old_network(void) {
    CCListener *l;
    CCConn *here, *there;
    char *line;
    size_t length;
    GUARDED(CCServeStats) stats;
    GUARDED(CCReader) reader;
    struct {
        CCAddr it;
        unsigned char behind[16];
    } addr;
    GUARD(stats);
    GUARD(reader);
    GUARD(addr);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", &(CCListenOptions){.backlog = 3, .conn = {.keepalive = 60}}), 0);
    CHECK_EQ(cc_listener_addr(l, &addr.it), 0);
    CHECK_EQ(cc_dial_addr(&here, &addr.it, &(CCDialOptions){.conn = {.send_buffer = 65536}}, (CCDeadline){0}), 0);
    CHECK_EQ(cc_accept(l, &there), 0);
    CHECK_EQ(cc_write(here, "line\n", 5, NULL), 0);
    CHECK_EQ(cc_reader_init(&reader.it, there, 0), 0);
    CHECK_EQ(cc_reader_line(&reader.it, &line, &length), 0);
    CHECK_EQ(strcmp(line, "line"), 0);
    cc_reader_free(&reader.it);
    CHECK_EQ(cc_serve_stats(l, &stats.it), 0);
    CHECK_GUARD(stats);
    for (size_t i = 0; i < sizeof addr.behind; i++) CHECK_EQ(addr.behind[i], MARK);
    for (size_t i = 0; i < sizeof reader.behind; i++) CHECK_EQ(reader.behind[i], MARK);
    cc_close(here);
    cc_close(there);
    cc_listener_close(l);
}

static void *name_and_argument(void *arg) {
    CHECK_EQ(strcmp(cc_fiber_name(), "named"), 0);
    return (void *)(uintptr_t)(*(unsigned char *)arg + 1);
}

static void *fails(void *arg) {
    return cc_fail((int)(intptr_t)arg, "as requested");
}

static void panics(void *arg) {
    cc_panic("number %d", *(int *)arg);
}

static void *old_program(void *unused) {
    (void)unused;
    CCTask task;
    void *result;
    CHECK_EQ(cc_spawn(&task, name_and_argument, "a", &(CCSpawnOptions){.name = "named", .arg_size = 2}), 0);
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK_EQ((uintptr_t)result, 'a' + 1);

    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 1, .capacity = 3, .name = "three"});
    CHECK(ch != NULL);
    CHECK_EQ(cc_chan_cap(ch), 3);
    CHECK_EQ(cc_chan_send(ch, "x", 1), 0);
    char received = 0;
    int status = -1;
    CCCase cases[2] = {{.kind = 0}, {.kind = 2, .ch = ch, .value = &received, .size = 1, .status = &status}};
    size_t chosen = 0;
    CHECK_EQ(cc_select(cases, 2, (CCDeadline){0}, &chosen), 0);
    CHECK(chosen == 1 && received == 'x' && status == 0);
    cc_chan_free(ch);

    GUARDED(CCError) error;
    GUARD(error);
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.name = "old", .mode = 1});
    CHECK(n != NULL);
    CHECK_EQ(cc_nursery_spawn(n, fails, (void *)(intptr_t)EXDEV), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(cc_nursery_failure(n, 0, &error.it), 0);
    CHECK_EQ(strcmp(error.it.text, "as requested"), 0);
    CHECK_GUARD(error);
    CHECK_EQ(cc_nursery_free(n), 0);

    GUARDED(CCPanic) panic;
    GUARD(panic);
    int number = 7;
    CHECK_EQ(cc_try(panics, &number, &panic.it), ENOTRECOVERABLE);
    CHECK_EQ(strcmp(panic.it.message, "number 7"), 0);
    CHECK_GUARD(panic);

    struct {
        CCDeadlineScope deadline;
        unsigned char between[16];
        CCShield shield;
        unsigned char behind[16];
    } frame;
    memset(&frame, MARK, sizeof frame);
    CHECK(cc_deadline_enter(&frame.deadline, (CCDeadline){UINT64_MAX - 1}) != NULL);
    CHECK(cc_shield_enter(&frame.shield) != NULL);
    cc_shield_leave(&frame.shield);
    cc_deadline_leave(&frame.deadline);
    for (size_t i = 0; i < 16; i++) CHECK(frame.between[i] == MARK && frame.behind[i] == MARK);
    old_network();
    return NULL;
}

TEST_WORKERS(an_older_program) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 3}), 0);
    CHECK_EQ(cc_worker_count(), 2);
    CCTask task;
    CHECK_EQ(cc_spawn(&task, old_program, NULL, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* Counters come with a size: fewer than the library has, and more. */
TEST(counters_of_any_size) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    uint64_t counters[200];
    memset(counters, MARK, sizeof counters);
    CHECK_EQ(cc_stats(counters, 2 * sizeof counters[0]), 0);
    CHECK(counters[0] != 0 && counters[0] < 1000);
    CHECK_EQ(((unsigned char *)&counters[2])[0], MARK);
    CHECK_EQ(cc_stats(counters, sizeof counters), 0);
    CHECK_EQ(counters[199], 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- a newer one: it sets a field that this library does not know ---- */

static int handles_nothing(CCConn *conn, void *arg) {
    (void)conn, (void)arg;
    return 0;
}

static void refuses(size_t word) {
    uint64_t unknown[4] = {0};
    unknown[word] = UINT64_C(1) << (16 * word);
    CCRuntimeConfig runtime = {.workers = 1};
    memcpy(runtime.reserved, unknown, sizeof unknown);
    if (word > 0) CHECK_EQ(cc_runtime_init(&runtime), EINVAL); /* the first has become blocking_max */

    CCSpawnOptions spawn = {.name = "named"};
    memcpy(spawn.reserved, unknown, sizeof unknown);
    CCTask task;
    if (word > 0) { /* the first has become island */
        CHECK_EQ(cc_spawn(&task, name_and_argument, NULL, &spawn), EINVAL);
        CHECK_EQ(task.id, 0);
    }

    CCChanConfig chan = {.elem_size = 1};
    memcpy(chan.reserved, unknown, sizeof unknown);
    errno = 0;
    if (word > 0) CHECK(cc_chan_create_ex(&chan) == NULL && errno == EINVAL); /* the first has become on_drop */

    int rc = 0;
    CCNurseryConfig nursery = {.result = &rc};
    memcpy(nursery.reserved, unknown, sizeof unknown);
    errno = 0;
    CHECK(cc_nursery_create_ex(&nursery) == NULL);
    CHECK_EQ(errno, EINVAL);
    CHECK(cc_nursery_enter(&nursery) == NULL);
    CHECK_EQ(rc, EINVAL);

    CCListener *l = NULL;
    CCConn *c = NULL;
    CCListenOptions listen = {.backlog = 3};
    CCDialOptions dial = {0};
    CCServeOptions serve = {0};
    CCConnOps ops = {0};
    CCConnLayer layer = {0};
    memcpy(listen.reserved, unknown, sizeof unknown);
    memcpy(dial.reserved, unknown, sizeof unknown);
    memcpy(serve.reserved, unknown, sizeof unknown);
    memcpy(ops.reserved, unknown, sizeof unknown);
    memcpy(layer.reserved, unknown, sizeof unknown);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", &listen), EINVAL);
    CHECK_EQ(cc_dial(&c, "tcp://127.0.0.1:1", &dial), EINVAL);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_serve(NULL, l, handles_nothing, NULL, &serve), EINVAL);
    cc_listener_close(l);
    CHECK_EQ(cc_conn_create(&c, &ops, NULL), EINVAL);
    CHECK_EQ(cc_conn_layer("abi", &layer), EINVAL);

    CCCase unknown_kind = {.kind = 100 + (int)word};
    size_t chosen;
    CHECK_EQ(cc_select(&unknown_kind, 1, (CCDeadline){1}, &chosen), EINVAL);
}

TEST(a_newer_program) {
    for (size_t word = 0; word < 4; word++) refuses(word);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}
