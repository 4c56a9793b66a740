/* chan.pml - one channel (src/chan): a ring, two lists of waiters, deadlines, close, freeing.
 *
 * One sender sends 1 and 2, another sends 3 with a deadline; one receiver receives twice, another once with a
 * deadline. A deadline's claim may happen at any moment of the wait. A closer may close, and drops the last
 * reference as soon as no new call will be made; a party that timed out may be about to take the lock then. The
 * capacity is 0 or 1. A section under the lock is one step: only the claims of deadlines could happen in
 * between, and each of them changes one word.
 *
 * Shows: CHAN-1 whenever the lock is free; every value is with one party, and one whose send failed is not
 * received; values of one sender arrive in order; a receive that failed leaves its buffer untouched;
 * none waits after a close; the memory is freed once, and not accessed afterwards.
 *
 * Mutants, each must fail:
 *   COPY_FIRST   a sender copies before it claims
 *   LOST_CLAIM   a sender whose claim fails assumes that it has handed its value over
 *   EARLY_UNLOCK a receiver is parked only after the lock was released
 *   LOOK_APART   a receiver checks, releases the lock, and takes it again to wait
 *   NO_REFILL    a receive does not move a waiting sender's value into the ring
 *   OVERTAKE     a send goes into the ring without a check for waiters
 *   CLOSE_HALF   a close does not claim the senders
 *   NO_LATE      an arm whose claim failed is not counted
 *   KEEP_LOST    an arm whose claim was lost stays counted when it unlinks
 *   FREE_ALWAYS  every party that leaves an abandoned channel frees it
 */
#define PARTIES 4 /* 0, 1 send; 2, 3 receive; 1 and 3 have deadlines */
#define NONE 7

mtype = { RUNNING, PARKED, DONE, CLOSED, TIMER }; /* DONE, CLOSED: claimed by the object, with what error */

byte capacity;
bit closed, abandoned;
byte freed;
byte count, slot;              /* the ring has room for one */
byte lost;
chan senders = [PARTIES] of { byte };
chan receivers = [PARTIES] of { byte };

mtype word[PARTIES] = RUNNING; /* who has ended the wait */
bit is_late[PARTIES];
byte frame[PARTIES];
bit passed[PARTIES];           /* will not start again */

bit sent[4], failed[4];
byte received[4];
byte newest[PARTIES];
byte gone;

/* The lock is free again. */
inline check() {
    assert(freed == 0);
    assert(empty(receivers) || (count == 0 && empty(senders))); /* CHAN-1 */
    assert(empty(senders) || count == capacity);
    candidate = 0
}

inline destroy() {
    atomic { freed++; assert(freed == 1) }
}

/* The first of a list that can be claimed: `other`, or NONE. Its result is `what`. */
inline claim_first(list, what) {
    other = NONE;
    do
    :: other == NONE && nempty(list) ->
        list ? candidate;
        if
        :: word[candidate] == PARKED -> word[candidate] = what; other = candidate
        :: else ->
#ifndef NO_LATE
            lost++;
#endif
            is_late[candidate] = 1
        fi
    :: other != NONE || empty(list) -> break
    od
}

inline join(list) {
    list ! me;
#ifndef EARLY_UNLOCK
    word[me] = PARKED
#endif
}

/* The deadline has claimed: off the list, under the lock. */
inline unlink(list) {
    atomic {
        if
        :: list ?? [eval(me)] -> list ?? eval(me)
        :: else ->
            if
            :: is_late[me] ->
                is_late[me] = 0;
#ifndef KEEP_LOST
                lost--
#endif
            :: else -> skip
            fi
        fi;
#ifdef FREE_ALWAYS
        frees = abandoned;
#else
        frees = abandoned && lost == 0;
#endif
        check()
    }
}

inline book_sent() {
    sent[value] = 1;
    value++;
    if
    :: value > final -> passed[me] = 1
    :: else -> skip
    fi
}

inline book_received(v) {
    received[v]++;
    assert(v != 0 && received[v] == 1 && !failed[v]);
    assert(v == 3 || v > newest[me]); /* 1 before 2 */
    if
    :: v < 3 -> newest[me] = v
    :: else -> skip
    fi;
    n--;
    if
    :: n == 0 -> passed[me] = 1
    :: else -> skip
    fi
}

proctype sender(byte me, value, final) {
    byte other = NONE, candidate;
    bit frees;
    do
    :: value > final -> break
    :: value <= final ->
        atomic {
            assert(freed == 0);
            if
            :: closed -> word[me] = CLOSED; passed[me] = 1
            :: else ->
#ifdef COPY_FIRST
                if
                :: receivers ? [candidate] -> receivers ? <candidate>; frame[candidate] = value
                :: empty(receivers) -> skip
                fi;
#endif
#ifdef OVERTAKE
                if
                :: count < capacity -> skip
                :: count == capacity -> claim_first(receivers, DONE)
                fi;
#else
                claim_first(receivers, DONE);
#endif
                if
                :: other != NONE -> frame[other] = value; other = NONE; book_sent()
#ifdef LOST_CLAIM
                :: other == NONE && is_late[3] -> book_sent()
#endif
                :: other == NONE && count < capacity -> slot = value; count = 1; book_sent()
                :: other == NONE && count == capacity ->
                    frame[me] = value;
                    join(senders);
#ifdef EARLY_UNLOCK
                    word[me] = PARKED;
#endif
                    passed[me] = (value == final)
                fi
            fi;
            check()
        }
        if
        :: atomic { word[me] == RUNNING -> skip }
        :: atomic { word[me] == DONE -> word[me] = RUNNING; book_sent() }
        :: atomic { word[me] == CLOSED -> word[me] = RUNNING; failed[value] = 1; passed[me] = 1; break }
        :: atomic { me == 1 && word[me] == PARKED -> word[me] = TIMER; failed[value] = 1; passed[me] = 1 }
            unlink(senders);
            if
            :: frees -> destroy()
            :: else -> skip
            fi;
            break
        fi
    od;
    gone++
}

proctype receiver(byte me, n) {
    byte other = NONE, candidate, taken;
    bit frees;
    do
    :: n == 0 -> break
    :: n > 0 ->
        atomic {
            assert(freed == 0);
            if
            :: count > 0 ->
                taken = slot;
                count = 0;
                slot = 0;
#ifndef NO_REFILL
                claim_first(senders, DONE);
#endif
                if
                :: other != NONE -> slot = frame[other]; count = 1; other = NONE
                :: else -> skip
                fi;
                book_received(taken);
                taken = 0
            :: count == 0 ->
                claim_first(senders, DONE);
                if
                :: other != NONE -> taken = frame[other]; other = NONE; book_received(taken); taken = 0
                :: other == NONE && closed -> word[me] = CLOSED
                :: other == NONE && !closed ->
                    frame[me] = 0;
#ifdef LOOK_APART
                    taken = 1 /* comes back to wait */
#else
                    join(receivers);
                    passed[me] = (n == 1)
#endif
                fi
            fi;
            check()
        }
#ifdef LOOK_APART
        if
        :: taken -> atomic { taken = 0; join(receivers); passed[me] = (n == 1); check() }
        :: else -> skip
        fi;
#endif
#ifdef EARLY_UNLOCK
        if
        :: atomic { receivers ?? [eval(me)] || is_late[me] -> word[me] = PARKED }
        :: else -> skip
        fi;
#endif
        if
        :: atomic { word[me] == RUNNING -> skip }
        :: atomic { word[me] == DONE -> word[me] = RUNNING; book_received(frame[me]); frame[me] = 0 }
        :: atomic { word[me] == CLOSED -> word[me] = RUNNING; assert(frame[me] == 0); passed[me] = 1; break }
        :: atomic { me == 3 && word[me] == PARKED -> word[me] = TIMER; passed[me] = 1 }
            unlink(receivers);
            assert(frame[me] == 0);
            if
            :: frees -> destroy()
            :: else -> skip
            fi;
            break
        fi
    od;
    gone++
}

/* Under the lock. */
inline close_all() {
    if
    :: !closed ->
        closed = 1;
        do
        :: claim_first(receivers, CLOSED);
            if
            :: other == NONE -> break
            :: else -> skip
            fi
        od;
#ifndef CLOSE_HALF
        do
        :: claim_first(senders, CLOSED);
            if
            :: other == NONE -> break
            :: else -> skip
            fi
        od
#endif
    :: else -> skip
    fi
}

proctype owner() {
    byte other = NONE, candidate;
    bit frees;
    if
    :: atomic { true -> close_all(); check() }
    :: true
    fi;
    /* All parties have held the lock for the last time, or are on a list, or were. */
    atomic {
        passed[0] && passed[1] && passed[2] && passed[3] ->
        close_all();
        abandoned = 1;
        frees = (lost == 0);
        check()
    }
    if
    :: frees -> destroy()
    :: else -> skip
    fi;
    gone++
}

init {
    atomic {
        if
        :: capacity = 0
        :: capacity = 1
        fi;
        run sender(0, 1, 2);
        run sender(1, 3, 3);
        run receiver(2, 2);
        run receiver(3, 1);
        run owner()
    }
    timeout -> atomic {
        assert(gone == PARTIES + 1);
        assert(freed == 1 && lost == 0);
        /* What is in the ring goes with the memory. */
        assert(sent[1] == received[1] + (count == 1 && slot == 1));
        assert(sent[2] == received[2] + (count == 1 && slot == 2));
        assert(sent[3] == received[3] + (count == 1 && slot == 3))
    }
}
