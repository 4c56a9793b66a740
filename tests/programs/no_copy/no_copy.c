/* no_copy.c - a program that seems to be built with a sanitizer, and a library without a copy for it. */
#include "../../unit/capture.h"

/* The library sees only that there is one. */
void __asan_init(void);
void __asan_init(void) {}

TEST(says_so_once) {
    static const char line[] = "ccc: this program is built with -fsanitize=address, and this libccc has no copy for it";
    struct capture capture;
    capture_start(&capture);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    const char *text = capture_end(&capture), *found = strstr(text, line);
    CHECK(found != NULL);
    CHECK(strstr(found + 1, line) == NULL);
}
