/* lobby.h - where those who wait for a mutex are, found by the mutex's address and not through its memory.
 *
 * A mutex is one word. When it is given back with a plain store, the giver must look for waiters after the
 * store, and by then the mutex may belong to somebody else, or be gone. So waiters and the sign that there
 * are some live here: in one of a fixed number of rooms, by a hash of the address.
 *
 * A room is cold while nobody in it waits: then an unlock is a store between two looks at `cold`. It is hot
 * otherwise: then an unlock is a compare-and-swap that notices the mark of a waiter. Whoever waits first
 * makes the room hot, with a heavy barrier, before it marks the word: of an unlock that saw the room cold,
 * either the store is visible to the waiter, or its second look finds the room hot. README.md has the whole
 * of it.
 *
 * LOBBY-1  Seats and queues are guarded by the room's lock. A queue is one address; its first seat stands for
 *          it in the room, so a long queue does not slow its neighbours down.
 * LOBBY-2  A room with seats, or with somebody who is making it hot, is not made cold.
 * LOBBY-3  `cold` is set only where membarrier works; elsewhere every room stays hot.
 */
#ifndef CC_LOCK_LOBBY_H
#define CC_LOCK_LOBBY_H

#include "wait/wait.h"

enum {
    LOBBY_ROOMS_LOG2 = 8, /* 32 KiB; two mutexes that are waited for at a time rarely meet. Guess */
    /* Unlocks without a waiter after which a room cools: by then they have cost as much (6 ns each) as the
     * barrier of the next waiter may (20 us). */
    LOBBY_QUIET = 4096,
};

struct lobby {
    _Alignas(CC_LINE) _Atomic uint32_t cold;
    _Atomic uint32_t quiet; /* unlocks since somebody last waited; relaxed, lost counts do not matter */
    struct lock lock;
    struct link *queues; /* ring of first seats, by lobby_seat.link */
    uint32_t heating;    /* who has set cold to 0 and not finished the barrier */
    /* How often spinning has been in vain of late; on a line that the mutex's holder does not read. Relaxed. */
    _Alignas(CC_LINE) _Atomic uint32_t vain;
};

struct lobby_seat {
    struct link link;  /* the room's ring; of first seats */
    struct link queue; /* the ring of those with the same key */
    const void *key;
    bool linked;
    bool head;     /* the first of its queue */
    bool starving; /* is to be handed the lock */
    bool granted;  /* has been */
    struct waiter waiter;
};

extern struct lobby cc__lobby[1 << LOBBY_ROOMS_LOG2];

/* In a forked child: nobody waits, and nobody holds a lock of these. */
void cc__lobby_forget(void);

CC_INLINE struct lobby *cc__lobby_of(const void *key) {
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    return &cc__lobby[hash >> (64 - LOBBY_ROOMS_LOG2)];
}

/* Takes the room's lock with the room hot, and the barrier behind it. */
void cc__lobby_enter(struct lobby *lobby);

/* A quiet unlock in a hot room; now and then the room cools. */
void cc__lobby_cool_slow(struct lobby *lobby);
CC_INLINE void cc__lobby_cool(struct lobby *lobby) {
    uint32_t quiet = cc__get(&lobby->quiet) + 1;
    cc__set(&lobby->quiet, quiet);
    if (unlikely(quiet >= LOBBY_QUIET)) cc__lobby_cool_slow(lobby);
}

/* No room stays cold: a simulation begins, whose points are on the way of hot ones. */
void cc__lobby_heat_all(void);

/* Under the room's lock. */
void cc__lobby_push_locked(struct lobby *lobby, struct lobby_seat *seat, bool front);
void cc__lobby_remove_locked(struct lobby *lobby, struct lobby_seat *seat);
struct lobby_seat *cc__lobby_first_locked(struct lobby *lobby, const void *key);
/* The first with that key who can be claimed, claimed and off its queue; NULL: nobody is left. */
struct lobby_seat *cc__lobby_claim_locked(struct lobby *lobby, const void *key, struct wakes *wakes);

#endif
