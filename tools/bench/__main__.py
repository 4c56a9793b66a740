"""Measures libccc beside its rivals: python3 tools/bench [options] [row ...]

  python3 tools/bench                      everything: the table, the curves, the plots; make bench, under half an hour
  python3 tools/bench --quick              less of all, in a few minutes; make bench-quick
  python3 tools/bench -r 10 -w 1 fib ring  two rows, ten times, one worker
  python3 tools/bench --work               only the programs of bench/work; with names, only those
  python3 tools/bench -o yield             without the rivals; --only ccc,go,tokio chooses among them
  python3 tools/bench --report             tables and plots once more, from the results that are there
  python3 tools/bench --publish            puts them into README.md, docs/performance.md and docs/plots; make bench-publish

In each repetition, what is compared runs within seconds of each other, in an order that changes. Everything is kept in
build/bench: results.json, table.txt, plots/*.svg and *.png.
"""

import argparse
import datetime
import json
import sys
import time

sys.dont_write_bytecode = True  # the folder belongs to the sources

import catalogue
import plot
import publish
from build import OUT, BuildFailed, build
from measure import Progress, describe_machine, sweep
from report import Results, condense, table, work_table


def arguments():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="row", help="rows of the table; all, and the curves, unless some are named")
    parser.add_argument("-r", "--repeats", type=int, help="repetitions (5)")
    parser.add_argument("-w", "--workers", default="1 2", help='numbers of workers ("1 2")')
    parser.add_argument("-s", "--scale", type=float, help="factor on the work (1)")
    parser.add_argument("-o", "--ours", action="store_true", help="without the rivals")
    parser.add_argument("--only", help="these runtimes, with commas: " + ",".join(r.name for r in catalogue.RUNTIMES))
    parser.add_argument("--work", nargs="*", metavar="P", help="only the programs of bench/work, or those that are named")
    parser.add_argument("--curves", metavar="P,P", help="only the curves of these programs, and no table unless rows are named")
    parser.add_argument("--no-curves", action="store_true", help="only the table")
    parser.add_argument("-m", "--minutes", type=float, default=24, help="about when to stop repeating (24)")
    parser.add_argument("--quick", action="store_true", help="two repetitions of a fifth of the work, curves with fewer points")
    parser.add_argument("--report", action="store_true", help="runs nothing")
    parser.add_argument("--publish", action="store_true", help="also updates the documentation; needs all rows and curves")
    chosen = parser.parse_args()
    known = {row.name for row in catalogue.ROWS}
    for name in chosen.rows:
        if name not in known:
            parser.error(f"there is no row '{name}'")
    known = {row.name for row in catalogue.WORK}
    for name in chosen.work or []:
        if name not in known:
            parser.error(f"there is no program '{name}' in bench/work")
    programs = {series.program for series in catalogue.SERIES}
    for name in (chosen.curves or "").split(","):
        if name and name not in programs:
            parser.error(f"there are no curves of '{name}'")
    return chosen


def work_cells(chosen, runtimes, scale):
    """One worker, two, and four times as many as there are CPUs."""
    if chosen.work is None and (chosen.rows or chosen.curves):
        return
    for name in chosen.work or [row.name for row in catalogue.WORK]:
        for workers in sorted({1, 2, 4 * describe_machine()["cpus"]}):
            for runtime in runtimes:
                if runtime.name in catalogue.WORK_RUNTIMES:
                    yield {
                        "group": (name, workers),
                        "runtime": runtime.name,
                        "program": name,
                        "workers": workers,
                        "scale": scale,
                        "parameter": None,
                    }


def table_cells(chosen, runtimes, scale):
    if chosen.work is not None and not chosen.rows:
        return
    names = chosen.rows or [row.name for row in catalogue.ROWS if not chosen.curves]
    for name in names:
        for workers in map(int, chosen.workers.split()):
            for runtime in runtimes:
                if name not in runtime.lacks:
                    yield {
                        "group": (name, workers),
                        "runtime": runtime.name,
                        "program": name,
                        "workers": workers,
                        "scale": scale * runtime.scales.get(name, 1),
                        "parameter": None,
                    }


def curve_cells(chosen, runtimes, scale):
    if chosen.no_curves or (chosen.rows or chosen.work is not None) and not chosen.curves:
        return
    for series in catalogue.SERIES:
        if chosen.curves and series.program not in chosen.curves.split(","):
            continue
        most = 100_000 if chosen.quick or describe_machine()["memory_gib"] < 8 else 1_000_000  # a million fibers take 5 GiB
        points = [point for point in series.points if point <= most][:: 2 if chosen.quick else 1]
        for point in points:
            for runtime in runtimes:
                if runtime.name in series.runtimes:
                    yield {
                        "group": (series.program, point),
                        "runtime": runtime.name,
                        "program": series.program,
                        "workers": series.workers or point,
                        "scale": scale * series.scale,
                        "parameter": point if series.workers else None,
                        "point": point,
                    }


def measure(chosen, progress):
    began = time.monotonic()
    scale = chosen.scale or (0.2 if chosen.quick else 1)
    repeats = chosen.repeats or (2 if chosen.quick else 5)
    series_repeats = chosen.repeats or (1 if chosen.quick else 3)
    everyone = catalogue.WORK_RUNTIMES if chosen.work is not None and not chosen.rows else [r.name for r in catalogue.RUNTIMES]
    wanted = ["ccc"] if chosen.ours else chosen.only.split(",") if chosen.only else everyone
    built = build([r.name for r in catalogue.RUNTIMES if r.name in wanted], progress)
    runtimes = [r for r in catalogue.RUNTIMES if r.name in built]
    rows, curves = list(table_cells(chosen, runtimes, scale)), list(curve_cells(chosen, runtimes, scale))
    work = list(work_cells(chosen, runtimes, scale))
    parts = [(rows, 5), (work, 3), (curves, 3)]
    whole = sum(weight for cells, weight in parts if cells)
    if rows:
        repeats = sweep(rows, repeats, chosen.minutes * 5 / whole, progress, "table")
    work_repeats = sweep(work, series_repeats, chosen.minutes * 3 / whole, progress, "work") if work else 0
    if curves:
        series_repeats = sweep(curves, series_repeats, chosen.minutes * 3 / whole, progress, "curves")
    for cell in curves:
        cell["parameter"] = cell["point"]
    return {
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(),
        "runtimes": built,
        "settings": {
            "repeats": repeats,
            "series_repeats": series_repeats,
            "work_repeats": work_repeats,
            "scale": scale,
            "complete": not (chosen.rows or chosen.curves or chosen.work is not None or chosen.quick or chosen.no_curves or chosen.ours or chosen.only),
            "minutes": round((time.monotonic() - began) / 60, 1),
        },
        "rows": [condense(cell) for cell in rows],
        "series": [condense(cell) for cell in curves],
        "work": [condense(cell) for cell in work],
    }


def main():
    chosen = arguments()
    path = OUT / "results.json"
    if chosen.report:
        data = json.loads(path.read_text())
    else:
        progress = Progress()
        try:
            data = measure(chosen, progress)
        except BuildFailed as why:
            sys.exit(f"libccc could not be built:\n{why}")
        path.write_text(json.dumps(data, indent=1) + "\n")
    results = Results(data)
    if data["rows"]:
        text = "\n".join(table(results)) + "\n"
        (OUT / "table.txt").write_text(text)
        print(text, end="")
    if results.work:
        text = "\n".join(work_table(results)) + "\n"
        (OUT / "work.txt").write_text(text)
        print(text, end="")
    for line in publish.curves_text(results):
        print(line)
    drawn = plot.draw(results, OUT / "plots")
    if drawn:
        kinds = "SVG and PNG" if plot.to_png(drawn) else "SVG (no PNG: rsvg-convert is not installed)"
        print(f"Plots, {kinds}: build/bench/plots; all figures: build/bench/results.json")
    if chosen.publish:
        publish.publish(results)
    failed = [cell for cell in data["rows"] + data["series"] + data.get("work", []) if "failed" in cell and cell["runtime"] == "ccc"]
    sys.exit(1 if failed else 0)


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
