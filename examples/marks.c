/* marks.c - a program adds regions and notes to its recording (CC_RECORD=FILE); without one they do nothing. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <string.h>

static size_t parse(int id, const char *text) {
    size_t size = strlen(text);
    CC_REGION("parse"); /* to the end of the block */
    cc_note("request %d: %zu bytes", id, size);
    return size;
}

CC_ASYNC(size_t, serve, {
    int id;
    const char *text;
}) {
    return parse(self->id, self->text);
}

int main(void) {
    CC_FUTURE(serve, request);
    CC_START(&request, serve, .id = 1, .text = "GET /");
    printf("%zu bytes\n", CC_AWAIT(&request));
}
