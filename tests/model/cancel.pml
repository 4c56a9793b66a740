/* cancel.pml - a cancellation against a wait: wait/cancel.h, sched/wake.c and the shield; and the last child's exit
 * against the nursery's end: nursery/child.c.
 *
 * A fiber waits three times on an object with a lock, the second time behind a shield. A waker serves a wait, or does
 * not, by a sole claim: a load and a store inside its worker's biased section, unless it sees `contested`. A canceller
 * sets the bit, then claims a fiber that it finds parked. The stores of the fiber's worker and of the waker's worker pass
 * through buffers that drain at any time; a compare-and-swap drains its thread's own, the canceller's heavy barrier drains
 * both. In the end the fiber leaves its nursery, as the last child, and the owner frees the nursery.
 *
 * Shows: no wait outlives the cancellation, except a shielded one, which is not cancelled; each wait has one end; the
 * waiter is unlinked when the wait returns; a freed nursery is not accessed.
 *
 * Mutants, each must fail:
 *   NO_HEAVY        the canceller does not use the heavy barrier
 *   NO_LOOK         a fiber that has parked does not check the bit
 *   LOOK_FIRST      it checks before it parks
 *   CLAIM_FIRST     the canceller claims, then sets the bit
 *   NO_CONTEST      the canceller does not set `contested`
 *   NO_INSIDE       it does not wait for workers that are inside
 *   NO_SHIELD       it does not check the shield
 *   SHIELD_FIRST    it reads the shield, then the word
 *   NO_TICKET       it claims any wait that it finds
 *   NO_LEAVE        a fiber whose wait was cancelled does not unlink itself from the object
 *   TOUCH_LATE      the last child accesses the nursery after its unlock
 *   UNLOCKED_COUNT  the owner reads the number of children without the lock
 */
#define ROUNDS 3

#define RUNNING 1
#define PARKED 2
#define RUNNABLE 3

#define OBJECT 1
#define CANCEL 2

/* As memory has it. */
byte state = RUNNING, ticket, reason;
bool shield, bit_set, linked, inside;
bit object;
byte contested;

/* Not yet in memory: the word (a state), or INSIDE and AWAY. */
#define INSIDE 10
#define AWAY 11
chan fiber_stores = [1] of { byte };
chan waker_stores = [3] of { byte };

/* What must hold. */
byte ends;  /* of the present wait */
bool queued, cancelled, done;

bit nursery;
byte children = 1;
bool owner_waits, owner_woken, freed;

inline lock(l) { atomic { l == 0 -> l = 1 } }

inline store(value) {
    if
    :: value == INSIDE -> inside = true
    :: value == AWAY -> inside = false
    :: value == PARKED -> state = PARKED; ticket++
    :: value == RUNNABLE -> state = RUNNABLE; reason = OBJECT
    fi
}

inline drain(stores, v) {
    d_step {
        do
        :: nempty(stores) -> stores?v; store(v)
        :: empty(stores) -> break
        od;
        v = 0
    }
}

inline end_wait() {
    ends++;
    assert(ends == 1);
    assert(!queued);
    queued = true
}

active proctype memory() {
    byte v;
end:
    do
    :: d_step { nempty(fiber_stores) -> fiber_stores?v; store(v); v = 0 }
    :: d_step { nempty(waker_stores) -> waker_stores?v; store(v); v = 0 }
    od
}

active proctype fiber() {
    byte waits, v;
    bool seen;
    do
    :: waits < ROUNDS ->
        shield = waits == 1;
        lock(object);
        assert(!linked);
        linked = true;
        ends = 0;
#ifdef LOOK_FIRST
        seen = bit_set && !shield;
        fiber_stores!PARKED;
#else
        fiber_stores!PARKED; /* after the switch */
        seen = bit_set && !shield;
#endif
#ifdef NO_LOOK
        seen = false;
#endif
        drain(fiber_stores, v); /* whatever follows is a compare-and-swap, or a store that comes after this one */
        if
        :: seen ->
            atomic {
                if
                :: state == PARKED -> state = RUNNABLE; reason = CANCEL; end_wait()
                :: else -> skip
                fi
            }
        :: else -> skip
        fi;
        object = 0;
end_parked:
        atomic { queued -> queued = false; assert(state == RUNNABLE); state = RUNNING }
        if
        :: reason == CANCEL ->
            assert(bit_set && !shield);
#ifndef NO_LEAVE
            lock(object);
            linked = false;
            object = 0
#endif
        :: else -> assert(!linked)
        fi;
        waits++
    :: else -> break
    od;
    done = true;

    /* The last child's exit. */
    lock(nursery);
    assert(!freed);
    children--;
    seen = owner_waits;
    assert(!freed); /* the unlock is a touch */
    nursery = 0;
#ifdef TOUCH_LATE
    assert(!freed);
#endif
    if
    :: seen -> owner_woken = true
    :: else -> skip
    fi
}

active proctype waker() {
    byte v;
    do
    :: true ->
end_idle:
        atomic { linked && object == 0 -> object = 1 }
        if
        :: linked ->
            linked = false;
            waker_stores!INSIDE;
            if
            :: contested == 0 ->
                if
                :: state == PARKED -> waker_stores!RUNNABLE; d_step { ends++; assert(ends == 1) }
                :: else -> goto late
                fi
            :: else ->
                drain(waker_stores, v);
                atomic {
                    if
                    :: state == PARKED -> state = RUNNABLE; reason = OBJECT; ends++; assert(ends == 1)
                    :: else -> goto late
                    fi
                }
            fi;
            waker_stores!AWAY;
            drain(waker_stores, v); /* the queue's lock orders them before the fiber can run */
            d_step { assert(!queued); queued = true }
            goto served;
late:
            waker_stores!AWAY;
            drain(waker_stores, v);
served:
            skip
        :: else -> skip
        fi;
        object = 0
    :: true -> break /* it never comes again */
    od
}

active proctype canceller() {
    byte v, seen_state, seen_ticket;
    bool seen_shield;
#ifndef CLAIM_FIRST
    bit_set = true;
#endif
#ifndef NO_CONTEST
    contested++;
#endif
#ifndef NO_HEAVY
    drain(fiber_stores, v);
    drain(waker_stores, v);
#endif
#ifndef NO_INSIDE
    !inside;
#endif
#ifdef SHIELD_FIRST
    seen_shield = shield;
#endif
    d_step { seen_state = state; seen_ticket = ticket }
#ifndef SHIELD_FIRST
    seen_shield = shield;
#endif
#ifdef NO_SHIELD
    seen_shield = false;
#endif
    if
    :: seen_state == PARKED && !seen_shield ->
        atomic {
            if
#ifdef NO_TICKET
            :: state == PARKED -> state = RUNNABLE; reason = CANCEL; end_wait()
#else
            :: state == PARKED && ticket == seen_ticket -> state = RUNNABLE; reason = CANCEL; end_wait()
#endif
            :: else -> skip
            fi
        }
    :: else -> skip
    fi;
#ifdef CLAIM_FIRST
    bit_set = true;
#endif
#ifndef NO_CONTEST
    contested--;
#endif
    cancelled = true
}

active proctype owner() {
#ifdef UNLOCKED_COUNT
end:
    children == 0;
#else
    lock(nursery);
    if
    :: children > 0 ->
        owner_waits = true;
        nursery = 0;
end:
        owner_woken;
        lock(nursery)
    :: else -> skip
    fi;
    assert(children == 0);
    nursery = 0;
#endif
    freed = true
}

init {
    /* No process can move: the fiber has ended, or it waits behind its shield for a waker that never comes. */
    timeout -> assert(cancelled && (done || shield));
    if
    :: done -> assert(freed)
    :: else -> skip
    fi
}
