"""Echo servers side by side: CPU time of the server for a request, requests per second, latency.

  python3 bench/io/run.py [-c 1,64,1000] [-s 32,1024] [-w 1,2] [-t SECONDS] [-r REPEATS] [--only ccc,epoll,go,tokio,uv]

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


def build(name):
    """The command of a server, or None when it cannot be built here."""
    program = OUT / name
    if name == "ccc":
        subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "--preset", "release", "-j", "2", "--target", "bench_io_echo"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return [ROOT / "build/release/bench/io/echo"]
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


def measure(command, connections, size, workers, seconds):
    cpus = sorted(os.sched_getaffinity(0))
    bind = {cpus[0]} if workers == 1 else set(cpus)
    server = subprocess.Popen([*map(str, command), str(workers)], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, bind))
    try:
        port = server.stdout.readline().split()[1]
        before_rss = rss(server.pid)
        load = subprocess.Popen(
            [str(OUT / "load"), port, str(connections), str(seconds), str(size)],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpus[-1]} if workers == 1 else set(cpus)),
        )
        if load.stdout.readline().strip() != "ready":
            return None
        before = cpu_seconds(server.pid)
        line = load.stdout.readline()
        used = cpu_seconds(server.pid) - before
        memory = (rss(server.pid) - before_rss) / connections
        if load.wait() != 0 or not line:
            return None
        values = {key: float(value) for key, value in (word.split("=") for word in line.split())}
        return {**values, "cpu_us": used * 1e6 / max(values["requests"], 1), "bytes": memory}
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--connections", default="1,64,1000")
    parser.add_argument("-s", "--sizes", default="32")
    parser.add_argument("-w", "--workers", default="1,2")
    parser.add_argument("-t", "--seconds", type=float, default=1)
    parser.add_argument("-r", "--repeats", type=int, default=3)
    parser.add_argument("--only", default="ccc,epoll,go,tokio,uv")
    chosen = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", HERE / "load.c", "-o", OUT / "load"], check=True)
    servers = {name: command for name in chosen.only.split(",") if (command := build(name))}
    numbers = lambda text: [int(word) for word in text.split(",")]
    results = []
    print(f"{'server':<8}{'workers':>8}{'conns':>7}{'bytes':>7}{'CPU us':>9}{'req/s':>9}{'p50 us':>9}{'p99 us':>9}{'p99.9':>9}{'B/conn':>8}")
    for size in numbers(chosen.sizes):
        for connections in numbers(chosen.connections):
            for workers in numbers(chosen.workers):
                runs = {name: [] for name in servers}
                for _ in range(chosen.repeats):
                    for name, command in servers.items():
                        if workers > 1 and name in ("epoll", "uv"):
                            continue  # one thread each
                        run = measure(command, connections, size, workers, chosen.seconds)
                        if run:
                            runs[name].append(run)
                for name, all_runs in runs.items():
                    if not all_runs:
                        continue
                    best = min(all_runs, key=lambda run: run["cpu_us"])
                    best["per_s"] = max(run["per_s"] for run in all_runs)
                    for key in ("p50_us", "p99_us", "p999_us"):
                        best[key] = min(run[key] for run in all_runs)
                    results.append({"server": name, "workers": workers, "connections": connections, "size": size, **best})
                    figures = "".join(f"{best[key]:>9.1f}" for key in ("p50_us", "p99_us", "p999_us"))
                    print(f"{name:<8}{workers:>8}{connections:>7}{size:>7}{best['cpu_us']:>9.2f}{best['per_s']:>9.0f}{figures}{best['bytes']:>8.0f}", flush=True)
    (OUT / "results.json").write_text(json.dumps(results, indent=1) + "\n")


main()
