/* home.pml - a channel at home on a worker (chan/home.c), with the worker's store buffer.
 *
 * The worker's stores to `place` pass through a buffer that drains when it likes; its look at `home` overtakes them.
 * What it does to the channel inside is plain. Two others want the channel: they lock it, take the home away, drain the
 * worker's buffer by the heavy barrier and wait until it is outside. The worker makes the channel its home again,
 * under the lock.
 *
 * Shows: never two at the channel; what one has written the next one sees; nobody waits for ever.
 *
 * Mutants, each must fail:
 *   NO_HEAVY      the evictor does not use the heavy barrier
 *   NO_WAIT       it does not wait until the worker is outside
 *   NO_LOOK       the worker does not look again at `home` when it is inside
 *   LOOK_FIRST    it looks before it says INSIDE
 *   HOME_UNLOCKED it makes its home without the lock
 */
#define TIMES 3

bit place, home, lock; /* place: 1 inside; home: 1 the worker's */
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
        seen = home;
        buffer!1;
#else
        buffer!1;
        seen = home;
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
#ifdef HOME_UNLOCKED
            home = 1;
            n-- /* and the next time it is at home */
#else
            atomic { lock == 0 && empty(buffer) -> lock = 1 } /* a locked instruction: the buffer is empty */
            if
            :: home == 0 -> skip
            :: else -> home = 0 /* its own home, which came about meanwhile: nobody to wait for */
            fi;
            use();
            home = 1;
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
        :: home == 1 ->
            home = 0;
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
