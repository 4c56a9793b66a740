/* cc_sim.h - simulation: a program runs as if on one CPU, with a simulated clock, under a schedule that a seed decides.
 *
 * CC_SIM_SEED=17 ./program simulates a whole program; this header is for tests that simulate a part of themselves, or
 * need the seed. docs/simulation.md shows both, and cc-sim(1) searches seeds.
 *
 * In a simulation the same seed makes the same run. Fibers are switched wherever another thread could have
 * interfered; all times of cc_time.h are simulated: when no fiber is ready to run, the clock jumps to the next
 * deadline. A deadlock is detected at once. The network of cc_net.h, cc_buf.h and cc_dns.h is simulated, too: hosts,
 * connections, datagrams and names are in the process, and the seed decides how late and how badly bytes travel.
 * Nothing is simulated outside of this library: what the program reads, where its allocations lie and what the time of
 * day is may still differ from run to run.
 */
#ifndef CCC_CC_SIM_H
#define CCC_CC_SIM_H

#include <ccc/cc_sched.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* Starts the runtime, simulated with that seed, runs fn(arg) as its first fiber, and shuts the runtime down again:
 * other tasks have a second of simulated time to end, then their waits are cancelled as by cc_runtime_shutdown. *result
 * (may be NULL) is what fn returned. The seed overrides CC_SIM_SEED. fn should create what is to be simulated: at
 * channels that existed before, fibers are switched only where they wait.
 *
 * EINVAL: seed is 0 or fn is NULL; EALREADY: the runtime runs; EDEADLK: called from a fiber; ENOTRECOVERABLE: fn ended
 * by a panic; ETIMEDOUT: other tasks did not end, and the runtime goes on; ENOMEM, EAGAIN: no memory or no threads. A
 * second OS thread that uses tasks, channels or locks meanwhile ends the program. OS threads; blocks. */
CC_API int cc_sim_run(uint64_t seed, CCTaskFn fn, void *arg, void **result);

/* The seed of the running simulation, 0 if there is none: for a program's own random numbers, and for
 * messages. Any context; does not switch. */
CC_API uint64_t cc_sim_seed(void);

/* ---- hosts ----
 *
 * The program is on host 0, which is always up, is called "localhost" and has the files of the system. Further hosts
 * have names, which cc_resolve knows, addresses (10.0.0.2 and fd00::2 for the first) and files of their own, which are
 * in memory. A fiber is on the host of the fiber that started it. All calls of this part: ENOTSUP when nothing is
 * simulated; any context. */

typedef uint32_t CCSimHost;

/* The host of that name, which is made if there is none; a new one is down. EINVAL: NULL, an empty name, one of more
 * than 63 bytes; ENOSPC: there are 64. Does not switch. */
CC_API CC_MUST_CHECK int cc_sim_host(CCSimHost *host, const char *name);
/* The host that the caller is on; 0 when nothing is simulated. Does not switch. */
CC_API CCSimHost cc_sim_host_self(void);

/* Starts the host: fn(arg) is its first fiber, in no nursery. After a crash the fibers that were on it are waited for.
 * EALREADY: it is up, or it is host 0; EINVAL: no such host, fn is NULL; ENOMEM; ECANCELED. Switches. */
CC_API CC_MUST_CHECK int cc_sim_start(CCSimHost host, CCTaskFn fn, void *arg);

/* The host loses its power. Its connections vanish without a word to their peers; its files are what had reached the
 * disk: what was synced, and of the rest what the seed decides. Its fibers are cancelled, shields or not: whatever they
 * wait for ends with ECANCELED, and so does every call of cc_net.h, cc_dns.h and cc_file.h that they make from then on;
 * so they return, and free what they own. A fiber that crashes its own host goes on so, too. EALREADY: it is down;
 * EINVAL: no such host, or host 0. Does not switch, but for a point. */
CC_API int cc_sim_crash(CCSimHost host);
/* Whether it is up; and how many fibers are on it, those that a crash has cancelled included. */
CC_API bool cc_sim_is_up(CCSimHost host);
CC_API size_t cc_sim_fibers(CCSimHost host);

/* ---- the network ---- */

/* Nothing passes between the two until then (CC_FOREVER: until cc_sim_heal): streams stall, datagrams are lost. A
 * second call for the same two replaces the first. EINVAL: no such host, or twice the same. Does not switch. */
CC_API int cc_sim_partition(CCSimHost a, CCSimHost b, CCDeadline until);
CC_API int cc_sim_heal(CCSimHost a, CCSimHost b);

/* How the network behaves. Rates are in a million: of connects, of writes, of reads and so on. The seed chooses all of
 * this; some seeds choose a network without faults. */
typedef struct CCSimNet {
    uint32_t latency_min_us, latency_max_us; /* of a packet, one way */
    uint32_t slow_ppm;                       /* packets that take up to fifty times as long */
    uint32_t window;               /* bytes that a stream takes beyond what its reader has read; 1 to 1048576 */
    uint32_t short_ppm;            /* reads and writes that move less than they could */
    uint32_t reset_ppm;            /* writes after which both sides find the connection reset */
    uint32_t half_open_ppm;        /* writes after which nothing of that connection arrives any more */
    uint32_t refuse_ppm;           /* connects that are refused */
    uint32_t black_hole_ppm;       /* connects that nobody answers: ETIMEDOUT after 127 seconds */
    uint32_t no_descriptor_ppm;    /* sockets and accepts that fail with EMFILE */
    uint32_t loss_ppm;             /* datagrams that are lost */
    uint32_t duplicate_ppm;        /* datagrams that arrive twice */
    uint32_t name_ppm;             /* lookups that fail with EREMOTEIO, after a while */
    uint32_t partition_ppm;        /* packets between two hosts after which these are cut off for up to 10 seconds */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCSimNet;

/* What the seed has chosen, or cc_sim_net_set; and in its place: for connections that are made from then on, as far as
 * it concerns those. EINVAL: NULL; latency_max_us < latency_min_us or beyond a minute, a rate beyond 1000000, another
 * window. Does not switch. */
CC_API int cc_sim_net(CCSimNet *net);
CC_API int cc_sim_net_set(const CCSimNet *net);

/* What has happened since the simulation began. */
typedef struct CCSimStats {
    uint64_t packets, bytes; /* that have arrived */
    uint64_t connects, accepts;
    uint64_t shorts, resets, half_opens, refusals, black_holes, no_descriptors, losses, duplicates, name_failures;
    uint64_t partitions; /* by the seed or the program */
    uint64_t held;       /* packets that one has held up */
    uint64_t crashes;
    uint64_t writes_lost, writes_torn, names_lost; /* by crashes: of files */
    uint64_t syncs;
    uint64_t reserved[4];
} CCSimStats;
CC_API int cc_sim_stats(CCSimStats *stats);

CC_END_DECLS

#endif
