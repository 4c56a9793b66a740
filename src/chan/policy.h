/* policy.h - the thresholds of this room, each with its source: measured, a bound, or a guess. */
#ifndef CC_CHAN_POLICY_H
#define CC_CHAN_POLICY_H

/* When a channel becomes biased to a worker (CHANBIAS-3). */
enum {
    BIAS_USES_MIN = 64,      /* consecutive uses by one worker until the first bias. Guess */
    BIAS_USES_MAX = 1 << 24, /* the threshold grows no further. Guess */
    BIAS_RAISE_OWN = 2,      /* factor after a revocation by the worker itself, which costs little. Guess */
    BIAS_RAISE_OTHER = 32,   /* by another thread, some 20 us (measured): two or three per channel. Guess */
};

#endif
