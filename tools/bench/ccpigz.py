"""Measures ccpigz beside pigz and gzip: bench/ccpigz.sh [options]

  bench/ccpigz.sh                    about six minutes: three corpora, levels 1, 6 and 9, up to eight workers
  bench/ccpigz.sh -m 20 --minutes 1  20 MB, one minute
  bench/ccpigz.sh --publish          also puts tables and plot into docs/performance.md
  bench/ccpigz.sh --report           tables once more, from the results that are there; with --publish into the page
  bench/ccpigz.sh -x                 with real-time priority, which root may have: for a machine that is busy otherwise; after
                                     each run it rests for as long, so that others get on, too

The corpora are made of files that the machine has, always the same ones in the same order; the random one comes from a
generator with a fixed seed. What is compared, one group, runs within seconds of each other in an order that changes. Every
group runs once; then, while there is time, the one that has had the least of it, so that short runs are repeated more often.
Input comes from the page cache, output is thrown away. The figures are minima, the memory is the maximum. Everything is kept in
build/bench/ccpigz.json and ccpigz.md.
"""

import argparse
import datetime
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

sys.dont_write_bytecode = True

from build import OUT, ROOT
from measure import describe_machine, machine_time
from plot import FAINT, Drawing, LogScale

DIR = OUT / "ccpigz"
OURS = ROOT / "build" / "release" / "apps" / "ccpigz"
PROGRAMS = {  # name, command for compressing; "{w}" is the number of workers
    "gzip": ["gzip"],
    "pigz": ["pigz", "-p{w}"],
    "ccpigz, zlib": [str(OURS), "-p{w}", "--engine=zlib"],
    "ccpigz": [str(OURS), "-p{w}"],
}
COLOURS = {"gzip": "#6e7781", "pigz": "#d9480f", "ccpigz, zlib": "#0d9488", "ccpigz": "#0550ae"}
MAKERS = {"gzip": "gzip", "pigz": "pigz", "ccpigz": "own"}  # whose files are decompressed
CORPORA = {"mixed": "programs, libraries, texts", "text": "sources and documentation", "random": "random bytes"}
SHARE = {"mixed": 1.0, "text": 0.5, "random": 0.25}  # of the megabytes
LEVELS = {"mixed": (6, 1, 9), "text": (6,), "random": (6,)}
MOST_REPEATS = 25


# ---- corpora ----

def gather(folders, size, accept, every):
    """The contents of every n-th file, in order of their names, up to a size."""
    paths = []
    for folder in folders:
        for where, below, names in os.walk(folder):
            below.sort()
            paths += [os.path.join(where, name) for name in names]
    chosen = sorted(path for path in set(paths) if accept(path))
    out, have = [], 0
    for step in range(every):
        for path in chosen[step::every]:
            try:
                if os.path.islink(path) or not 2048 < os.path.getsize(path) < 64_000_000:
                    continue
                data = Path(path).read_bytes()
            except OSError:
                continue
            out.append(data)
            have += len(data)
            if have >= size:
                return b"".join(out)[:size]
    return b"".join(out)[:size]


def is_text(path):
    return path.endswith((".h", ".hpp", ".c", ".py", ".pl", ".pm", ".txt", ".html", ".rst", ".md", "copyright", "README", ".sh", ".pod"))


def make_corpora(megabytes):
    DIR.mkdir(parents=True, exist_ok=True)
    sizes = {name: int(megabytes * share * 1_000_000) for name, share in SHARE.items()}
    (DIR / "mixed").write_bytes(gather(["/usr/bin", "/usr/lib", "/usr/share"], sizes["mixed"], lambda path: True, 7))
    texts = ["/usr/include", "/usr/share/doc", "/usr/share/perl", "/usr/lib/python3", "/usr/lib/python3.11", "/usr/share/info"]
    (DIR / "text").write_bytes(gather(texts, sizes["text"], is_text, 7))
    (DIR / "random").write_bytes(random.Random(1952).randbytes(sizes["random"]))
    return {name: (DIR / name).stat().st_size for name in CORPORA}


# ---- runs ----

def packed(corpus, level, maker):
    return DIR / f"{corpus}.{level}.{maker.replace(', ', '-')}.gz"


def digest(stream):
    value = hashlib.blake2b()
    while block := stream.read(1 << 20):
        value.update(block)
    return value.hexdigest()


def unpacks_to(command, path, want):
    with subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE) as child:
        found = digest(child.stdout)
    return child.returncode == 0 and found == want


def prepare(cpus, priority):
    """Makes all compressed files, and has them read by the others; returns their sizes."""
    sizes = {}
    for corpus, levels in LEVELS.items():
        with open(DIR / corpus, "rb") as f:
            want = digest(f)
        for level in levels:
            for name, words in PROGRAMS.items():
                path = packed(corpus, level, name)
                with open(path, "wb") as out:
                    command = [word.format(w=cpus) for word in words]
                    subprocess.run([*priority, *command, f"-{level}", "-c", str(DIR / corpus)], stdout=out, check=True)
                sizes[f"{corpus} {level} {name}"] = path.stat().st_size
                if not unpacks_to([str(OURS), "-dc"], path, want):
                    sys.exit(f"ccpigz does not read {path.name}")
                if name.startswith("ccpigz") and not (unpacks_to(["gzip", "-dc"], path, want) and unpacks_to(["pigz", "-dc"], path, want)):
                    sys.exit(f"gzip or pigz does not read {path.name}")
    return sizes


def groups(workers):
    """What is compared: a dict from (action, corpus, level) to a list of (program, workers, command)."""
    found = {}
    for corpus, levels in LEVELS.items():
        for level in levels:
            full = level == 6 and corpus != "random"
            counts = workers if full else [w for w in workers if w <= 2]
            cells = []
            for name, words in PROGRAMS.items():
                for w in counts if name != "gzip" else [1]:
                    command = [word.format(w=w) for word in words] + [f"-{level}", "-c", str(DIR / corpus)]
                    cells.append((name, w, command))
            found["compress", corpus, level] = cells
            for maker, short in MAKERS.items():
                cells = []
                for name in ("gzip", "pigz", "ccpigz"):
                    for w in counts if name != "gzip" else [1]:
                        command = [word.format(w=w) for word in PROGRAMS[name]] + ["-dc", str(packed(corpus, level, maker))]
                        cells.append((name, w, command))
                found[f"expand {short}", corpus, level] = cells
    return found


def build_all():
    OUT.mkdir(parents=True, exist_ok=True)
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    for command in (
        ["cmake", "--preset", "release"],
        ["cmake", "--build", "--preset", "release", "-j", jobs, "--target", "ccpigz"],
        ["cc", "-O2", "-o", str(OUT / "usage"), str(ROOT / "tools" / "bench" / "usage.c")],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def run_once(command, priority):
    reader, writer = os.pipe()
    words = [*priority, str(OUT / "usage"), *command]
    with os.fdopen(reader) as figures:
        with subprocess.Popen(["/bin/sh", "-c", f'exec "$@" 3>&{writer}', "sh", *words], pass_fds=[writer]) as child:
            os.close(writer)
            text = figures.read()
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} failed")
    wall, cpu, memory = text.split()
    return float(wall), float(cpu), int(memory)


def sweep(all_groups, minutes, priority, rest):
    """Returns a list of cells with their runs, and what share of the CPUs others used."""
    cells = {key: [{"program": n, "workers": w, "command": c, "runs": []} for n, w, c in members] for key, members in all_groups.items()}
    spent = {key: 0.0 for key in cells}
    cost = dict.fromkeys(cells, 0.0)
    began, before, own = time.monotonic(), machine_time(), 0.0
    deadline = began + 60 * minutes

    def go(key):
        nonlocal own
        order = cells[key][:]
        random.shuffle(order)
        started = time.monotonic()
        for cell in order:
            result = run_once(cell["command"], priority)
            cell["runs"].append(result)
            own += result[1]
            if rest:
                time.sleep(result[0])
        cost[key] = time.monotonic() - started
        spent[key] += cost[key]

    for key in cells:
        if sys.stdout.isatty():
            print("\r\033[K" + " ".join(map(str, key)), end="", flush=True)
        go(key)
    while True:
        now = time.monotonic()
        fit = [key for key in cells if now + cost[key] < deadline and len(cells[key][0]["runs"]) < MOST_REPEATS]
        if not fit:
            break
        go(min(fit, key=spent.get))
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    after = machine_time()
    others = (after[0] - before[0] - own) / max(after[2] - before[2], 1e-9)
    rows = []
    for (action, corpus, level), members in cells.items():
        for cell in members:
            walls = sorted(run[0] for run in cell["runs"])
            rows.append(
                {
                    "action": action,
                    "corpus": corpus,
                    "level": level,
                    "program": cell["program"],
                    "workers": cell["workers"],
                    "wall": walls[0],
                    "median": walls[len(walls) // 2],
                    "cpu": min(run[1] for run in cell["runs"]),
                    "kib": max(run[2] for run in cell["runs"]),
                    "runs": len(walls),
                }
            )
    return rows, max(others, 0.0)


def version_of(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    return (done.stdout + done.stderr).splitlines()[0].strip()


# ---- tables ----

class Results:
    def __init__(self, data):
        self.data = data
        self.rows = {(r["action"], r["corpus"], r["level"], r["program"], r["workers"]): r for r in data["rows"]}

    def size(self, corpus, level, program):
        return self.data["sizes"][f"{corpus} {level} {program}"]

    def groups(self):
        return dict.fromkeys((r["action"], r["corpus"], r["level"]) for r in self.data["rows"])

    def ratios(self, action, corpus, level, program):
        """For each number of workers: wall, CPU and memory beside pigz's."""
        for row in self.rows.values():
            if (row["action"], row["corpus"], row["level"], row["program"]) == (action, corpus, level, program):
                base = self.rows[action, corpus, level, "pigz", row["workers"]]
                yield row["workers"], base["wall"] / row["wall"], base["cpu"] / row["cpu"], row["kib"] / base["kib"]


TITLES = {
    "compress": "compressing",
    "expand own": "decompressing its own file",
    "expand pigz": "decompressing pigz's file",
    "expand gzip": "decompressing gzip's file",
}


def conditions(results):
    data, machine = results.data, results.data["machine"]
    kind = "virtual machine" if machine["virtual"] else "machine"
    sizes = ", ".join(f"{data['corpora'][name] / 1e6:.0f} MB of {what}" for name, what in CORPORA.items())
    repeats = [row["runs"] for row in data["rows"]]
    text = (
        f"Measured on {data['date']}, on a {kind} with {machine['cpus']} CPUs ({machine['cpu']}), {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']}, {machine['system']}; {', '.join(data['versions'])}. {sizes}. Each figure is the best of "
        f"{min(repeats)} to {max(repeats)} runs; other programs used {100 * data['others']:.0f} % of the CPUs meanwhile"
        + (", and ours had real-time priority." if data["priority"] else ".")
    )
    return textwrap.wrap(text, 110)


def goals(results):
    """What was promised, and the worst that was measured, over all corpora, levels and numbers of workers."""
    worst = {}

    def note(name, value, where, better):
        if name not in worst or better(value, worst[name][0]) == value:
            worst[name] = (value, where)

    for action, corpus, level in results.groups():
        for program in ("ccpigz, zlib", "ccpigz"):
            for workers, wall, cpu, memory in results.ratios(action, corpus, level, program):
                where = f"{corpus}, level {level}, {workers} worker" + "s" * (workers > 1)
                kind = program if action == "compress" else "expand"
                where += "" if action == "compress" else f", {action.split()[1]} file"
                note((kind, "wall"), wall, where, min)
                note((kind, "cpu"), cpu, where, min)
                note(("all", "memory"), memory, where, max)
            if action == "compress":
                growth = 100 * (results.size(corpus, level, program) / results.size(corpus, level, "pigz") - 1)
                note((program, "size"), growth, f"{corpus}, level {level}", max)
    lines = ["| beside pigz, same level, same number of workers | promised | worst | where |", "|---|---|---|---|"]
    for key, what, promise, form in (
        (("ccpigz, zlib", "wall"), "compressing with zlib", "1.0×", "{:.2f}×"),
        (("ccpigz, zlib", "cpu"), "the same by CPU time", "–", "{:.2f}×"),
        (("ccpigz, zlib", "size"), "its output", "0 %", "{:+.2f} %"),
        (("ccpigz", "wall"), "compressing with libdeflate", "1.5×", "{:.2f}×"),
        (("ccpigz", "cpu"), "the same by CPU time", "–", "{:.2f}×"),
        (("ccpigz", "size"), "its output", "+1 %", "{:+.2f} %"),
        (("expand", "wall"), "decompressing", "2×", "{:.2f}×"),
        (("expand", "cpu"), "the same by CPU time", "–", "{:.2f}×"),
        (("all", "memory"), "memory", "2×", "{:.2f}×"),
    ):
        value, where = worst[key]
        lines.append(f"| {what} | {promise} | {form.format(value)} | {where} |")
    return lines


def size_table(results):
    lines = ["| corpus, level | gzip | pigz | ccpigz, zlib | ccpigz |", "|---|---|---|---|---|"]
    for corpus, levels in LEVELS.items():
        for level in sorted(levels):
            base = results.size(corpus, level, "pigz")
            cells = []
            for name in PROGRAMS:
                size = results.size(corpus, level, name)
                cells.append(f"{size:,}" + ("" if name == "pigz" else f" ({100 * (size / base - 1):+.2f} %)"))
            lines.append(f"| {corpus}, -{level} | " + " | ".join(cells) + " |")
    return lines


def time_table(results):
    """A line for each number of workers; a cell holds seconds of wall time, of CPU time, and MB."""
    lines = ["| | workers | gzip | pigz | ccpigz, zlib | ccpigz | wall | CPU | memory |", "|---" * 9 + "|"]
    for action, corpus, level in sorted(results.groups(), key=lambda g: (list(CORPORA).index(g[1]), g[2], list(TITLES).index(g[0]))):
        known = {w for (a, c, l, _, w) in results.rows if (a, c, l) == (action, corpus, level)}
        for workers in sorted(known):
            cells = []
            for name in PROGRAMS:
                row = results.rows.get((action, corpus, level, name, workers))
                cells.append(f"{row['wall']:.3f} / {row['cpu']:.3f} / {row['kib'] / 976.5625:.1f}" if row else "–")
            pairs = []
            for kind in (1, 2, 3):
                found = []
                for program in ("ccpigz, zlib", "ccpigz"):
                    found += [f"{r[kind]:.2f}×" for r in results.ratios(action, corpus, level, program) if r[0] == workers]
                pairs.append(", ".join(found))
            head = f"{corpus}, -{level}, {TITLES[action]}" if workers == 1 else ""
            lines.append(f"| {head} | {workers} | " + " | ".join(cells + pairs) + " |")
    return lines


def tables(results):
    return {"conditions": conditions(results), "goals": goals(results), "sizes": size_table(results), "times": time_table(results)}


def draw(results):
    """Four panels for the mixed corpus at level 6: MB/s of plain data by the number of workers."""
    width, height, left = 430, 290, 64
    drawing = Drawing(2 * width + 24, 82 + 2 * height)
    drawing.text(24, 34, "ccpigz beside pigz and gzip: level 6, programs, libraries and texts", 18, bold=True)
    x = 24
    for name, colour in COLOURS.items():
        drawing.box(x, 54, 14, 4, colour)
        drawing.text(x + 20, 61, name)
        x += 20 + 7.6 * len(name) + 24
    total = results.data["corpora"]["mixed"] / 1e6
    for i, (action, title) in enumerate(TITLES.items()):
        curves = {}
        for (a, corpus, level, name, workers), row in results.rows.items():
            if (a, corpus, level) == (action, "mixed", 6):
                curves.setdefault(name, []).append((workers, total / row["wall"]))
        points = sorted({w for pairs in curves.values() for w, _ in pairs})
        px, py = i % 2 * width, 82 + i // 2 * height
        begin, end, top, bottom = px + left, px + width - 20, py + 38, py + height - 52
        scale = LogScale([v for pairs in curves.values() for _, v in pairs], bottom, top)
        drawing.text(begin, py + 18, title, 14, bold=True)
        drawing.text(begin, py + 33, "MB/s", 11.5, "start", FAINT)
        for tick in scale.ticks():
            drawing.line(begin, scale.at(tick), end, scale.at(tick))
            drawing.text(begin - 7, scale.at(tick) + 4.5, f"{tick:g}", 12, "end", FAINT)
        place = {w: begin + 12 + (end - begin - 24) * k / max(len(points) - 1, 1) for k, w in enumerate(points)}
        for w in points:
            drawing.text(place[w], bottom + 19, str(w), 12, "middle", FAINT)
        drawing.text((begin + end) / 2, bottom + 39, "workers", 12.5, "middle")
        for name, pairs in curves.items():
            path = " ".join(f"{place[w]:.1f},{scale.at(v):.1f}" for w, v in sorted(pairs))
            thick = 2.8 if name == "ccpigz" else 1.8
            drawing.add(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="{thick}"/>')
            for w, v in pairs:
                drawing.add(f'<circle cx="{place[w]:.1f}" cy="{scale.at(v):.1f}" r="4" fill="{COLOURS[name]}"/>')
    return drawing.svg()


def paste(path, known):
    """A marker is a line <!-- ccpigz:NAME -->; what is between it and the next <!-- ccpigz:end --> is replaced."""

    def replace(found):
        return f"<!-- ccpigz:{found.group(1)} -->\n" + "\n".join(known[found.group(1)]) + "\n<!-- ccpigz:end -->"

    path.write_text(re.sub(r"<!-- ccpigz:(\w+) -->\n.*?<!-- ccpigz:end -->", replace, path.read_text(), flags=re.S))


def main():
    parser = argparse.ArgumentParser(prog="bench/ccpigz.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--megabytes", type=float, default=100, help="size of the mixed corpus (100); the others are a half and a quarter")
    parser.add_argument("-w", "--workers", default="1 2 4 8", help='numbers of workers ("1 2 4 8"); levels 1 and 9 have no more than 2')
    parser.add_argument("--minutes", type=float, default=4.5, help="for the runs (4.5); preparing takes one and a half more")
    parser.add_argument("-x", "--priority", action="store_true", help="real-time priority, and a rest after each run")
    parser.add_argument("--report", action="store_true", help="runs nothing")
    parser.add_argument("--publish", action="store_true", help="updates docs/performance.md and docs/plots")
    chosen = parser.parse_args()
    path = OUT / "ccpigz.json"
    if chosen.report:
        data = json.loads(path.read_text())
    else:
        for needed in ("gzip", "pigz", "cc"):
            if shutil.which(needed) is None:
                sys.exit(f"{needed} is needed.")
        build_all()
        corpora = make_corpora(chosen.megabytes)
        machine = describe_machine()
        priority = ["chrt", "-f", "5"] if chosen.priority else []
        sizes = prepare(machine["cpus"], priority)
        rows, others = sweep(groups(list(map(int, chosen.workers.split()))), chosen.minutes, priority, chosen.priority)
        versions = [version_of(program) for program in ("gzip", "pigz", str(OURS))]
        data = {
            "date": datetime.date.today().isoformat(),
            "machine": machine,
            "versions": versions,
            "corpora": corpora,
            "priority": chosen.priority,
            "others": others,
            "sizes": sizes,
            "rows": rows,
        }
        path.write_text(json.dumps(data, indent=1) + "\n")
    results = Results(data)
    known = tables(results)
    text = "\n\n".join("\n".join(lines) for lines in known.values()) + "\n"
    (OUT / "ccpigz.md").write_text(text)
    (OUT / "ccpigz.svg").write_text(draw(results))
    print(text, end="")
    if chosen.publish:
        paste(ROOT / "docs" / "performance.md", known)
        (ROOT / "docs" / "plots" / "ccpigz.svg").write_text(draw(results))
        print("\ndocs/performance.md and docs/plots/ccpigz.svg are up to date.")


main()
