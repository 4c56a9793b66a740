/* last.c - the newest records of a ring as text, for reports: no allocation, no locks, no symbol lookup. */
#include "record/record.h"

#include "fiber/state.h"

#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 64 };

static void describe_park(char *text, size_t size, unsigned reason, uint64_t object) {
    snprintf(text, size, "it parks, waits for: %s", cc__park_name(reason));
    if (object != 0 && reason != PARK_SLEEP)
        snprintf(text + strlen(text), size - strlen(text), " (0x%llx)", (unsigned long long)object);
}

/* Whether the text of the record is a name. */
static bool is_named(const struct record_copy *r) {
    unsigned kind = cc__record_kind(r->head);
    return kind == REC_SPAWN || kind == REC_SCOPE;
}

/* False: the record begins no line. Text records are appended to the line before. */
static bool describe(const struct record_copy *r, char *text, size_t size) {
    unsigned kind = cc__record_kind(r->head), arg = cc__record_arg(r->head), slot = (uint32_t)r->body;
    switch ((enum record_kind)kind) {
    case REC_RUN:
        snprintf(text, size, "%sfiber %u runs",
                 arg == REC_YIELD ? "it yields; "
                 : arg == REC_END ? "it ends; "
                                  : "",
                 slot);
        break;
    case REC_PARK:
        describe_park(text, size, arg, r->body & ((UINT64_C(1) << RECORD_OBJECT_BITS) - 1));
        break;
    case REC_SWITCH:
        describe_park(text, size, arg, cc__record_switch_object(r->body));
        snprintf(text + strlen(text), size - strlen(text), "; fiber %u runs", cc__record_switch_slot(r->body));
        break;
    case REC_YIELD:
        snprintf(text, size, "it yields");
        break;
    case REC_END:
        snprintf(text, size, "it ends");
        break;
    case REC_WAKE:
        snprintf(text, size, "wakes fiber %u, by %s", slot, cc__wake_name(arg));
        break;
    case REC_SPAWN:
        snprintf(text, size, "spawns fiber %u.%u", slot, (unsigned)(r->body >> 32));
        break;
    case REC_SCOPE:
    case REC_SCOPE_END:
        snprintf(text, size, "nursery 0x%llx %s", (unsigned long long)r->body, kind == REC_SCOPE ? "begins" : "ends");
        break;
    case REC_NOTE:
        snprintf(text, size, "notes: ");
        break;
    case REC_EVENT:
        text[0] = '\0';
        break;
    default:
        return false;
    }
    return true;
}

static void append(const struct record_copy *r, char *text, size_t size) {
    char part[16];
    size_t n = strlen(text), bytes = cc__record_arg(r->head);
    uint64_t first = r->head >> RECORD_TIME_SHIFT;
    if (bytes > RECORD_TEXT || n + bytes + 1 > size) return;
    memcpy(part, &first, 6);
    memcpy(part + 6, &r->body, 8);
    memcpy(text + n, part, bytes);
    text[n + bytes] = '\0';
}

bool cc__record_last(unsigned ring, unsigned max, void (*say)(void *arg, const char *line), void *arg) {
    struct record_copy copy[LINES_MAX];
    char text[320];
    uint64_t lost;
    struct record_ring *r = cc__recorder_on() ? cc__get_acquire(&cc__recorder.ring[ring]) : NULL;
    if (r == NULL) return false;
    uint64_t n = cc__record_copy(r, copy, max < LINES_MAX ? max : LINES_MAX, &lost);
    for (uint64_t i = 0; i < n; i++) {
        if (!describe(&copy[i], text, sizeof text)) continue;
        const char *before = is_named(&copy[i]) ? " " : "";
        for (; i + 1 < n; i++) {
            unsigned next = cc__record_kind(copy[i + 1].head);
            if (next == REC_TEXT) {
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s", before);
                append(&copy[i + 1], text, sizeof text);
                before = "";
            } else if (next != REC_SPAWN_AT && next != REC_SPAWN_IN) {
                break;
            }
        }
        say(arg, text);
    }
    return n > 0;
}
