"""Runs programs, one at a time, and notices when the machine did something else meanwhile.

A run counts as disturbed when other programs used more than a twentieth of the CPUs during it, or when the hypervisor
withheld more than a fiftieth. Such runs stay in the data: the minimum shrugs them off, and the report says how many
there were.
"""

import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path

from build import command

OTHERS, STOLEN = 0.05, 0.02
PATIENCE = 60  # seconds, for one run
UNAVAILABLE = 77  # the exit code of a rival that has no such thing

TICK = os.sysconf("SC_CLK_TCK")


def machine_time():
    """How long all CPUs together have worked, been withheld, and existed, in seconds."""
    with open("/proc/stat") as f:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
    work = user + nice + system + irq + softirq
    return work / TICK, steal / TICK, (work + idle + iowait + steal) / TICK


def run(runtime, program, workers, scale=1, parameter=None):
    """One run: a dict with ns and extras, or with the reason why there is none."""
    words = command(runtime, program, workers, f"{scale:g}", parameter)
    before = machine_time()
    started = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        text, errors = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return {"failed": f"not ready after {PATIENCE} s", "wall": time.monotonic() - started}
    after = machine_time()
    wall = time.monotonic() - started
    if child.returncode == UNAVAILABLE:
        return {"missing": errors.decode(errors="replace").strip(), "wall": wall}
    words = text.decode(errors="replace").split()
    if child.returncode != 0 or len(words) < 5 or words[0:2] != [runtime, program]:
        reason = errors.decode(errors="replace").strip().splitlines()
        return {"failed": reason[0][:120] if reason else f"exit {child.returncode}", "wall": wall}
    existed = max(after[2] - before[2], 1e-9)
    stolen = (after[1] - before[1]) / existed
    others = (after[0] - before[0] - own_time()) / existed
    extras = dict(word.split("=", 1) for word in words[5:])
    return {
        "n": int(words[3]),
        "ns": float(words[4]),
        "extras": {key: float(value) for key, value in extras.items()},
        "disturbed": stolen > STOLEN or others > OTHERS and existed > 20 / TICK,
        "wall": wall,
    }


spent = 0.0


def own_time():
    """CPU time of the children that have ended since the last call, and of this program."""
    global spent
    used = sum(os.times()[:4])
    used, spent = used - spent, used
    return used


class Progress:
    """A line that is overwritten on a terminal; elsewhere one for each step worth telling."""

    def __init__(self):
        self.terminal = sys.stdout.isatty()
        self.started = time.monotonic()
        self.total = self.done = 0

    def __call__(self, text, lasting=False):
        if self.terminal:
            print("\r\033[K" + text, end="\n" if lasting else "", flush=True)
        else:
            print(text, flush=True)

    def step(self, text):
        self.done += 1
        if self.terminal:
            minutes = (time.monotonic() - self.started) / 60
            left = minutes / self.done * (self.total - self.done)
            self(f"[{self.done}/{self.total}, {left:.0f} min left] {text}")

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def sweep(cells, repeats, minutes, progress, title):
    """Runs all cells `repeats` times, in another order each time, unless the minutes are over after two or more.

    A cell is a dict with runtime, program, workers, scale and parameter; cells of one group stay together in the order, so
    that what is compared runs within seconds. A cell that failed is not tried again.
    """
    deadline = time.monotonic() + 60 * minutes
    groups = {}
    for cell in cells:
        cell["runs"] = []
        groups.setdefault(cell["group"], []).append(cell)
    own_time()
    progress.total, progress.done, progress.started = len(cells) * repeats, 0, time.monotonic()
    done = 0
    for repeat in range(1, repeats + 1):
        began = time.monotonic()
        if not progress.terminal:
            progress(f"{title}: repetition {repeat} of {repeats}")
        order = list(groups.values())
        random.shuffle(order)
        for group in order:
            random.shuffle(group)
            for cell in group:
                told = ", ".join(str(cell[key]) for key in ("program", "parameter", "runtime") if cell[key] is not None)
                progress.step(f"{title}: {told}, {cell['workers']} workers")
                if "failed" in cell or "missing" in cell:
                    continue
                result = run(*(cell[key] for key in ("runtime", "program", "workers", "scale", "parameter")))
                for key in ("failed", "missing"):
                    if key in result:
                        cell[key] = result[key]
                if "ns" in result:
                    cell["runs"].append(result)
                if "failed" in result:
                    progress(f"{cell['runtime']} {cell['program']}, {cell['workers']} workers: {result['failed']}", lasting=True)
        done = repeat
        if repeat >= 2 and time.monotonic() + (time.monotonic() - began) > deadline and repeat < repeats:
            progress(f"{title}: {repeat} repetitions instead of {repeats}, because of the time", lasting=True)
            break
    progress.clear()
    return done


def describe_machine():
    """What a reader has to know about the machine; nothing that names it."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "")
    release = Path("/etc/os-release")
    names = dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line) if release.exists() else {}
    return {
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in flags.split(),
        "memory_gib": round(memory / 2**20),
        "kernel": ".".join(platform.release().split("-")[0].split(".")[:2]),
        "system": names.get("PRETTY_NAME", "").strip('"'),
    }
