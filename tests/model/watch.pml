/* watch.pml - deferred wakes and the watcher (sched/watch.c, IDLE-4), with the producer's store buffer.
 *
 * A producer puts ITEMS fibers into its private queue, one after another, and then stays in one fiber for ever. Each time it checks
 * for sleepers: while WANT_WATCH is set it leaves the wake to the watcher, else it wakes one. Two workers sleep; one of them is the
 * watcher. A worker that has taken a fiber may stay in it for ever as well.
 *
 * Shows: when nothing moves any more, no fiber waits while a worker sleeps. And the watcher stops when nothing is deferred: it does
 * not tick for ever.
 *
 * Mutants, each must fail:
 *   NO_HEAVY    no heavy barrier precedes the watcher's last check
 *   NO_LOOK     the watcher stops without a last check
 *   LOOK_FIRST  it checks, then clears the bit
 *   FORGET      a watcher that starts to work appoints no other
 *   KEEP_BIT    a watcher that is removed from the list leaves the bit set
 *   DEFER_MORE  the producer defers whenever a worker sleeps
 */
#define ITEMS 2
#define WORKERS 2
#define NOBODY 9
#define QUIET 2

byte count;                        /* as others see it */
chan buffer = [ITEMS] of { byte }; /* the producer's stores to count, not yet visible */
byte taken, idle;
bool watch_bit;                          /* WANT_WATCH */
byte watcher = NOBODY;
bool listed[WORKERS], wake[WORKERS];

inline flush() {
    d_step {
        do
        :: nempty(buffer) -> buffer?_; count++
        :: empty(buffer) -> break
        od
    }
}

active proctype memory() {
end:
    do
    :: atomic { nempty(buffer) -> buffer?_; count++ }
    od
}

/* Under the lock: off the list, and out of the role. */
inline remove(who) {
    listed[who] = false;
    idle--;
    if
    :: watcher == who ->
        watcher = NOBODY;
#ifndef KEEP_BIT
        watch_bit = false
#endif
    :: else -> skip
    fi
}

/* A sleeper, the watcher last. */
inline wake_one() {
    atomic {
        if
        :: listed[0] && (watcher != 0 || !listed[1]) -> remove(0); wake[0] = true
        :: listed[1] && (watcher != 1 || !listed[0]) -> remove(1); wake[1] = true
        :: !listed[0] && !listed[1] -> skip
        fi
    }
}

active proctype producer() {
    byte n;
    (idle == WORKERS); /* all of them sleep, and one watches */
    do
    :: n < ITEMS ->
        n++;
        buffer!1;
        if
#ifdef DEFER_MORE
        :: idle > 0 -> skip
#else
        :: watch_bit -> skip
        :: !watch_bit && idle > 0 -> wake_one()
#endif
        :: idle == 0 -> skip
        fi
    :: else -> break
    od
}

/* Revoking the lock of the queue is a heavy barrier. */
inline steal() {
    atomic {
        flush();
        if
        :: count > 0 -> count--; taken++; found = true
        :: else -> found = false
        fi
    }
}

proctype worker(byte me) {
    bool found, watched;
    byte quiet;
end:
    do
    :: true ->
        /* To sleep: announce it, take the role if it is free, then check. */
        wake[me] = false;
        atomic {
            listed[me] = true;
            idle++;
            if
            :: watcher == NOBODY || !watch_bit -> watcher = me; watch_bit = true; watched = true; quiet = 0
            :: else -> skip
            fi
        }
        flush();
endsleep:
        do
        :: wake[me] -> break
        :: watcher == me && quiet < QUIET && !wake[me] ->
            /* A poll. */
            if
            :: count > 0 ->
                atomic {
                    if
                    :: listed[me] -> remove(me)
                    :: else -> skip
                    fi
                }
                break
            :: else -> quiet++
            fi;
            if
            :: quiet == QUIET ->
#ifdef LOOK_FIRST
                flush();
                found = (count > 0);
                atomic { if :: watcher == me -> watch_bit = false :: else -> skip fi }
#else
                atomic { if :: watcher == me -> watch_bit = false :: else -> skip fi }
#ifndef NO_HEAVY
                flush();
#endif
#ifdef NO_LOOK
                found = false;
#else
                found = (count > 0);
#endif
#endif
                if
                :: found ->
                    quiet = 0;
                    atomic { if :: watcher == me -> watch_bit = true :: else -> skip fi }
                :: else -> skip
                fi
            :: else -> skip
            fi
        od;
        /* To work, if there is any. */
        steal();
        if
        :: found ->
#ifndef FORGET
            if
            :: watched && !watch_bit -> wake_one()
            :: else -> skip
            fi;
#endif
            watched = false;
            if
            :: true -> skip  /* the fiber ends */
            :: true -> break /* it computes for ever */
            fi
        :: else -> skip
        fi
    od
}

init {
    atomic { run worker(0); run worker(1) }
    timeout -> assert(count == 0 && empty(buffer) || idle == 0)
}
