/* libpq.c - PostgreSQL's client on fibers: its asynchronous calls, and cc_fd_wait where they would wait.
 *
 *   libpq "host=/run/postgresql dbname=postgres"
 */
#include "recipe.h"

#include <libpq-fe.h>
#include <string.h>

static const char *where;

/* As PQconnectdb. */
static PGconn *pq_connect(const char *info) {
    PGconn *c = PQconnectStart(info);
    int events = CC_WRITABLE;
    while (c != NULL && PQstatus(c) != CONNECTION_BAD) {
        if (cc_fd_wait(PQsocket(c), events, NULL) != 0) break; /* cancelled */
        PostgresPollingStatusType next = PQconnectPoll(c);
        if (next == PGRES_POLLING_OK) return c;
        if (next == PGRES_POLLING_FAILED) break;
        events = next == PGRES_POLLING_READING ? CC_READABLE : CC_WRITABLE;
    }
    fprintf(stderr, "libpq: %s", c != NULL ? PQerrorMessage(c) : "out of memory\n");
    PQfinish(c);
    return NULL;
}

/* As PQexecParams, for one statement. A wait that is cancelled asks the server to stop. */
static PGresult *pq_query(PGconn *c, const char *sql, int count, const char *const *values) {
    PGresult *result = NULL, *next;
    if (!PQsendQueryParams(c, sql, count, NULL, values, NULL, NULL, 0)) return NULL;
    for (;;) {
        int flush = PQflush(c);
        if (flush < 0) return result;
        if (flush == 0 && !PQisBusy(c)) {
            next = PQgetResult(c); /* does not wait now */
            if (next == NULL) return result;
            PQclear(result);
            result = next;
            continue;
        }
        if (cc_fd_wait(PQsocket(c), flush > 0 ? CC_READABLE | CC_WRITABLE : CC_READABLE, NULL) != 0) {
            char text[256];
            PGcancel *cancel = PQgetCancel(c);
            if (cancel != NULL) PQcancel(cancel, text, sizeof text); /* blocks for a round trip */
            PQfreeCancel(cancel);
            return result;
        }
        if (!PQconsumeInput(c)) return result;
    }
}

static bool ask(int i) {
    char number[16];
    const char *values[1] = {number};
    snprintf(number, sizeof number, "%d", i);
    PGconn *c = pq_connect(where);
    if (c == NULL) return false;
    PQsetnonblocking(c, 1);
    PGresult *r = pq_query(c, "select $1::int * $1::int, pg_sleep(0.05)", 1, values);
    bool good = PQresultStatus(r) == PGRES_TUPLES_OK && atoi(PQgetvalue(r, 0, 0)) == i * i;
    if (!good) fprintf(stderr, "libpq: %s", PQerrorMessage(c));
    PQclear(r);
    PQfinish(c);
    return good;
}

int main(int argc, char **argv) {
    where = argc > 1 ? argv[1] : "";
    return recipe_run(ask);
}
