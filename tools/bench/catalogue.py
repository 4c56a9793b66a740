"""What is measured, against whom, and how far we want to go: the rows, the runtimes, the series.

A row is one program of bench/ with one and with two workers; its goal is what libccc is meant to reach, in ns for one
operation, on the machine with two CPUs that the goals were set on. A series is one program over a range of one parameter.
"""

from dataclasses import dataclass, field


@dataclass
class Row:
    name: str
    what: str
    goal: tuple = ()
    unit: float = 1  # of the figures, in ns


ROWS = [
    Row("yield", "2 fibers yield in turn", (12, 9)),
    Row("yield1k", "1000 fibers yield in turn", (15, 9)),
    Row("spawn_join", "start a task, join it", (50, 60)),
    Row("spawn_batch", "start a million tasks, then join them", (80, 90)),
    Row("spawn_turn", "tasks that get a turn on their own stack"),
    Row("nursery", "a million tasks in one nursery"),
    Row("fib", "fork-join: a task in fib(27)", (50, 40)),
    Row("skynet", "a tree of tasks with a million leaves", (160, 140)),
    Row("pingpong", "rendezvous, there and back", (60, 70)),
    Row("spsc", "a value, capacity 128", (18, 17)),
    Row("spsc_cap1", "a value, capacity 1", (40, 45)),
    Row("mpmc", "4 producers, 4 consumers, capacity 128", (26, 33)),
    Row("ring", "a hop in a ring of 503 fibers", (35, 40)),
    Row("select", "a value from one of two channels", (65, 100)),
    Row("sieve", "a prime of the concurrent sieve", (35, 40), 1000),
    Row("mutex", "lock and unlock, 16 fibers", (12, 14)),
    Row("timers", "a sleeper among 100,000", (2000, 1200)),
    Row("parked", "a parked fiber among 100,000", (2000, 1400)),
]

# The programs of bench/work: work as programs do it. Wall time and CPU time count; where latency matters, percentiles do.
WORK = [
    Row("actors", "1000 actors, messages at random"),
    Row("request", "64 clients, 8 servers: request and reply"),
    Row("fanout0", "jobs of 0 µs for 16 fibers"),
    Row("fanout5", "jobs of 5 µs", unit=1000),
    Row("fanout50", "jobs of 50 µs", unit=1000),
    Row("service_5k", "open loop, 5,000 requests/s", unit=1000),
    Row("service_30k", "open loop, 30,000 requests/s", unit=1000),
    Row("broadcast_chan", "1000 subscribers, by channels"),
    Row("broadcast_cond", "1000 waiters at a condition"),
    Row("rwlock", "readers and writers, 64 fibers"),
    Row("waves", "waves of 1000 deep stacks", unit=1000),
    Row("nest", "nested nurseries, three children each"),
    Row("timeouts", "waits with a deadline that never passes"),
    Row("cold", "process: start, one task, exit", unit=1000),
    Row("chameneos", "ten creatures meet in pairs"),
    Row("tree", "an unbalanced tree, fork and join"),
    Row("sort", "merge sort, fork and join"),
    Row("pipeline", "four stages of 1 µs, eight times", unit=1000),
    Row("stages", "one pipeline of unequal stages", unit=1000),
    Row("sessions", "100,000 sessions with heartbeats", unit=1000),
    Row("limited", "20,000 fibers, 64 permits, sleeps", unit=1000),
    Row("bursts", "30 jobs of 20 µs after each pause", unit=1000),
    Row("cache", "200 clients of a cache behind one mutex"),
    Row("log", "64 senders of lines, one writer with a select"),
]
WORK_RUNTIMES = ("ccc", "go", "tokio")
PACED = ("service_5k", "service_30k")  # their wall time is the arrival rate's

# Memory of a parked fiber, from the row `parked`: bytes resident, and in page tables.
MEMORY_GOAL = 4700


@dataclass
class Runtime:
    name: str
    title: str
    lacks: dict = field(default_factory=dict)  # row -> why it is missing
    scales: dict = field(default_factory=dict)  # row -> factor on n, where the full n takes too long or too much memory
    tasks: str = "fibers"  # what stands for a fiber


FORK_JOIN = ("spawn_join", "spawn_batch", "nursery", "fib", "skynet")
RUNTIMES = [
    Runtime("ccc", "libccc"),
    Runtime("go", "Go", tasks="goroutines"),
    Runtime("tokio", "Tokio", tasks="futures without stacks"),
    Runtime(
        "may",
        "may",
        {name: "its channels have no limit" for name in ("spsc", "spsc_cap1", "mpmc", "sieve")}
        | {"select": "its select differs", "nursery": "no nursery", "skynet": "32,000 at once are the most"},
        {"spawn_batch": 0.02, "fib": 0.1, "timers": 0.2, "parked": 0.2, "spawn_join": 0.2, "spawn_turn": 0.2},
        "coroutines",
    ),
    Runtime(
        "boost",
        "Boost.Fiber",
        {"select": "no select", "nursery": "no nursery"},
        {"spawn_batch": 0.1, "skynet": 0.1, "spsc_cap1": 0.5, "spawn_join": 0.5, "timers": 0.5, "parked": 0.5},
    ),
    Runtime(
        "tbb",
        "oneTBB",
        {row.name: "only fork and join" for row in ROWS if row.name not in FORK_JOIN},
        tasks="tasks that cannot wait",
    ),
    Runtime(
        "pthreads",
        "OS threads",
        {
            "select": "no select",
            "nursery": "no nursery",
            "fib": "too many threads at once",
            "skynet": "too many threads at once",
            "sieve": "half a minute",
        },
        dict(
            {"yield": 0.1, "yield1k": 0.1, "spsc": 0.2, "mpmc": 0.2, "timers": 0.1, "parked": 0.1},
            **{name: 0.02 for name in ("spawn_join", "spawn_batch", "spawn_turn", "pingpong", "spsc_cap1", "ring")},
        ),
        "OS threads",
    ),
]


@dataclass
class Series:
    """One program over a range of one parameter. The table's own rows among them are those of bench/ by the number of workers."""

    program: str
    axis: str
    points: list
    workers: object = 2  # a number, or None: the parameter is the number of workers
    scale: float = 1
    runtimes: tuple = ("ccc", "go", "tokio")


DECADES = [10, 100, 1000, 10_000, 100_000, 1_000_000]
WORKERS = [1, 2, 4, 8]
SERIES = [
    Series("scale_yield", "fibers", DECADES),
    Series("scale_pairs", "fibers", DECADES),
    Series("scale_parked", "fibers", DECADES),
    Series("scale_timers", "sleepers", DECADES),
    Series("scale_capacity", "capacity", [0, 1, 2, 4, 16, 64, 256, 1024, 4096]),
    Series("scale_size", "bytes in a value", [8, 64, 256, 1024, 4096, 16384, 65536]),
    Series("scale_arms", "arms", [1, 2, 4, 8, 16, 32, 64]),
    Series("latency", "busy fibers", [0, 1, 4, 16, 64, 256]),
    Series("tail", "sends for one long turn", [5, 100, 1000]),
    Series("idle", "parked fibers", [10_000]),
    Series("fib", "workers", WORKERS, None),
    Series("yield1k", "workers", WORKERS, None),
    Series("mpmc", "workers", WORKERS, None, 0.5),
    Series("mutex", "workers", WORKERS, None),
]


@dataclass
class Plot:
    """A picture of one or several panels; a panel is (title, program, key of the value or "" for ns, factor, unit).

    Instead of a key, (parameter, [(label, key), ...]) shows several values of one point."""

    name: str
    title: str
    panels: list


DISTRIBUTION = [("50", "p50_us"), ("90", "p90_us"), ("99", "p99_us"), ("99.9", "p999_us"), ("99.99", "p9999_us"), ("max", "max_us")]
PLOTS = [
    Plot("fibers", "From ten fibers to a million, two workers", [
        ("1 yield", "scale_yield", "", 1, "ns"),
        ("1 message, in pairs", "scale_pairs", "", 1, "ns"),
        ("1 fiber: made, parked, ended", "scale_parked", "", 1e-3, "µs"),
    ]),
    Plot("memory", "Memory of waiting fibers", [
        ("while parked, page tables included", "scale_parked", "bytes", 1, "bytes for each"),
        ("0.2 s after all have ended", "scale_parked", "after_bytes", 1, "bytes for each"),
    ]),
    Plot("timers", "Sleeping fibers, two workers", [
        ("CPU time for 1 sleep", "scale_timers", "", 1e-3, "µs"),
        ("too long: median", "scale_timers", "late_p50_us", 1, "µs"),
        ("too long: 1 of 1000", "scale_timers", "late_p999_us", 1, "µs"),
    ]),
    Plot("channels", "Channels, two workers", [
        ("1 value, by capacity", "scale_capacity", "", 1, "ns"),
        ("1 value, by size (capacity 16)", "scale_size", "", 1, "ns"),
        ("1 value, by arms of a select", "scale_arms", "", 1, "ns"),
    ]),
    Plot("latency", "From a send to the receiver's turn, beside busy fibers, two workers", [
        ("median", "latency", "p50_us", 1, "µs"),
        ("1 of 100 takes longer", "latency", "p99_us", 1, "µs"),
        ("1 of 1000 takes longer", "latency", "p999_us", 1, "µs"),
        ("the distribution, 16 busy fibers", "latency", (16, DISTRIBUTION), 1, "µs"),
    ]),
    Plot("tail", "From a send to the receiver's turn, when one sender in N computes for 3 ms, two workers", [
        ("median", "tail", "p50_us", 1, "µs"),
        ("1 of 100 takes longer", "tail", "p99_us", 1, "µs"),
        ("1 of 1000 takes longer", "tail", "p999_us", 1, "µs"),
        ("the distribution, one in 100", "tail", (100, DISTRIBUTION), 1, "µs"),
    ]),
    Plot("wakeup", "How much too long a sleep of 0.5 ms is, beside busy fibers, two workers", [
        ("median", "latency", "late_p50_us", 1, "µs"),
        ("1 of 100 takes longer", "latency", "late_p99_us", 1, "µs"),
        ("1 of 1000 takes longer", "latency", "late_p999_us", 1, "µs"),
    ]),
    Plot("workers", "From one worker to eight", [
        ("fib(27), 1 task", "fib", "", 1, "ns"),
        ("1000 fibers, 1 yield", "yield1k", "", 1, "ns"),
        ("4 producers, 4 consumers, 1 value", "mpmc", "", 1, "ns"),
        ("16 fibers, 1 lock and unlock", "mutex", "", 1, "ns"),
    ]),
]
