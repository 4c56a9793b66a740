/* live.c - the live page while each system call fails in turn: its start returns an error and leaks no descriptor; a
 * request gets a response, if only an error status. */
#include "fail.h"
#include "harness.h"

#include "../unit/process/children.h"
#include "live/live.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static int start(void) {
    int rc = cc_view_start(&(CCViewConfig){.tcp = true});
    if (rc == 0) CHECK_EQ(cc_view_stop(), 0);
    return rc;
}

TEST(each_call_of_a_start) {
    CHECK_EQ(start(), 0);
    int before = open_fds();
    for (long n = 1, failed = 1; failed > 0; n++) {
        CHECK(n < 1000);
        fail_arm(n, FAIL_MEMORY | FAIL_PIPE | FAIL_THREAD, false);
        int rc = start();
        failed = fail_disarm();
        if (rc != 0) CHECK(failed > 0); /* or it was a call of another thread */
        CHECK(rc == 0 || rc == ENOMEM || rc == EMFILE || rc == EAGAIN);
        check_open_fds(before);
    }
    CHECK_EQ(start(), 0);
}

/* The status of an answer. */
static int ask(const char *target) {
    unsigned port;
    char address[CC_VIEW_ADDRESS_MAX], token[64], text[300];
    CHECK_EQ(cc_view_address(address, sizeof address), 0);
    CHECK_EQ(sscanf(address, "http://127.0.0.1:%u/?t=%60s", &port, token), 2);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0;
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nAuthorization: Bearer %s\r\n\r\n",
                     target, port, token);
    CHECK_EQ(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    CHECK(recv(fd, text, 12, MSG_WAITALL) == 12 && sscanf(text, "HTTP/1.1 %d", &status) == 1);
    while (recv(fd, text, sizeof text, 0) > 0) {
    }
    close(fd);
    return status;
}

TEST(each_call_of_a_request) {
    static const char *const targets[] = {"/stats", "/groups",  "/scopes",         "/channels",
                                          "/wrong", "/metrics", "/trace?seconds=0"};
    cc__live_set_pace(100000, 100000); /* the machine may be busy */
    CHECK_EQ(cc_view_start(&(CCViewConfig){.tcp = true}), 0);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        CHECK_EQ(ask(targets[i]), 200);
        for (long n = 1, failed = 1; failed > 0; n++) {
            CHECK(n < 1000);
            fail_arm(n, FAIL_MEMORY | FAIL_THREAD, false);
            int status = ask(targets[i]);
            failed = fail_disarm();
            CHECK(status == 200 || (status == 503 && failed > 0));
        }
        CHECK_EQ(ask(targets[i]), 200);
    }
    CHECK_EQ(cc_view_stop(), 0);
}
