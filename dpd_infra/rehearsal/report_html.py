"""The report as one page that needs nothing from outside: the tree, the time axis as a picture, what would have failed and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from html import escape

from dpd_infra.rehearsal.engine import STACK_TYPE
from dpd_infra.rehearsal.explanations import Explanation
from dpd_infra.rehearsal.faults import Trial
from dpd_infra.rehearsal.kill_drill import Recovery
from dpd_infra.rehearsal.report import Report
from dpd_infra.rehearsal.runner import RehearsalResult
from dpd_infra.rehearsal.state_graph import Node, StateGraph
from dpd_infra.rehearsal.timeline import Timeline
from dpd_infra.rehearsal.timeline_svg import svg

_STYLE = """
 :root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6876; --line: #d9dee5; --paper: #fff; --panel: #f5f7fa;   --create:
#9db7d5; --update: #e0c074; --delete: #c9a3a3; --replace: #c3a6d8; --critical: #2563a8; --failed: #c0322b; --good: #2b7a4b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa5b3; --line: #343c47; --paper: #14181d; --panel:
#1c2229;   --create: #4d6a8c; --update: #8a6f2b; --delete: #7a4a4a; --replace: #6b4f82; --critical: #6aa9ee; --failed: #f0706a;
--good: #6cc794; } } * { box-sizing: border-box } body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5
system-ui, sans-serif } main { max-width: 1180px; margin: 0 auto; padding: 32px 24px 64px } h1 { font-size: 26px; margin: 0 } h2 {
font-size: 18px; margin: 40px 0 12px } .lead { color: var(--soft); margin: 4px 0 20px } .cards { display: flex; flex-wrap: wrap;
gap: 12px } .card { background: var(--panel);   border-radius: 8px; padding: 12px 18px; min-width: 130px } .card b { display:
block; font-size: 22px; font-weight: 600 } .card span { color: var(--soft); font-size: 13px } .good { color: var(--good) } .bad {
color: var(--failed) } .box { border-left: 4px solid var(--failed); background: var(--panel); border-radius: 0 8px 8px 0; padding:
12px 18px; margin: 12px 0 } pre, code { font: 13px/1.45 ui-monospace, monospace } pre { white-space: pre-wrap; overflow-wrap:
anywhere; margin: 6px 0 } ol, ul { margin: 6px 0; padding-left: 22px } .scroll { overflow-x: auto } svg { width: 100%; min-width:
860px; height: auto; display: block } svg text { fill: var(--ink); font: 12px system-ui, sans-serif } svg .tick, svg .time { fill:
var(--soft); font-size: 11px } svg .strong { font-weight: 600 } .grid { stroke: var(--line) } .wait { fill: none; stroke:
var(--critical); stroke-width: 1.2; opacity: .55 } .bar.create { fill: var(--create) } .bar.update { fill: var(--update) }
.bar.delete { fill: var(--delete) } .bar.replace { fill: var(--replace) } .bar.critical { fill: var(--critical) } .bar.failed {
fill: var(--failed) } .bar.assumed { fill-opacity: .78 } table { border-collapse: collapse; width: 100% } th, td { text-align:
left; padding: 6px 10px 6px 0; border-bottom: 1px solid var(--line);   vertical-align: top } th { color: var(--soft); font-weight:
500; font-size: 13px } td { overflow-wrap: anywhere } td.word, th { white-space: nowrap; overflow-wrap: normal } .more td {
padding-left: 24px } tr:has(+ .more) td { border-bottom: 0 } .legend { color: var(--soft); font-size: 13px; margin: 0 0 8px }
.legend i { display: inline-block; width: 14px; height: 10px; border-radius: 3px; margin: 0 5px 0 14px } .legend i:first-child {
margin-left: 0 } details { margin: 2px 0 } details > :not(summary) { margin-left: 20px }
summary { cursor: pointer } .leaf { padding-left: 16px } .kind { color: var(--soft); font-size: 13px } .mark { display:
inline-block; width: 16px; font-weight: 600 } footer { color: var(--soft);   font-size: 13px; margin-top: 48px; border-top: 1px
solid var(--line); padding-top: 12px }
"""

_LEAD = "A rehearsal of project {project}: the real Pulumi engine against a simulated account; nothing was made for real."
_FOOT = "Written by <code>dpd rehearse</code>."
_FOOT_OF_TIME = (
    " Times are not measured: each kind of resource has a duration, low to high; point at a bar to see where it was read. “Assumed” means "
    "that no document gives it."
)
_FAULTS = "“Refused”: the service said no and made nothing. “Went on”: it answered with an error, and made the resource all the same."
_NOT_BEGUN = "not begun"
_WORDS = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}
_MARKS = {
    "create": ("+", "good"),
    "update": ("~", ""),
    "replace": ("±", ""),
    "delete": ("-", "bad"),
    "failed": ("✗", "bad"),
    _NOT_BEGUN: ("·", "kind"),
}


def page(report: Report) -> str:
    """The whole document."""
    title = f"{report.action} of {report.stack}"
    body = [
        f"<h1>{escape(title)} <span class='{'good' if report.ok else 'bad'}'>{'went well' if report.ok else 'failed'}</span></h1>",
        f"<p class='lead'>{_LEAD.format(project=escape(report.project))}</p>",
        _cards(report),
        _failure(report),
        _warnings(report),
        _drills(report),
        _time(report.timeline),
        _tree(report),
        "".join(f"<p class='lead'>{_prose(note)}</p>" for note in report.notes),
        f"<footer>{_FOOT}{'' if report.timeline is None else _FOOT_OF_TIME}</footer>",
    ]
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _cards(report: Report) -> str:
    cards: list[tuple[str, str]] = []
    result, timeline = report.result, report.timeline
    if result is not None:
        words = ("created", "updated", "replaced", "deleted", "unchanged")
        cards += [(str(getattr(result, word)), word) for word in words if getattr(result, word)]
        if result.failed:
            cards.append((str(len(result.failed)), "failed"))
    if timeline is not None and timeline.high >= 1:
        cards.append(
            (
                f"{timeline.low:.0f} to {timeline.high:.0f} min",
                "for real, by the table of durations" if report.ok else "for real, until it fails",
            )
        )
    if report.trials:
        cards.append((f"{sum(trial.ok for trial in report.trials)} of {len(report.trials)}", "faults converged"))
    inner = "".join(f"<div class='card'><b>{escape(number)}</b><span>{escape(word)}</span></div>" for number, word in cards)
    return f"<div class='cards'>{inner}</div>" if cards else ""


def _failure(report: Report) -> str:
    if not report.message:
        return ""
    rules = "".join(
        f"<li>{escape(text)} <span class='kind'>{escape(name)}; {escape(source)}</span></li>" for name, text, source in report.rules
    )
    explained = _explained(report.explanation) if report.explanation else ""
    return (
        f"<h2>What would have failed, and why</h2><div class='box'><pre>{escape(report.message)}</pre></div>"
        + (f"<p>What the service enforces:</p><ul>{rules}</ul>" if rules else "")
        + explained
    )


def _warnings(report: Report) -> str:
    named = (f"{item.name}: {item.message}" if item.name else item.message for item in report.warnings)
    boxes = "".join(f"<div class='box'><pre>{escape(text)}</pre></div>" for text in named)
    return f"<h2>Warnings</h2>{boxes}" if boxes else ""


def _explained(explanation: Explanation) -> str:
    steps = "".join(f"<li>{_step(step)}</li>" for step in explanation.way_out)
    return (
        f"<p><b>{escape(explanation.symptom)}.</b> {_prose(explanation.cause)}</p><p>The way out:</p><ol>{steps}</ol>"
        f"<p class='kind'>{escape(explanation.anchor)}; {escape(str(explanation.source))}</p>"
    )


def _step(text: str) -> str:
    return f"<pre>{escape(text)}</pre>" if text.startswith("$ ") else _prose(text)


def _prose(text: str) -> str:
    """A text in which `` `words` `` are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _drills(report: Report) -> str:
    parts: list[str] = []
    if report.recovery is not None:
        parts.append(_recovery(report.recovery))
    if report.trials:
        rows = "".join(
            f"<tr><td>{escape(trial.name)} <span class='kind'>{escape(trial.type)}</span></td><td class='word'>{escape(trial.fault)}</td>"
            f"<td class='word {'good' if trial.ok else 'bad'}'>{'converged' if trial.ok else 'did not converge'}</td></tr>{_more(trial)}"
            for trial in sorted(report.trials, key=lambda trial: (trial.ok, trial.explanation is None))
        )
        head = "<tr><th>failed resource</th><th>fault</th><th>the next up</th></tr>"
        parts.append(f"<h2>Each resource failed in turn</h2><p>{_FAULTS}</p><div class='scroll'><table>{head}{rows}</table></div>")
    return "".join(parts)


def _more(trial: Trial) -> str:
    """What is to be told of a trial, in a row of its own."""
    told = "".join(f"<p class='bad'>{escape(problem)}</p>" for problem in trial.problems)
    told = told or (_explained(trial.explanation) if trial.explanation else "")
    return f"<tr class='more'><td colspan='3'>{told}</td></tr>" if told else ""


def _recovery(recovery: Recovery) -> str:
    pending = "".join(
        f"<li>{escape(item.name)} <span class='kind'>{escape(item.type)}, {escape(item.operation)}</span></li>" for item in recovery.pending
    )
    commands = "".join(f"<li><pre>$ pulumi {escape(command)}</pre></li>" for command in recovery.commands)
    problems = "".join(f"<div class='box'><pre>{escape(problem)}</pre></div>" for problem in recovery.problems)
    if not recovery.fired:
        return f"<h2>The engine was not killed</h2>{problems}"
    return (
        f"<h2>The engine was killed after {recovery.killed_after} operations</h2>"
        + (f"<p>Under way, and to be confirmed:</p><ul>{pending}</ul>" if pending else "<p>Nothing was under way.</p>")
        + (f"<p>The way back:</p><ol>{commands}</ol>" if commands else "")
        + (problems or "<p class='good'>The stack came to rest: nothing made twice, nothing lost.</p>")
    )


def _time(timeline: Timeline | None) -> str:
    if timeline is None:
        return ""
    path = " → ".join(escape(bar.name) for bar in timeline.path if bar.duration.middle >= 0.5)
    hidden = len(timeline.bars) - len(timeline.without_trifles())
    rest = f" {hidden} steps of seconds are not drawn." if hidden else ""
    return (
        f"<h2>Time</h2><p>{timeline.low:.0f} to {timeline.high:.0f} minutes; drawn with every step at the middle of its duration. "
        f"The critical path: {path or 'seconds long'}.{rest} {timeline.assumed} of {len(timeline.bars)} durations are assumed.</p>"
        f"<p class='legend'>{_legend(timeline)}</p><div class='scroll'>{svg(timeline)}</div>"
    )


def _legend(timeline: Timeline) -> str:
    """What the colours of the bars that are drawn mean."""
    drawn, critical = timeline.without_trifles(), set(timeline.critical)
    aside = {bar.change for bar in drawn if bar.status != "failed" and bar.node.urn not in critical}
    there = [("critical", "on the critical path")] if any(bar.node.urn in critical and bar.status != "failed" for bar in drawn) else []
    there += [(change, f"{word} beside it") for change, word in _WORDS.items() if change in aside]
    there += [("failed", "failed")] if any(bar.status == "failed" for bar in drawn) else []
    return "".join(f"<i style='background: var(--{name})'></i>{escape(word)}" for name, word in there)


def _tree(report: Report) -> str:
    if report.result is None:
        return ""
    graph = report.result.after if report.result.action != "destroy" else report.result.before
    if not graph.nodes:
        return ""
    changes = _changes(report, report.result)
    children: dict[str, list[Node]] = {}
    for node in graph:
        place = node.parent if node.parent in graph and graph[node.parent].type != STACK_TYPE else ""
        if node.type != STACK_TYPE and not (node.is_provider and node.name.startswith("default")):
            children.setdefault(place, []).append(node)
    return f"<h2>Resources</h2>{_nodes(children.get('', ()), children, changes, graph)}"


def _changes(report: Report, result: RehearsalResult) -> dict[str, str]:
    """What was done with each resource, by URN; of a failed `up` also what it did not come to."""
    changes = {step.urn: step.op for step in result.resources if step.type.startswith("pulumi:providers:") and step.op in _WORDS}
    bars = report.timeline.bars if report.timeline else ()
    changes |= {bar.node.urn: "failed" if bar.status == "failed" else bar.change for bar in bars}
    if not report.ok and result.action == "up":
        changes |= {node.urn: _NOT_BEGUN for node in report.left if node.urn not in changes}
    return changes


def _nodes(nodes: Iterable[Node], children: dict[str, list[Node]], changes: dict[str, str], graph: StateGraph) -> str:
    parts: list[str] = []
    for node in nodes:
        below = children.get(node.urn, [])
        change = changes.get(node.urn, "")
        sign, style = _MARKS.get(change, ("", ""))
        mark = f"<span class='mark {style}' title='{_WORDS.get(change, change)}'>{sign}</span>"
        label = f"{mark}{escape(node.name)} <span class='kind'>{escape(node.type)}{', protected' if node.protect else ''}</span>"
        if not below:
            parts.append(f"<div class='leaf'>{label}</div>")
            continue
        count = Counter(changes[other] for other in _below(node.urn, children) if other in changes)
        words = ", ".join(f"{number} {_WORDS.get(word, word)}" for word, number in sorted(count.items()))
        opened = " open" if node.type == "dpd:index:Platform" or "failed" in count else ""
        inner = _nodes(below, children, changes, graph)
        parts.append(f"<details{opened}><summary>{label} <span class='kind'>{escape(words)}</span></summary><div>{inner}</div></details>")
    return "".join(parts)


def _below(urn: str, children: dict[str, list[Node]]) -> Iterable[str]:
    for node in children.get(urn, ()):
        yield node.urn
        yield from _below(node.urn, children)
