"""Echo servers side by side: CPU time of the server for a request, requests per second, latency.

  python3 bench/io/run.py [-c 1,64,1000] [-s 32,1024] [-w 1,2] [-t SECONDS] [-r REPEATS] [--only ccc,net,epoll,go,tokio,uv]
                          [--half] [--ticker] [--built] [--append]

--half: then each row again at half of what the slowest of its servers got through, the same number of requests in a second for
all, server and load with real-time priority where that is permitted: what else runs on the machine has slices of milliseconds,
and would be the p99 of everybody. --ticker: how late 50 fibers of our server wake that sleep 50 ms at a time, beside the most connections, all of them busy;
with several workers, which share their CPUs with the load, the server has real-time priority.
--built: with the programs of the last run. --append: to its results, so that a run can be made in pieces.

The server has the first CPU and the load the last one; with several workers neither is bound. All traffic stays on the loopback
interface. What is compared runs in turns; the least CPU time of all repetitions counts.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "bench" / "io"
HERE = ROOT / "bench" / "io"
TICK = os.sysconf("SC_CLK_TCK")


OURS = {"ccc": "echo", "net": "net_echo"}  # raw descriptors; connections of cc_net


def built(name):
    program = ROOT / f"build/release/bench/io/{OURS[name]}" if name in OURS else OUT / name
    return [program] if program.exists() else None


def build(name):
    """The command of a server, or None when it cannot be built here."""
    program = OUT / name
    if name in OURS:
        target = OURS[name]
        subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "--preset", "release", "-j", "2", "--target", f"bench_io_{target}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return built(name)
    commands = {
        "epoll": ["gcc", "-O2", "-D_GNU_SOURCE", HERE / "rivals/epoll.c", "-o", program],
        "uv": ["gcc", "-O2", "-D_GNU_SOURCE", HERE / "rivals/uv.c", "-o", program, "-luv"],
        "go": ["go", "build", "-o", program, HERE / "rivals/echo.go"],
    }
    try:
        if name == "tokio":
            source = OUT / "tokio-src"
            shutil.copytree(HERE / "rivals/tokio", source, dirs_exist_ok=True)
            command = ["cargo", "build", "--release", "--manifest-path", source / "Cargo.toml", "--target-dir", OUT / "tokio-build"]
            subprocess.run(command, check=True, capture_output=True)
            shutil.copy(OUT / "tokio-build/release/echo", program)
        else:
            subprocess.run(commands[name], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as why:
        print(f"{name} takes no part: {why}", file=sys.stderr)
        return None
    return [program]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat") as f:  # the main thread only; the sum is over all threads
        f.read()
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) * 1024


def real_time():
    """From now on nothing else of the machine gets in between; where that is not permitted: as always."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


def begin(cpus, rate):
    """What a server, or the load, does first."""
    os.sched_setaffinity(0, cpus)
    if rate:
        real_time()


def measure(command, connections, size, workers, seconds, rate=None, tickers=None):
    cpus = sorted(os.sched_getaffinity(0))
    bind = {cpus[0]} if workers == 1 else set(cpus)
    server = subprocess.Popen(
        [*map(str, command), str(workers), *([str(tickers)] if tickers else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: begin(bind, rate or (tickers and workers > 1)),
    )
    try:
        port = server.stdout.readline().split()[1]
        before_rss = rss(server.pid)
        load = subprocess.Popen(
            [str(OUT / "load"), port, str(connections), str(seconds), str(size), *([str(rate)] if rate else [])],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: begin({cpus[-1]} if workers == 1 else set(cpus), rate),
        )
        if load.stdout.readline().strip() != "ready":
            return None
        before = cpu_seconds(server.pid)
        if tickers:
            server.stdin.write(".")  # from now on
            server.stdin.flush()
        line = load.stdout.readline()
        used = cpu_seconds(server.pid) - before
        memory = (rss(server.pid) - before_rss) / connections
        if tickers:
            server.stdin.close()
            line += server.stdout.readline()
        if load.wait() != 0 or not line:
            return None
        values = {key: float(value) for key, value in (word.split("=") for word in line.split())}
        return {**values, "cpu_us": used * 1e6 / max(values["requests"], 1), "bytes": memory}
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def one_thread(name):
    return name in ("epoll", "uv")


def row(servers, results, workers, connections, size, seconds, repeats, rate=None):
    """All servers in turns; returns the best of each."""
    runs = {name: [] for name in servers}
    for _ in range(repeats):
        for name, command in servers.items():
            if workers > 1 and one_thread(name):
                continue
            run = measure(command, connections, size, workers, seconds, rate)
            if run:
                runs[name].append(run)
    found = {}
    for name, all_runs in runs.items():
        if not all_runs:
            continue
        best = found[name] = min(all_runs, key=lambda run: run["cpu_us"])
        best["per_s"] = max(run["per_s"] for run in all_runs)
        for key in ("p50_us", "p99_us", "p999_us", "sent_late_p99_us"):
            best[key] = min(run[key] for run in all_runs)
        results.append({"server": name, "workers": workers, "connections": connections, "size": size, "rate": rate, **best})
        figures = "".join(f"{best[key]:>9.1f}" for key in ("p50_us", "p99_us", "p999_us"))
        print(f"{name:<8}{workers:>8}{connections:>7}{size:>7}{best['cpu_us']:>9.2f}{best['per_s']:>9.0f}{figures}{best['bytes']:>8.0f}{best['sent_late_p99_us']:>9.1f}", flush=True)
    return found


def ticker(command, results, workers, connections, seconds, repeats):
    runs = [run for _ in range(repeats) if (run := measure(command, connections, 32, workers, seconds, tickers=50))]
    if not runs:
        return
    best = min(runs, key=lambda run: run["late_p999_us"])
    results.append({"server": "ccc", "ticker": True, "workers": workers, "connections": connections, "size": 32, **best})
    late = ", ".join(f"{name} {best[key]:.0f} us" for name, key in (("p50", "late_p50_us"), ("p99", "late_p99_us"), ("p99.9", "late_p999_us")))
    print(f"ticker  {workers:>8}{connections:>7}  late by {late} ({best['ticks']:.0f} ticks)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--connections", default="1,64,1000")
    parser.add_argument("-s", "--sizes", default="32")
    parser.add_argument("-w", "--workers", default="1,2")
    parser.add_argument("-t", "--seconds", type=float, default=1)
    parser.add_argument("-r", "--repeats", type=int, default=3)
    parser.add_argument("--only", default="ccc,net,epoll,go,tokio,uv")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--ticker", action="store_true")
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--append", action="store_true")
    chosen = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if not chosen.built:
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", HERE / "load.c", "-o", OUT / "load"], check=True)
    find = built if chosen.built else build
    servers = {name: command for name in chosen.only.split(",") if (command := find(name))}
    numbers = lambda text: [int(word) for word in text.split(",")]
    results = json.loads((OUT / "results.json").read_text()) if chosen.append else []
    print(f"{'server':<8}{'workers':>8}{'conns':>7}{'bytes':>7}{'CPU us':>9}{'req/s':>9}{'p50 us':>9}{'p99 us':>9}{'p99.9':>9}{'B/conn':>8}{'sent late':>10}")
    for size in numbers(chosen.sizes):
        for connections in numbers(chosen.connections):
            for workers in numbers(chosen.workers):
                found = row(servers, results, workers, connections, size, chosen.seconds, chosen.repeats)
                if chosen.half and found:
                    rate = min(best["per_s"] for best in found.values()) // 2
                    row(servers, results, workers, connections, size, chosen.seconds, chosen.repeats, rate)
    if chosen.ticker and "ccc" in servers:
        for workers in numbers(chosen.workers):
            ticker(servers["ccc"], results, workers, max(numbers(chosen.connections)), chosen.seconds, chosen.repeats)
    (OUT / "results.json").write_text(json.dumps(results, indent=1) + "\n")


main()
