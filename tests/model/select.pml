/* select.pml - selects over two channels (src/select), in opposite orders, among plain calls.
 *
 * Party 0 selects twice: send to channel 0, or receive from channel 1; it may have a deadline. Party 1
 * selects the other way round: send to channel 1, or receive from channel 0. Party 2 sends to channel 0,
 * party 3 receives from channel 1. Capacities are 0 or 1. A select checks without locks and completes a case that
 * seems ready alone; else it takes both locks in the order of addresses and checks again: it restarts if one is ready,
 * else it links both arms and parks. A plain call, and one arm alone, is one step while the lock is free; holding two locks is not.
 *
 * Shows: no deadlock among locks (SELECT-1); one winner (SELECT-2): every value is with one party; when a
 * select returns none of its arms is on a list, and none is used to claim it (SELECT-3); at the end no party is
 * parked while its case is ready.
 *
 * Mutants, each must fail:
 *   ANY_ORDER    locks are taken in the order of the cases
 *   NO_POLL      after the check without locks, a select parks without another under them
 *   LINK_APART   arms are linked one after another, each under its own lock, and then the select parks
 *   TWO_WINNERS  a claim does not check whether the wait has ended
 *   NO_LEAVE     losers stay on their lists
 *   HALF_LEAVE   a select that has received does not unlink its send arm
 */
#define PARTIES 4
#define NONE 7

mtype = { RUNNING, PARKED, BY0, BY1, TIMER }; /* BY0, BY1: ended by an arm on that channel */

byte capacity[2], count[2], slot[2];
bit lock[2];
chan senders[2] = [PARTIES] of { byte };
chan receivers[2] = [PARTIES] of { byte };

mtype word[PARTIES] = RUNNING;
bit waits[PARTIES]; /* its frame is there */
byte frame[PARTIES];
byte sent[5], received[5]; /* by value: 1, 2 of party 0, 3 of party 1, 4 of party 2 */
byte gone;

inline book_received(v) {
    received[v]++;
    assert(v != 0 && received[v] == 1)
}

/* The first of a list that can be claimed: `other`, or NONE. */
inline claim_first(list, c) {
    other = NONE;
    do
    :: other == NONE && nempty(list) ->
        list ? candidate;
        assert(waits[candidate]); /* SELECT-3 */
        if
#ifdef TWO_WINNERS
        :: true -> word[candidate] = (c == 0 -> BY0 : BY1); other = candidate
#else
        :: word[candidate] == PARKED -> word[candidate] = (c == 0 -> BY0 : BY1); other = candidate
        :: else -> skip
#endif
        fi
    :: other != NONE || empty(list) -> break
    od;
    candidate = 0
}

/* One step under the lock of c; `ok` says whether it could be done. */
inline try_send(c, value) {
    claim_first(receivers[c], c);
    if
    :: other != NONE -> frame[other] = value; ok = 1; sent[value]++
    :: other == NONE && count[c] < capacity[c] -> slot[c] = value; count[c] = 1; ok = 1; sent[value]++
    :: other == NONE && count[c] == capacity[c] -> ok = 0
    fi;
    other = NONE
}

/* A sender that is claimed has sent. */
inline try_recv(c) {
    if
    :: count[c] > 0 ->
        book_received(slot[c]);
        count[c] = 0;
        slot[c] = 0;
        claim_first(senders[c], c);
        if
        :: other != NONE -> slot[c] = frame[other]; count[c] = 1; sent[frame[other]]++
        :: else -> skip
        fi;
        ok = 1
    :: count[c] == 0 ->
        claim_first(senders[c], c);
        if
        :: other != NONE -> book_received(frame[other]); sent[frame[other]]++; ok = 1
        :: else -> ok = 0
        fi
    fi;
    other = NONE
}

#define looks_sendable(c) (count[c] < capacity[c] || len(receivers[c]) > 0)
#define looks_receivable(c) (count[c] > 0 || len(senders[c]) > 0)

/* Sends to `out`, or receives from the other channel. */
proctype selector(byte me, out, value, times; bit deadline) {
    byte other = NONE, candidate;
    bit ok, ready_out, ready_in;
    do
    :: times == 0 -> break
    :: times > 0 ->
        times--;
        ok = 0;
again:
        /* Polls each, without locks. */
        ready_out = looks_sendable(out);
        ready_in = looks_receivable(1 - out);
        do
        :: !ok && ready_out -> atomic { !lock[out] -> try_send(out, value); ready_out = 0 }
        :: !ok && ready_in -> atomic { !lock[1 - out] -> try_recv(1 - out); ready_in = 0 }
        :: ok || (!ready_out && !ready_in) -> break
        od;
        ready_out = 0;
        ready_in = 0;
        if
        :: ok -> goto next
        :: else -> skip
        fi;
#ifdef LINK_APART
        atomic {
            !lock[out] -> try_send(out, value);
            if
            :: !ok -> waits[me] = 1; frame[me] = value; senders[out] ! me
            :: ok -> goto next
            fi
        }
        atomic {
            !lock[1 - out] -> receivers[1 - out] ! me;
            word[me] = PARKED
        }
#else
#ifdef ANY_ORDER
        atomic { !lock[out] -> lock[out] = 1 }
        atomic { !lock[1 - out] -> lock[1 - out] = 1 }
#else
        atomic { !lock[0] -> lock[0] = 1 }
        atomic { !lock[1] -> lock[1] = 1 }
#endif
        atomic {
#ifndef NO_POLL
            ready_out = looks_sendable(out) || looks_receivable(1 - out);
#endif
            if
            :: ready_out -> skip
            :: else ->
                waits[me] = 1;
                frame[me] = value;
                senders[out] ! me;
                receivers[1 - out] ! me;
                word[me] = PARKED
            fi
        }
        /* After the switch, if it parks. */
        lock[1] = 0;
        lock[0] = 0;
        if
        :: ready_out -> ready_out = 0; goto again
        :: else -> skip
        fi;
#endif
endparked:
        if
        :: word[me] != PARKED -> skip
        :: atomic { deadline && word[me] == PARKED -> word[me] = TIMER }
        fi;
        /* Every arm but the one that was served unlinks. */
#ifndef NO_LEAVE
#ifdef HALF_LEAVE
        if
        :: word[me] != (out == 0 -> BY1 : BY0) -> skip
        :: else -> goto left
        fi;
#endif
        atomic {
            !lock[out] ->
            if
            :: senders[out] ?? [eval(me)] -> senders[out] ?? eval(me)
            :: else -> skip
            fi
        }
left:
        atomic {
            !lock[1 - out] ->
            if
            :: receivers[1 - out] ?? [eval(me)] -> receivers[1 - out] ?? eval(me)
            :: else -> skip
            fi
        }
#endif
        atomic {
            waits[me] = 0;
            if
            :: word[me] == (out == 0 -> BY1 : BY0) -> book_received(frame[me])
            :: else -> skip
            fi;
            assert(word[me] != PARKED);
            word[me] = RUNNING;
            frame[me] = 0
        }
next:
        value++
    od;
    gone++
}

proctype sender(byte me, c, value) {
    byte other = NONE, candidate;
    bit ok;
    atomic {
        !lock[c] -> try_send(c, value);
        if
        :: ok -> skip
        :: !ok -> waits[me] = 1; frame[me] = value; senders[c] ! me; word[me] = PARKED
        fi
    }
endparked:
    atomic { word[me] != PARKED -> waits[me] = 0; word[me] = RUNNING }
    gone++
}

proctype receiver(byte me, c) {
    byte other = NONE, candidate;
    bit ok;
    atomic {
        !lock[c] -> try_recv(c);
        if
        :: ok -> skip
        :: !ok -> waits[me] = 1; frame[me] = 0; receivers[c] ! me; word[me] = PARKED
        fi
    }
endparked:
    atomic {
        word[me] != PARKED ->
        waits[me] = 0;
        if
        :: word[me] != RUNNING -> book_received(frame[me])
        :: else -> skip
        fi;
        word[me] = RUNNING
    }
    gone++
}

#define parked(p) (word[p] == PARKED)
/* The lists hold only parties that wait: what meets there could be done. */
#define stuck(c) ((len(receivers[c]) > 0 && (count[c] > 0 || len(senders[c]) > 0)) || \
                  (len(senders[c]) > 0 && count[c] < capacity[c]))
#define kept(v) (sent[v] == received[v] + (count[0] == 1 && slot[0] == v) + (count[1] == 1 && slot[1] == v))

init {
    bit deadline;
    atomic {
        if
        :: capacity[0] = 0
        :: capacity[0] = 1
        fi;
        if
        :: capacity[1] = 0
        :: capacity[1] = 1
        fi;
        if
        :: deadline = 0
        :: deadline = 1
        fi;
        run selector(0, 0, 1, 2, deadline);
        run selector(1, 1, 3, 1, 0);
        run sender(2, 0, 4);
        run receiver(3, 1)
    }
    timeout -> atomic {
        assert(!lock[0] && !lock[1]);
        assert(gone + parked(0) + parked(1) + parked(2) + parked(3) == PARTIES);
        assert(!stuck(0) && !stuck(1));
        assert(kept(1) && kept(2) && kept(3) && kept(4))
    }
}
