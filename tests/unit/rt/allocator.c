/* allocator.c - the program's own allocator: all of the library's memory comes from it and is freed to it, and its
 * failures are ENOMEM. */
#include "harness.h"

#include "base/attr.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK UINT64_C(0x6d656d6f7279)

/* Lies right before each block. */
struct head {
    void *whole;
    uint64_t mark;
};

static atomic_long taken, held;
static atomic_bool none_left;
static atomic_long left = -1; /* how many more there are; negative: as many as are asked for */
static int place;             /* for the context */

static void *take(size_t size, size_t align, void *context) {
    CHECK(context == &place);
    CHECK(size > 0);
    CHECK(align == 16 || align == 64);
    if (atomic_load(&none_left) || atomic_load(&left) == 0) return NULL;
    if (atomic_load(&left) > 0) atomic_fetch_sub(&left, 1);
    char *whole = malloc(size + align + sizeof(struct head));
    CHECK(whole != NULL);
    char *block = whole + sizeof(struct head);
    block += (align - (uintptr_t)block % align) % align;
    memset(block, 0xa5, size); /* the library does not rely on zeroed memory */
    memcpy(block - sizeof(struct head), &(struct head){whole, MARK}, sizeof(struct head));
    atomic_fetch_add(&taken, 1);
    atomic_fetch_add(&held, 1);
    return block;
}

static void give(void *p, void *context) {
    struct head head;
    CHECK(context == &place);
    CHECK(p != NULL);
    memcpy(&head, (char *)p - sizeof head, sizeof head);
    CHECK_EQ(head.mark, MARK); /* one of this allocator's blocks */
    memset((char *)p - sizeof head, 0, sizeof head);
    free(head.whole);
    atomic_fetch_sub(&held, 1);
}

static const CCAllocator ours = {.alloc = take, .free = give, .context = &place};

CC_TASK(works, {
    CCChan *ch;
    char much[4096]; /* too much for the record of a fiber */
}) {
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_chan_send(self->ch, &i, sizeof i), 0);
    return NULL;
}

/* Channels, tasks, nurseries, timers, keys, broadcasts, ports, a dump. */
static void use_much(void) {
    CCChan *ch = cc_chan_create(sizeof(int), 3);
    CHECK(ch != NULL);
    int rc, v;
    CC_NURSERY(n, .result = &rc, .name = "all") {
        CHECK(cc_nursery_alloc(n, 100) != NULL);
        for (int i = 0; i < 20; i++) CC_GO_IN(n, works, .ch = ch);
        for (int i = 0; i < 200; i++) CHECK_EQ(cc_chan_recv_until(ch, &v, sizeof v, cc_after_s(600)), 0);
        CHECK_EQ(cc_sleep_ms(1), 0);
    }
    CHECK_EQ(rc, 0);
    cc_chan_free(ch);

    CCBroadcast *b = cc_broadcast_create(&(CCBroadcastConfig){.elem_size = sizeof v, .capacity = 2});
    CCChan *subscriber = cc_broadcast_subscribe(b);
    CHECK_EQ(cc_broadcast_send(b, &v, sizeof v), 0);
    CHECK_EQ(cc_chan_recv(subscriber, &v, sizeof v), 0);
    cc_broadcast_free(b);
    cc_chan_free(subscriber);

    CCPort *port;
    CHECK_EQ(cc_port_create(&port, &(CCPortConfig){.capacity = 2}), 0);
    CHECK_EQ(cc_port_send(port, "text", 5), 0);
    cc_port_free(port);

    CCWakeKey key;
    CHECK_EQ(cc_wake_key_open(&key), 0);
    CHECK_EQ(cc_wake_key_close(key), 0);

    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK(file != NULL);
    CHECK_EQ(cc_dump(file), 0);
    fclose(file);
    free(text);
}

TEST(all_of_it) {
    CHECK_EQ(cc_allocator_set(&ours), 0);
    use_much();
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    long before = atomic_load(&held), rounds = atomic_load(&taken);
    CHECK(rounds > 20);
    for (int i = 0; i < 5; i++) {
        use_much();
        CHECK_EQ(cc_runtime_shutdown(60000), 0);
    }
    CHECK(atomic_load(&taken) > rounds);
    CHECK(atomic_load(&held) <= before + 8); /* what is kept for ever does not grow with use */
}

TEST(no_memory) {
    CHECK_EQ(cc_allocator_set(&ours), 0);
    atomic_store(&none_left, true);
    errno = 0;
    CHECK(cc_chan_create(4, 4) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CCPort *port;
    CHECK_EQ(cc_port_create(&port, NULL), ENOMEM);
    CHECK_EQ(cc_runtime_init(NULL), ENOMEM);
    atomic_store(&none_left, false);
    use_much();
}

TEST(too_late) {
    cc_chan_free(cc_chan_create(4, 4));
    CHECK_EQ(cc_allocator_set(&ours), EBUSY);
    CHECK_EQ(cc_allocator_set(NULL), EBUSY);
    use_much();
    CHECK_EQ(atomic_load(&taken), 0);
}

TEST(arguments) {
    CHECK_EQ(cc_allocator_set(&(CCAllocator){.alloc = take}), EINVAL);
    CHECK_EQ(cc_allocator_set(&(CCAllocator){.free = give}), EINVAL);
    CHECK_EQ(cc_allocator_set(&(CCAllocator){.alloc = take, .free = give, .reserved = {0, 0, 0, 1}}), EINVAL);
    CHECK_EQ(cc_allocator_set(&ours), 0);
    CHECK_EQ(cc_allocator_set(NULL), 0); /* malloc again */
    use_much();
    CHECK_EQ(atomic_load(&taken), 0);
}

/* ---- reports ---- */

/* ---- errno: a block that there is not, and functions that change it ---- */

static void *take_noisily(size_t size, size_t align, void *context) {
    void *p = size < SIZE_MAX / 4 ? take(size, align, context) : NULL;
    errno = EDOM;
    return p;
}

static void give_noisily(void *p, void *context) {
    give(p, context);
    errno = EDOM;
}

static void check_errno_is_kept(void) {
    CCPort *port = NULL;
    errno = EXDEV;
    CHECK_EQ(cc_port_create(&port, NULL), 0);
    CHECK_EQ(cc_port_send_until(port, "", SIZE_MAX / 2, CC_PASSED), ENOMEM);
    CHECK_EQ(errno, EXDEV);
    cc_port_free(port);
    CHECK_EQ(errno, EXDEV);
}

TEST(errno_is_kept) {
    CCAllocator noisy = {.alloc = take_noisily, .free = give_noisily, .context = &place};
    CHECK_EQ(cc_allocator_set(&noisy), 0);
    check_errno_is_kept();
}

TEST(errno_is_kept_by_a_process_without_memory) {
    const char *argv[] = {"/nonexistent/program", NULL};
    CCProcess *process;
    CHECK_EQ(cc_allocator_set(&ours), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    int rc = ENOMEM;
    for (long blocks = 0; rc == ENOMEM; blocks++) {
        CHECK(blocks < 100);
        atomic_store(&left, blocks);
        errno = EXDEV;
        rc = cc_process_start(&process, &(CCProcessOptions){.argv = argv});
        CHECK_EQ(errno, EXDEV);
        atomic_store(&left, -1);
    }
    CHECK(rc == ENOENT || rc == ENOSYS);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(errno_is_kept_by_the_default) {
#if defined CC_ASAN || defined CC_TSAN
    SKIP("the sanitizer's allocator ends the program");
#else
    check_errno_is_kept();
#endif
}

static int nowhere;

static int write_trace(int format) {
    return cc_record_write(nowhere, (CCRecordFormat)format);
}

static int write_profile(int kind) {
    return kind < 4 ? cc_profile_write(nowhere, (CCProfile)kind) : cc_profile_cpu(nowhere, cc_after_ms(1));
}

/* With memory for so many blocks more. What a report holds is freed, whatever it lacked. */
static void check_without_memory(int (*write)(int), int which) {
    int rc = write(which);
    CHECK_EQ(rc, 0);
    long before = atomic_load(&held);
    for (long blocks = 0; blocks == 0 || rc != 0; blocks++) {
        CHECK(blocks < 1000);
        atomic_store(&left, blocks);
        rc = write(which);
        atomic_store(&left, -1);
        CHECK(rc == 0 || rc == ENOMEM);
        CHECK_EQ(atomic_load(&held), before);
    }
}

static void *rest(void *arg) {
    CHECK_EQ(cc_sleep_ms(1), 0);
    return arg;
}

TEST(reports_without_memory) {
    CHECK_EQ(cc_allocator_set(&ours), 0);
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(nowhere >= 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_record_start(NULL), 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_run(rest, NULL, NULL), 0);
    CHECK_EQ(cc_record_stop(), 0);
    for (int format = CC_RECORD_GO; format <= CC_RECORD_TEXT; format++) check_without_memory(write_trace, format);
    check_without_memory(write_profile, CC_PROFILE_FIBERS);
    check_without_memory(write_profile, CC_PROFILE_BLOCK);
    check_without_memory(write_profile, CC_PROFILE_CONTENTION);
    check_without_memory(write_profile, 4);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    close(nowhere);
}
