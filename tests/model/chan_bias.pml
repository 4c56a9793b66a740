/* chan_bias.pml - a channel biased to a worker (chan/bias.c), with the worker's store buffer.
 *
 * The worker's stores to `place` pass through a buffer that drains at any time; its load of `bias` overtakes them.
 * Its accesses to the channel inside are plain. Two others use the channel: they lock it, revoke the bias, drain the
 * worker's buffer by the heavy barrier and wait until it is outside. The worker biases the channel to itself again,
 * under the lock.
 *
 * Shows: never two at the channel; the next one sees what one has written; none waits for ever.
 *
 * Mutants, each must fail:
 *   NO_HEAVY      the revoker does not use the heavy barrier
 *   NO_WAIT       it does not wait until the worker is outside
 *   NO_LOOK       the worker does not check `bias` again when it is inside
 *   LOOK_FIRST    it checks before it stores INSIDE
 *   BIAS_UNLOCKED it takes the bias without the lock
 */
#define TIMES 3

bit place, bias, lock; /* place: 1 inside; bias: 1 the worker's */
chan buffer = [4] of { bit };
byte at;    /* how many are at the channel */
byte count; /* plain data of the channel, as memory has it */
byte gone;

inline flush() {
    d_step {
        do
        :: nempty(buffer) -> buffer?place
        :: else -> break
        od
    }
}

inline use() {
    at++;
    assert(at == 1);
    count++;
    at--
}

active proctype memory() {
end:
    do
    :: buffer?place
    od
}

active proctype worker() {
    byte n;
    bit seen;
    do
    :: n < TIMES ->
        n++;
#ifdef LOOK_FIRST
        seen = bias;
        buffer!1;
#else
        buffer!1;
        seen = bias;
#endif
#ifdef NO_LOOK
        seen = 1;
#endif
        if
        :: seen ->
            use();
            buffer!0 /* release: what was done is visible before it */
        :: else ->
            buffer!0;
#ifdef BIAS_UNLOCKED
            bias = 1;
            n-- /* and the next time it is biased */
#else
            atomic { lock == 0 && empty(buffer) -> lock = 1 } /* a locked instruction: the buffer is empty */
            if
            :: bias == 0 -> skip
            :: else -> bias = 0 /* its own bias, which was made meanwhile: no other owner to wait for */
            fi;
            use();
            bias = 1;
            lock = 0
#endif
        fi
    :: else -> break
    od;
    gone++
}

proctype other() {
    byte n;
    do
    :: n < TIMES - 1 ->
        n++;
        atomic { lock == 0 -> lock = 1 }
        if
        :: bias == 1 ->
            bias = 0;
#ifndef NO_HEAVY
            flush();
#endif
#ifndef NO_WAIT
            place == 0;
#endif
        :: else -> skip
        fi;
        use();
        lock = 0
    :: else -> break
    od;
    gone++
}

init {
    atomic { run other(); run other() }
    timeout -> assert(gone == 3);
    assert(count == TIMES + 2 * (TIMES - 1))
}
