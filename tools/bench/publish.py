"""Puts the figures of a complete run into the documentation: tables between markers, plots beside them.

A marker is a line <!-- bench:NAME -->; what is between it and the next <!-- bench:end --> is replaced.
"""

import re
import sys

import plot
from build import ROOT
from catalogue import SERIES
from report import absences, conditions, figure, markdown, reductions, work_markdown

README_RUNTIMES = ("ccc", "go", "tokio", "boost")
README_ROWS = "yield1k spawn_join spawn_turn fib skynet pingpong spsc mpmc select mutex timers parked".split()

MEMORY = "Bytes for each parked fiber, page tables included / still resident for each 0.2 s after all have ended:"
TAIL = "µs from a send to the receiver's turn, p50 / p99 / p99.9 / max:"
LATENCY = "µs from a send to the receiver's turn, p50 / p99 / p99.9:"
LATE = "µs by which a sleep of half a millisecond is too long, p50 / p99 / p99.9:"
IDLE = "CPU time in µs for each second of doing nothing / switches between threads in it:"


def value(results, program, point, runtime, key, unit=1):
    pairs = dict(results.curve(program, runtime, key))
    return figure(pairs[point], unit) if point in pairs else "–"


def curve_table(results, program, heads, keys):
    """A line for each point, for each runtime that was measured there; heads name the columns of keys = (key, unit)."""
    series = next(s for s in SERIES if s.program == program)
    chosen = [r for r in results.runtimes if r.name in series.runtimes]
    lines = [f"| {series.axis} | " + " | ".join(results.title(r) for r in chosen) + " |", "|---" * (len(chosen) + 1) + "|"]
    for point in series.points:
        cells = [" / ".join(value(results, program, point, r.name, key, unit) for key, unit in keys) for r in chosen]
        cells = ["–" if set(cell) <= set("–/ ") else cell for cell in cells]
        if any(cell != "–" for cell in cells):
            lines.append(f"| {point:,} | " + " | ".join(cells) + " |")
    return [heads, "", *lines] if len(lines) > 2 else []


def curve_tables(results):
    """The tables of the curves by the names of their markers; empty where nothing was measured."""
    percentiles = [(key + "_us", 1) for key in ("p50", "p99", "p999")]
    delays = [("late_" + key, unit) for key, unit in percentiles]
    return {
        "fibers": curve_table(results, "scale_yield", "ns for a yield:", [("", 1)]),
        "memory": curve_table(results, "scale_parked", MEMORY, [("bytes", 1), ("after_bytes", 1)]),
        "latency": curve_table(results, "latency", LATENCY, percentiles),
        "tail": curve_table(results, "tail", TAIL, percentiles + [("max_us", 1)]),
        "late": curve_table(results, "latency", LATE, delays),
        "idle": curve_table(results, "idle", IDLE, [("", 1000), ("switches_per_s", 1)]),
    }


def tables(results):
    """All tables of the documentation by the names of their markers."""
    return {
        "conditions": conditions(results),
        "table": markdown(results),
        "ratios": markdown(results, ratios=True),
        "work": work_markdown(results),
        "less": reductions(results),
        "absent": absences(results),
        **curve_tables(results),
        "readme": [*conditions(results), "", *markdown(results, README_RUNTIMES, README_ROWS, described=False)],
    }


def curves_text(results):
    """What the terminal shows of the curves: the plots tell the rest."""
    for known in curve_tables(results).values():
        if known:
            head, _, *lines = known
            cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")]
            widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
            yield ""
            yield head
            for row in cells:
                yield "  " + "   ".join(cell.rjust(width) for cell, width in zip(row, widths))
    yield ""


def paste(path, known):
    text = path.read_text()

    def replace(found):
        name = found.group(1)
        if name not in known:
            sys.exit(f"{path.name}: there is no table '{name}'")
        return f"<!-- bench:{name} -->\n" + "\n".join(known[name]) + "\n<!-- bench:end -->"

    path.write_text(re.sub(r"<!-- bench:(\w+) -->\n.*?<!-- bench:end -->", replace, text, flags=re.S))


def publish(results):
    if not results.data["settings"]["complete"]:
        sys.exit("These are not all rows and curves: the documentation stays as it is.")
    known = tables(results)
    for name in ("README.md", "docs/performance.md"):
        paste(ROOT / name, known)
    plot.draw(results, ROOT / "docs" / "plots")
    print("README.md, docs/performance.md and docs/plots are up to date.")
