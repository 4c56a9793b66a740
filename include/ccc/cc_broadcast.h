/* cc_broadcast.h - one value for many: broadcasts, latest values and oneshots, between fibers and OS threads.
 *
 * A broadcast gives every value to every subscriber. A CCLatest holds the latest value. A oneshot is sent once.
 */
#ifndef CCC_CC_BROADCAST_H
#define CCC_CC_BROADCAST_H

#include <ccc/cc_base.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_sync.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- broadcast ---- */

typedef struct CCBroadcast CCBroadcast;

/* What a send does about a subscriber that has no room. */
typedef enum CCSlowMode {
    CC_SLOW_BLOCK,     /* waits until it has received something; for several, one after the other */
    CC_SLOW_DROP_OLD,  /* the subscriber loses its oldest value (cc_chan_dropped of its channel counts them) */
    CC_SLOW_DISCONNECT /* the subscriber gets what it has room for, and then ENOBUFS: it is none any more */
} CCSlowMode;

/* A field that is 0 or NULL means the default. */
typedef struct CCBroadcastConfig {
    size_t elem_size;
    size_t capacity; /* of each subscriber; at least 1 */
    CCSlowMode slow;
    /* As in CCChanConfig, for each copy that a subscriber does not receive. It must not use the broadcast. */
    void (*on_drop)(void *value, void *context);
    void *context;
    const char *name;     /* of the subscribers' channels, for dumps */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCBroadcastConfig;

/* A new broadcast. NULL, and errno: EINVAL: NULL, a capacity of 0, an unknown mode, a reserved word that is not 0;
 * ENOMEM. Any context; does not switch. */
CC_API CCBroadcast *cc_broadcast_create(const CCBroadcastConfig *config);

/* Closes it and frees it. Subscribers receive what they have, then EPIPE, and free their channels (cc_chan_free). No
 * other call may be under way or follow. NULL is allowed. Any context; switches. */
CC_API void cc_broadcast_free(CCBroadcast *b);

/* A channel that gets every value that is sent from now on (not one whose send waits at the time): for cc_chan_recv,
 * CC_FOR_RECV, and arms of a select. NULL, and errno: EPIPE: closed; ENOMEM; EINVAL: NULL. Does not wait for a send.
 * Any context; switches, but is not cancelled. */
CC_API CCChan *cc_broadcast_subscribe(CCBroadcast *b);

/* Ends a subscription, and frees the channel, whether it was disconnected or not: a send that waits for it goes on, and
 * one that waits for another subscriber is not waited for. A fiber that receives from it at that time needs a reference
 * of its own (cc_chan_ref), and gets EPIPE. EINVAL: NULL. Any context; switches, but is not cancelled. */
CC_API int cc_broadcast_unsubscribe(CCBroadcast *b, CCChan *subscriber);

/* Sends a copy of *value to every subscriber; all of them see all values in the same order. 0, also when there is none.
 * EINVAL: NULL or a wrong size; EPIPE: closed; ENOMEM. ECANCELED, EPIPE by a close meanwhile, and _until ETIMEDOUT: the
 * caller has waited for a subscriber, or for another sender; those that had room at once, or were waited for, have got
 * the value, the others have not. _try: EAGAIN, nobody has got it: one is full (CC_SLOW_BLOCK), or another call is
 * under way. Any context; switches, _try does not. */
CC_API int cc_broadcast_send(CCBroadcast *b, const void *value, size_t size);
CC_API int cc_broadcast_send_try(CCBroadcast *b, const void *value, size_t size);
CC_API int cc_broadcast_send_until(CCBroadcast *b, const void *value, size_t size, CCDeadline deadline);

/* No more sends, and one that waits for a subscriber ends with EPIPE: subscribers receive what they have, then EPIPE.
 * EINVAL: NULL. Any context; switches, but is not cancelled. */
CC_API int cc_broadcast_close(CCBroadcast *b);

/* How many there are; 0 for NULL. Any context; switches, but is not cancelled. */
CC_API size_t cc_broadcast_subscribers(CCBroadcast *b);

/* ---- the latest value ---- */

typedef struct CCLatest CCLatest;

/* A new one, with a copy of *value as version 1. NULL, and errno: EINVAL: value is NULL and the size is not 0;
 * ENOMEM. Any context; does not switch. */
CC_API CCLatest *cc_latest_create(const void *value, size_t size);
/* Frees it; nobody uses it any more. NULL is allowed. Any context; does not switch. */
CC_API void cc_latest_free(CCLatest *latest);

/* Sets the value; the version is one more. EPIPE: closed. EINVAL: NULL, or a wrong size. Any context; switches, but is
 * not cancelled. */
CC_API int cc_latest_set(CCLatest *latest, const void *value, size_t size);

/* Waits until the version is another than *seen; copies value and version. So a caller that begins with 0 gets the
 * present value at once, and then each change, or the latest of several. EPIPE: closed, and there is nothing newer.
 * EINVAL as above. _try: EAGAIN; _until: ETIMEDOUT, ENOMEM; ECANCELED. Any context; switches, _try only for the short
 * time of another call. */
CC_API int cc_latest_wait(CCLatest *latest, uint64_t *seen, void *value, size_t size);
CC_API int cc_latest_wait_try(CCLatest *latest, uint64_t *seen, void *value, size_t size);
CC_API int cc_latest_wait_until(CCLatest *latest, uint64_t *seen, void *value, size_t size, CCDeadline deadline);

/* No more changes. EINVAL: NULL. Any context; switches, but is not cancelled. */
CC_API int cc_latest_close(CCLatest *latest);

/* ---- oneshot ---- */

/* One value, once, without an allocation: it lies where its user puts it, {0} is ready, and the fields are private. The
 * first send or close decides; the receivers, any number, get that. As for locks (cc_sync.h), who has received may free
 * it if no other call is still to come.
 *
 *   CC_ONESHOT_OF(Answer, struct reply);
 *   Answer a = {0};
 *   CC_GO(ask, .answer = &a);                  it calls Answer_send(self->answer, reply)
 *   rc = Answer_recv_until(&a, &reply, deadline);
 */
typedef struct CCOneshot {
    CCEvent done;
    uint32_t claimed;
    int error;
} CCOneshot;

/* For a place of `size` bytes beside it. send: 0; EPIPE: it was sent or closed before. close: receivers get `error`, 0:
 * EPIPE; EPIPE as above. recv: 0; the error of the close; EAGAIN, ETIMEDOUT, ECANCELED, ENOMEM. EINVAL: NULL. Any
 * context; the receives switch, _try does not. */
CC_API int cc_oneshot_send(CCOneshot *o, void *place, const void *value, size_t size);
CC_API int cc_oneshot_close(CCOneshot *o, int error);
CC_API int cc_oneshot_recv(CCOneshot *o, const void *place, void *value, size_t size);
CC_API int cc_oneshot_recv_try(CCOneshot *o, const void *place, void *value, size_t size);
CC_API int cc_oneshot_recv_until(CCOneshot *o, const void *place, void *value, size_t size, CCDeadline deadline);

/* A type for a oneshot of T. */
#define CC_ONESHOT_OF(Name, T)                                                                \
    CC__ASSERT_PLAIN(T, "what a oneshot carries is copied like memory");                      \
    typedef struct Name {                                                                     \
        CCOneshot oneshot;                                                                    \
        T value;                                                                              \
    } Name;                                                                                   \
    CC_UNUSED static inline int Name##_send(Name *o, T value) {                               \
        return cc_oneshot_send(&o->oneshot, &o->value, &value, sizeof value);                 \
    }                                                                                         \
    CC_UNUSED static inline int Name##_close(Name *o, int error) {                            \
        return cc_oneshot_close(&o->oneshot, error);                                          \
    }                                                                                         \
    CC_UNUSED static inline int Name##_recv(Name *o, T *value) {                              \
        return cc_oneshot_recv(&o->oneshot, &o->value, value, sizeof *value);                 \
    }                                                                                         \
    CC_UNUSED static inline int Name##_recv_try(Name *o, T *value) {                          \
        return cc_oneshot_recv_try(&o->oneshot, &o->value, value, sizeof *value);             \
    }                                                                                         \
    CC_UNUSED static inline int Name##_recv_until(Name *o, T *value, CCDeadline deadline) {   \
        return cc_oneshot_recv_until(&o->oneshot, &o->value, value, sizeof *value, deadline); \
    }                                                                                         \
    typedef int Name##_is_a_oneshot_type /* takes the semicolon */

CC_END_DECLS

#endif
