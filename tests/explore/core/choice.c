/* choice.c - which thread runs next, which value a load returns.
 *
 * A run is determined by its choices, and most of them are the default: continue, read the latest. Deviations are
 * recorded (struct deviation), and replay the run whatever strategy found it.
 *
 * DFS     all runs with a bounded number of preemptions and old values; the choices of the previous run, up to the
 *         last one that has an alternative, are repeated. The choice of a successor when a thread blocks costs nothing.
 * random  each step is made by any thread, with the same probability; one load in four may be old.
 * PCT     random priorities; at depth-1 random steps the running thread gets the lowest one.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

struct settings settings;
struct deviation deviations[DEVIATIONS_MAX], replay[DEVIATIONS_MAX];
unsigned deviation_count, replay_count;

static uint64_t rng;
static uint64_t random_next(void) {
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return rng * UINT64_C(0x2545F4914F6CDD1D) >> 32;
}
static uint64_t below(uint64_t n) {
    return random_next() % n;
}

/* DFS */
struct frame {
    uint8_t n, taken;
};
enum { FRAMES_MAX = 4096 };
static struct frame frames[FRAMES_MAX];
static unsigned frame_count, frame_at;
static int preemptions_left, stale_left;

/* PCT */
enum { DEPTH_MAX = 8 };
static uint64_t change_at[DEPTH_MAX], run_length = 100;
static uint32_t least;
static unsigned next_replay;

void choice_begin(void) {
    deviation_count = 0;
    frame_at = 0;
    next_replay = 0;
    preemptions_left = settings.preemptions;
    stale_left = settings.strategy == BY_DFS ? settings.stale : 8;
    rng = (settings.seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 4; i++) (void)random_next();
    if (settings.strategy != BY_PCT) return;
    least = 1000;
    for (int i = 0; i < THREADS_MAX; i++) threads[i].priority = 2000 + (uint32_t)below(1000) * 8 + (uint32_t)i;
    for (int i = 0; i < DEPTH_MAX; i++) change_at[i] = i < settings.depth - 1 ? 1 + below(run_length) : UINT64_MAX;
}

bool choice_next(void) {
    while (frame_count > 0 && frames[frame_count - 1].taken + 1 >= frames[frame_count - 1].n) frame_count--;
    if (frame_count == 0) return false;
    frames[frame_count - 1].taken++;
    return true;
}

void choice_restart(void) {
    frame_count = 0;
}

void choice_set_length(uint64_t length) {
    run_length = length < 1 ? 1 : length;
}

static int dfs(int n) {
    if (frame_at == frame_count) {
        if (frame_count == FRAMES_MAX) ex_fail("more than %d choices in a run", FRAMES_MAX);
        frames[frame_count++] = (struct frame){(uint8_t)n, 0};
    }
    struct frame *f = &frames[frame_at++];
    if (f->n != n) ex_fail("the explorer itself: a run does not repeat (%d choices, %d before)", n, f->n);
    return f->taken;
}

static void record(char kind, int value) {
    if (deviation_count == DEVIATIONS_MAX) ex_fail("more than %d choices in a run", DEVIATIONS_MAX);
    deviations[deviation_count++] = (struct deviation){steps, kind, value};
}

/* The value that the replay has for this step; -1: the default. */
static int replayed(char kind) {
    while (next_replay < replay_count && replay[next_replay].step < steps) next_replay++;
    for (unsigned i = next_replay; i < replay_count && replay[i].step == steps; i++)
        if (replay[i].kind == kind) return replay[i].value;
    return -1;
}

static int by_priority(const int *candidates, int n) {
    for (int i = 0; i < settings.depth - 1 && i < DEPTH_MAX; i++)
        if (change_at[i] <= steps) {
            change_at[i] = UINT64_MAX;
            if (current >= 0) threads[current].priority = least--;
        }
    int best = 0;
    for (int i = 1; i < n; i++) {
        if (threads[candidates[i]].state == THREAD_BLOCKED && below(16) != 0) continue; /* time rarely passes */
        if (threads[candidates[i]].priority > threads[candidates[best]].priority) best = i;
    }
    return best;
}

void choice_lower(int thread) {
    if (settings.strategy == BY_PCT) threads[thread].priority = least--;
}

int choose_thread(char kind, const int *candidates, int n) {
    int chosen = 0;
    if (n <= 1 && settings.strategy != BY_REPLAY) return 0;
    switch (exploring ? settings.strategy : BY_DEFAULT) {
    case BY_DEFAULT:
        break;
    case BY_DFS:
        if (kind == 't' && preemptions_left == 0) return 0;
        chosen = dfs(n);
        if (kind == 't' && chosen != 0) preemptions_left--;
        break;
    case BY_LEARNING:
    case BY_RANDOM:
        chosen = (int)below((uint64_t)n);
        /* Time passes less often than threads take steps. */
        if (threads[candidates[chosen]].state == THREAD_BLOCKED && below(8) != 0) chosen = 0;
        break;
    case BY_PCT:
        chosen = by_priority(candidates, n);
        break;
    case BY_REPLAY: {
        int wanted = replayed(kind);
        for (int i = 0; wanted >= 0 && i < n; i++)
            if (candidates[i] == wanted) chosen = i;
        break;
    }
    }
    if (chosen != 0) record(kind, candidates[chosen]);
    return chosen;
}

int choose_value(int n) {
    int chosen = 0;
    if (n <= 1) return 0;
    switch (exploring ? settings.strategy : BY_DEFAULT) {
    case BY_DEFAULT:
        break;
    case BY_DFS:
        if (stale_left == 0) return 0;
        chosen = dfs(n);
        break;
    case BY_LEARNING:
    case BY_RANDOM:
    case BY_PCT:
        if (stale_left > 0 && below(4) == 0) chosen = (int)below((uint64_t)n);
        break;
    case BY_REPLAY: {
        int wanted = replayed('v');
        if (wanted > 0 && wanted < n) chosen = wanted;
        break;
    }
    }
    if (chosen != 0) {
        stale_left--;
        record('v', chosen);
    }
    return chosen;
}
