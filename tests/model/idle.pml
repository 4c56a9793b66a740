/* idle.pml - idle and notify (sched/idle.c), for private queues, with the producer's store buffer.
 *
 * A producer puts ITEMS fibers into its private queue and then stays in one fiber for ever: it never shares. Its stores pass through a buffer. Two workers search, steal, sleep.
 *
 * Shows (IDLE-1): when nothing moves any more, all fibers have been taken: none waits while a worker sleeps. And the count of searchers is 0.
 *
 * Mutants, each must fail:
 *   NO_HEAVY     the sleeper does not use the heavy barrier
 *   NO_RECHECK   the sleeper does not check again after it announced itself
 *   LOOK_FIRST   the producer checks for sleepers before it publishes
 *   KEEP_PLACE   a searcher that gives up stays counted
 *   TWO_WAKES    the notifier does not remove the sleeper from the list
 */
#define ITEMS 2
#define WORKERS 2

byte count;                    /* as others see it */
byte own;                      /* as the producer sees it */
chan buffer = [ITEMS] of { byte }; /* the producer's stores to count, not yet visible */
byte taken, searching, idle;
bool listed[WORKERS], wake[WORKERS];

inline flush() {
    d_step {
        do
        :: nempty(buffer) -> buffer?_; count++
        :: else -> break
        od
    }
}

active proctype memory() {
end:
    do
    :: atomic { nempty(buffer) -> buffer?_; count++ }
    od
}

/* One sleeper, off the list, with a searcher's place. */
inline notify() {
    atomic {
        if
        :: searching == 0 && idle > 0 -> searching++; called = true
        :: else -> called = false
        fi
    }
    if
    :: called ->
        atomic {
            if
#ifdef TWO_WAKES
            :: listed[0] -> wake[0] = true
            :: !listed[0] && listed[1] -> wake[1] = true
#else
            :: listed[0] -> listed[0] = false; idle--; wake[0] = true
            :: !listed[0] && listed[1] -> listed[1] = false; idle--; wake[1] = true
#endif
            :: else -> searching-- /* they woke by themselves */
            fi
        }
    :: else -> skip
    fi
}

active proctype producer() {
    bool called;
    byte n;
    do
    :: n < ITEMS ->
        n++;
#ifdef LOOK_FIRST
        notify();
        buffer!1
#else
        buffer!1;
        notify()
#endif
    :: else -> break
    od
}

proctype worker(byte me) {
    bool place, found, called;
end:
    do
    :: true ->
        /* Search, if there is a place. */
        found = false;
        atomic {
            if
            :: !place && searching == 0 -> searching++; place = true
            :: else -> skip
            fi
        }
        if
        :: place ->
            /* A forced steal revokes the biased lock, whose heavy barrier makes the victim's stores visible. */
            atomic {
                flush();
                if
                :: count > 0 -> count--; taken++; found = true
                :: else -> skip
                fi
            }
#ifndef KEEP_PLACE
            place = false;
            atomic { searching-- };
#else
            if :: found -> place = false; atomic { searching-- } :: else -> skip fi;
#endif
            if
            :: found && count > 0 -> notify()
            :: else -> skip
            fi
        :: else -> skip
        fi;
        if
        :: found -> skip /* run it, poll again */
        :: !found ->
            wake[me] = false;
            atomic { listed[me] = true; idle++ }
#ifndef NO_HEAVY
            flush();
#endif
            if
#ifndef NO_RECHECK
            :: count > 0 && searching == 0 ->
                /* Withdraw, unless a notifier was faster. */
                atomic { if :: listed[me] -> listed[me] = false; idle-- :: else -> skip fi }
                if
                :: !listed[me] && wake[me] -> place = true
                :: else -> skip
                fi
#endif
            :: else ->
endsleep:       (wake[me]); /* sleeps */
                place = true
            fi
        fi
    od
}

init {
    atomic { run worker(0); run worker(1) }
    timeout -> assert(taken == ITEMS && searching == 0)
}
