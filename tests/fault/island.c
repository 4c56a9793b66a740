/* island.c - islands and ports without memory or threads: an errno value, no leak, and the next attempt succeeds. */
#include "fail.h"
#include "harness.h"

#include <ccc/ccc.h>

#include <string.h>

static void *same(void *arg) {
    return arg;
}

/* With the n-th system call failed. True: none failed, and everything worked. */
static bool open_and_close(long n) {
    CCIsland *island = (CCIsland *)&n;
    void *result = NULL;
    fail_arm(n, FAIL_MEMORY | FAIL_THREAD, false);
    int rc = cc_island_create(&island, &(CCIslandConfig){.name = "fault"});
    bool failed = fail_disarm() > 0;
    if (rc != 0) {
        CHECK(failed && (rc == ENOMEM || rc == EAGAIN));
        CHECK(island == NULL);
        return false;
    }
    CHECK_EQ(cc_island_call(island, same, &n, &result), 0);
    CHECK(result == &n);
    CHECK_EQ(cc_island_free(island), 0);
    return !failed;
}

TEST_WORKERS(islands) {
    fail_begin();
    CHECK_EQ(cc_run(same, NULL, NULL), 0); /* the runtime has what it needs */
    for (long n = 1; !open_and_close(n); n++) CHECK(n < 100);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    CHECK_EQ(fail.blocks, 0);
}

TEST(ports) {
    char block[] = "block";
    CCPort *port = NULL;
    CCMessage m = {.data = block, .size = sizeof block}, got;
    fail_begin();
    for (long n = 1;; n++) {
        fail_arm(n, FAIL_MEMORY, false);
        int rc = cc_port_create(&port, &(CCPortConfig){.capacity = 4});
        long failed = fail_disarm();
        if (rc == 0 && failed == 0) break;
        CHECK(rc == ENOMEM && port == NULL && n < 10);
    }
    fail_arm(1, FAIL_MEMORY, true);
    errno = 0;
    CHECK_EQ(cc_port_send(port, "copy", 5), ENOMEM);
    CHECK_EQ(errno, 0);
    CHECK_EQ(cc_port_move(port, &m), 0); /* needs none */
    CHECK_EQ(cc_port_recv(port, &got), 0);
    CHECK(got.data == block && strcmp(block, "block") == 0);
    CHECK_EQ(cc_port_recv_try(port, &got), EAGAIN);
    (void)fail_disarm();
    CHECK_EQ(cc_port_send(port, "copy", 5), 0);
    CHECK_EQ(cc_port_recv(port, &got), 0);
    CHECK(strcmp(got.data, "copy") == 0);
    cc_message_free(&got);
    cc_port_free(port);
    CHECK_EQ(fail.blocks, 0);
}
