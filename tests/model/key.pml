/* key.pml - a wake key: its record is opened, waited for and released ROUNDS times, while two wakers with keys of any age wake, and a timer ends the wait at
 * any moment (key/key.c). To the protocol a cancellation is the same as the timer: another claim.
 *
 * The wait is one claim, by compare-and-swap (claim.pml); the record is modelled here: ticket, WOKEN, the list, under one lock. Sections under the lock are
 * one step each, except for the waker's, which claims and then decides: the deadline may expire in between, without the lock.
 *
 * Shows: a wake returns 0 exactly if the wait that it was for returns 0; a stale key changes nothing; no wait is left behind.
 *
 * Mutants, each must fail:
 *   NO_TICKET    a wake does not compare tickets
 *   NO_LOOK      a wait that a deadline has ended does not check for a wake
 *   LOST_ANYWAY  a wake that has lost the claim is forgotten, and returns 0
 *   NO_RAISE     a key that is over keeps its ticket
 *   TWICE        a second wake of a key is accepted
 */
#define ROUNDS 3

bool lock;
byte ticket;       /* odd: open */
bool woken;        /* a wake was kept */
bool linked;       /* the wait is on the list */
bool waits;        /* nobody has claimed the wait yet */
bool by_object;    /* who has */
byte round;        /* the key that is open, or was last */
bool done;
byte wakes[4];     /* wakes that returned 0, by the key that they had */
byte returned[4];  /* waits that returned 0 */
byte ended[4];     /* waits that are over */
byte told[4];      /* what the wait got: whose key the waker had */
byte value;        /* the same, kept */

inline take() { atomic { !lock -> lock = true } }
inline release() { lock = false }

inline over() {
#ifdef NO_RAISE
    skip
#else
    ticket = ticket + 1
#endif
}

proctype waiter() {
    byte i = 0;
    do
    :: i < ROUNDS ->
        take();
        atomic {
#ifdef NO_RAISE
            ticket = 1;
#else
            ticket = ticket + 1;
            assert(ticket % 2 == 1);
#endif
            round = i
        }
        release();
        /* here the key is in other hands */
        take();
        if
        :: woken -> d_step { woken = false; told[i] = value; returned[i]++; over() }; release()
        :: else ->
            atomic { linked = true; waits = true; by_object = false };
            release();
            !waits;          /* claimed, by a waker or the timer */
            if
            :: by_object -> returned[i]++
            :: else ->
                take();
                linked = false;
                if
#ifndef NO_LOOK
                :: woken -> d_step { woken = false; told[i] = value; returned[i]++; over() }
#endif
                :: else -> d_step { woken = false; over() }
                fi;
                release()
            fi
        fi;
        ended[i] = 1;
        i++
    :: else -> break
    od;
    done = true
}

/* The deadline of the current wait, or none. */
proctype timer() {
    do
    :: atomic { waits -> waits = false; by_object = false }
    :: done -> break
    od
}

/* Has the key of round k, and wakes when it likes. */
proctype waker(byte k) {
    bool won = false, stale;
    take();
#ifdef NO_TICKET
    stale = ticket % 2 == 0;
#else
    stale = ticket != 2 * k + 1;
#ifdef NO_RAISE
    stale = ticket != 1;
#endif
#endif
#ifndef TWICE
    stale = stale || woken;
#endif
    if
    :: stale -> skip
    :: else ->
        if
        :: linked ->
            linked = false;
            atomic { if :: waits -> by_object = true; told[round] = k; waits = false; won = true :: else fi };
            if
            :: won -> over()
#ifndef LOST_ANYWAY
            :: else -> woken = true; value = k
#else
            :: else -> skip
#endif
            fi
        :: else -> woken = true; value = k
        fi;
        wakes[k]++
    fi;
    release()
}

init {
    byte k;
    atomic {
        run timer();
        run waiter();
        run waker(0);
        run waker(0);
        run waker(1)
    };
    _nr_pr == 1;
    for (k : 0 .. ROUNDS - 1) {
        assert(ended[k] == 1);
        assert(returned[k] <= 1);
        assert(wakes[k] == returned[k]);          /* KEY-3 */
        assert(returned[k] == 0 || told[k] == k)  /* KEY-1 */
    }
}
