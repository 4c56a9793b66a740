/* sqlite_island.c - a SQLite handle without a mutex, on an island: a thousand fibers on all workers use it without a
 * lock.
 *
 * The handle is opened with SQLITE_OPEN_NOMUTEX: two threads, or two calls at a time, would corrupt it. Fibers call
 * functions on the island; a function that does not wait is a transaction. */
#include "recipe.h"

#include <pthread.h>
#include <sqlite3.h>

enum { FIBERS_EACH = 10 }; /* a hundred times ten */

static CCIsland *island;
static sqlite3 *db;      /* the island's */
static int64_t inside;   /* owned by the island: no atomics */
static pthread_t thread; /* on the island */

static void open_database(void *context) {
    (void)context;
    thread = pthread_self();
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_exec(db, "create table squares (n integer primary key, square integer)", NULL, NULL, NULL) != SQLITE_OK)
        abort();
}

static void close_database(void *context) {
    (void)context;
    if (sqlite3_close(db) != SQLITE_OK) abort();
}

struct sum {
    int n;
    int64_t result;
};

/* On the island. */
static void *add(void *arg) {
    struct sum *s = arg;
    sqlite3_stmt *insert = NULL, *select = NULL;
    if (inside++ != 0 || !pthread_equal(thread, pthread_self())) abort();
    bool good = sqlite3_exec(db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "insert into squares values (?1, ?1 * ?1)", -1, &insert, NULL) == SQLITE_OK &&
                sqlite3_bind_int(insert, 1, s->n) == SQLITE_OK && sqlite3_step(insert) == SQLITE_DONE &&
                sqlite3_prepare_v2(db, "select square from squares where n = ?1", -1, &select, NULL) == SQLITE_OK &&
                sqlite3_bind_int(select, 1, s->n) == SQLITE_OK && sqlite3_step(select) == SQLITE_ROW;
    if (good) s->result = sqlite3_column_int64(select, 0);
    sqlite3_finalize(insert);
    sqlite3_finalize(select);
    good = good && sqlite3_exec(db, "commit", NULL, NULL, NULL) == SQLITE_OK;
    inside--;
    return good ? s : NULL;
}

CC_CHILD(ask_once, { int n; }) {
    struct sum s = {self->n, -1};
    void *done = NULL;
    if (cc_island_call(island, add, &s, &done) != 0 || done == NULL) return EIO;
    return s.result == (int64_t)s.n * s.n ? 0 : EIO;
}

static bool ask(int i) {
    int result;
    CC_NURSERY(n, .result = &result) {
        for (int k = 0; k < FIBERS_EACH; k++) CC_GO_IN(n, ask_once, .n = i * FIBERS_EACH + k);
    }
    return result == 0;
}

static void *count_rows(void *count) {
    sqlite3_stmt *select = NULL;
    if (sqlite3_prepare_v2(db, "select count(*) from squares", -1, &select, NULL) != SQLITE_OK ||
        sqlite3_step(select) != SQLITE_ROW)
        abort();
    *(int *)count = sqlite3_column_int(select, 0);
    sqlite3_finalize(select);
    return NULL;
}

int main(void) {
    CCIslandConfig config = {.name = "sqlite", .on_start = open_database, .on_end = close_database};
    int rows = 0;
    if (cc_island_create(&island, &config) != 0) return 1;
    int status = recipe_run(ask);
    if (cc_island_call(island, count_rows, &rows, NULL) != 0 || cc_island_free(island) != 0) return 1;
    printf("%d rows of %d, each by a fiber of its own\n", rows, RECIPE_FIBERS * FIBERS_EACH);
    return status != 0 || rows != RECIPE_FIBERS * FIBERS_EACH;
}
