/* bias.pml - the biased lock of sync/bias.h, with the owner's store buffer.
 *
 * The owner's stores to `place` pass through a buffer that drains when it likes; its look at `revoked` overtakes
 * them. The heavy barrier drains the buffer, as membarrier makes the owner's CPU do. Two others revoke.
 *
 * Shows: never two inside; nobody waits for ever; while the owner waits, each other gets in at most once.
 *
 * Mutants, each must fail:
 *   NO_HEAVY      the revoker does not use the heavy barrier
 *   LOOK_FIRST    the owner looks at `revoked` before it says INSIDE
 *   NO_LOCK       an owner that saw `revoked` does not wait for `others`
 *   NO_INSIDE      an owner that waited for `others` does not say INSIDE again
 *   KEEP_OTHERS   a revoker that gives up keeps `others`
 *   NO_RESPECT    the others come again and again while the owner waits
 */
#define TIMES 3
#define OTHERS 2

#define AWAY 0
#define INSIDE 1
#define WAITING 2

byte place;
bit revoked, others;
chan buffer = [3] of { byte }; /* the owner's stores to place, not yet visible */
byte passed;                   /* how many got in since the owner was seen waiting */
byte inside;
byte gone;

inline flush() { /* a full barrier of the owner's CPU */
    d_step {
        do
        :: nempty(buffer) -> buffer?place
        :: else -> break
        od
    }
}

active proctype memory() {
end:
    do
    :: buffer?place
    od
}

active proctype owner() {
    byte n;
    bit saw;
    do
    :: n < TIMES ->
        n++;
#ifdef LOOK_FIRST
        saw = revoked;
        buffer!INSIDE;
#else
        buffer!INSIDE;
        saw = revoked;
#endif
        if
        :: saw ->
            buffer!WAITING;
#ifndef NO_LOCK
            atomic { others == 0 && empty(buffer) -> others = 1; passed = 0 } /* a locked instruction: the buffer is empty */
#ifndef NO_INSIDE
            buffer!INSIDE;
#endif
            atomic { empty(buffer) -> others = 0 } /* a release: what was before it is visible */
#endif
        :: else -> skip
        fi;
        inside++;
        assert(inside == 1);
        inside--;
        buffer!AWAY
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
            flush();
#endif
            patience = 2;
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

init {
    atomic { run other(); run other() }
    timeout -> assert(gone == 3)
}
