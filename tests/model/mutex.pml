/* mutex.pml - the mutex of lock/mutex.c and one bucket of lock/parking_lot.c, with store buffers.
 *
 * Three users lock and unlock one mutex; one of them has a deadline. A stranger waits for another mutex in the same bucket. While
 * fast_unlock is on, an unlock is a plain store, which passes through the user's store buffer while its second load of fast_unlock
 * overtakes it. A locked instruction drains its thread's buffer, a membarrier all buffers. A user that has waited may be starving, and
 * any unlock that finds no waiter may enable fast_unlock.
 *
 * Shows: mutual exclusion; none waits for ever, even if others time out; the bucket is consistent in the end.
 *
 * Mutants, each must fail:
 *   NO_HEAVY         a waiter that disables fast_unlock issues no membarrier
 *   NO_SECOND_LOOK   a fast unlock does not load fast_unlock again
 *   TRUST_OTHERS     a waiter that arrives while another disables fast_unlock relies on the other's membarrier
 *   ENABLE_WAITED    fast_unlock is enabled while the bucket has a waiter
 *   ENABLE_DISABLING fast_unlock is enabled while a waiter disables it
 *   WOKEN_NO_MARK    a designated waiter takes the lock without the mark, although others wait
 *   REQUEUE_NO_MARK  a designated waiter queues again without marking the word
 *   GIVE_FIRST       an unlock gives to the first waiter, claimed or not
 *   WAKE_EARLY       a claimed waiter runs before it knows whether it was handed the lock
 *   GRANT_AND_FREE   an unlock that hands the lock over frees it, too
 */
#define USERS 3

#define LOCKED 1
#define BOTH 3 /* LOCKED and WAITERS */

#define AWAKE 0
#define PARKED 1
#define CLAIMED 2
#define WOKEN 3
#define LATE 4

byte word;
bit fast_unlock = 1, bucket;
byte disabling;
chan nodes = [USERS] of { byte };
byte state[USERS];
bit pending[USERS + 1]; /* a store word = 0, not yet visible */
bit starving[USERS], granted[USERS];
byte inside, gone;

inline drain(u) {
    if
    :: pending[u] -> pending[u] = 0; word = 0
    :: else -> skip
    fi
}

inline heavy() {
    d_step {
        drain(0);
        drain(1);
        drain(2)
    }
}

active proctype memory() {
end:
    do
    :: atomic { pending[0] -> drain(0) }
    :: atomic { pending[1] -> drain(1) }
    :: atomic { pending[2] -> drain(2) }
    od
}

inline enter_room(u) {
    atomic { bucket == 0 -> bucket = 1; drain(u) }
}

inline enter_disabled(u) {
    enter_room(u);
    if
#ifdef TRUST_OTHERS
    :: fast_unlock ->
#else
    :: fast_unlock || disabling > 0 ->
#endif
        fast_unlock = 0;
        disabling++;
        bucket = 0;
#ifndef NO_HEAVY
        heavy();
#endif
        enter_room(u);
        disabling--
    :: else -> skip
    fi
}

/* The first that can be claimed; got is false when no waiter is left. It runs after the flush. */
inline claim() {
    got = false;
    do
    :: nempty(nodes) && !got ->
        nodes?q;
        atomic {
            if
#ifdef WAKE_EARLY
            :: state[q] == PARKED -> state[q] = WOKEN; got = true
#else
            :: state[q] == PARKED -> state[q] = CLAIMED; got = true
#endif
#ifdef GIVE_FIRST
            :: else -> got = true
#else
            :: else -> skip
#endif
            fi
        }
    :: else -> break
    od
}

inline flush() {
    if
    :: got && state[q] == CLAIMED -> state[q] = WOKEN
    :: else -> skip
    fi
}

proctype user(byte u; byte times; bool has_deadline) {
    byte n, q;
    bool got, designated, saw;
    do
    :: n < times ->
        n++;
        designated = false;
        starving[u] = 0;
        atomic {
            drain(u);
            if
            :: word == 0 -> word = LOCKED; goto holding
            :: else -> skip
            fi
        }
wait:
        enter_disabled(u);
        atomic {
            if
            :: word == 0 ->
                if
                :: nempty(nodes) -> word = BOTH
                :: else -> word = LOCKED
                fi;
                bucket = 0;
                goto holding
#ifdef REQUEUE_NO_MARK
            :: word != 0 && designated -> skip
#endif
            :: word != 0 -> word = BOTH
            fi
        }
        granted[u] = 0;
        state[u] = PARKED;
        nodes!u;
        bucket = 0;
        /* parked */
        if
        :: state[u] == WOKEN -> skip
        :: atomic { has_deadline && state[u] == PARKED -> state[u] = LATE }
        fi;
        if
        :: state[u] == LATE ->
            enter_room(u);
            if
            :: nodes??[eval(u)] -> nodes??eval(u)
            :: else -> skip
            fi;
            state[u] = AWAKE;
            bucket = 0;
            goto next
        :: else -> state[u] = AWAKE
        fi;
        if
        :: granted[u] -> goto holding
        :: else -> skip
        fi;
        atomic {
            if
#ifdef WOKEN_NO_MARK
            :: word == 0 -> word = LOCKED; goto holding
#else
            :: word == 0 -> word = BOTH; goto holding
#endif
            :: else -> skip
            fi
        }
        designated = true;
        if
        :: starving[u] = 1
        :: skip
        fi;
        goto wait;

holding:
        inside++;
        assert(inside == 1);
        inside--;

        if
        :: fast_unlock -> saw = (word == LOCKED)
        :: else -> saw = false
        fi;
        if
        :: saw ->
            pending[u] = 1;
#ifndef NO_SECOND_LOOK
            if
            :: !fast_unlock ->
                enter_room(u);
                claim();
                bucket = 0;
                flush()
            :: else -> skip
            fi
#endif
        :: else ->
            atomic {
                if
                :: word == LOCKED -> word = 0; saw = true
                :: else -> assert(word == BOTH); saw = false
                fi
            }
            if
            :: saw ->
                if
                :: skip
                :: atomic { bucket == 0 -> bucket = 1 }
                    if
#ifdef ENABLE_WAITED
                    :: disabling == 0 -> fast_unlock = 1
#elif defined(ENABLE_DISABLING)
                    :: empty(nodes) -> fast_unlock = 1
#else
                    :: empty(nodes) && disabling == 0 -> fast_unlock = 1
#endif
                    :: else -> skip
                    fi;
                    bucket = 0
                fi
            :: else ->
                enter_room(u);
                claim();
                if
                :: got && starving[q] ->
                    granted[q] = 1;
                    if
                    :: empty(nodes) -> word = LOCKED
                    :: else -> skip
                    fi
#ifdef GRANT_AND_FREE
                    ;
                    word = 0
#endif
                :: else -> word = 0
                fi;
                bucket = 0;
                flush()
            fi
        fi;
next:
        skip
    :: else -> break
    od;
    gone++
}

/* Waits for another mutex in the same bucket. */
proctype stranger() {
    enter_disabled(USERS);
    bucket = 0
}

init {
    atomic {
        run user(1, 1, false);
        run user(2, 1, true);
        run user(0, 2, false);
        run stranger()
    }
    timeout -> assert(gone == USERS && word == 0 && empty(nodes) && disabling == 0 && bucket == 0)
}
