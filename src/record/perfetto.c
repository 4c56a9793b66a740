/* perfetto.c - a history as track events of Perfetto, in hand-written protobuf.
 *
 * Each worker has a track, on which the fibers that it runs are slices; each fiber has a track, on which its waits and
 * regions are slices and its notes are instants. A flow leads from a wake or spawn to the next run of the fiber. The
 * field numbers are those of perfetto's trace_packet.proto, track_descriptor.proto and track_event.proto.
 */
#include "record/record.h"

#include "fiber/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_TRACK_EVENT = 11, PACKET_FLAGS = 13, PACKET_TRACK = 60 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORIES = 22, EVENT_NAME = 23, EVENT_FLOW = 47, EVENT_FLOW_END = 48 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { SEQUENCE = 1, FLAG_INCREMENTAL_CLEARED = 1, PID = 1 };
enum { WIRE_FIXED64 = 1 };

/* uuids of tracks: one for the process, then workers, then fibers. */
static uint64_t lane_track(uint32_t lane) {
    return 2 + lane;
}
static uint64_t fiber_track(uint32_t fiber) {
    return 2 + RECORDER_RINGS + fiber;
}

struct writer {
    struct history *h;
    struct vec *out, packet, inner, innermost;
};

static void put_packet(struct writer *w) {
    cc__bytes_field_bytes(w->out, TRACE_PACKET, w->packet.at, w->packet.count);
    w->packet.count = 0;
}

static void put_name(struct vec *bytes, unsigned number, const char *text) {
    cc__bytes_field_bytes(bytes, number, text, strlen(text));
}

/* A track of a process, of a thread (tid not 0), or else a child track of the process. */
static void put_track(struct writer *w, uint64_t uuid, const char *name, bool process, uint64_t tid) {
    w->inner.count = w->innermost.count = 0;
    cc__bytes_field(&w->inner, TRACK_UUID, uuid);
    if (process) {
        cc__bytes_field(&w->innermost, PROCESS_PID, PID);
        put_name(&w->innermost, PROCESS_NAME, name);
        cc__bytes_field_bytes(&w->inner, TRACK_PROCESS, w->innermost.at, w->innermost.count);
    } else if (tid != 0) {
        cc__bytes_field(&w->innermost, THREAD_PID, PID);
        cc__bytes_field(&w->innermost, THREAD_TID, tid);
        put_name(&w->innermost, THREAD_NAME, name);
        cc__bytes_field_bytes(&w->inner, TRACK_THREAD, w->innermost.at, w->innermost.count);
    } else {
        put_name(&w->inner, TRACK_NAME, name);
        cc__bytes_field(&w->inner, TRACK_PARENT, 1);
    }
    cc__bytes_field(&w->packet, PACKET_SEQUENCE, SEQUENCE);
    if (uuid == 1) cc__bytes_field(&w->packet, PACKET_FLAGS, FLAG_INCREMENTAL_CLEARED);
    cc__bytes_field_bytes(&w->packet, PACKET_TRACK, w->inner.at, w->inner.count);
    put_packet(w);
}

static void put_fixed(struct vec *bytes, unsigned number, uint64_t value) {
    unsigned char text[8];
    for (int i = 0; i < 8; i++) text[i] = (unsigned char)(value >> (8 * i));
    cc__bytes_varint(bytes, number << 3 | WIRE_FIXED64);
    cc__bytes_add(bytes, text, sizeof text);
}

/* name may be NULL, flow 0. */
static void put_event(struct writer *w, uint64_t time, unsigned type, uint64_t track, const char *name, uint64_t flow,
                      bool flow_ends) {
    w->inner.count = 0;
    cc__bytes_field(&w->inner, EVENT_TYPE, type);
    cc__bytes_field(&w->inner, EVENT_TRACK, track);
    if (name != NULL) put_name(&w->inner, EVENT_CATEGORIES, "ccc");
    if (name != NULL) put_name(&w->inner, EVENT_NAME, name);
    if (flow != 0) put_fixed(&w->inner, flow_ends ? EVENT_FLOW_END : EVENT_FLOW, flow);
    cc__bytes_field(&w->packet, PACKET_TIMESTAMP, time);
    cc__bytes_field(&w->packet, PACKET_SEQUENCE, SEQUENCE);
    cc__bytes_field_bytes(&w->packet, PACKET_TRACK_EVENT, w->inner.at, w->inner.count);
    put_packet(w);
}

static void put_tracks(struct writer *w) {
    struct history *h = w->h;
    char name[240];
    put_track(w, 1, "ccc", true, 0);
    for (uint32_t i = 0; i < h->lanes.count; i++) {
        const struct lane *l = cc__lane(h, i);
        if (l->island[0] != '\0')
            snprintf(name, sizeof name, "island '%s' (worker %d)", l->island, l->worker);
        else
            snprintf(name, sizeof name, l->worker >= 0 ? "worker %d" : "OS threads", l->worker);
        put_track(w, lane_track(i), name, false, 2 + (uint64_t)i);
    }
    for (uint32_t i = 1; i < h->strands.count; i++) {
        const struct strand *s = cc__strand(h, i);
        snprintf(name, sizeof name, "%.190s %u.%u", cc__names_text(&h->names, s->label), s->slot, s->generation);
        put_track(w, fiber_track(i), name, false, 0);
    }
}

/* The id of the flow from a wake or a spawn to the next START of the fiber. */
static uint64_t flow_of(uint32_t fiber, uint32_t sequence) {
    return (uint64_t)(fiber + 1) << 32 | sequence;
}

/* wait: by fiber, whether its wait slice is open. */
static void put_step(struct writer *w, const struct step *s, bool *wait) {
    struct history *h = w->h;
    uint64_t t = s->time, here = lane_track(s->lane), own = s->fiber != NOBODY ? fiber_track(s->fiber) : here;
    const char *text = cc__names_text(&h->names, s->text);
    if (s->fiber == 0) own = here;
    switch ((enum step_kind)s->kind) {
    case STEP_CREATE:
        put_event(w, t, INSTANT, here, "spawn", flow_of(s->fiber, 1), false);
        break;
    case STEP_START:
        if (wait[s->fiber]) put_event(w, t, SLICE_END, own, NULL, 0, false);
        wait[s->fiber] = false;
        put_event(w, t, SLICE_BEGIN, here, cc__names_text(&h->names, cc__strand(h, s->fiber)->label),
                  flow_of(s->fiber, s->sequence), true);
        break;
    case STEP_BLOCK:
        put_event(w, t, SLICE_END, here, NULL, 0, false);
        put_event(w, t, SLICE_BEGIN, own, cc__park_name(s->reason), 0, false);
        wait[s->fiber] = true;
        break;
    case STEP_STOP:
    case STEP_END:
        put_event(w, t, SLICE_END, here, NULL, 0, false);
        break;
    case STEP_UNBLOCK:
        put_event(w, t, INSTANT, here, "wake", flow_of(s->fiber, s->sequence + 1), false);
        break;
    case STEP_NOTE:
    case STEP_EVENT:
        put_event(w, t, INSTANT, own, text, 0, false);
        break;
    case STEP_LOST:
        put_event(w, t, INSTANT, here, text, 0, false);
        break;
    case STEP_RUNS:
        put_event(w, t, INSTANT, own, "still runs", 0, false);
        break;
    case STEP_REGION:
        put_event(w, t, SLICE_BEGIN, own, text, 0, false);
        break;
    case STEP_REGION_END:
        put_event(w, t, SLICE_END, own, NULL, 0, false);
        break;
    case STEP_SCOPE:
    case STEP_SCOPE_END:
        put_event(w, t, INSTANT, own, s->kind == STEP_SCOPE ? "nursery begins" : "nursery ends", 0, false);
        break;
    }
}

int cc__record_perfetto(struct history *h, struct vec *out) {
    struct writer w = {.h = h, .out = out};
    struct vec waits = {0};
    for (size_t i = 0; i < h->strands.count; i++) (void)cc__vec_add(&waits, sizeof(bool));
    if (!waits.failed) {
        put_tracks(&w);
        for (size_t i = 0; i < h->steps.count; i++) put_step(&w, cc__step(h, i), waits.at);
    }
    bool failed = waits.failed || w.packet.failed || w.inner.failed || w.innermost.failed || out->failed;
    cc__vec_free(&waits);
    cc__vec_free(&w.packet);
    cc__vec_free(&w.inner);
    cc__vec_free(&w.innermost);
    return failed ? ENOMEM : 0;
}
