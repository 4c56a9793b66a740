/* scopes.c - the list of scopes: each is behind the one around it, and those that do not fit are counted. */
#include "../capture.h"

#include "inspect/survey.h"

#include <ccc/ccc.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 600, DEEP = 100, ALL = 1 + WIDE + DEEP };

static CCNursery *nurseries[ALL];

static void *wait_here(void *ch) {
    int v;
    MAY_FAIL(cc_chan_recv(ch, &v, sizeof v));
    return NULL;
}

/* A root; many in it; and a chain of them, of which only the last one has a child. */
static void build(CCChan *ch) {
    nurseries[0] = cc_nursery_create_ex(&(CCNurseryConfig){.name = "root"});
    CHECK(nurseries[0] != NULL);
    for (int i = 1; i < ALL; i++) {
        nurseries[i] = cc_nursery_create(nurseries[i <= WIDE + 1 ? 0 : i - 1]);
        CHECK(nurseries[i] != NULL);
        if (i <= WIDE || i == ALL - 1) CHECK_EQ(cc_nursery_spawn(nurseries[i], wait_here, ch), 0);
    }
}

static int find(const struct scope_seen *seen, int count, const void *at) {
    for (int i = 0; i < count; i++)
        if (seen[i].at == at) return i;
    return -1;
}

static void *look(void *ch) {
    struct scope_seen *seen = calloc(ALL, sizeof *seen);
    build(ch);
    CHECK_EQ(cc__scopes_list(seen, ALL), ALL);
    CHECK(seen[0].parent == NULL && seen[0].depth == 0 && strcmp(seen[0].name, "root") == 0);
    for (int i = 1; i < ALL; i++) {
        int around = find(seen, i, seen[i].parent);
        CHECK(around >= 0 && seen[i].depth == seen[around].depth + 1);
        CHECK_EQ(find(seen, i, seen[i].at), -1);
    }
    int last = find(seen, ALL, nurseries[ALL - 1]);
    CHECK(last > 0 && seen[last].depth == DEEP && seen[last].members == 1 && seen[last].children == 1);
    memset(seen, 0, ALL * sizeof *seen);
    CHECK_EQ(cc__scopes_list(seen, 3), ALL);
    CHECK(seen[2].at != NULL && seen[3].at == NULL);
    free(seen);

    char *text = capture_dumps();
    CHECK(strstr(text, "\n  and 637 more\n") != NULL);       /* than 64 */
    CHECK(strstr(text, "\"scopes_left_out\":189,") != NULL); /* more than 512 */
    free(text);
    CHECK_EQ(cc_chan_close(ch), 0);
    for (int i = ALL - 1; i >= 0; i--) CHECK_EQ(cc_nursery_free(nurseries[i]), 0);
    return NULL;
}

/* With one worker the children do not run meanwhile. */
TEST(hundreds_of_scopes) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    CHECK_EQ(cc_run(look, ch, NULL), 0);
    cc_chan_free(ch);
}
