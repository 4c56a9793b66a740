/* mariadb.c - the MariaDB client on fibers: its calls in two halves (_start, _cont), and cc_fd_wait between them.
 *
 *   mariadb /run/mysqld/mysqld.sock      or      mariadb 127.0.0.1
 */
#include "recipe.h"

#include <mysql.h>

static const char *where;

/* Waits for what the client asks for, and returns what happened. A cancelled wait is reported as a timeout, and the
 * client gives up. */
static int wait_for(MYSQL *m, int status) {
    int events = 0, ready = 0;
    if (status & MYSQL_WAIT_READ) events |= CC_READABLE;
    if (status & MYSQL_WAIT_WRITE) events |= CC_WRITABLE;
    if (status & MYSQL_WAIT_EXCEPT) events |= CC_HANGUP;
    CCDeadline deadline = status & MYSQL_WAIT_TIMEOUT ? cc_after_ms(mysql_get_timeout_value_ms(m)) : CC_FOREVER;
    if (events == 0) return cc_sleep_until(deadline) == 0 ? MYSQL_WAIT_TIMEOUT : 0;
    if (cc_fd_wait_until(mysql_get_socket(m), events, &ready, deadline) != 0) return MYSQL_WAIT_TIMEOUT;
    int got = 0;
    if (ready & (CC_READABLE | CC_HANGUP)) got |= status & MYSQL_WAIT_READ;
    if (ready & (CC_WRITABLE | CC_HANGUP)) got |= status & MYSQL_WAIT_WRITE;
    if (ready & CC_HANGUP) got |= status & MYSQL_WAIT_EXCEPT;
    return got;
}

static MYSQL *db_connect(MYSQL *m) {
    MYSQL *connected = NULL;
    const char *socket = where[0] == '/' ? where : NULL, *host = socket != NULL ? "localhost" : where;
    mysql_init(m);
    mysql_options(m, MYSQL_OPT_NONBLOCK, 0);
    int status = mysql_real_connect_start(&connected, m, host, NULL, NULL, NULL, 0, socket, 0);
    while (status != 0) status = mysql_real_connect_cont(&connected, m, wait_for(m, status));
    return connected;
}

static int db_query(MYSQL *m, const char *sql, unsigned long length) {
    int error = 0, status = mysql_real_query_start(&error, m, sql, length);
    while (status != 0) status = mysql_real_query_cont(&error, m, wait_for(m, status));
    return error;
}

static MYSQL_RES *db_result(MYSQL *m) {
    MYSQL_RES *result = NULL;
    int status = mysql_store_result_start(&result, m);
    while (status != 0) status = mysql_store_result_cont(&result, m, wait_for(m, status));
    return result;
}

static void db_close(MYSQL *m) {
    int status = mysql_close_start(m);
    while (status != 0) status = mysql_close_cont(m, wait_for(m, status));
}

static bool ask(int i) {
    MYSQL m;
    char sql[80];
    int length = snprintf(sql, sizeof sql, "select %d * %d, sleep(0.05)", i, i);
    bool good = db_connect(&m) != NULL && db_query(&m, sql, (unsigned long)length) == 0;
    MYSQL_RES *result = good ? db_result(&m) : NULL;
    MYSQL_ROW row = result != NULL ? mysql_fetch_row(result) : NULL; /* already received */
    good = row != NULL && atoi(row[0]) == i * i;
    if (!good) fprintf(stderr, "mariadb: %s\n", mysql_error(&m));
    mysql_free_result(result);
    db_close(&m);
    return good;
}

int main(int argc, char **argv) {
    where = argc > 1 ? argv[1] : "127.0.0.1";
    if (mysql_library_init(0, NULL, NULL) != 0) return 1;
    int status = recipe_run(ask);
    mysql_library_end();
    return status;
}
