/* park.pml - the state word of fiber/state.h: open, abort, commit, claim, run.
 *
 * One fiber waits ROUNDS times on a condition without a lock (wait/latch.c). Two wakers make the condition true and claim with the ticket that they found,
 * after any delay; a timer claims once, at any moment. Two workers run enqueued fibers.
 *
 * Shows: no lost wake; RUNNABLE is stored once per wait; one worker on the stack; a stale ticket ends nothing.
 *
 * Mutants, each must fail:
 *   NO_LATCH     a claim that meets PARKING does nothing
 *   NO_TICKET    a claim does not compare tickets
 *   TWO_STEPS    a claim loads, then stores
 *   OWN_STACK    PARKED is written before the switch
 *   LATCH_LOST   a commit does not check the latch
 *   LATE_CLEAR   the latch is cleared when the fiber decides to park
 */
#define ROUNDS 3

mtype = { RUNNABLE, RUNNING, PARKING, PARKED, OBJECT, TIMER };

mtype state = RUNNING, reason = OBJECT;
bool latch;
byte ticket = 1;

byte published;    /* the ticket on the wait list; 0: none */
byte posted;       /* waits whose condition is true */
byte waits;        /* waits that have returned */
byte queued;
byte on_stack = 1;
bool done;

inline enqueue() {
    assert(queued == 0);
    queued = 1
}

/* PARKED -> RUNNABLE, or the latch. */
inline claim(t, why) {
#ifdef TWO_STEPS
    seen = state;
    if
    :: seen == PARKED && ticket == t -> state = RUNNABLE; reason = why; assert(ticket == t); enqueue()
    :: seen == PARKING && ticket == t -> latch = true; reason = why
    :: else -> skip
    fi
#else
    atomic {
        if
#ifdef NO_TICKET
        :: state == PARKED -> assert(ticket == t); state = RUNNABLE; reason = why; enqueue()
        :: state == PARKING && !latch -> assert(ticket == t); latch = true; reason = why
#else
        :: state == PARKED && ticket == t -> state = RUNNABLE; reason = why; enqueue()
#ifndef NO_LATCH
        :: state == PARKING && ticket == t && !latch -> latch = true; reason = why
#endif
#endif
        :: else -> skip
        fi
    }
#endif
}

inline commit() {
    atomic {
        if
#ifndef LATCH_LOST
        :: latch -> latch = false; state = RUNNABLE; enqueue()
#endif
        :: else -> state = PARKED
        fi
    }
}

proctype worker(bool has) {
end:
    do
    :: has && waits == ROUNDS -> done = true; break
    :: has && waits < ROUNDS ->
        atomic { ticket++; state = PARKING; latch = false }
        published = ticket;
        if
        :: posted > waits -> /* looked again: it is there already */
            atomic { state = RUNNING; latch = false }
            published = 0;
            waits++
        :: else ->
            has = false;
#ifdef LATE_CLEAR
            latch = false;
#endif
#ifdef OWN_STACK
            commit();
            on_stack--
#else
            on_stack--;
            commit()
#endif
        fi
    :: atomic { !has && queued > 0 -> queued--; assert(state == RUNNABLE); state = RUNNING; has = true }
        on_stack++;
        assert(on_stack == 1);
        published = 0;
        if
        :: posted > waits -> waits++
        :: else -> skip /* timed out, or a waker of the last wait came late and found this one: wait again */
        fi
    od
}

proctype waker() {
    byte t;
    mtype seen;
    do
    :: atomic { posted < ROUNDS && posted == waits -> posted++ }
       t = published;
       if
       :: t != 0 -> claim(t, OBJECT)
       :: else -> skip
       fi
    :: posted == ROUNDS -> break
    od
}

proctype timer() {
    byte t;
    mtype seen;
    if
    :: published != 0 -> t = published; claim(t, TIMER)
    :: done -> skip
    fi
}

init {
    atomic { run worker(true); run worker(false); run waker(); run waker(); run timer() }
    /* No process can move: then the fiber must have ended. */
    timeout -> assert(done)
}
