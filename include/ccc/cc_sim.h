/* cc_sim.h - deterministic simulation: a program runs as if on one CPU, on a simulated clock, in a schedule chosen by a
 * seed.
 *
 * CC_SIM_SEED=17 ./program simulates a whole program; this header is for tests that simulate a part of themselves, or
 * need the seed. docs/simulation.md shows both, and cc-sim(1) searches for a failing seed.
 *
 * In a simulation the same seed gives the same run. Fibers may be switched wherever another thread could have
 * interfered; all times of cc_time.h are simulated: when no fiber is ready to run, the clock jumps to the next
 * deadline. A deadlock is detected at once. The network of cc_net.h, cc_buf.h and cc_dns.h is simulated too: hosts,
 * connections, datagrams and names exist only in the process, and the seed decides delays and faults. Nothing outside
 * this library is simulated: input, addresses of allocations and the time of day may still differ from run to run.
 */
#ifndef CCC_CC_SIM_H
#define CCC_CC_SIM_H

#include <ccc/cc_sched.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* Starts a simulated runtime with that seed, runs fn(arg) as its first fiber, and shuts the runtime down again: other
 * tasks have a second of simulated time to end, then their waits are cancelled as by cc_runtime_shutdown. *result (may
 * be NULL) gets the result of fn. The seed overrides CC_SIM_SEED. fn should create the objects to be simulated: calls
 * on channels that existed before switch only where they wait.
 *
 * EINVAL: seed is 0 or fn is NULL; EALREADY: the runtime is already running; EDEADLK: called from a fiber,
 * or by a thread_local destructor of a worker; ENOTRECOVERABLE: fn panicked; ETIMEDOUT: other tasks did not end, and
 * the runtime continues; ENOMEM, EAGAIN: no memory or no threads. If a second OS thread uses tasks, channels or locks
 * meanwhile, the program aborts. OS threads; blocks. */
CC_API int cc_sim_run(uint64_t seed, CCTaskFn fn, void *arg, void **result);

/* The seed of the running simulation, 0 if there is none: for the program's own random numbers and messages. Any
 * context; does not switch. */
CC_API uint64_t cc_sim_seed(void);

/* ---- hosts ----
 *
 * The program runs on host 0, which is always up, is called "localhost" and has the real files of the system. Further
 * hosts have names, which cc_resolve knows, addresses (10.0.0.2 and fd00::2 for the first) and their own files in
 * memory. A fiber runs on the host of the fiber that started it. All calls of this section: ENOTSUP outside a
 * simulation; any context. */

typedef uint32_t CCSimHost;

/* Finds or creates the host of that name; a new host is down. EINVAL: NULL, an empty name, or more than 63 bytes;
 * ENOSPC: 64 hosts exist. Does not switch. */
CC_API CC_MUST_CHECK int cc_sim_host(CCSimHost *host, const char *name);
/* The host that the caller runs on; 0 outside a simulation. Does not switch. */
CC_API CCSimHost cc_sim_host_self(void);

/* Starts the host: fn(arg) is its first fiber, in no nursery. After a crash it first waits for the old fibers of the
 * host to end. EALREADY: it is up, or it is host 0; EINVAL: no such host, fn is NULL; ENOMEM; ECANCELED. Switches. */
CC_API CC_MUST_CHECK int cc_sim_start(CCSimHost host, CCTaskFn fn, void *arg);

/* Simulates a power failure of the host. Its connections vanish without notice to their peers; its files keep what had
 * reached the disk: what was synced, and of the rest what the seed decides. Its fibers are cancelled, shielded or not:
 * all their waits end with ECANCELED, and so does every later call of cc_net.h, cc_dns.h and cc_file.h, so that they
 * return and free what they own. This includes a fiber that crashes its own host. EALREADY: it is down; EINVAL: no such
 * host, or host 0. Does not switch, except that the simulator may switch here. */
CC_API int cc_sim_crash(CCSimHost host);
/* Whether the host is up; and the number of its fibers, including those cancelled by a crash. */
CC_API bool cc_sim_is_up(CCSimHost host);
CC_API size_t cc_sim_fibers(CCSimHost host);

/* ---- the network ---- */

/* Blocks all packets between the two hosts until the deadline (CC_FOREVER: until cc_sim_heal): streams stall, datagrams
 * are lost. A second call for the same two replaces the first. EINVAL: no such host, or the same one twice. Does not
 * switch. */
CC_API int cc_sim_partition(CCSimHost a, CCSimHost b, CCDeadline until);
CC_API int cc_sim_heal(CCSimHost a, CCSimHost b);

/* The behaviour of the network. Rates are in parts per million: of connects, of writes, of reads and so on. The seed
 * chooses all of this; some seeds choose a network without faults. */
typedef struct CCSimNet {
    uint32_t latency_min_us, latency_max_us; /* of a packet, one way */
    uint32_t slow_ppm;                       /* packets that take up to fifty times as long */
    uint32_t window;                         /* unread bytes that a stream buffers; 1 to 1048576 */
    uint32_t short_ppm;                      /* short reads and writes */
    uint32_t reset_ppm;                      /* writes after which the connection is reset on both sides */
    uint32_t half_open_ppm;                  /* writes after which nothing arrives on that connection any more */
    uint32_t refuse_ppm;                     /* connects that are refused */
    uint32_t black_hole_ppm;                 /* connects without an answer: ETIMEDOUT after 127 seconds */
    uint32_t no_descriptor_ppm;              /* sockets, accepts and opened files that fail with EMFILE */
    uint32_t loss_ppm;                       /* datagrams that are lost */
    uint32_t duplicate_ppm;                  /* datagrams that arrive twice */
    uint32_t name_ppm;                       /* lookups that fail with EREMOTEIO, after a while */
    uint32_t partition_ppm;                  /* packets between two hosts that start a partition of up to 10 seconds */
    uint64_t reserved[4] CC__ZERO;           /* 0; see cc_base.h */
} CCSimNet;

/* cc_sim_net returns the current behaviour, as chosen by the seed or set by cc_sim_net_set. cc_sim_net_set replaces it;
 * what concerns connections applies to new ones. EINVAL: NULL; latency_max_us < latency_min_us or more than a minute, a
 * rate above 1000000, a window out of range. Does not switch. */
CC_API int cc_sim_net(CCSimNet *net);
CC_API int cc_sim_net_set(const CCSimNet *net);

/* Counters since the start of the simulation. */
typedef struct CCSimStats {
    uint64_t packets, bytes; /* that have arrived */
    uint64_t connects, accepts;
    uint64_t shorts, resets, half_opens, refusals, black_holes, no_descriptors, losses, duplicates, name_failures;
    uint64_t partitions; /* by the seed or the program */
    uint64_t held;       /* packets delayed by a partition */
    uint64_t crashes;
    uint64_t writes_lost, writes_torn, names_lost; /* by crashes: of files */
    uint64_t syncs;
    uint64_t reserved[4];
} CCSimStats;
CC_API int cc_sim_stats(CCSimStats *stats);

CC_END_DECLS

#endif
