"""The time axis as an inline picture: one bar a step, the critical path in colour, and nothing from outside."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from dpd_infra.rehearsal.timeline import Bar, Timeline

_ROW = 24
_BAR = 14
_LABELS = 330
"""Pixels for the names on the left."""
_AXIS = 700
"""Pixels for the time."""
_RIGHT = 110
_TOP = 34
_TICKS = (1, 2, 5, 10, 15, 20, 30, 60, 120)


def svg(timeline: Timeline, *, trifles: bool = False) -> str:
    """The picture. Steps of seconds that are not on the critical path are left out unless asked for."""
    bars = timeline.bars if trifles else timeline.without_trifles()
    total = max(timeline.middle, 0.1)
    width, height = _LABELS + _AXIS + _RIGHT, _TOP + _ROW * len(bars) + 12
    scale = _AXIS / total
    label = f"{escape(timeline.title)}: the time axis"
    parts = [f'<svg class="timeline" viewBox="0 0 {width} {height}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">']
    step = next((tick for tick in _TICKS if total / tick <= 10), _TICKS[-1])
    minute = 0
    while minute <= total:
        x = _LABELS + minute * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height - 8}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">{minute} min</text>')
        minute += step
    rows = {bar.node.urn: index for index, bar in enumerate(bars)}
    critical = set(timeline.critical)
    shown = [urn for urn in timeline.critical if urn in rows]
    for one, other in pairwise(shown):
        parts.append(_elbow(timeline.by_urn[one], rows[one], timeline.by_urn[other], rows[other], scale))
    for index, bar in enumerate(bars):
        parts.append(_row(bar, index, scale, critical=bar.node.urn in critical))
    parts.append("</svg>")
    return "\n".join(parts)


def _row(bar: Bar, index: int, scale: float, *, critical: bool) -> str:
    y = _TOP + index * _ROW
    x, width = _LABELS + bar.start * scale, max((bar.end - bar.start) * scale, 2)
    kind = "failed" if bar.status == "failed" else "critical" if critical else bar.change
    source = "assumed" if bar.duration.assumed else str(bar.duration.source)
    spent = f" ({bar.duration.why})" if bar.duration.why else ""
    tip = f"{bar.name}, {bar.node.type}: {bar.change}, {minutes(bar)}, {source}{spent}"
    strong = " strong" if critical else ""
    pattern = " assumed" if bar.duration.assumed else ""
    return (
        f"<g><title>{escape(tip)}</title>"
        f'<text class="name{strong}" x="{_LABELS - 10}" y="{y + 12}" text-anchor="end">{escape(_short(bar.name))}</text>'
        f'<rect class="bar {kind}{pattern}" x="{x:.1f}" y="{y + 1}" width="{width:.1f}" height="{_BAR}" rx="3"/>'
        f'<text class="time" x="{x + width + 6:.1f}" y="{y + 12}">{escape(minutes(bar))}</text></g>'
    )


def _elbow(one: Bar, row: int, other: Bar, other_row: int, scale: float) -> str:
    x, y = _LABELS + one.end * scale, _TOP + row * _ROW + _BAR / 2 + 1
    to_x, to_y = _LABELS + other.start * scale, _TOP + other_row * _ROW + 1
    return f'<path class="wait" d="M{x:.1f} {y:.1f} V{to_y - 4:.1f} H{to_x + 1:.1f} V{to_y:.1f}"/>'


def minutes(bar: Bar) -> str:
    """`8-15 min`, or `seconds`."""
    low, high = bar.duration.low, bar.duration.high
    if high < 1:
        return "seconds"
    return f"{low:g}\u2013{high:g} min"


def _short(name: str) -> str:
    return name if len(name) <= 46 else f"{name[:22]}…{name[-22:]}"
