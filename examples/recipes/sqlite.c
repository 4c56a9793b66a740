/* sqlite.c - SQLite, which has no calls that do not block, on a pool with one thread: that thread makes all calls with
 * the handle, one after the other, and no worker waits for the disk.
 *
 *   sqlite FILE
 */
#include "recipe.h"

#include <sqlite3.h>

static sqlite3 *db;
static CCPool *pool;

struct sum {
    int i;
    int64_t result;
};

/* On the pool's thread. A transaction is one call: between two of them other fibers' calls run. */
static void *add(void *arg) {
    struct sum *s = arg;
    sqlite3_stmt *insert = NULL, *select = NULL;
    bool good = sqlite3_exec(db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "insert into squares values (?1, ?1 * ?1)", -1, &insert, NULL) == SQLITE_OK &&
                sqlite3_bind_int(insert, 1, s->i) == SQLITE_OK && sqlite3_step(insert) == SQLITE_DONE &&
                sqlite3_prepare_v2(db, "select square from squares where n = ?1", -1, &select, NULL) == SQLITE_OK &&
                sqlite3_bind_int(select, 1, s->i) == SQLITE_OK && sqlite3_step(select) == SQLITE_ROW;
    if (good) s->result = sqlite3_column_int64(select, 0);
    sqlite3_finalize(insert);
    sqlite3_finalize(select);
    if (!good || sqlite3_exec(db, "commit", NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db));
        sqlite3_exec(db, "rollback", NULL, NULL, NULL);
        return NULL;
    }
    return s;
}

static bool ask(int i) {
    struct sum s = {i, -1};
    void *done = NULL;
    CCBlockingOptions options = {.pool = pool};
    return cc_blocking_ex(add, &s, &done, &options, CC_FOREVER) == 0 && done != NULL && s.result == (int64_t)i * i;
}

int main(int argc, char **argv) {
    if (sqlite3_open(argc > 1 ? argv[1] : ":memory:", &db) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "create table squares (n integer primary key, square integer)", NULL, NULL, NULL) != SQLITE_OK)
        return 1;
    if (cc_pool_create(&pool, 1) != 0) return 1;
    int status = recipe_run(ask);
    cc_pool_free(pool);
    sqlite3_close(db);
    return status;
}
