/* handle_request.c - an async function that awaits another one; and two requests at the same time. */
#include <ccc/ccc.h>
#include <stdio.h>

typedef struct Data {
    int id, rows;
} Data;

CC_ASYNC(Data, fetch_from_db, { int id; }) {
    cc_sleep_ms(1); /* the database is slow: the fiber parks, and the worker runs others */
    return (Data){.id = self->id, .rows = self->id * 10};
}

typedef struct Response {
    char text[64];
} Response;

CC_ASYNC(Response, handle_request, { int id; }) {
    Data data = CC_CALL(fetch_from_db, .id = self->id); /* await of a plain call */
    Response r;
    snprintf(r.text, sizeof r.text, "request %d: %d rows", data.id, data.rows);
    return r;
}

int main(void) {
    CC_FUTURE(handle_request, a);
    CC_FUTURE(handle_request, b);
    CC_START(&a, handle_request, .id = 1); /* start now, await later */
    CC_START(&b, handle_request, .id = 2);
    puts(CC_AWAIT(&a).text);
    puts(CC_AWAIT(&b).text);
}
