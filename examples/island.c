/* island.c - a table that is not thread-safe, owned by an island: its fibers need no lock. */
#include <ccc/ccc.h>
#include <stdio.h>

static int table[8], rows_written; /* owned by the island: only its fibers use them */

static void open_database(void *unused) { /* on the island's thread, before its first fiber */
    (void)unused;
    table[0] = 1;
}

static void close_database(void *unused) {
    (void)unused;
    printf("closed with %d rows\n", rows_written);
}

struct query {
    int row, answer;
};

static void *query(void *arg) {
    struct query *q = arg;
    q->answer = table[q->row];
    return NULL;
}

CC_TASK(writer, { int rows; }) {
    for (int i = 0; i < self->rows; i++) {
        table[i] = i * i;
        rows_written++;
        cc_yield(); /* only here can another fiber of the island run */
    }
    return NULL;
}

int main(void) {
    struct query q = {.row = 0};
    int rows = 5;
    CCIsland *db;
    cc_island_create(&db, &(CCIslandConfig){.name = "db", .on_start = open_database, .on_end = close_database});
    cc_island_call(db, query, &q, NULL); /* runs there, waits here: the arguments may be locals */
    printf("row 0 is %d\n", q.answer);

    CCTask task = CC_GO_ON(db, writer, .rows = rows); /* a task there; what it starts runs there, too */
    cc_task_join(&task, NULL);
    cc_island_free(db); /* waits for its fibers */
}
