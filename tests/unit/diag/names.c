/* names.c - names of fibers and channels that are not ASCII, in a dump and in JSON. */
#include "../capture.h"

#include <ccc/ccc.h>
#include <stdlib.h>
#include <string.h>

static void *receive(void *ch) {
    int v;
    MAY_FAIL(cc_chan_recv(ch, &v, sizeof v));
    return NULL;
}

/* What the dumps say while a fiber of that name waits for a channel of that name; the caller frees it. */
static char *dump(const char *name) {
    CCTask task;
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .name = name});
    CHECK_EQ(cc_spawn(&task, receive, ch, &(CCSpawnOptions){.name = name}), 0);
    char *text = capture_dumps();
    while (strstr(text, " waits to receive from ") == NULL || strstr(text, "\"waits\":\"to receive ") == NULL) {
        free(text);
        text = capture_dumps();
    }
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(ch);
    return text;
}

TEST(names_in_utf8) {
    static const char *const names[] = {"gr\303\266\303\237e", "\346\234\215\345\212\241\345\231\250",
                                        "\360\237\247\265"};
    char wanted[80];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *text = dump(names[i]);
        snprintf(wanted, sizeof wanted, " '%s' waits to receive from channel '%s' (", names[i], names[i]);
        CHECK(strstr(text, wanted) != NULL);
        snprintf(wanted, sizeof wanted, "\"name\":\"%s\"", names[i]);
        CHECK(strstr(text, wanted) != NULL);
        free(text);
    }
}

/* Control characters and bytes that are not UTF-8: a fiber's name ends there, and JSON stays valid. */
TEST(names_that_cannot_be_shown) {
    static const char *const names[] = {"ab\033[31m", "ab\xff", "ab\xc3", "ab\xed\xa0\x80", "ab\xc2\x9b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *text = dump(names[i]), *json = strstr(text, "{\"ccc_dump\"");
        CHECK(json != NULL && strstr(json, "\"name\":\"ab\"") != NULL);
        for (const char *c = json; *c != '\0'; c++) CHECK((*c >= ' ' && *c <= '~') || *c == '\n');
        free(text);
    }
}
