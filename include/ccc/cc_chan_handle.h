/* cc_chan_handle.h - handles that say more than a pointer: which end of a channel, and what it carries.
 *
 * CCChanTx can only send, CCChanRx only receive. CC_CHAN_OF(IntChan, int) makes a channel type whose functions
 * take ints: a wrong type does not compile. Handles are values; copying one copies no channel.
 */
#ifndef CCC_CC_CHAN_HANDLE_H
#define CCC_CC_CHAN_HANDLE_H

#include <ccc/cc_channel.h>

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

/* A channel of T, with the two ends NameTx and NameRx. All functions answer as their cc_chan_ namesakes do. */
#define CC_CHAN_OF(Name, T)                                                                \
    typedef struct Name {                                                                  \
        CCChan *ch;                                                                        \
    } Name;                                                                                \
    typedef struct Name##Tx {                                                              \
        CCChan *ch;                                                                        \
    } Name##Tx;                                                                            \
    typedef struct Name##Rx {                                                              \
        CCChan *ch;                                                                        \
    } Name##Rx;                                                                            \
    CC_UNUSED static inline Name Name##_create(size_t capacity) {                          \
        Name c;                                                                            \
        c.ch = cc_chan_create(sizeof(T), capacity);                                        \
        return c;                                                                          \
    }                                                                                      \
    CC_UNUSED static inline Name##Tx Name##_tx(Name c) {                                   \
        Name##Tx tx;                                                                       \
        tx.ch = c.ch;                                                                      \
        return tx;                                                                         \
    }                                                                                      \
    CC_UNUSED static inline Name##Rx Name##_rx(Name c) {                                   \
        Name##Rx rx;                                                                       \
        rx.ch = c.ch;                                                                      \
        return rx;                                                                         \
    }                                                                                      \
    CC_UNUSED static inline int Name##_send(Name c, T value) {                             \
        return cc_chan_send(c.ch, &value, sizeof value);                                   \
    }                                                                                      \
    CC_UNUSED static inline int Name##_send_try(Name c, T value) {                         \
        return cc_chan_send_try(c.ch, &value, sizeof value);                               \
    }                                                                                      \
    CC_UNUSED static inline int Name##_send_until(Name c, T value, CCDeadline deadline) {  \
        return cc_chan_send_until(c.ch, &value, sizeof value, deadline);                   \
    }                                                                                      \
    CC_UNUSED static inline int Name##_recv(Name c, T *value) {                            \
        return cc_chan_recv(c.ch, value, sizeof *value);                                   \
    }                                                                                      \
    CC_UNUSED static inline int Name##_recv_try(Name c, T *value) {                        \
        return cc_chan_recv_try(c.ch, value, sizeof *value);                               \
    }                                                                                      \
    CC_UNUSED static inline int Name##_recv_until(Name c, T *value, CCDeadline deadline) { \
        return cc_chan_recv_until(c.ch, value, sizeof *value, deadline);                   \
    }                                                                                      \
    CC_UNUSED static inline int Name##Tx_send(Name##Tx tx, T value) {                      \
        return cc_chan_send(tx.ch, &value, sizeof value);                                  \
    }                                                                                      \
    CC_UNUSED static inline int Name##Tx_close(Name##Tx tx) {                              \
        return cc_chan_close(tx.ch);                                                       \
    }                                                                                      \
    CC_UNUSED static inline int Name##Rx_recv(Name##Rx rx, T *value) {                     \
        return cc_chan_recv(rx.ch, value, sizeof *value);                                  \
    }                                                                                      \
    CC_UNUSED static inline int Name##_close(Name c) {                                     \
        return cc_chan_close(c.ch);                                                        \
    }                                                                                      \
    CC_UNUSED static inline void Name##_free(Name c) {                                     \
        cc_chan_free(c.ch);                                                                \
    }                                                                                      \
    typedef int Name##_is_a_channel_type /* takes the semicolon */

CC_END_DECLS

#endif
