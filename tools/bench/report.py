"""From runs to figures: minimum and median, the table on the terminal, the tables in the documentation."""

import math
import statistics
import textwrap

from catalogue import MEMORY_GOAL, PACED, ROWS, RUNTIMES, SERIES, WORK, WORK_RUNTIMES

NOISY = 1.3  # a median that many times the minimum is marked

TITLES = {runtime.name: runtime.title for runtime in RUNTIMES}


def condense(cell):
    """What of a cell goes into the results: all times, the least of every extra value, and how often it was disturbed."""
    runs = cell["runs"]
    known = ("runtime", "program", "workers", "parameter", "scale", "failed", "missing")
    kept = {key: cell[key] for key in known if cell.get(key) is not None}
    if runs and "failed" not in cell:
        kept["n"] = runs[0]["n"]
        kept["ns"] = [one["ns"] for one in runs]
        kept["min"] = min(kept["ns"])
        kept["median"] = statistics.median(kept["ns"])
        kept["extras"] = {key: min(one["extras"][key] for one in runs) for key in runs[0]["extras"]}
        kept["disturbed"] = sum(one["disturbed"] for one in runs)
    return kept


class Results:
    """Answers questions about a results.json."""

    def __init__(self, data):
        self.data = data
        self.runtimes = [runtime for runtime in RUNTIMES if runtime.name in data["runtimes"]]
        self.cells = {(c["program"], c["workers"], c["runtime"]): c for c in data["rows"]}
        self.points = {(c["program"], c["parameter"], c["runtime"]): c for c in data["series"] if "parameter" in c}
        self.work = {(c["program"], c["workers"], c["runtime"]): c for c in data.get("work", []) if "min" in c}
        self.workers = sorted({cell["workers"] for cell in data["rows"]})
        self.rows = [row for row in ROWS if any(cell["program"] == row.name for cell in data["rows"])]

    def cell(self, row, workers, runtime):
        found = self.cells.get((row, workers, runtime))
        return found if found and "min" in found else None

    def ratio(self, row, workers, runtime):
        ours, theirs = self.cell(row, workers, "ccc"), self.cell(row, workers, runtime)
        return theirs["min"] / ours["min"] if ours and theirs and ours["min"] > 0 else None

    def work_value(self, row, workers, runtime, key):
        """The least wall time ("") or the least of an extra value of a program of bench/work."""
        found = self.work.get((row, workers, runtime))
        return None if found is None else found["min"] if key == "" else found["extras"].get(key)

    def work_ratio(self, row, workers, runtime, key):
        ours, theirs = self.work_value(row, workers, "ccc", key), self.work_value(row, workers, runtime, key)
        return theirs / ours if ours and theirs else None

    def work_workers(self):
        return sorted({workers for _, workers, _ in self.work})

    def work_rows(self):
        return [row for row in WORK if any(name == row.name for name, _, _ in self.work)]

    def work_rivals(self):
        return [r for r in self.runtimes if r.name in WORK_RUNTIMES and r.name != "ccc"]

    def work_mean(self, workers, runtime, key):
        """The geometric mean of their figure over ours. Wall time of a program with a rate of its own says nothing."""
        rows = [row.name for row in self.work_rows() if key != "" or row.name not in PACED]
        ratios = [ratio for name in rows if (ratio := self.work_ratio(name, workers, runtime, key))]
        return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None

    def curve(self, program, runtime, key):
        """(parameter, value) pairs in the order of the parameter."""
        series = next((s for s in SERIES if s.program == program and s.points), None)
        pairs = []
        for point in series.points:
            found = self.points.get((program, point, runtime))
            if found and "min" in found:
                pairs.append((point, found["min"] if key == "" else found["extras"].get(key)))
        return [(x, y) for x, y in pairs if y is not None]

    def disturbed(self):
        cells = self.data["rows"] + self.data["series"] + self.data.get("work", [])
        return sum(c.get("disturbed", 0) for c in cells), sum(len(c.get("ns", [])) for c in cells)

    def title(self, runtime):
        version = self.data["runtimes"][runtime.name].get("version", "")
        short = version if runtime.name in ("ccc", "pthreads") else ".".join(version.split(".")[:2])
        return runtime.title if runtime.name in ("ccc", "pthreads") else f"{runtime.title} {short}".strip()


def figure(value, unit=1):
    value /= unit
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def times(ratio):
    if ratio is None:
        return ""
    return f"{ratio:.0f}×" if ratio >= 9.95 else f"{ratio:.1f}×"


# ---- terminal ----

def table(results):
    rivals = [runtime for runtime in results.runtimes if runtime.name != "ccc"]
    out = []
    head = f"{'ns per operation':<16}{'workers':>8}{'goal':>7}{'libccc':>9}  " + "".join(f"{results.title(r):>17}" for r in rivals)
    out += [head, "-" * len(head)]
    for row in results.rows:
        for i, workers in enumerate(results.workers):
            ours = results.cell(row.name, workers, "ccc")
            goal = row.goal[i] if i < len(row.goal) and workers == i + 1 else None
            met = " " if goal is None or ours is None else "+" if ours["min"] <= goal * row.unit else "-"
            name = row.name + (" µs" if row.unit == 1000 else "")
            line = f"{name if i == 0 else '':<16}{workers:>8}{goal if goal else '':>6}{met}{show(ours, row):>9} "
            for rival in rivals:
                theirs = results.cell(row.name, workers, rival.name)
                line += f"{show(theirs, row):>10}{times(results.ratio(row.name, workers, rival.name)):>7}"
            out.append(line.rstrip())
    return out + [""] + notes(results)


WORK_KEYS = (("", "wall"), ("cpu_ns", "CPU"), ("p999_us", "p99.9"))


def work_lines(results):
    """(row, workers, key's title, ours, [(theirs, ratio), ...]) for everything that was measured in bench/work."""
    for row in results.work_rows():
        for workers in results.work_workers():
            for key, title in WORK_KEYS:
                ours = results.work_value(row.name, workers, "ccc", key)
                if ours is None or key == "" and row.name in PACED:
                    continue
                unit = row.unit if key != "p999_us" else 1
                theirs = [
                    (results.work_value(row.name, workers, r.name, key), results.work_ratio(row.name, workers, r.name, key))
                    for r in results.work_rivals()
                ]
                yield row, workers, title, figure(ours, unit), [(figure(v, unit) if v else "·", ratio) for v, ratio in theirs]


def work_means(results):
    for workers in results.work_workers():
        for rival in results.work_rivals():
            wall, cpu = (results.work_mean(workers, rival.name, key) for key in ("", "cpu_ns"))
            if wall and cpu:
                yield f"{results.title(rival)}, {workers} workers: {wall:.2f}× of our wall time, {cpu:.2f}× of our CPU time, geometric means"


def work_table(results):
    rivals = results.work_rivals()
    head = f"{'work, ns or µs':<20}{'workers':>8}{'':>7}{'libccc':>9}  " + "".join(f"{results.title(r):>17}" for r in rivals)
    out, last = ["", head, "-" * len(head)], None
    for row, workers, title, ours, theirs in work_lines(results):
        name = row.name + (" µs" if row.unit == 1000 else "")
        line = f"{name if last != row.name else '':<20}{workers:>8}{title:>7}{ours:>9}  "
        line += "".join(f"{value:>10}{times(ratio):>7}" for value, ratio in theirs)
        out.append(line.rstrip())
        last = row.name
    return out + ["", *work_means(results)]


def work_markdown(results):
    rivals = results.work_rivals()
    lines = ["| | workers | | libccc | " + " | ".join(results.title(r) for r in rivals) + " |", "|---" * (len(rivals) + 4) + "|"]
    last = None
    for row, workers, title, ours, theirs in work_lines(results):
        name = f"`{row.name}`, {row.what}" + (" (µs)" if row.unit == 1000 else "") if last != row.name else ""
        cells = [f"{value} ({times(ratio)})" if ratio else value for value, ratio in theirs]
        lines.append(f"| {name} | {workers} | {title} | {ours} | " + " | ".join(cells) + " |")
        last = row.name
    return [*lines, "", *(f"- {line}" for line in work_means(results))] if len(lines) > 2 else []


def show(cell, row):
    if cell is None:
        return "· "
    return figure(cell["min"], row.unit) + ("~" if cell["median"] > NOISY * cell["min"] else " ")


def notes(results):
    out = ["The minimum of all repetitions; ~ the median is more than 1.3 times that; + and - the goal is met or not;"]
    out.append("× how many times as long as libccc.")
    if line := memory_line(results):
        out.append(line)
    for rival in results.runtimes[1:]:
        ratios = [results.ratio(row.name, w, rival.name) for row in results.rows for w in results.workers]
        ratios = [ratio for ratio in ratios if ratio]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            cells = [(row.name, w) for row in results.rows for w in results.workers]
            behind = [f"{name}/{w}" for name, w in cells if (results.ratio(name, w, rival.name) or 1) < 1]
            text = f"{results.title(rival):<18} {times(mean):>6} of our time in the mean of {len(ratios)} cells"
            out.append(text + (f"; ahead of us in {', '.join(behind)}" if behind else "; nowhere ahead of us"))
    failures = [c for c in results.data["rows"] + results.data["series"] if "failed" in c]
    out += [f"{TITLES[c['runtime']]} failed: {c['program']}, {c['workers']} workers: {c['failed']}" for c in failures]
    disturbed, runs = results.disturbed()
    if runs:
        advice = "." if disturbed < runs / 10 else ": repeat on a quieter machine."
        out.append(f"{disturbed} of {runs} runs were disturbed by other programs{advice}")
    return out


def memory_line(results):
    parts = []
    for runtime in results.runtimes:
        for workers in results.workers[:1]:
            found = results.cell("parked", workers, runtime.name)
            if found and "rss_bytes" in found["extras"]:
                parts.append(f"{results.title(runtime)} {found['extras']['rss_bytes']:.0f} + {found['extras']['pte_bytes']:.0f}")
    return f"Bytes of a parked fiber, resident + page tables (goal {MEMORY_GOAL}): " + ", ".join(parts) if parts else ""


# ---- documentation ----

def markdown(results, runtimes=None, rows=None, ratios=False, described=True):
    """A table with a line for each row; each cell: with one worker / with two."""
    chosen = [r for r in results.runtimes if runtimes is None or r.name in runtimes]
    if ratios:
        chosen = [r for r in chosen if r.name != "ccc"]
    lines = ["| | " + " | ".join(results.title(r) for r in chosen) + (" | goal |" if not ratios and described else " |")]
    lines.append("|---" * (len(chosen) + 1 + (not ratios and described)) + "|")
    for row in results.rows:
        if rows is not None and row.name not in rows:
            continue
        cells = []
        for runtime in chosen:
            pair = []
            for workers in results.workers:
                found = results.cell(row.name, workers, runtime.name)
                if ratios:
                    pair.append(times(results.ratio(row.name, workers, runtime.name)) or "–")
                else:
                    pair.append(show(found, row).strip() if found else "–")
            cells.append("–" if set(pair) == {"–"} else " / ".join(pair))
        goal = [" / ".join(map(str, row.goal)) or "–"] if not ratios and described else []
        name = f"`{row.name}`" + (f", {row.what}" if described else "") + (" (µs)" if row.unit == 1000 and not ratios else "")
        lines.append(f"| {name} | " + " | ".join(cells + goal) + " |")
    if rows is None and not ratios and described and results.workers:
        found = [results.cell("parked", results.workers[0], r.name) for r in chosen]
        bytes_of = [f"{c['extras']['rss_bytes']:.0f} + {c['extras']['pte_bytes']:.0f}" if c else "–" for c in found]
        lines.append("| memory of a parked fiber, bytes resident + page tables | " + " | ".join(bytes_of) + f" | {MEMORY_GOAL} |")
    return lines


def conditions(results):
    """One paragraph, as lines: the machine, the versions, how quiet it was."""
    data, machine = results.data, results.data["machine"]
    kind = "virtual machine" if machine["virtual"] else "machine"
    disturbed, runs = results.disturbed()
    part = "" if data["settings"]["scale"] == 1 else f", each with {data['settings']['scale']:g} of the operations"
    versions = []
    for runtime in results.runtimes:
        known = data["runtimes"][runtime.name]
        versions.append(f"{runtime.title} {known['version']}" + (f" ({known['built']})" if known.get("built") else ""))
    text = (
        f"Measured on {data['date']}, on a {kind} with {machine['cpus']} CPUs ({machine['cpu']}), {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']}, {machine['system']}; {data['settings']['repeats']} repetitions of the table, "
        f"{data['settings']['series_repeats']} of the curves{part}; {disturbed} of {runs} runs were disturbed by other programs. "
        f"{', '.join(versions)}."
    )
    return textwrap.wrap(text, 110)


def reductions(results):
    """Which rivals got less of the work, as sentences."""
    out = []
    for runtime in results.runtimes:
        groups = {}
        for row, scale in runtime.scales.items():
            groups.setdefault(scale, []).append(f"`{row}`")
        if groups:
            parts = [f"{', '.join(names)} × {scale:g}" for scale, names in sorted(groups.items())]
            out.append(f"- {runtime.title}: {'; '.join(parts)}.")
    return out


def absences(results):
    out = []
    for runtime in results.runtimes:
        groups = {}
        for row, why in runtime.lacks.items():
            groups.setdefault(why, []).append(f"`{row}`")
        if groups:
            parts = [f"{', '.join(names) if len(names) < 8 else 'most'} ({why})" for why, names in groups.items()]
            out.append(f"- {runtime.title}: {'; '.join(parts)}.")
    return out
