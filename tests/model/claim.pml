/* claim.pml - a sole claim as a store inside the waker's biased lock, against a canceller (sched/wake.c),
 * with the store buffers of the workers.
 *
 * A fiber waits ROUNDS times on one object, without a deadline. Two workers and a thread that is not a worker
 * wake it, under the object's lock. A canceller contests at some time and then claims the wait that it finds.
 * The stores of a worker (INSIDE, the word, AWAY, the object's lock) pass through a buffer that drains at any
 * time; the loads of `revoked` and `contested` overtake them. The heavy barrier drains a buffer.
 *
 * Shows: CLAIM-1, a claim by a store finds the word still PARKED; each wait has one end and the fiber is in one
 * queue once; none waits for ever.
 *
 * Mutants, each must fail:
 *   NO_REVOKE     the canceller does not revoke the biased locks
 *   NO_HEAVY      it does, without the heavy barrier
 *   ONE_ONLY      it revokes the first worker's only
 *   REVOKE_FIRST  it revokes them, then sets `contested`
 *   LOOK_OUTSIDE  a worker loads `contested` before it is inside
 *   STORE_OUTSIDE a worker stores after it has left
 *   THREAD_STORES  a thread that is not a worker stores too
 */
#define ROUNDS 2
#define WORKERS 2

mtype = { RUNNABLE, RUNNING, PARKED, INSIDE, AWAY, WAKE, UNLOCK };

mtype state = RUNNING;
byte ticket;
byte queued;
bit locked, listed; /* the object's lock; the fiber is on its list */
bit contested;
bit done;

mtype place[WORKERS] = AWAY;
bit revoked[WORKERS];
chan buffer0 = [4] of { mtype }; /* a worker's stores, not yet visible */
chan buffer1 = [4] of { mtype };

inline enqueue() {
    assert(queued == 0);
    queued = 1
}

/* One store becomes visible. */
inline apply(w, what) {
    if
    :: what == INSIDE || what == AWAY -> place[w] = what
    :: what == WAKE -> assert(state == PARKED); state = RUNNABLE; enqueue() /* CLAIM-1 */
    :: what == UNLOCK -> locked = 0
    fi
}

inline flush(w, buffer) {
    d_step {
        do
        :: nempty(buffer) -> buffer ? what; apply(w, what)
        :: empty(buffer) -> break
        od
    }
}

proctype memory(byte w; chan buffer) {
    mtype what;
end:
    do
    :: atomic { buffer ? what -> apply(w, what) }
    od
}

/* A compare-and-swap: the caller's buffer is empty then. */
inline claim(t) {
    if
    :: state == PARKED && ticket == t -> state = RUNNABLE; enqueue()
    :: else -> skip
    fi
}

proctype worker(byte w; chan buffer) {
    bit saw;
    do
    :: done -> break
    :: atomic { listed && !locked && empty(buffer) -> locked = 1 }
        if
        :: atomic { !listed -> buffer ! UNLOCK }
        :: atomic { listed -> listed = 0 }
#ifdef LOOK_OUTSIDE
            saw = contested;
#endif
again:
            buffer ! INSIDE;
            if
            :: revoked[w] -> buffer ! AWAY; atomic { !revoked[w] && empty(buffer) -> skip } goto again
            :: else -> skip
            fi;
#ifndef LOOK_OUTSIDE
            saw = contested;
#endif
            if
            :: saw -> atomic { empty(buffer) -> claim(ticket) } buffer ! AWAY
            :: else ->
#ifdef STORE_OUTSIDE
                buffer ! AWAY;
                buffer ! WAKE
#else
                buffer ! WAKE;
                buffer ! AWAY
#endif
            fi;
            saw = 0;
            buffer ! UNLOCK
        fi
    od
}

proctype os_thread() {
    do
    :: done -> break
    :: atomic { listed && !locked -> locked = 1 }
        if
        :: listed ->
            listed = 0;
#ifdef THREAD_STORES
            if
            :: contested -> atomic { claim(ticket) }
            :: else -> atomic { assert(state == PARKED); state = RUNNABLE; enqueue() }
            fi
#else
            atomic { claim(ticket) }
#endif
        :: else -> skip
        fi;
        locked = 0
    od
}

inline revoke(w, buffer) {
    revoked[w] = 1;
#ifndef NO_HEAVY
    flush(w, buffer);
#endif
    place[w] != INSIDE;
    revoked[w] = 0
}

proctype canceller() {
    byte n, t;
    mtype what;
#ifndef REVOKE_FIRST
    contested = 1;
#endif
#ifndef NO_REVOKE
    revoke(0, buffer0);
#ifndef ONE_ONLY
    revoke(1, buffer1);
#endif
#endif
#ifdef REVOKE_FIRST
    contested = 1;
#endif
    do
    :: n < ROUNDS -> n++; t = ticket; atomic { claim(t) }
    :: else -> break
    od
}

proctype fiber() {
    byte n;
    do
    :: n < ROUNDS ->
        n++;
        /* On the list, parked after the switch, and then the lock is free. */
        atomic { !locked -> ticket++; listed = 1; state = PARKED }
        atomic { queued == 1 -> queued = 0; assert(state == RUNNABLE); state = RUNNING }
        /* Cancelled, it takes its leave under the lock; woken, it is off the list. */
        atomic { !listed || !locked -> listed = 0 }
    :: else -> break
    od;
    done = 1
}

init {
    atomic {
        run memory(0, buffer0);
        run memory(1, buffer1);
        run worker(0, buffer0);
        run worker(1, buffer1);
        run os_thread();
        run canceller();
        run fiber()
    }
    timeout -> assert(done && queued == 0 && state == RUNNING)
}
