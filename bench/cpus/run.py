"""Many CPUs, by simulation: builds the model, runs its rows on 1 to 128 virtual CPUs, prints the table.

  python3 bench/cpus/run.py                    all rows; an hour
  python3 bench/cpus/run.py pairs timers       some
  python3 bench/cpus/run.py --cpus 1,2,64
  python3 bench/cpus/run.py --publish          pastes the table into docs/performance.md and draws docs/plots/cpus.svg
"""

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "cpus"
SEEDS = range(1, 7)  # COST-5
SCALE = ["fork_join", "pairs", "yield", "own_locks", "nurseries", "timers"]  # rows that should
COLOURS = ["#0550ae", "#0d9488", "#6e7781", "#bf8700", "#d9480f", "#8250df"]


def build():
    WORK.mkdir(parents=True, exist_ok=True)
    for name in ("src", "include", "tests", "bench"):
        link = WORK / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
    log = subprocess.run(["make", "-C", WORK, "-f", "bench/cpus/Makefile", f"-j{os.cpu_count()}", "cost"], capture_output=True, text=True)
    if log.returncode != 0:
        sys.exit("\n".join(line for line in log.stderr.splitlines() if "error" in line or "undefined" in line) or log.stderr)


def measure(row, cpus):
    """The mean of all seeds; of percentiles and of the dearest line the largest."""
    runs = []
    for seed in SEEDS if cpus > 1 else SEEDS[:1]:
        done = subprocess.run([WORK / "cost", row, str(cpus), str(seed)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{row} on {cpus} CPUs, seed {seed}: {done.stderr}")
        runs.append(json.loads(done.stdout))
    print(f"  {row} on {cpus} CPUs", file=sys.stderr)
    result = max(runs, key=lambda run: run["lines"][0]["share"] if run["lines"] else 0)
    result |= {key: max(run[key] for run in runs) for key in result if key.endswith("_ns") and key.startswith("p")}
    result["ns"] = sum(run["ns"] for run in runs) / len(runs)
    result["ops"] = sum(run["ops"] for run in runs) / len(runs)
    return result


def where(line):
    """The access to a line of memory that cost most."""
    if "site" in line:
        return line["site"]
    found = subprocess.run(["addr2line", "-s", "-e", WORK / "cost", line["pc"]], capture_output=True, text=True).stdout.strip()
    return found or line["pc"]


def each(result):
    """Nanoseconds for an operation."""
    return result["ns"] / max(result["ops"], 1)


def tables(results, rows, cpus):
    lines = ["| row | " + " | ".join(f"{n} CPUs" if n > 1 else "1 CPU" for n in cpus) + " | dearest line at most |", "|---" * (len(cpus) + 2) + "|"]
    for row in rows:
        if row == "wake":
            continue
        base = results[row, cpus[0]]
        cells = []
        for n in cpus:
            r = results[row, n]
            cells.append(f"{each(r):.1f} ns ({each(base) / each(r) / n * cpus[0]:.2f})" if r["ops"] else "nothing done")
        dearest = max((results[row, n]["lines"][0] for n in cpus if results[row, n]["lines"]), key=lambda l: l["share"], default=None)
        lines.append(f"| `{row}` | " + " | ".join(cells) + (f" | {dearest['share']:.0%}: `{where(dearest)}` |" if dearest else " | – |"))
    if "wake" in rows:
        cells = [f"{results['wake', n]['p99_ns'] / 1000:.0f} µs" if n > 1 else "–" for n in cpus]
        lines.append("| `wake`, p99 | " + " | ".join(cells) + " | |")
    return lines


def draw(results, cpus):
    sys.path.insert(0, str(ROOT / "tools" / "bench"))
    from plot import FAINT, Drawing

    drawing = Drawing(640, 400)
    drawing.text(24, 34, "In the model: throughput for each CPU, of that of one", 18, bold=True)
    left, right, top, bottom = 64, 460, 60, 350
    height = lambda share: bottom - (bottom - top) * min(share, 1.2) / 1.2  # noqa: E731
    place = {n: left + (right - left) * i / max(len(cpus) - 1, 1) for i, n in enumerate(cpus)}
    for tick in (0, 0.25, 0.5, 0.75, 1.0):
        drawing.line(left, height(tick), right, height(tick))
        drawing.text(left - 7, height(tick) + 4.5, f"{tick:g}", 12, "end", FAINT)
    for n in cpus:
        drawing.text(place[n], bottom + 19, str(n), 12, "middle", FAINT)
    drawing.text((left + right) / 2, bottom + 39, "virtual CPUs", 12.5, "middle")
    for i, row in enumerate(SCALE):
        base = each(results[row, cpus[0]])
        points = [(place[n], height(base / each(results[row, n]) / n)) for n in cpus]
        drawing.add(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{COLOURS[i]}" stroke-width="2.2"/>')
        drawing.box(right + 24, 66 + 24 * i, 14, 4, COLOURS[i])
        drawing.text(right + 44, 73 + 24 * i, row)
    return drawing.svg()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--cpus", default="1,2,4,8,16,32,64,128")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    build()
    known = [line.split("\t")[0] for line in subprocess.run([WORK / "cost", "--list"], capture_output=True, text=True).stdout.splitlines()]
    rows = options.rows or known
    if unknown := [row for row in rows if row not in known]:
        sys.exit(f"There is no row {unknown[0]}; there are {', '.join(known)}.")
    cpus = [int(n) for n in options.cpus.split(",")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = {(row, n): pool.submit(measure, row, n) for n in reversed(cpus) for row in rows}
        results = {key: task.result() for key, task in tasks.items()}
    text = "\n".join(tables(results, rows, cpus))
    print(text)
    if options.publish:
        (ROOT / "docs/plots/cpus.svg").write_text(draw(results, cpus))
        page = ROOT / "docs/performance.md"
        page.write_text(re.sub(r"<!-- cpus -->\n.*?<!-- cpus:end -->", lambda _: f"<!-- cpus -->\n{text}\n<!-- cpus:end -->", page.read_text(), flags=re.S))


main()
