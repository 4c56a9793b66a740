/* oneshot.c - one value, once: a claim, the value, an event.
 *
 * ONESHOT-1  Only the caller that claims the oneshot writes the place and `error`, before it sets the event; the set is
 *            its last access (EVENT-1). A caller that has seen the event set may read both.
 */
#include "sync/atomic.h"

#include <ccc/cc_broadcast.h>
#include <errno.h>
#include <string.h>

/* C++ has no _Atomic, so the public struct has a plain field. */
static bool claim(CCOneshot *o) {
    uint32_t nobody = 0;
    return cc__cas((_Atomic uint32_t *)&o->claimed, &nobody, 1);
}

int cc_oneshot_send(CCOneshot *o, void *place, const void *value, size_t size) { /* ONESHOT-1 */
    if (o == NULL || ((place == NULL || value == NULL) && size > 0)) return EINVAL;
    if (!claim(o)) return EPIPE;
    if (size > 0) memcpy(place, value, size);
    return cc_event_set(&o->done);
}

int cc_oneshot_close(CCOneshot *o, int error) {
    if (o == NULL || error < 0) return EINVAL;
    if (!claim(o)) return EPIPE;
    o->error = error > 0 ? error : EPIPE;
    return cc_event_set(&o->done);
}

static int take(const CCOneshot *o, const void *place, void *value, size_t size, int rc) {
    if (rc != 0 || o->error != 0) return rc != 0 ? rc : o->error;
    if (size > 0) memcpy(value, place, size);
    return 0;
}

static bool good(const CCOneshot *o, const void *place, const void *value, size_t size) {
    return o != NULL && ((place != NULL && value != NULL) || size == 0);
}

int cc_oneshot_recv_until(CCOneshot *o, const void *place, void *value, size_t size, CCDeadline deadline) {
    return good(o, place, value, size) ? take(o, place, value, size, cc_event_wait_until(&o->done, deadline)) : EINVAL;
}

int cc_oneshot_recv(CCOneshot *o, const void *place, void *value, size_t size) {
    return cc_oneshot_recv_until(o, place, value, size, CC_FOREVER);
}

int cc_oneshot_recv_try(CCOneshot *o, const void *place, void *value, size_t size) {
    return good(o, place, value, size) ? take(o, place, value, size, cc_event_wait_try(&o->done)) : EINVAL;
}
