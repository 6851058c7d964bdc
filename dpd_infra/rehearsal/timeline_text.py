"""The time axis on a terminal: a line a step, and the critical path marked."""

from __future__ import annotations

from dpd_infra.rehearsal.timeline import Bar, Timeline
from dpd_infra.rehearsal.timeline_svg import minutes

_NAMES = 44


def gantt(timeline: Timeline, *, width: int = 120) -> list[str]:
    """The lines of the picture. Steps of seconds that are not on the critical path are left out."""
    bars = timeline.without_trifles()
    room = max(width - _NAMES - 16, 20)
    scale = room / max(timeline.middle, 0.1)
    critical = set(timeline.critical)
    lines = [f"{'minutes':<{_NAMES}} {_axis(timeline.middle, room, scale)}"]
    for bar in bars:
        begin = min(int(bar.start * scale), room - 1)
        length = max(round((bar.end - bar.start) * scale), 1)
        sign = "x" if bar.status == "failed" else "█" if bar.node.urn in critical else "░"
        drawn = f"{' ' * begin}{sign * min(length, room - begin)}"
        lines.append(f"{_name(bar):<{_NAMES}} {drawn:<{room}} {minutes(bar)}".rstrip())
    hidden = len(timeline.bars) - len(bars)
    lines.append("")
    lines.append(f"{timeline.title}: {_span(timeline)}; the critical path (█) is")
    lines.append(f"  {' > '.join(bar.name for bar in timeline.path if bar.duration.middle >= 0.5) or 'seconds long'}")
    notes = [
        f"{hidden} steps of seconds are not drawn" if hidden else "",
        f"{timeline.assumed} durations are assumed, no document gives them",
    ]
    lines.append(f"  {'; '.join(note for note in notes if note)}")
    return lines


def _span(timeline: Timeline) -> str:
    if timeline.high < 1:
        return "under a minute"
    return f"{timeline.low:.0f} to {timeline.high:.0f} minutes, drawn at {timeline.middle:.0f}"


def _axis(total: float, room: int, scale: float) -> str:
    step = next(tick for tick in (1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 100_000) if tick * scale >= 6)
    line = [" "] * (room + 8)
    minute = 0
    while minute <= total:
        for offset, letter in enumerate(str(minute)):
            line[int(minute * scale) + offset] = letter
        minute += step
    return "".join(line).rstrip()


def _name(bar: Bar) -> str:
    name = bar.name if len(bar.name) <= _NAMES - 2 else f"{bar.name[:20]}…{bar.name[-20:]}"
    return f"{'x' if bar.status == 'failed' else {'create': '+', 'update': '~', 'delete': '-', 'replace': '±'}[bar.change]} {name}"
