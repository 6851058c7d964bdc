"""The plot over thresholds: for a terminal, and as an SVG file."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from math import isfinite

from dpd_infra.plan.advice.threshold import ThresholdAdvice, ThresholdPoint

_BAR = 40
"""Columns of the longest bar in a terminal."""
_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 50, 60
_TICKS = 5
_SERIES: tuple[tuple[str, str, Callable[[ThresholdPoint], float]], ...] = (
    ("request, s", "#1f5fa8", lambda point: point.request_seconds),
    ("TTFT, s", "#c4571b", lambda point: point.ttft_seconds),
    ("TPOT, s per 100 tokens", "#2e7d4f", lambda point: point.tpot_seconds * 100),
)


def plot_text(advice: ThresholdAdvice) -> str:
    """One line a threshold: share disaggregated, TTFT, TPOT, and a bar of the mean request time; `>` marks the recommended one."""
    finite = [point.request_seconds for point in advice.points if isfinite(point.request_seconds)]
    longest = max(finite, default=1.0)
    lines = ["  threshold  disaggregated  prefill busy      TTFT      TPOT   request"]
    for point in advice.points:
        mark = ">" if point.threshold_tokens == advice.recommended.threshold_tokens else " "
        head = f"{mark} {point.threshold_tokens:>9,}  {point.share_disaggregated:>12.0%}  {point.prefill_utilisation:>12.0%}"
        if isfinite(point.request_seconds):
            bar = "#" * max(1, round(point.request_seconds / longest * _BAR))
            times = f"{point.ttft_seconds * 1000:>5,.0f} ms  {point.tpot_seconds * 1000:>5.1f} ms  {point.request_seconds:>6.2f} s"
            lines.append(f"{head}  {times}  {bar}")
        else:
            lines.append(f"{head}  does not keep up")
    return "\n".join(lines)


def plot_svg(advice: ThresholdAdvice, title: str) -> str:
    """The mean request time, TTFT and TPOT over thresholds as an SVG document, with the recommended threshold and the default marked."""
    points = [point for point in advice.points if isfinite(point.request_seconds)]
    widest = max((point.threshold_tokens for point in points), default=1) or 1
    highest = max((value(point) for point in points for _, _, value in _SERIES), default=1.0) or 1.0

    def x(tokens: float) -> float:
        return _LEFT + tokens / widest * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / highest * (_HEIGHT - _TOP - _BOTTOM)

    floor = _HEIGHT - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    for tick in range(_TICKS + 1):
        value, tokens = highest * tick / _TICKS, widest * tick / _TICKS
        parts.append(f'<line x1="{_LEFT}" y1="{y(value):.1f}" x2="{_WIDTH - _RIGHT}" y2="{y(value):.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
        parts.append(f'<text x="{x(tokens):.1f}" y="{floor + 18}" text-anchor="middle">{tokens:,.0f}</text>')
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 14}" text-anchor="middle">routingThreshold, estimated tokens</text>'
    )
    for index, (name, colour, value) in enumerate(_SERIES):
        line = " ".join(f"{x(point.threshold_tokens):.1f},{y(value(point)):.1f}" for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 10 + 200 * index}" y="40" fill="{colour}">{name}</text>')
    for point, label in ((advice.recommended, "recommended"), (advice.default, "default")):
        if isfinite(point.request_seconds) and point.threshold_tokens <= widest:
            at = x(point.threshold_tokens)
            parts.append(f'<line x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{floor}" stroke="#666666" stroke-dasharray="4 3"/>')
            parts.append(f'<text x="{at + 4:.1f}" y="{_TOP + (12 if label == "default" else 26)}" fill="#666666">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])
