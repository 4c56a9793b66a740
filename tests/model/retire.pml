/* retire.pml - workers that start and retire (sched/elastic.c), and sysmon (sched/sysmon.c), while a thread puts work into inboxes and notifies (sched/wake.c, sched/idle.c).
 *
 * Worker 0 stays, worker 1 starts and retires. A thread that is not a worker puts ITEMS fibers into inboxes, of a worker that seems to be open, and notifies. Worker 0 may run a fiber that occupies it for
 * ever (stuck). Sysmon, while it ticks, gives worker 1 a thread when no worker sleeps, worker 0 is stuck and a fiber waits; it stops ticking while a worker sleeps.
 *
 * Shows (ELASTIC-1 to 3, IDLE-1, SYSMON-1): when nothing moves any more, all fibers have been taken, the count of searchers is 0, and no retired worker counts as open.
 *
 * Mutants, each must fail:
 *   LAST_RETIRES   the only sleeper may retire
 *   NO_DECISION    a sleeper retires without the list's lock: a notifier may have chosen it
 *   OPEN_ONLY      a scan of all inboxes skips those of retired workers
 *   STAYS_LISTED   a worker that retires stays on the list
 *   NO_RECHECK     the sleeper does not check again after it announced itself
 *   LOOK_FIRST     the producer checks for sleepers before it puts the fiber into an inbox
 *   TWO_THREADS    sysmon does not wait for the last thread of a worker before it starts the next
 *   NO_NUDGE       a worker that starts to work does not check whether sysmon ticks
 *   NO_SECOND_LOOK sysmon stops ticking and does not check again whether a worker sleeps
 */
#define ITEMS 2
#define WORKERS 2

byte inbox[WORKERS];
byte taken, searching, idle, open;
bool listed[WORKERS], wake[WORKERS], place_given[WORKERS], is_open[WORKERS];
byte threads[WORKERS]; /* threads that are this worker */
bool stuck;            /* worker 0 is in a fiber that never ends */
bool fast;             /* sysmon ticks */

/* Something waits in an inbox that is looked at. */
#ifdef OPEN_ONLY
#define waits ((is_open[0] && inbox[0] > 0) || (is_open[1] && inbox[1] > 0))
#else
#define waits (inbox[0] > 0 || inbox[1] > 0)
#endif

/* Takes one fiber from any inbox. */
inline take(found) {
    atomic {
        found = false;
        if
#ifdef OPEN_ONLY
        :: inbox[0] > 0 && is_open[0] -> inbox[0]--; taken++; found = true
        :: inbox[1] > 0 && is_open[1] -> inbox[1]--; taken++; found = true
#else
        :: inbox[0] > 0 -> inbox[0]--; taken++; found = true
        :: inbox[1] > 0 -> inbox[1]--; taken++; found = true
#endif
        :: else -> skip
        fi
    }
}

/* cc__idle_notify: one sleeper, off the list, with a searcher's place. */
inline notify(called) {
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
            :: listed[0] -> listed[0] = false; idle--; place_given[0] = true; wake[0] = true
            :: listed[1] -> listed[1] = false; idle--; place_given[1] = true; wake[1] = true
            :: !listed[0] && !listed[1] -> searching-- /* they woke by themselves */
            fi
        }
    :: else -> skip
    fi
}

/* wake.c: send. */
inline tell(to, called) {
    atomic {
        if
        :: listed[to] -> listed[to] = false; idle--; place_given[to] = false; wake[to] = true; called = true
        :: else -> called = false
        fi
    }
    if
    :: !called -> notify(called)
    :: else -> skip
    fi
}

active proctype producer() {
    bool called;
    byte n, to;
    do
    :: n < ITEMS ->
        n++;
        if
        :: to = 0
        :: is_open[1] -> to = 1 /* it seems open; it may have retired by the time of the push */
        fi;
#ifdef LOOK_FIRST
        tell(to, called);
        inbox[to]++
#else
        inbox[to]++;
        tell(to, called)
#endif
    :: else -> break
    od
}

/* A worker that finds work makes sure that sysmon ticks, if no sleeper is left. */
inline nudge() {
#ifdef NO_NUDGE
    skip
#else
    if
    :: !fast ->
        if
        :: idle == 0 -> fast = true
        :: else -> skip
        fi
    :: else -> skip
    fi
#endif
}

proctype worker(byte me) {
    bool place, found, called;
    assert(threads[me] == 1); /* ELASTIC-3 */
end:
    do
    :: true ->
        atomic {
            if
            :: !place && searching == 0 -> searching++; place = true
            :: else -> skip
            fi
        }
        take(found);
        if
        :: place -> place = false; atomic { searching-- }
        :: else -> skip
        fi;
        if
        :: found ->
            nudge();
            if
            :: waits -> notify(called)
            :: else -> skip
            fi;
            if
            :: me == 0 -> stuck = true; break /* this fiber keeps it */
            :: true -> skip
            fi
        :: else ->
            wake[me] = false;
            atomic { listed[me] = true; idle++ }
            if
#ifndef NO_RECHECK
            :: waits ->
                atomic { if :: listed[me] -> listed[me] = false; idle-- :: else -> skip fi }
                if
                :: wake[me] -> place = place_given[me]
                :: else -> skip
                fi
#endif
            :: else ->
endsleep:       if
                :: atomic { wake[me] -> place = place_given[me] }
                /* Its time is over, and the lock is free. */
#ifdef NO_DECISION
                :: me == 1 && idle > 1 -> /* a notifier may come here */
                    atomic {
                        if :: listed[1] -> listed[1] = false; idle-- :: else -> skip fi;
                        is_open[1] = false; open--
                    };
                    break
#else
#ifdef LAST_RETIRES
                :: atomic { me == 1 && listed[1] ->
#else
                :: atomic { me == 1 && listed[1] && idle > 1 ->
#endif
#ifndef STAYS_LISTED
                        listed[1] = false; idle--;
#endif
                        is_open[1] = false; open--
                    };
                    break
#endif
                fi
            fi
        fi
    od;
    threads[me]--
}

active proctype sysmon() {
end:
    do
    :: fast && stuck && idle == 0 && waits && !is_open[1] ->
#ifndef TWO_THREADS
        (threads[1] == 0); /* joined */
#endif
        atomic { is_open[1] = true; open++ };
        atomic { threads[1]++; run worker(1) }
    :: fast && idle > 0 ->
        fast = false;
#ifndef NO_SECOND_LOOK
        if
        :: idle == 0 -> fast = true
        :: else -> skip
        fi
#endif
    od
}

init {
    atomic {
        is_open[0] = true; threads[0] = 1; is_open[1] = true; threads[1] = 1; open = 2; fast = true;
        run worker(0); run worker(1)
    }
    timeout -> assert(taken == ITEMS && searching == 0 && open == is_open[0] + is_open[1] && idle == listed[0] + listed[1])
}
