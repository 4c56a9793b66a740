"""Runs programs, one at a time, and notices when the machine did something else meanwhile.

A run counts as disturbed when other programs used more than a twentieth of the CPUs during it, or when the hypervisor
withheld more than a fiftieth; a run that is too short for the kernel's clock, when anybody else was running just before
or just after it. Such runs stay in the data: the minimum shrugs them off, and the report says how many there were.
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
SHORT = 0.25  # seconds of CPUs' time: the kernel counts hundredths
PATIENCE = 60  # seconds, for one run
UNAVAILABLE = 77  # the exit code of a rival that has no such thing

TICK = os.sysconf("SC_CLK_TCK")


def machine_time():
    """How long all CPUs together have worked, been withheld, and existed, in seconds."""
    with open("/proc/stat") as f:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
    work = user + nice + system + irq + softirq
    return work / TICK, steal / TICK, (work + idle + iowait + steal) / TICK


def others_running():
    """How many threads of others run or want to, this very moment."""
    with open("/proc/loadavg") as f:
        return int(f.read().split()[3].split("/")[0]) - 1


def run(runtime, program, workers, scale=1, parameter=None):
    """One run: a dict with ns and extras, or with the reason why there is none."""
    words = command(runtime, program, workers, f"{scale:g}", parameter)
    own_time()
    running = others_running()
    before = machine_time()
    started = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        text, errors = child.communicate(timeout=PATIENCE)
    except BaseException as why:
        child.kill()
        child.communicate()
        if not isinstance(why, subprocess.TimeoutExpired):
            raise
        return {"failed": f"not ready after {PATIENCE} s", "wall": time.monotonic() - started}
    after = machine_time()
    running += others_running()
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
        "disturbed": stolen > STOLEN or (others > OTHERS if existed > SHORT else running > 0),
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
        self.birth = time.monotonic()
        self.begin(0)

    def begin(self, total):
        self.started, self.total, self.done = time.monotonic(), total, 0

    def minutes(self):
        return (time.monotonic() - self.birth) / 60

    def __call__(self, text, lasting=False):
        if self.terminal:
            print("\r\033[K" + text, end="\n" if lasting else "", flush=True)
        else:
            print(text, flush=True)

    def step(self, text):
        self.done += 1
        if self.terminal:
            left = (time.monotonic() - self.started) / 60 / self.done * (self.total - self.done)
            self(f"[{self.done}/{self.total}, {left:.0f} min left] {text}")

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def sweep(cells, repeats, minutes, progress, title):
    """Runs all cells `repeats` times, in another order each time; returns how often it did.

    A cell is a dict with runtime, program, workers, scale and parameter; cells of one group stay together in the order, so
    that what is compared runs within seconds. A cell that failed is not tried again. When the minutes are over or the
    user interrupts, what was measured so far has to do; but without an interrupt everything runs once.
    """
    groups = {}
    for cell in cells:
        cell["runs"] = []
        groups.setdefault(cell["group"], []).append(cell)
    progress.begin(len(cells) * repeats)
    deadline = progress.started + 60 * minutes
    for repeat in range(1, repeats + 1):
        if not progress.terminal:
            progress(f"{title}: repetition {repeat} of {repeats}, after {progress.minutes():.1f} minutes")
        try:
            for cell in shuffled(groups):
                if repeat > 1 and time.monotonic() > deadline:
                    progress(f"{title}: the time is over in repetition {repeat} of {repeats}", lasting=True)
                    return repeat - 1
                told = [str(cell[key]) for key in ("program", "parameter", "runtime") if cell[key] is not None]
                progress.step(f"{title}: {', '.join(told)}, {cell['workers']} workers")
                if "failed" not in cell and "missing" not in cell:
                    take(cell, progress)
        except KeyboardInterrupt:
            progress(f"{title}: interrupted in repetition {repeat} of {repeats}", lasting=True)
            return repeat - 1
    progress.clear()
    return repeats


def shuffled(groups):
    order = list(groups.values())
    random.shuffle(order)
    for group in order:
        random.shuffle(group)
        yield from group


def take(cell, progress):
    """Runs a cell once more."""
    result = run(*(cell[key] for key in ("runtime", "program", "workers", "scale", "parameter")))
    if "ns" in result:
        cell["runs"].append(result)
    for key in ("failed", "missing"):
        if key in result:
            cell[key] = result[key]
    if "failed" in result:
        progress(f"{cell['runtime']} {cell['program']}, {cell['workers']} workers: {result['failed']}", lasting=True)


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
