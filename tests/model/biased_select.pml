/* biased_select.pml - a select that waits biased (CHANBIAS-4 of chan/bias.c, chan/biased_select.c), with the worker's store buffer.
 *
 * A fiber selects among three channels that are biased to its worker: it links to all of them and parks inside the
 * worker's biased lock. (If one has lost its bias before that, the worker biases all of them to itself again.) Another
 * fiber there serves arms inside: the claim is a store. A thread uses one channel, revokes its bias and claims by
 * compare-and-swap; so does a second thread for another channel, or a canceller contests and claims. Once woken, the fiber
 * unlinks the other arms, on its worker or on another one.
 *
 * The worker's INSIDE, its claim and AWAY pass through a buffer that drains at any time; its loads of `bias`, `sole`
 * and `contested` overtake them. Its changes of a list are visible at once: chan_bias.pml shows that others see them after AWAY.
 *
 * Shows: a claim by a store finds the word still PARKED; never two at one list; each wait has one end, and the fiber is in
 * one queue once; an arm that was not served is unlinked; none waits for ever.
 *
 * Mutants, each must fail:
 *   NO_MARK       the revoker does not clear `sole`
 *   NO_WAIT       it clears it, and does not wait for the worker again
 *   NO_HEAVY      it waits again, without the heavy barrier
 *   OWN_MARK      it waits again only if it was the first to clear it
 *   MARK_FIRST    it clears it before it has waited for the worker at all
 *   CLAIM_BLIND   the biased claim does not check `sole`
 *   LOOK_OUTSIDE  it checks before it is inside
 *   NO_CONTEST    it does not check `contested`
 *   PARK_BLIND    the select parks inside although a channel is not biased to its worker
 *   UNLINK_BLIND   the arms unlink inside without a check of the bias
 */
#define CHANNELS 3
#define NONE CHANNELS
#define ROUNDS 1 /* two hold as well: 12 million states */

mtype = { RUNNING, PARKED, RUNNABLE, INSIDE, AWAY, WAKE };

/* The fiber that selects. */
mtype state = RUNNING;
byte ticket, ended;
bit begins = 1, queued; /* about to select, on its worker; woken, in a queue */
byte winner = NONE;
bit done;

bit sole, contested;
bit bias[CHANNELS] = 1, lock[CHANNELS];
bit listed[CHANNELS], lost[CHANNELS]; /* its arms */
bit taken[CHANNELS];                  /* the lists are locked */

mtype place = AWAY;
bit stored; /* the worker has claimed by a store, and knows it before others do */
chan buffer = [3] of { mtype, byte };

inline enqueue(by) {
    winner = by;
    assert(!queued);
    queued = 1
}

inline apply(what, which) {
    if
    :: what == WAKE -> assert(state == PARKED); state = RUNNABLE; enqueue(which)
    :: else -> place = what
    fi
}

inline flush() {
    d_step {
        do
        :: nempty(buffer) -> buffer ? what, which; apply(what, which)
        :: empty(buffer) -> break
        od
    }
}

active proctype memory() {
    mtype what;
    byte which;
end:
    do
    :: atomic { buffer ? what, which -> apply(what, which) }
    od
}

/* The lists are the caller's until it gives them back. */
inline take(c) {
    assert(!taken[c]);
    taken[c] = 1
}

/* The caller's buffer is empty. */
inline claim(t, by) {
    if
    :: state == PARKED && ticket == t -> state = RUNNABLE; enqueue(by); won = 1
    :: else -> won = 0
    fi
}

/* The arm's place on the list is given up: it is served, or its claim lost. */
inline serve(c) {
    if
    :: listed[c] -> listed[c] = 0; claim(ticket, c); lost[c] = !won; won = 0
    :: else -> skip
    fi
}

inline unlink(c) {
    if
    :: listed[c] -> listed[c] = 0
    :: else -> assert(lost[c]); lost[c] = 0
    fi
}

/* All arms are unlinked. */
inline go_on() {
    d_step {
        assert(!listed[0] && !listed[1] && !listed[2] && !lost[0] && !lost[1] && !lost[2]);
        ended++;
        winner = NONE;
        if
        :: ended == ROUNDS -> done = 1
        :: else -> begins = 1
        fi
    }
}

/* ---- anybody but the worker ---- */

inline mark(c) {
    if
    :: listed[c] ->
#ifdef OWN_MARK
        again = sole;
#else
        again = 1;
#endif
        sole = 0
    :: else -> skip
    fi
}

inline wait_outside() {
    flush();
    place != INSIDE
}

/* The lock, and no bias. */
inline lock_and_revoke(c) {
    atomic { !lock[c] -> lock[c] = 1 }
    if
    :: atomic { !bias[c] -> take(c) }
    :: bias[c] ->
        bias[c] = 0;
#ifdef MARK_FIRST
        atomic { take(c); mark(c); taken[c] = 0 }
#endif
        wait_outside();
        atomic {
            take(c);
#if !defined(NO_MARK) && !defined(MARK_FIRST)
            mark(c)
#endif
        }
        if
        :: again ->
            again = 0;
#ifndef NO_WAIT
#ifndef NO_HEAVY
            flush();
#endif
            place != INSIDE
#endif
        :: else -> skip
        fi
    fi
}

proctype other(byte c) {
    bit again, won;
    mtype what;
    byte which;
    lock_and_revoke(c);
    atomic { serve(c); taken[c] = 0; lock[c] = 0 }
}

proctype canceller() {
    bit won;
    mtype what;
    byte which, t;
    contested = 1;
    wait_outside();
    t = ticket;
    atomic { claim(t, NONE) }
    contested = 0
}

/* Runs the fiber if it was woken. No channel is biased to its worker. */
proctype another_worker() {
    bit again;
    mtype what;
    byte which, c;
    do
    :: done -> break
    :: atomic { queued -> queued = 0; assert(state == RUNNABLE); state = RUNNING; c = 0 }
        do
        :: c < CHANNELS && c != winner ->
            lock_and_revoke(c);
            atomic { unlink(c); taken[c] = 0; lock[c] = 0; c++ }
        :: c < CHANNELS && c == winner -> c++
        :: c == CHANNELS -> break
        od;
        go_on()
    od
}

/* ---- the worker ---- */

/* Inside, at a channel that is biased: as long as one step takes. */
inline use(c) {
    assert(!taken[c])
}

inline select_inside() {
    atomic { begins = 0; buffer ! INSIDE, 0 }
    all = bias[0];
    all = all && bias[1];
    all = all && bias[2];
#ifdef PARK_BLIND
    all = 1;
#endif
    if
    :: all ->
        atomic { use(0); use(1); use(2); sole = 1; stored = 0; listed[0] = 1; listed[1] = 1; listed[2] = 1 }
        atomic { ticket++; state = PARKED }
        buffer ! AWAY, 0
    :: else ->
        buffer ! AWAY, 0;
        /* Under all locks: what a select does whose channels are not biased. */
        atomic {
            !lock[0] && !lock[1] && !lock[2] && empty(buffer) -> bias[0] = 1; bias[1] = 1; bias[2] = 1;
            begins = 1
        }
    fi
}

inline unlink_all() {
    buffer ! INSIDE, 0;
    c = 0;
    do
    :: c < CHANNELS ->
        if
        :: c == winner -> skip
#ifdef UNLINK_BLIND
        :: atomic { c != winner -> use(c); unlink(c) }
#else
        :: c != winner && bias[c] -> atomic { use(c); unlink(c) }
        :: c != winner && !bias[c] -> elsewhere[c] = 1
#endif
        fi;
        c++
    :: else -> break
    od;
    buffer ! AWAY, 0;
    c = 0;
    do
    :: c < CHANNELS && elsewhere[c] ->
        elsewhere[c] = 0;
        atomic { !lock[c] && empty(buffer) -> lock[c] = 1; bias[c] = 0; take(c) } /* its own bias, if it is one */
        atomic { unlink(c); taken[c] = 0; lock[c] = 0; c++ }
    :: c < CHANNELS && !elsewhere[c] -> c++
    :: c == CHANNELS -> break
    od;
    go_on()
}

/* Another fiber sends on channel c, where the select waits. */
inline send(c) {
#ifdef LOOK_OUTSIDE
    mine = sole;
#endif
    buffer ! INSIDE, 0;
    if
    :: bias[c] ->
        if
        :: atomic { listed[c] -> use(c); listed[c] = 0 }
#ifdef CLAIM_BLIND
            mine = 1;
#endif
#if !defined(LOOK_OUTSIDE) && !defined(CLAIM_BLIND)
            mine = sole;
#endif
#ifndef NO_CONTEST
            mine = mine && !contested;
#endif
            if
            :: mine && state == PARKED && !stored -> atomic { use(c); stored = 1; buffer ! WAKE, c }
            :: mine && (state != PARKED || stored) -> atomic { use(c); lost[c] = 1 }
            :: !mine -> atomic { empty(buffer) -> use(c); claim(ticket, c); lost[c] = !won; won = 0 }
            fi;
            mine = 0
        :: else -> skip
        fi;
        buffer ! AWAY, 0
    :: else ->
        buffer ! AWAY, 0;
        atomic { !lock[c] && empty(buffer) -> lock[c] = 1; take(c) }
        if
        :: bias[c] -> bias[c] = 0; sole = 0 /* its own: no other owner to wait for */
        :: else -> skip
        fi;
        atomic { serve(c); taken[c] = 0; lock[c] = 0 }
    fi
}

/* What it does for channel 0 would be the same as for 1. */
active proctype worker() {
    byte c;
    bit all, mine, won, elsewhere[CHANNELS];
    do
    :: done -> break
    :: begins -> select_inside()
    :: atomic { queued -> queued = 0; assert(state == RUNNABLE); state = RUNNING } unlink_all()
    :: listed[1] -> c = 1; send(c)
    :: listed[2] -> c = 2; send(c)
    od
}

init {
    atomic {
        run another_worker();
        run other(0);
        if
        :: run other(1)
        :: run canceller()
        fi
    }
    timeout -> assert(done && !queued && state == RUNNING)
}
