"""The report as one HTML page that needs nothing else: no script or font from elsewhere."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from litert_torch.quantize.layer_errors import Error, LayerError

if TYPE_CHECKING:
    from litert_torch.quantize.report import Entry, Report

_COLORS = {
    "static": "#2a7f62",
    "dynamic": "#3465a4",
    "weight_only": "#8f6bb3",
    "float": "#c4572b",
}
_WIDTH, _HEIGHT = 960, 200
_BEST_SHOWN = 80.0  # dB; what is better looks the same

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%;font-size:12px}
td,th{padding:2px 8px;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}
th{cursor:pointer;position:sticky;top:0;background:#fff}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
td.name{max-width:360px;overflow-wrap:anywhere}
svg{width:100%;background:#fafafa;border:1px solid #eee}
.key span{display:inline-block;margin-right:1.2em}
.key i{display:inline-block;width:10px;height:10px}
"""

_SORTING = """
for(const th of document.querySelectorAll("th"))th.onclick=()=>{
const t=th.closest("table"),i=th.cellIndex,up=th.dataset.up!=="1";th.dataset.up=up?"1":"0";
const key=r=>{const c=r.cells[i].dataset.v??r.cells[i].textContent,n=parseFloat(c);
return isNaN(n)?c:n};
[...t.tBodies[0].rows].sort((a,b)=>{const x=key(a),y=key(b);
return (x<y?-1:x>y?1:0)*(up?1:-1)}).forEach(r=>t.tBodies[0].append(r))}
"""


def page(report: Report, layers: Sequence[LayerError], title: str) -> str:
    """The page of `report`, with errors of results where `layers` has them."""
    weights = {e.name: e for e in report.weight_errors()}
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_summary(report),
        *_layers_section(report.entries, layers),
        *_sizes_section(report.entries),
        *_islands(report.left_in_float),
        *_accelerators(report.entries),
        *_table(report.entries, weights, layers),
    ]
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><body>{body}<script>{_SORTING}</script></body></html>"
    )


def _summary(report: Report) -> Iterator[str]:
    forms = Counter(e.form for e in report.entries)
    before, after = report.bytes_before / 1e6, report.bytes_after / 1e6
    share = f" ({after / before:.0%})" if before else ""
    yield f"<p>Weights that a rule is for: {before:.2f} MB, now {after:.2f} MB{share}.</p>"
    shown = " ".join(
        f'<span><i style="background:{_COLORS[f]}"></i> {f}: {n} ops</span>'
        for f, n in forms.most_common()
    )
    yield f'<p class="key">{shown}</p>'
    if report.notes:
        yield "<ul>" + "".join(f"<li>{escape(n)}</li>" for n in report.notes) + "</ul>"


def _layers_section(entries: Sequence[Entry], layers: Sequence[LayerError]) -> Iterator[str]:
    if not layers:
        return
    last = layers[-1]
    yield "<h2>Where the error enters</h2>"
    yield (
        f"<p>Signal to noise of each result against the float model, from the first op to the "
        f"last, which has {_db(last.sqnr)} dB (cosine {last.cosine:.5f}, largest difference "
        f"{last.largest:.3g}).</p>"
    )
    yield _line(entries, layers)
    worst = sorted(layers, key=lambda e: -e.added)[:8]
    rows = [(e.name, e.op, f"{e.added:.2%}", _db(e.sqnr)) for e in worst if e.added > 0]
    if rows:
        yield "<h3>The ops that add most</h3>"
        yield _rows(("result", "op", "noise added / signal", "SQNR dB after"), rows, numbers=(2, 3))


def _line(entries: Sequence[Entry], layers: Sequence[LayerError]) -> str:
    """SQNR over the ops as a line of dots, each of its form's colour."""
    forms = {e.name: e.form for e in entries}
    top = max(10.0, *(_shown(e.sqnr) for e in layers))
    step = (_WIDTH - 50) / max(1, len(layers) - 1)
    places = [
        (40 + i * step, 10 + (_HEIGHT - 30) * (1 - _shown(e.sqnr) / top))
        for i, e in enumerate(layers)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_COLORS[forms.get(e.name, "float")]}">'
        f"<title>{escape(e.name)} {e.op}: {_db(e.sqnr)} dB</title></circle>"
        for (x, y), e in zip(places, layers, strict=True)
    ]
    marks = [
        f'<text x="4" y="{14 + (_HEIGHT - 30) * (1 - v / top):.0f}" font-size="11">'
        f"{v:.0f} dB</text>"
        for v in (0.0, top / 2, top)
    ]
    line = f'<polyline points="{path}" fill="none" stroke="#bbb"/>'
    return _svg(line, *dots, *marks)


def _sizes_section(entries: Sequence[Entry]) -> Iterator[str]:
    sized = [e for e in entries if e.bytes_before]
    if not sized:
        return
    yield "<h2>Bytes of weights, before and after</h2>"
    width = (_WIDTH - 10) / len(sized)
    largest = max(e.bytes_before for e in sized)
    bars = []
    for i, e in enumerate(sized):
        for nbytes, color in ((e.bytes_before, "#ddd"), (e.bytes_after, _COLORS[e.form])):
            height = (_HEIGHT - 20) * nbytes / largest
            bars.append(
                f'<rect x="{5 + i * width:.1f}" y="{_HEIGHT - 10 - height:.1f}" '
                f'width="{max(0.5, width * 0.8):.1f}" height="{height:.1f}" fill="{color}">'
                f"<title>{escape(e.name)}: {e.bytes_before} to {e.bytes_after}</title></rect>"
            )
    yield _svg(*bars)


def _svg(*shapes: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(shapes)}</svg>'


def _islands(left: Sequence[Entry]) -> Iterator[str]:
    if not left:
        return
    yield "<h2>What stayed in float, and why</h2>"
    by_reason: dict[str, list[Entry]] = defaultdict(list)
    for e in left:
        by_reason[e.note].append(e)
    rows = [
        (reason, len(found), ", ".join(f"{e.op} {e.name}" for e in found[:4]))
        for reason, found in sorted(by_reason.items(), key=lambda pair: -len(pair[1]))
    ]
    yield _rows(("reason", "ops", "as"), rows, numbers=(1,))


def accelerator_notes(entries: Sequence[Entry]) -> list[str]:
    """What accelerators refuse of what the entries have; measured with ai-edge-litert 2.3.0."""
    notes = []
    if any("block" in e.weights for e in entries):
        notes.append(
            "Blocks of int4 run on the CPU (XNNPACK). Qualcomm's and MediaTek's compilers refuse "
            "them, and the GPU computes them wrongly: use int4 a channel there."
        )
    if any(e.form == "weight_only" and e.weights.startswith("int") for e in entries):
        notes.append(
            "Integer weights behind DEQUANTIZE with a scale a channel are not for the GPU, nor for "
            "Qualcomm's compiler: dynamic_wi8_afp32 has the same size and runs there."
        )
    if any(e.form == "dynamic" and e.op not in ("FULLY_CONNECTED",) for e in entries):
        notes.append(
            "Dynamic CONV_2D, TRANSPOSE_CONV and BATCH_MATMUL run on the CPU; Qualcomm's compiler "
            "takes dynamic FULLY_CONNECTED of int8 only: NPUs want a static recipe."
        )
    if any(e.form == "float" and e.note for e in entries):
        notes.append(
            "Ops that stayed in float go back to the CPU where an NPU computes on integers only."
        )
    return notes


def _accelerators(entries: Sequence[Entry]) -> Iterator[str]:
    notes = accelerator_notes(entries)
    if notes:
        yield "<h2>On accelerators</h2><ul>"
        yield "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"


def _table(
    entries: Sequence[Entry], weights: dict[str, Error], layers: Sequence[LayerError]
) -> Iterator[str]:
    yield "<h2>Op by op</h2>"
    results = {e.name: e for e in layers}
    head = ("result", "op", "form", "weights", "bytes", "now", "weights dB", "result dB", "max", "")
    rows = []
    for e in entries:
        w, r = weights.get(e.name), results.get(e.name)
        rows.append(
            (
                e.name,
                e.op,
                e.form,
                e.weights,
                e.bytes_before or "",
                e.bytes_after or "",
                _db(w.sqnr) if w else "",
                _db(r.sqnr) if r else "",
                f"{r.largest:.3g}" if r else "",
                e.note,
            )
        )
    yield _rows(head, rows, numbers=(4, 5, 6, 7, 8))


def _rows(
    head: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()
) -> str:
    def cell(tag: str, i: int, value: object) -> str:
        kind = ' class="n"' if i in numbers else ' class="name"' if i == 0 else ""
        return f"<{tag}{kind}>{escape(str(value))}</{tag}>"

    top = "".join(cell("th", i, h) for i, h in enumerate(head))
    body = "".join(
        "<tr>" + "".join(cell("td", i, v) for i, v in enumerate(row)) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _shown(sqnr: float) -> float:
    return min(_BEST_SHOWN, max(0.0, sqnr)) if not math.isnan(sqnr) else 0.0


def _db(sqnr: float) -> str:
    return "exact" if sqnr == math.inf else f"{sqnr:.1f}"
