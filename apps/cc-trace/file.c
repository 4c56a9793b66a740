/* file.c - reads an execution trace of Go 1.22, as far as libccc writes it (src/record/go.c). What is read is checked:
 * a damaged file is an error, not a crash.
 */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *name; /* of the file, for messages */

void die(const char *format, ...) {
    va_list args;
    fprintf(stderr, "cc-trace: %s: ", name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void *grow(void *at, size_t *room, size_t count, size_t size) {
    if (count < *room) return at;
    *room = *room != 0 ? *room * 2 : 64;
    at = realloc(at, *room * size);
    if (at == NULL) die("there is no memory");
    return at;
}

/* How many numbers follow the time of an event; -1: an unknown event. */
static int arguments_of(unsigned type) {
    static const signed char counts[EV_COUNT] = {
        [EV_PROC_STATUS] = 3,     [EV_GO_CREATE] = 4,       [EV_GO_START] = 3,      [EV_GO_DESTROY] = 1,
        [EV_GO_STOP] = 3,         [EV_GO_BLOCK] = 3,        [EV_GO_UNBLOCK] = 4,    [EV_GO_STATUS] = 4,
        [EV_USER_LOG] = 5,        [EV_USER_TASK_BEGIN] = 5, [EV_USER_TASK_END] = 3, [EV_USER_REGION_BEGIN] = 4,
        [EV_USER_REGION_END] = 4, [EV_GO_LABEL] = 2,
    };
    return type < EV_COUNT ? counts[type] - 1 : -1;
}

struct frame {
    uint64_t function, file, line; /* strings */
};
struct stack {
    size_t first, count; /* in frames */
};

struct event_list events;
size_t numbers_max;
static LIST(char *) strings;
static LIST(struct frame) frames;
static LIST(struct stack) stacks;

struct reader {
    const unsigned char *at, *end;
};

static uint64_t number(struct reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) die("it ends in the middle of a number");
        unsigned byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    die("a number is too long");
}

static unsigned byte(struct reader *r) {
    if (r->at == r->end) die("it ends in the middle of an event");
    return *r->at++;
}

static void read_string(struct reader *r) {
    uint64_t id = number(r), size = number(r);
    if (size > (uint64_t)(r->end - r->at) || id >= numbers_max) die("a string is damaged");
    while (strings.count <= id) *ADD(strings) = NULL;
    free(strings.at[id]);
    if ((strings.at[id] = malloc(size + 1)) == NULL) die("there is no memory");
    memcpy(strings.at[id], r->at, size);
    strings.at[id][size] = '\0';
    r->at += size;
}

static void read_stack(struct reader *r) {
    uint64_t id = number(r), count = number(r);
    if (id >= numbers_max || count > (uint64_t)(r->end - r->at)) die("a stack is damaged");
    while (stacks.count <= id) (void)ADD(stacks);
    stacks.at[id] = (struct stack){frames.count, count};
    for (uint64_t i = 0; i < count; i++) {
        (void)number(r);
        struct frame *f = ADD(frames);
        f->function = number(r);
        f->file = number(r);
        f->line = number(r);
    }
}

static void read_events(struct reader *r, uint64_t thread, uint64_t time) {
    while (r->at < r->end) {
        unsigned type = byte(r);
        int n = arguments_of(type);
        if (n < 0) die("an event of kind %u is not one of libccc's", type);
        time += number(r);
        struct event *e = ADD(events);
        *e = (struct event){.time = time, .order = events.count, .thread = thread, .type = type};
        for (int i = 0; i < n; i++) e->arg[i] = number(r);
    }
}

static void read_batch(struct reader *file) {
    if (byte(file) != EV_EVENT_BATCH) die("it has something else than a batch of events");
    (void)number(file);
    uint64_t thread = number(file), time = number(file), size = number(file);
    if (size > (uint64_t)(file->end - file->at)) die("it ends in the middle of a batch");
    struct reader r = {file->at, file->at + size};
    file->at += size;
    if (size == 0) return;
    switch (*r.at) {
    case EV_FREQUENCY:
        r.at++;
        if (number(&r) != 1000000000) die("its clock does not count nanoseconds");
        break;
    case EV_STACKS:
        for (r.at++; r.at < r.end; read_stack(&r))
            if (byte(&r) != EV_STACK) die("a stack is damaged");
        break;
    case EV_STRINGS:
        for (r.at++; r.at < r.end; read_string(&r))
            if (byte(&r) != EV_STRING) die("a string is damaged");
        break;
    default:
        read_events(&r, thread, time);
    }
}

void read_trace(const char *path) {
    name = path;
    static const char header[16] = "go 1.22 trace";
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) die("%s", strerror(errno));
    LIST(unsigned char) bytes = {0};
    size_t n;
    do {
        while (bytes.room - bytes.count < 1 << 16) {
            size_t room = bytes.room;
            bytes.at = grow(bytes.at, &room, bytes.room, 1);
            bytes.room = room;
        }
        n = fread(bytes.at + bytes.count, 1, 1 << 16, file);
        bytes.count += n;
    } while (n > 0);
    if (ferror(file)) die("%s", strerror(errno));
    if (file != stdin) fclose(file);
    if (bytes.count < sizeof header || memcmp(bytes.at, header, sizeof header) != 0)
        die("it is no trace of libccc in Go's form (CC_RECORD=file, with another name than .txt or .pftrace)");
    numbers_max = bytes.count;
    struct reader r = {bytes.at + sizeof header, bytes.at + bytes.count};
    while (r.at < r.end) read_batch(&r);
    free(bytes.at);
}

const char *string(uint64_t id) {
    return id < strings.count && strings.at[id] != NULL ? strings.at[id] : "";
}

const char *place(uint64_t stack, char *text, size_t size) {
    text[0] = '\0';
    if (stack >= stacks.count || stacks.at[stack].count == 0) return text;
    const struct frame *f = &frames.at[stacks.at[stack].first];
    if (f->line != 0)
        snprintf(text, size, "%s (%s:%" PRIu64 ")", string(f->function), string(f->file), f->line);
    else
        snprintf(text, size, "%s", string(f->function));
    return text;
}
