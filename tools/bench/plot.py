"""Draws the plots as SVG, and turns them into PNG where rsvg-convert is installed."""

import math
import shutil
import subprocess
from xml.sax.saxutils import escape

from catalogue import PACED, PLOTS, SERIES

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, FAINT, GRID = "#1f2328", "#59636e", "#d8dee4"
STYLE = {  # colour and mark of each runtime
    "ccc": ("#0550ae", "circle"),
    "go": ("#0d9488", "square"),
    "tokio": ("#d9480f", "diamond"),
    "may": ("#8250df", "triangle"),
    "boost": ("#a40e26", "cross"),
    "tbb": ("#bf8700", "bar"),
    "pthreads": ("#6e7781", "down"),
}


class Drawing:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def add(self, text):
        self.parts.append(text)

    def text(self, x, y, words, size=13, anchor="start", colour=INK, bold=False):
        weight = ' font-weight="600"' if bold else ""
        place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
        self.add(f'<text {place} fill="{colour}"{weight}>{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, colour=GRID, width=1.0):
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self.add(f'<line {ends} stroke="{colour}" stroke-width="{width}"/>')

    def box(self, x, y, width, height, colour):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def mark(self, x, y, runtime, size=5.0):
        colour, shape = STYLE[runtime]
        rim = 'stroke="#ffffff" stroke-width="1"'
        if shape == "circle":
            self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{colour}" {rim}/>')
            return
        if shape == "cross":
            a = size * 0.85
            self.add(
                f'<path d="M{x - a:.1f} {y - a:.1f}L{x + a:.1f} {y + a:.1f}M{x - a:.1f} {y + a:.1f}L{x + a:.1f} {y - a:.1f}"'
                f' stroke="{colour}" stroke-width="2.6" fill="none"/>'
            )
            return
        corners = {
            "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
            "diamond": [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
            "triangle": [(0, -1.1), (1.05, 0.8), (-1.05, 0.8)],
            "bar": [(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)],
            "down": [(0, 1.1), (1.05, -0.8), (-1.05, -0.8)],
        }[shape]
        points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in corners)
        self.add(f'<polygon points="{points}" fill="{colour}" {rim}/>')

    def legend(self, x, y, entries):
        """One line of marks and names."""
        for runtime, title in entries:
            self.mark(x + 6, y - 4.5, runtime, 5.5)
            self.text(x + 18, y, title)
            x += 18 + 7.6 * len(title) + 22

    def svg(self):
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        body = "\n".join(self.parts)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">'
        return f'{head}\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'


class LogScale:
    """Maps values to pixels; the ticks are 1, 10, 100, or 1, 2, 5, 10 when the range is small."""

    def __init__(self, values, begin, end, padding=1.25):
        low, high = min(values) / padding, max(values) * padding
        if high / low < 8:
            middle = math.sqrt(high * low)
            low, high = middle / 2.9, middle * 2.9
        self.low, self.high = math.log10(low), math.log10(high)
        self.begin, self.end = begin, end

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        steps = (1, 2, 5) if self.high - self.low < 1.7 else (1,)
        if self.high - self.low < 2.8 and steps == (1,):
            steps = (1, 3)
        for exponent in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in steps:
                value = step * 10.0**exponent
                if self.low <= math.log10(value) <= self.high:
                    yield value


def short(value):
    if isinstance(value, str):
        return value
    if value >= 1024 and value % 1024 == 0:
        return f"{value // 1024:g}Ki"
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


# ---- the overview: how many times as long as libccc ----

def spread(places):
    """Marks that would hide each other move up and down a little."""
    before, side = -100.0, 0
    for at, name in sorted(places):
        side = (1, -1, 1)[side + 1] if at - before < 9 else 0
        yield at, name, 5.5 * side
        before = at


def ratio_picture(results, title, rows, rivals, panels):
    """A line for each row, a panel for each (title, function from row and rival to the ratio)."""
    ratios = [ratio(row, rival.name) for row in rows for _, ratio in panels for rival in rivals]
    ratios = [ratio for ratio in ratios if ratio]
    if not ratios:
        return None
    left, gap, height, top = 388, 30, 28, 118
    panel = max(190, 780 // len(panels))
    bottom = top + height * len(rows)
    drawing = Drawing(left + len(panels) * panel + (len(panels) - 1) * gap + 30, bottom + 62)
    drawing.text(24, 34, title, 19, bold=True)
    drawing.legend(24, 64, [("ccc", "libccc"), *((rival.name, results.title(rival)) for rival in rivals)])
    for i, (head, ratio_of) in enumerate(panels):
        x = left + i * (panel + gap)
        scale = LogScale(ratios + [0.7, 3], x, x + panel, 1.2)
        if scale.low < 0:
            drawing.box(x, top, scale.at(1) - x, bottom - top, "#fff1e5")
        drawing.text(x + panel / 2, 94, head, 15, "middle", bold=True)
        for tick in scale.ticks():
            drawing.line(scale.at(tick), top, scale.at(tick), bottom)
            drawing.text(scale.at(tick), bottom + 20, f"{tick:g}×", 13, "middle", FAINT)
        drawing.line(scale.at(1), top, scale.at(1), bottom, STYLE["ccc"][0], 1.6)
        for k, row in enumerate(rows):
            y = top + height * (k + 0.5)
            drawing.line(x, y, x + panel, y, "#eef1f4")
            found = [(ratio_of(row, rival.name), rival.name) for rival in rivals]
            if any(ratio for ratio, _ in found):
                drawing.mark(scale.at(1), y, "ccc", 5.5)
            for at, name, shift in spread([(scale.at(ratio), name) for ratio, name in found if ratio]):
                drawing.mark(at, y + shift, name, 5.5)
        if scale.low < 0:
            drawing.text(scale.at(1) - 6, bottom + 42, "faster ←", 13, "end", FAINT)
        drawing.text(scale.at(1) + 6, bottom + 42, "→ slower than libccc", 13, "start", FAINT)
    for k, row in enumerate(rows):
        y = top + height * (k + 0.5)
        drawing.text(24, y + 4.5, row.name, 13.5, bold=True)
        drawing.text(140, y + 4.5, row.what, 12, colour=FAINT)
    return drawing.svg()


def count_of(workers):
    return f"{workers} worker" + "s" * (workers > 1)


def overview(results):
    rivals = [runtime for runtime in results.runtimes if runtime.name != "ccc"]
    panels = [(count_of(w), lambda row, name, w=w: results.ratio(row.name, w, name)) for w in results.workers[:2]]
    return ratio_picture(results, "How many times as long as libccc others take for the same work", results.rows, rivals, panels)


def work_overview(results):
    panels = [
        (f"{title}, {count_of(w)}", lambda row, name, w=w, key=key: None if key == "" and row.name in PACED else results.work_ratio(row.name, w, name, key))
        for key, title in (("", "wall"), ("cpu_ns", "CPU"))
        for w in results.work_workers()
    ]
    if not panels:
        return None
    title = "Work as programs do it: wall time and CPU time of others, in times of libccc's"
    return ratio_picture(results, title, results.work_rows(), results.work_rivals(), panels)


# ---- curves ----

def values(results, runtime, panel):
    """The pairs of one curve: by the parameter, or, when the panel names several keys, by key at one parameter."""
    _, program, keys, _, _ = panel
    if isinstance(keys, str):
        return results.curve(program, runtime, keys)
    point, names = keys
    found = [(title, dict(results.curve(program, runtime, key)).get(point)) for title, key in names]
    return [(title, value) for title, value in found if value is not None]


def picture(results, plot):
    panels = []
    for panel in plot.panels:
        curves = {}
        for runtime in results.runtimes:
            pairs = [(x, y * panel[3]) for x, y in values(results, runtime.name, panel)]
            if pairs:
                curves[runtime.name] = pairs
        if curves:
            panels.append((panel, curves))
    if not panels:
        return None
    columns = 2 if len(panels) in (2, 4) else len(panels)
    width, height, left = (430, 300, 64) if columns == 2 else (350, 290, 60)
    lines = math.ceil(len(panels) / columns)
    drawing = Drawing(columns * width + 24, 82 + lines * height + 10)
    drawing.text(24, 34, plot.title, 18, bold=True)
    used = [(r.name, results.title(r)) for r in results.runtimes if any(r.name in curves for _, curves in panels)]
    drawing.legend(24, 64, used)
    for i, (panel, curves) in enumerate(panels):
        draw_panel(drawing, panel, curves, i % columns * width, 82 + i // columns * height, width, height, left)
    return drawing.svg()


def draw_panel(drawing, panel, curves, x, y, width, height, left):
    title, program, keys, _, unit = panel
    series = next(s for s in SERIES if s.program == program)
    known, axis = (series.points, series.axis) if isinstance(keys, str) else ([name for name, _ in keys[1]], "percentile")
    points = [p for p in known if any(p == at for pairs in curves.values() for at, _ in pairs)]
    begin, end, top, bottom = x + left, x + width - 14, y + 38, y + height - 52
    floor = 1 if unit.startswith("bytes") else 0.1  # what lies below is drawn there: a logarithm has no zero
    curves = {name: [(at, max(value, floor)) for at, value in pairs] for name, pairs in curves.items()}
    scale = LogScale([value for pairs in curves.values() for _, value in pairs], bottom, top)
    step = (end - begin) / max(len(points) - 1, 1)
    inset = 10

    def place(point):
        return begin + inset + (step - 2 * inset / max(len(points) - 1, 1)) * points.index(point)

    drawing.text(begin, y + 18, title, 14, bold=True)
    drawing.text(begin, y + 33, unit, 11.5, "start", FAINT)
    for tick in scale.ticks():
        drawing.line(begin, scale.at(tick), end, scale.at(tick))
        drawing.text(begin - 7, scale.at(tick) + 4.5, short(tick), 12, "end", FAINT)
    drawing.line(begin, bottom, end, bottom, "#8c959f")
    for point in points:
        drawing.line(place(point), bottom, place(point), bottom + 4, "#8c959f")
        drawing.text(place(point), bottom + 19, short(point), 12, "middle", FAINT)
    drawing.text((begin + end) / 2, bottom + 39, axis, 12.5, "middle", INK)
    for name in reversed(curves):  # ours last, on top
        colour = STYLE[name][0]
        path = " ".join(f"{place(at):.1f},{scale.at(value):.1f}" for at, value in curves[name])
        thick = 2.8 if name == "ccc" else 1.8
        drawing.add(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thick}" stroke-linejoin="round"/>')
        for at, value in curves[name]:
            drawing.mark(place(at), scale.at(value), name, 4.6 if name == "ccc" else 4.0)


def draw(results, folder):
    """Writes all plots for which there are figures; returns the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"overview": overview(results), "work": work_overview(results)} | {plot.name: picture(results, plot) for plot in PLOTS}
    written = []
    for name, svg in pictures.items():
        if svg is None:
            continue
        path = folder / f"{name}.svg"
        path.write_text(svg)
        written.append(path)
    return written


def to_png(paths):
    if shutil.which("rsvg-convert") is None:
        return False
    for path in paths:
        subprocess.run(["rsvg-convert", "--zoom", "1.5", "-o", path.with_suffix(".png"), path], check=True)
    return True
