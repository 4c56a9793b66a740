/* addr.c - addresses: parse and print, the system's form, the order of all. */
#include "harness.h"

#include <ccc/cc_net.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static void round_trip(const char *text, const char *printed) {
    CCAddr a, b;
    char out[CC_ADDR_TEXT_MAX];
    CHECK_EQ(cc_addr_parse(&a, text), 0);
    CHECK_EQ(cc_addr_print(&a, out, sizeof out), 0);
    if (strcmp(out, printed) != 0) test_fail(__FILE__, __LINE__, "%s is printed as %s", text, out);
    CHECK_EQ(cc_addr_parse(&b, out), 0);
    CHECK_EQ(cc_addr_compare(&a, &b), 0);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    struct sockaddr_storage name;
    CCSockLen length = sizeof name;
    CHECK_EQ(cc_addr_to_sockaddr(&a, (struct sockaddr *)&name, &length), 0);
    CHECK_EQ(cc_addr_from_sockaddr(&b, (struct sockaddr *)&name, length), 0);
    CHECK_EQ(cc_addr_compare(&a, &b), 0);
}

TEST(texts_and_back) {
    round_trip("127.0.0.1", "127.0.0.1");
    round_trip("127.0.0.1:80", "127.0.0.1:80");
    round_trip("0.0.0.0:65535", "0.0.0.0:65535");
    round_trip("::", "::");
    round_trip("::1", "::1");
    round_trip("[::1]", "::1");
    round_trip("[::1]:443", "[::1]:443");
    round_trip("2001:DB8:0:0:0:0:0:1", "2001:db8::1");
    round_trip("[2001:db8::1]:1", "[2001:db8::1]:1");
    round_trip("fe80::1%7", "fe80::1%7");
    round_trip("[fe80::1%7]:22", "[fe80::1%7]:22");
    round_trip("::ffff:1.2.3.4", "::ffff:1.2.3.4");
    round_trip("unix:/run/x", "unix:/run/x");
    round_trip("unix:relative", "unix:relative");
    round_trip("unix:@name", "unix:@name");
    round_trip("unix:@", "unix:@");
    round_trip("unix:/with%20space%3F%25", "unix:/with%20space%3F%25");
    round_trip("unix:%40at", "unix:%40at");
    round_trip("unix:@a%00b@", "unix:@a%00b@");
}

TEST(a_zone_by_name) {
    CCAddr a;
    CHECK_EQ(cc_addr_parse(&a, "[fe80::1%lo]:5"), 0);
    CHECK(a.zone != 0 && a.port == 5);
    CHECK_EQ(cc_addr_parse(&a, "fe80::1%nosuchinterface"), ENODEV);
}

TEST(what_is_no_address) {
    static const char *const bad[] = {"",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.256",
                                      "01.2.3.4",
                                      "1.2.3.4:",
                                      "1.2.3.4:x",
                                      "1.2.3.4:65536",
                                      "1.2.3.4:-1",
                                      "[1.2.3.4]:80",
                                      "[::1",
                                      "[::1]80",
                                      "[]:80",
                                      "[::1]:",
                                      ":80",
                                      "::1::2",
                                      "fe80::1%",
                                      "fe80::1%0",
                                      "1.2.3.4%lo",
                                      "localhost",
                                      "localhost:80",
                                      "unix:",
                                      "unix:/a%0",
                                      "unix:/a%zz",
                                      "unix:/a%00",
                                      " 1.2.3.4",
                                      "1.2.3.4 ",
                                      "[::1]:99999999999"};
    CCAddr a;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        a.kind = 9;
        int error = cc_addr_parse(&a, bad[i]);
        if (error != EINVAL) test_fail(__FILE__, __LINE__, "\"%s\": %d", bad[i], error);
        CHECK_EQ(a.kind, CC_ADDR_NONE);
    }
    CHECK_EQ(cc_addr_parse(NULL, "::1"), EINVAL);
    CHECK_EQ(cc_addr_parse(&a, NULL), EINVAL);
}

TEST(the_longest_path) {
    char text[400] = "unix:/", out[CC_ADDR_TEXT_MAX];
    CCAddr a;
    memset(text + 6, 'x', 107);
    CHECK_EQ(cc_addr_parse(&a, text), 0);
    CHECK_EQ(a.length, 108);
    CHECK_EQ(cc_addr_print(&a, out, sizeof out), 0);
    CHECK(strcmp(text, out) == 0);
    text[6 + 107] = 'x';
    CHECK_EQ(cc_addr_parse(&a, text), ENAMETOOLONG);
    strcpy(text, "unix:@");
    for (int i = 0; i < 107; i++) strcat(text, "%00");
    CHECK_EQ(cc_addr_parse(&a, text), 0);
    CHECK_EQ(a.length, 108);
    CHECK_EQ(cc_addr_print(&a, out, sizeof out), 0);
    CHECK(strcmp(text, out) == 0);
    CHECK_EQ(cc_addr_print(&a, out, 300), ENOSPC);
    CHECK_EQ(out[0], 0);
}

TEST(forms_of_the_system) {
    CCAddr a = {0};
    char text[8];
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/x"};
    struct sockaddr any = {.sa_family = AF_APPLETALK};
    CCSockLen length = 4;
    CHECK_EQ(cc_addr_print(&a, text, sizeof text), EINVAL);
    CHECK_EQ(cc_addr_to_sockaddr(&a, &any, &length), EAFNOSUPPORT);
    CHECK_EQ(cc_addr_from_sockaddr(&a, &any, sizeof any), EAFNOSUPPORT);
    CHECK_EQ(cc_addr_from_sockaddr(&a, (struct sockaddr *)&un, sizeof un), 0); /* with all its zeros */
    CHECK_EQ(a.length, 2);
    CHECK_EQ(cc_addr_from_sockaddr(&a, (struct sockaddr *)&un, sizeof un.sun_family), 0);
    CHECK_EQ(a.length, 0);
    CHECK_EQ(cc_addr_print(&a, text, sizeof text), 0);
    CHECK(strcmp(text, "unix:") == 0);
    CHECK_EQ(cc_addr_parse(&a, "1.2.3.4:5"), 0);
    CHECK_EQ(cc_addr_to_sockaddr(&a, &any, &length), ENOSPC);
    a.reserved[0] = 1; /* a field of a later version */
    CHECK_EQ(cc_addr_print(&a, text, sizeof text), EINVAL);
    CHECK_EQ(cc_addr_to_sockaddr(&a, &any, &length), EINVAL);
    CHECK_EQ(cc_addr_from_sockaddr(&a, NULL, 4), EINVAL);
    CHECK_EQ(cc_addr_from_sockaddr(&a, &any, 1), EINVAL);
}

TEST(an_order_of_all) {
    static const char *const sorted[] = {"1.2.3.4",   "1.2.3.4:1", "1.2.3.5", "::1",     "::1%2",
                                         "[::1%2]:7", "::2",       "unix:@a", "unix:/a", "unix:/ab"};
    enum { COUNT = sizeof sorted / sizeof *sorted };
    CCAddr a[COUNT];
    for (int i = 0; i < COUNT; i++) CHECK_EQ(cc_addr_parse(&a[i], sorted[i]), 0);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++) {
            int order = cc_addr_compare(&a[i], &a[k]);
            CHECK(i < k ? order < 0 : i > k ? order > 0 : order == 0);
        }
    CHECK(cc_addr_compare(NULL, &a[0]) < 0 && cc_addr_compare(NULL, NULL) == 0);
}
