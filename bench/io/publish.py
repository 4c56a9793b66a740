"""Pastes the figures of the last run of run.py into docs/performance.md, and draws docs/plots/echo.svg.

  python3 bench/io/publish.py
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "bench"))
from measure import describe_machine  # noqa: E402
from plot import FAINT, Drawing, LogScale, short  # noqa: E402

NAMES = {"ccc": "libccc", "epoll": "epoll alone", "uv": "libuv", "tokio": "Tokio", "go": "Go"}
COLOURS = {"ccc": "#0550ae", "epoll": "#6e7781", "uv": "#bf8700", "tokio": "#d9480f", "go": "#0d9488"}
SIZES = {32: "32 bytes", 1024: "1 KiB"}


def conditions():
    machine = describe_machine()
    kind = "virtual machine" if machine["virtual"] else "machine"
    return [
        f"Measured on a {kind} with {machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel']}; the least of 2 to 7 runs of half a second each, as many of each server in a row, in turns.",
        "The server has one CPU and the load the other; with two workers both share both.",
    ]


def table(results):
    rows = {(r["server"], r["workers"], r["connections"], r["size"]): r for r in results}
    lines = [
        "| bytes | connections | workers | " + " | ".join(NAMES.values()) + " | libccc / epoll | / Tokio | / Go |",
        "|---" * (len(NAMES) + 6) + "|",
    ]
    for workers, connections, size in sorted({key[1:] for key in rows}, key=lambda k: (k[2], k[0], k[1])):
        found = {name: rows.get((name, workers, connections, size)) for name in NAMES}
        cells = [f"{r['cpu_us']:.2f}" if r else "–" for r in found.values()]
        ratios = [f"{found['ccc']['cpu_us'] / found[n]['cpu_us']:.2f}" if found["ccc"] and found[n] else "–" for n in ("epoll", "tokio", "go")]
        lines.append(f"| {size} | {connections:,} | {workers} | " + " | ".join(cells + ratios) + " |")
    return lines


def latencies(results):
    """At half load: one line for each server."""
    rows = [r for r in results if r.get("rate")]
    if not rows:
        return []
    lines = [
        "At half of what the slowest of them gets through; µs from when a request is due. Server and load have real-time priority here: else what runs",
        "beside them, in slices of milliseconds, is the p99 of everybody. `load` is how late the load itself sent, p99:",
        "",
        "| connections | workers | requests/s | server | p50 | p99 | p99.9 | CPU | load |",
        "|---" * 9 + "|",
    ]
    for r in sorted(rows, key=lambda r: (r["connections"], r["workers"], r["rate"], list(NAMES).index(r["server"]))):
        lines.append(
            f"| {r['connections']:,} | {r['workers']} | {r['rate']:,.0f} | {NAMES[r['server']]} | {r['p50_us']:.0f} | {r['p99_us']:.0f} | {r['p999_us']:.0f} | {r['cpu_us']:.2f} | {r['sent_late_p99_us']:.0f} |"
        )
    return ["", *lines]


def tickers(results):
    return [
        line
        for r in results
        if r.get("ticker")
        for line in (
            "",
            f"Fibers that sleep 50 ms at a time beside {r['connections']:,} connections, all of them busy, with {r['workers']} worker{'s' if r['workers'] > 1 else ''}: "
            f"late by {r['late_p50_us']:.0f} µs (p50), {r['late_p99_us']:.0f} µs (p99), {r['late_p999_us']:.0f} µs (p99.9).",
        )
    ]


def draw(results):
    """Two panels, one for each size: CPU time of the server for a request by the number of connections."""
    width, height, left = 430, 290, 64
    drawing = Drawing(2 * width + 24, 82 + height)
    drawing.text(24, 34, "Echo over TCP, one worker: CPU time of the server for a request", 18, bold=True)
    x = 24
    for name, colour in COLOURS.items():
        drawing.box(x, 54, 14, 4, colour)
        drawing.text(x + 20, 61, NAMES[name])
        x += 20 + 7.6 * len(NAMES[name]) + 24
    for i, (size, title) in enumerate(SIZES.items()):
        curves = {}
        for r in results:
            if r["workers"] == 1 and r["size"] == size and r["server"] in NAMES:
                curves.setdefault(r["server"], []).append((r["connections"], r["cpu_us"]))
        points = sorted({at for pairs in curves.values() for at, _ in pairs})
        begin, end, top, bottom = i * width + left, (i + 1) * width - 20, 82 + 38, 82 + height - 52
        scale = LogScale([v for pairs in curves.values() for _, v in pairs], bottom, top)
        drawing.text(begin, 82 + 18, title, 14, bold=True)
        drawing.text(begin, 82 + 33, "µs", 11.5, "start", FAINT)
        for tick in scale.ticks():
            drawing.line(begin, scale.at(tick), end, scale.at(tick))
            drawing.text(begin - 7, scale.at(tick) + 4.5, f"{tick:g}", 12, "end", FAINT)
        place = {p: begin + 12 + (end - begin - 24) * k / max(len(points) - 1, 1) for k, p in enumerate(points)}
        for p in points:
            drawing.text(place[p], bottom + 19, short(p), 12, "middle", FAINT)
        drawing.text((begin + end) / 2, bottom + 39, "connections", 12.5, "middle")
        for name in reversed(NAMES):  # ours last, on top
            pairs = sorted(curves.get(name, []))
            path = " ".join(f"{place[p]:.1f},{scale.at(v):.1f}" for p, v in pairs)
            thick = 2.8 if name == "ccc" else 1.8
            drawing.add(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="{thick}"/>')
            for p, v in pairs:
                drawing.add(f'<circle cx="{place[p]:.1f}" cy="{scale.at(v):.1f}" r="4" fill="{COLOURS[name]}"/>')
    return drawing.svg()


def main():
    results = json.loads((ROOT / "build/bench/io/results.json").read_text())
    full = [r for r in results if not r.get("rate") and not r.get("ticker")]
    (ROOT / "docs/plots/echo.svg").write_text(draw(full))
    page = ROOT / "docs/performance.md"
    shown = [r for r in results if r["server"] in NAMES]
    text = "\n".join([*conditions(), "", *table(full), *latencies(shown), *tickers(shown)])
    page.write_text(re.sub(r"<!-- io:echo -->\n.*?<!-- io:end -->", lambda _: f"<!-- io:echo -->\n{text}\n<!-- io:end -->", page.read_text(), flags=re.S))


main()
