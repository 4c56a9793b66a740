/* io_fd.pml - the state of a descriptor (io/fd.h): edges against operations, observers and cancellation.
 *
 * Bytes arrive one by one, each with an edge, which epoll reports if there are still bytes when it is polled. Readers try, link themselves and wait;
 * one of them may be cancelled. An observer checks for bytes, and waits for the next event if there are none. One thread at a time handles events.
 *
 * Shows: no reader or observer waits while there are bytes, and no byte is lost (FD-1 to FD-3, FD-6, FD-7).
 *
 * Mutants, each must fail:
 *   EDGE_DROPPED        an edge that finds no waiter is not counted
 *   EDGE_USED           an edge that wakes a waiter is not counted
 *   NO_PASS_ON          a reader that has found bytes does not wake the next
 *   LINKS_BLIND         a reader links itself although there was an edge since before its attempt
 *   LINKS_LATE          a reader notes the number of edges after its attempt
 *   WAKES_CANCELLED     an edge counts as used although the claim of its waiter was lost
 *   HINT_LATE           a hint that the side is empty counts the edges after the call
 *   OBSERVER_BLIND      an observer links itself although there was an event since its check
 *   OBSERVER_LATE       an observer notes the number of events after its check
 */
#define BYTES 2
#define READERS 2

mtype = { NOBODY, OBJECT, CANCEL };

byte bytes, put, taken; /* the kernel's: what can be read; so far */
bool pending;           /* an edge that was not reported */

bool locked;
byte events, edges, drained; /* drained: the number of edges plus 1; 0: no hint */
bool linked[READERS], waits[READERS];
mtype woken[READERS] = NOBODY;
byte oldest; /* the reader that linked itself first */
bool observes, observer_waits, observer_woken;
byte ask; /* how much a read asks for */

inline take() { atomic { !locked -> locked = true } }
inline release() { locked = false }

/* Under the lock. True in `won`: the reader was woken. */
inline wake(i) {
    linked[i] = false;
    atomic {
        if
        :: woken[i] == NOBODY -> woken[i] = OBJECT; won = true
        :: else ->
#ifdef WAKES_CANCELLED
            won = true
#else
            skip
#endif
        fi
    }
}

inline edge() {
    won = false;
#ifdef EDGE_DROPPED
    if
    :: linked[0] || linked[1] -> edges++
    :: else -> skip
    fi;
#else
    edges++;
#endif
    do
    :: !won && linked[oldest] -> wake(oldest)
    :: !won && !linked[oldest] && linked[1 - oldest] -> wake(1 - oldest)
    :: else -> break
    od
#ifdef EDGE_USED
    ;
    edges = (won -> edges - 1 : edges)
#endif
}

proctype reader(byte i) {
    byte before, got;
    bool won;
again:
    before = edges;
    if
    :: drained == edges + 1 -> got = 0 /* FD-6: it would find nothing */
    :: else -> atomic {
            got = (bytes < ask -> bytes : ask);
            bytes = bytes - got;
            taken = taken + got
        }
    fi;
    if
    :: got > 0 ->
        if
#ifdef HINT_LATE
        :: got < ask -> drained = edges + 1
#else
        :: got < ask -> drained = before + 1
#endif
        :: else -> skip
        fi;
#ifndef NO_PASS_ON
        if
        :: linked[0] || linked[1] -> take(); edge(); release()
        :: else -> skip
        fi;
#endif
        if
        :: goto again
        :: goto over /* it has enough */
        fi
    :: else -> skip
    fi;
#ifdef LINKS_LATE
    before = edges;
#endif
    /* Under the lock. */
    atomic {
        !locked;
        if
#ifdef LINKS_BLIND
        :: true ->
#else
        :: edges != before -> goto again
        :: else ->
#endif
            woken[i] = NOBODY;
            oldest = (linked[1 - i] -> 1 - i : i);
            linked[i] = true;
            waits[i] = true
        fi
    }
end_waits:
    atomic { woken[i] != NOBODY -> waits[i] = false }
    atomic { !locked -> linked[i] = false }
    if
    :: woken[i] == CANCEL -> goto over
    :: else -> goto again
    fi;
over:
    skip
}

proctype canceller() {
end_idle:
    atomic { waits[0] && woken[0] == NOBODY -> woken[0] = CANCEL }
}

proctype observer() {
    byte seen;
    bool found;
again:
#ifndef OBSERVER_LATE
    seen = events;
#endif
    found = bytes > 0;
    if
    :: found -> goto over
    :: else -> skip
    fi;
#ifdef OBSERVER_LATE
    seen = events;
#endif
    /* Under the lock. */
    atomic {
        !locked;
        if
#ifdef OBSERVER_BLIND
        :: true ->
#else
        :: events != seen -> goto again
        :: else ->
#endif
            observer_woken = false;
            observes = true;
            observer_waits = true
        fi
    }
end_waits:
    atomic { observer_woken -> observer_waits = false }
    atomic { !locked -> observes = false }
    goto again;
over:
    skip
}

proctype poller() {
    bool won, reported;
end_polls:
    do
    :: atomic { pending -> pending = false; reported = bytes > 0 }
        if
        :: reported ->
            take();
            events++;
            edge();
            if
            :: observes -> observes = false; observer_woken = true
            :: else -> skip
            fi;
            release()
        :: else -> skip
        fi
    od
}

proctype producer() {
    do
    :: atomic { put < BYTES -> put++; bytes++; pending = true }
    :: put == BYTES -> break
    od
}

init {
    atomic {
        if
        :: ask = 1
        :: ask = 2
        fi;
        run producer();
        run poller();
        run reader(0);
        if
        :: run reader(1); run canceller()
        :: run observer()
        fi
    }
    /* No process can move. */
    timeout ->
        assert(taken + bytes == BYTES);
        assert(bytes == 0 || (!waits[0] && !waits[1] && !observer_waits))
}
