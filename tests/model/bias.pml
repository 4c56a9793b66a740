/* bias.pml - the biased lock of sync/bias.h, with the owner's store buffer.
 *
 * The owner's stores to `busy` pass through a buffer that drains when it likes; its look at `revoked` overtakes them. The heavy barrier drains the buffer, as
 * membarrier makes the owner's CPU do. Two others revoke.
 *
 * Shows: never two inside; nobody waits for ever.
 *
 * Mutants, each must fail:
 *   NO_HEAVY      the revoker does not use the heavy barrier
 *   LOOK_FIRST    the owner looks at `revoked` before it sets `busy`
 *   NO_LOCK       an owner that saw `revoked` does not wait for `others`
 *   NO_BUSY       an owner that waited for `others` does not set `busy` again
 *   KEEP_OTHERS   a revoker that gives up keeps `others`
 */
#define TIMES 3

bit busy, revoked, others;
chan buffer = [3] of { bit }; /* the owner's stores to busy, not yet visible */
byte inside;
byte gone;

inline flush() { /* a full barrier of the owner's CPU */
    d_step {
        do
        :: nempty(buffer) -> buffer?busy
        :: else -> break
        od
    }
}

active proctype memory() {
end:
    do
    :: buffer?busy
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
        buffer!1;
#else
        buffer!1;
        saw = revoked;
#endif
        if
        :: saw ->
            buffer!0;
#ifndef NO_LOCK
            atomic { others == 0 && empty(buffer) -> others = 1 } /* a locked instruction: the buffer is empty */
#ifndef NO_BUSY
            buffer!1;
#endif
            atomic { empty(buffer) -> others = 0 } /* a release: what was before it is visible */
#endif
        :: else -> skip
        fi;
        inside++;
        assert(inside == 1);
        inside--;
        buffer!0
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
        if
        :: atomic { others == 0 -> others = 1 }
            revoked = 1;
#ifndef NO_HEAVY
            flush();
#endif
            patience = 2;
            do
            :: busy == 0 ->
                inside++;
                assert(inside == 1);
                inside--;
                break
            :: busy == 1 && patience > 0 -> patience--
            :: busy == 1 && patience == 0 -> break /* the owner lost its CPU: give up */
            od;
            revoked = 0;
#ifdef KEEP_OTHERS
            if :: patience > 0 -> others = 0 :: else -> skip fi
#else
            others = 0
#endif
        :: others == 1 -> skip
        fi
    :: else -> break
    od;
    gone++
}

init {
    atomic { run other(); run other() }
    timeout -> assert(gone == 3)
}
