/* cc_chan_handle.h - typed channel handles: sending end, receiving end, element type.
 *
 * CCChanTx can only send, CCChanRx only receive. CC_CHAN_OF(IntChan, int) makes a channel type whose functions
 * take ints. A handle of another type, the wrong end, or a value of another struct type does not compile, nor does an
 * arm of a select (CC_SEND_OF, CC_RECV_OF) with a pointer to another type. Otherwise they are ordinary functions:
 * arithmetic values are converted, and for pointer mismatches that C++, gcc 14 and clang 16 reject, older C compilers
 * only warn. Handles are values; copying one does not copy the channel. The field `ch` is the untyped channel.
 */
#ifndef CCC_CC_CHAN_HANDLE_H
#define CCC_CC_CHAN_HANDLE_H

#include <ccc/cc_channel.h>
#include <ccc/cc_select.h>

CC_BEGIN_DECLS

typedef struct CCChanTx {
    CCChan *ch;
} CCChanTx;

typedef struct CCChanRx {
    CCChan *ch;
} CCChanRx;

static inline CCChanTx cc_chan_tx(CCChan *ch) {
    CCChanTx tx;
    tx.ch = ch;
    return tx;
}
static inline CCChanRx cc_chan_rx(CCChan *ch) {
    CCChanRx rx;
    rx.ch = ch;
    return rx;
}

static inline int cc_tx_send(CCChanTx tx, const void *value, size_t size) {
    return cc_chan_send(tx.ch, value, size);
}
static inline int cc_tx_send_try(CCChanTx tx, const void *value, size_t size) {
    return cc_chan_send_try(tx.ch, value, size);
}
static inline int cc_tx_send_until(CCChanTx tx, const void *value, size_t size, CCDeadline deadline) {
    return cc_chan_send_until(tx.ch, value, size, deadline);
}
static inline int cc_tx_close(CCChanTx tx) {
    return cc_chan_close(tx.ch);
}
static inline int cc_rx_recv(CCChanRx rx, void *value, size_t size) {
    return cc_chan_recv(rx.ch, value, size);
}
static inline int cc_rx_recv_try(CCChanRx rx, void *value, size_t size) {
    return cc_chan_recv_try(rx.ch, value, size);
}
static inline int cc_rx_recv_until(CCChanRx rx, void *value, size_t size, CCDeadline deadline) {
    return cc_chan_recv_until(rx.ch, value, size, deadline);
}

/* The channel and, for type checks only, its element type and direction. */
#define CC__CARRIES(T)     \
    union {                \
        CCChan *ch;        \
        T *cc_receives;    \
        T *cc_sent;        \
        T const *cc_sends; \
    }
#define CC__SENDING_END(T) \
    union {                \
        CCChan *ch;        \
        T *cc_sent;        \
        T const *cc_sends; \
    }
#define CC__RECEIVING_END(T) \
    union {                  \
        CCChan *ch;          \
        T *cc_receives;      \
    }

/* Defines a channel type for T, with the two ends NameTx and NameRx. All functions return what their cc_chan_
 * counterparts return. In C++ a T that is not trivially copyable, such as std::string, does not compile: send a pointer
 * to it. */
#define CC_CHAN_OF(Name, T)                                                                       \
    CC__ASSERT_PLAIN(T, "what a channel carries is copied like memory");                          \
    typedef struct Name {                                                                         \
        CC__CARRIES(T);                                                                           \
    } Name;                                                                                       \
    typedef struct Name##Tx {                                                                     \
        CC__SENDING_END(T);                                                                       \
    } Name##Tx;                                                                                   \
    typedef struct Name##Rx {                                                                     \
        CC__RECEIVING_END(T);                                                                     \
    } Name##Rx;                                                                                   \
    CC_UNUSED static inline Name Name##_create(size_t capacity) {                                 \
        Name c;                                                                                   \
        c.ch = cc_chan_create(sizeof(T), capacity);                                               \
        return c;                                                                                 \
    }                                                                                             \
    /* With all settings but the size, which is T's. */                                           \
    CC_UNUSED static inline Name Name##_create_ex(CCChanConfig config) {                          \
        Name c;                                                                                   \
        config.elem_size = sizeof(T);                                                             \
        c.ch = cc_chan_create_ex(&config);                                                        \
        return c;                                                                                 \
    }                                                                                             \
    /* A channel that carries Ts already. */                                                      \
    CC_UNUSED static inline Name Name##_from(CCChan *ch) {                                        \
        Name c;                                                                                   \
        c.ch = ch;                                                                                \
        return c;                                                                                 \
    }                                                                                             \
    CC_UNUSED static inline Name##Tx Name##_tx(Name c) {                                          \
        Name##Tx tx;                                                                              \
        tx.ch = c.ch;                                                                             \
        return tx;                                                                                \
    }                                                                                             \
    CC_UNUSED static inline Name##Rx Name##_rx(Name c) {                                          \
        Name##Rx rx;                                                                              \
        rx.ch = c.ch;                                                                             \
        return rx;                                                                                \
    }                                                                                             \
    CC_UNUSED static inline int Name##_send(Name c, T value) {                                    \
        return cc_chan_send(c.ch, &value, sizeof value);                                          \
    }                                                                                             \
    CC_UNUSED static inline int Name##_send_try(Name c, T value) {                                \
        return cc_chan_send_try(c.ch, &value, sizeof value);                                      \
    }                                                                                             \
    CC_UNUSED static inline int Name##_send_until(Name c, T value, CCDeadline deadline) {         \
        return cc_chan_send_until(c.ch, &value, sizeof value, deadline);                          \
    }                                                                                             \
    CC_UNUSED static inline int Name##_recv(Name c, T *value) {                                   \
        return cc_chan_recv(c.ch, value, sizeof *value);                                          \
    }                                                                                             \
    CC_UNUSED static inline int Name##_recv_try(Name c, T *value) {                               \
        return cc_chan_recv_try(c.ch, value, sizeof *value);                                      \
    }                                                                                             \
    CC_UNUSED static inline int Name##_recv_until(Name c, T *value, CCDeadline deadline) {        \
        return cc_chan_recv_until(c.ch, value, sizeof *value, deadline);                          \
    }                                                                                             \
    CC_UNUSED static inline int Name##Tx_send(Name##Tx tx, T value) {                             \
        return cc_chan_send(tx.ch, &value, sizeof value);                                         \
    }                                                                                             \
    CC_UNUSED static inline int Name##Tx_send_try(Name##Tx tx, T value) {                         \
        return cc_chan_send_try(tx.ch, &value, sizeof value);                                     \
    }                                                                                             \
    CC_UNUSED static inline int Name##Tx_send_until(Name##Tx tx, T value, CCDeadline deadline) {  \
        return cc_chan_send_until(tx.ch, &value, sizeof value, deadline);                         \
    }                                                                                             \
    CC_UNUSED static inline int Name##Tx_close(Name##Tx tx) {                                     \
        return cc_chan_close(tx.ch);                                                              \
    }                                                                                             \
    CC_UNUSED static inline int Name##Rx_recv(Name##Rx rx, T *value) {                            \
        return cc_chan_recv(rx.ch, value, sizeof *value);                                         \
    }                                                                                             \
    CC_UNUSED static inline int Name##Rx_recv_try(Name##Rx rx, T *value) {                        \
        return cc_chan_recv_try(rx.ch, value, sizeof *value);                                     \
    }                                                                                             \
    CC_UNUSED static inline int Name##Rx_recv_until(Name##Rx rx, T *value, CCDeadline deadline) { \
        return cc_chan_recv_until(rx.ch, value, sizeof *value, deadline);                         \
    }                                                                                             \
    CC_UNUSED static inline int Name##_close(Name c) {                                            \
        return cc_chan_close(c.ch);                                                               \
    }                                                                                             \
    CC_UNUSED static inline void Name##_free(Name c) {                                            \
        cc_chan_free(c.ch);                                                                       \
    }                                                                                             \
    typedef int Name##_is_a_channel_type /* takes the semicolon */

/* Arms of a select (cc_select.h) with a typed handle, of the channel or of an end; pointer: a T *, or for a send also a
 * const T *. Anything else does not compile. */
#ifndef __cplusplus
/* Each version of clang-format breaks _Generic in its own way. */
/* clang-format off */
#define CC__SENDS(handle, pointer)                              \
    _Generic((pointer),                                         \
             __typeof__((handle).cc_sent): (pointer),           \
             __typeof__((handle).cc_sends): (pointer))
#define CC__RECEIVES(handle, pointer) _Generic((pointer), __typeof__((handle).cc_receives): (pointer))
/* clang-format on */
#else
#define CC__SENDS(handle, pointer) cc_pointer_<decltype((handle).cc_sends)>(pointer)
#define CC__RECEIVES(handle, pointer) cc_pointer_<decltype((handle).cc_receives)>(pointer)
#endif
#define CC_SEND_OF(handle, pointer, where) CC_SEND((handle).ch, CC__SENDS(handle, pointer), where)
#define CC_RECV_OF(handle, pointer, where) CC_RECV((handle).ch, CC__RECEIVES(handle, pointer), where)

/* CC_FOR_RECV with a typed handle, of the channel or of its receiving end: var has the channel's element type. */
#define CC_FOR_RECV_OF(var, handle) CC_FOR_RECV(__typeof__(*(handle).cc_receives), var, (handle).ch)

CC_END_DECLS

#ifdef __cplusplus
template <typename Pointer> inline Pointer cc_pointer_(Pointer value) {
    return value;
}
#endif

#endif
