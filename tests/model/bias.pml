/* bias.pml - the biased lock of sync/bias.h, with the owner's store buffer, with and without membarrier.
 *
 * The owner's stores, the release of `others` included, pass through a buffer that drains at any time; its loads
 * overtake them. With membarrier the heavy barrier drains the buffer, as it does on the owner's CPU, and the light one
 * does nothing; without it (`symmetric`) the light barrier waits until the buffer is empty, and the heavy one, which is a
 * fence of another thread, does not affect the buffer. Two others revoke. A third clears `flag`, which the owner reads
 * inside, and waits until it has seen the owner outside (BIAS-5), as a thread does that revokes a channel's bias, or a canceller.
 *
 * Shows: never two inside; never two with what the flag guards; none waits for ever; while the owner waits, each of the
 * others gets in at most once.
 *
 * Mutants, each must fail:
 *   NO_HEAVY      the revoker does not use the heavy barrier
 *   LOOK_FIRST    the owner loads `revoked` before it stores INSIDE
 *   NO_LOCK       an owner that saw `revoked` does not wait for `others`
 *   NO_INSIDE      an owner that waited for `others` does not store INSIDE again
 *   KEEP_OTHERS   a revoker that gives up keeps `others`
 *   NO_RESPECT    the others re-enter repeatedly while the owner waits
 *   NO_LIGHT      without membarrier the owner has no fence either
 *   SLOW_NO_LIGHT an owner that waited for `others` loads the flag without a light barrier
 */
#define TIMES 2
#define OTHERS 2

#define AWAY 0
#define INSIDE 1
#define WAITING 2

byte place;
bit revoked, others, flag = 1;
bit symmetric; /* there is no membarrier */
chan buffer = [3] of { bool, byte }; /* the owner's stores, not yet visible: to `others`, or else to `place` */
byte passed;                   /* how many got in since the owner was seen waiting */
byte inside, users;
byte gone;

inline flush() { /* a full barrier of the owner's CPU */
    d_step {
        do
        :: buffer?[false, _] -> buffer?false, place
        :: buffer?[true, _] -> buffer?true, others
        :: else -> break
        od
    }
}

inline light() {
#ifndef NO_LIGHT
    if
    :: symmetric -> empty(buffer)
    :: else -> skip
    fi
#else
    skip
#endif
}

inline heavy() {
    if
    :: symmetric -> skip /* the others' stores are not buffered here */
    :: else -> flush()
    fi
}

inline use_shared() {
    users++;
    assert(users == 1);
    users--
}

active proctype memory() {
end:
    do
    :: buffer?false, place
    :: buffer?true, others
    od
}

proctype owner() {
    byte n;
    bit saw;
    do
    :: n < TIMES ->
        n++;
#ifdef LOOK_FIRST
        saw = revoked;
        buffer!false, INSIDE;
#else
        buffer!false, INSIDE;
        light();
        saw = revoked;
#endif
        if
        :: saw ->
            buffer!false, WAITING;
#ifndef NO_LOCK
            atomic { others == 0 && empty(buffer) -> others = 1; passed = 0 } /* a locked instruction: the buffer is empty */
#ifndef NO_INSIDE
            buffer!false, INSIDE;
#endif
            buffer!true, 0; /* a release: what was before it is visible before it is */
#endif
#ifndef SLOW_NO_LIGHT
            light()
#else
            skip
#endif
        :: else -> skip
        fi;
        inside++;
        assert(inside == 1);
        inside--;
        if
        :: flag -> use_shared()
        :: else -> skip
        fi;
        buffer!false, AWAY
    :: else -> break
    od;
    gone++
}

proctype other() {
    byte n;
    byte patience;
    do
    :: n < TIMES ->
        n++;
#ifndef NO_RESPECT
        if
        :: place == WAITING -> goto next
        :: else -> skip /* it may wait by the time the lock is ours */
        fi;
#endif
        if
        :: atomic { others == 0 -> others = 1 }
            revoked = 1;
#ifndef NO_HEAVY
            heavy();
#endif
            patience = 1;
            do
            :: place != INSIDE ->
                inside++;
                assert(inside == 1);
                inside--;
                if
                :: atomic { place == WAITING -> passed++; assert(passed <= OTHERS) }
                :: else -> skip
                fi;
                break
            :: place == INSIDE && patience > 0 -> patience--
            :: place == INSIDE && patience == 0 -> break /* the owner lost its CPU: give up */
            od;
            revoked = 0;
#ifdef KEEP_OTHERS
            if :: patience > 0 -> others = 0 :: else -> skip fi
#else
            others = 0
#endif
        :: others == 1 -> skip
        fi;
next:   skip
    :: else -> break
    od;
    gone++
}

proctype clearer() {
    flag = 0;
#ifndef NO_HEAVY
    heavy();
#endif
    place != INSIDE;
    use_shared();
    gone++
}

init {
    if
    :: symmetric = 0
    :: symmetric = 1
    fi;
    atomic { run owner(); run other(); run other(); run clearer() }
    timeout -> assert(gone == 4)
}
