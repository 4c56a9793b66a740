/* mutex.pml - the mutex of lock/mutex.c and the buckets of lock/parking_lot.c, with store buffers.
 *
 * Three users lock and unlock one mutex; one of them has a deadline; a stranger waits for another mutex in the same bucket.
 * In a cold bucket an unlock is a plain store, which passes through the user's buffer while its second look at `cold` overtakes it. A locked instruction drains the own buffer, the heavy
 * barrier everybody's. Whoever has waited may be starving, and any quiet unlock may cool the bucket.
 *
 * Shows: one at a time; nobody waits for ever, whoever times out; the bucket's books are right in the end.
 *
 * Mutants, each must fail:
 *   NO_HEAVY       who heats the bucket does not use the heavy barrier
 *   NO_SECOND_LOOK an unlock in a cold bucket does not look again
 *   TRUST_OTHERS   who comes while another heats the bucket relies on that one's barrier
 *   COOL_SEATED    a bucket is cooled while somebody sits in it
 *   COOL_HEATING   a bucket is cooled while somebody heats it
 *   HEIR_NO_MARK   an heir takes the lock without the mark, although others sit
 *   SIT_NO_MARK    an heir sits down again without marking the word
 *   GIVE_FIRST     an unlock gives to the first that sits, claimed or not
 *   WAKE_EARLY     one that is claimed runs before it knows whether it was handed the lock
 *   GRANT_AND_FREE an unlock that hands the lock over frees it, too
 */
#define USERS 3

#define LOCKED 1
#define BOTH 3 /* LOCKED and WAITERS */

#define AWAKE 0
#define SEATED 1
#define CLAIMED 2
#define WOKEN 3
#define LATE 4

byte word;
bit cold = 1, bucket;
byte heating;
chan seats = [USERS] of { byte };
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

inline enter_hot(u) {
    enter_room(u);
    if
#ifdef TRUST_OTHERS
    :: cold ->
#else
    :: cold || heating > 0 ->
#endif
        cold = 0;
        heating++;
        bucket = 0;
#ifndef NO_HEAVY
        heavy();
#endif
        enter_room(u);
        heating--
    :: else -> skip
    fi
}

/* The first that can be claimed; got is false when nobody is left. It runs after the flush. */
inline claim() {
    got = false;
    do
    :: nempty(seats) && !got ->
        seats?q;
        atomic {
            if
#ifdef WAKE_EARLY
            :: state[q] == SEATED -> state[q] = WOKEN; got = true
#else
            :: state[q] == SEATED -> state[q] = CLAIMED; got = true
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
    bool got, heir, saw;
    do
    :: n < times ->
        n++;
        heir = false;
        starving[u] = 0;
        atomic {
            drain(u);
            if
            :: word == 0 -> word = LOCKED; goto holding
            :: else -> skip
            fi
        }
wait:
        enter_hot(u);
        atomic {
            if
            :: word == 0 ->
                if
                :: nempty(seats) -> word = BOTH
                :: else -> word = LOCKED
                fi;
                bucket = 0;
                goto holding
#ifdef SIT_NO_MARK
            :: word != 0 && heir -> skip
#endif
            :: word != 0 -> word = BOTH
            fi
        }
        granted[u] = 0;
        state[u] = SEATED;
        seats!u;
        bucket = 0;
        /* parked */
        if
        :: state[u] == WOKEN -> skip
        :: atomic { has_deadline && state[u] == SEATED -> state[u] = LATE }
        fi;
        if
        :: state[u] == LATE ->
            enter_room(u);
            if
            :: seats??[eval(u)] -> seats??eval(u)
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
#ifdef HEIR_NO_MARK
            :: word == 0 -> word = LOCKED; goto holding
#else
            :: word == 0 -> word = BOTH; goto holding
#endif
            :: else -> skip
            fi
        }
        heir = true;
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
        :: cold -> saw = (word == LOCKED)
        :: else -> saw = false
        fi;
        if
        :: saw ->
            pending[u] = 1;
#ifndef NO_SECOND_LOOK
            if
            :: !cold ->
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
#ifdef COOL_SEATED
                    :: heating == 0 -> cold = 1
#elif defined(COOL_HEATING)
                    :: empty(seats) -> cold = 1
#else
                    :: empty(seats) && heating == 0 -> cold = 1
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
                    :: empty(seats) -> word = LOCKED
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
    enter_hot(USERS);
    bucket = 0
}

init {
    atomic {
        run user(1, 1, false);
        run user(2, 1, true);
        run user(0, 2, false);
        run stranger()
    }
    timeout -> assert(gone == USERS && word == 0 && empty(seats) && heating == 0 && bucket == 0)
}
