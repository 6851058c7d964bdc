"""Make a page for each rule from the register, with what the input that its test trips it on is told.

python tools/make_rule_docs.py            write docs/rules
python tools/make_rule_docs.py --check    say what is not current, and end with 1 where anything is
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpd_infra.rules.registry import Rule, all_rules  # noqa: E402 - run as a script, the repository is not on the path before
from dpd_infra.rules.subject import EndpointSubject, StackSubject  # noqa: E402
from dpd_infra.spec.finding import Finding  # noqa: E402
from dpd_infra.spec.shape_rule import SHAPE_FINDS, SHAPE_RULE, SHAPE_TITLE, SHAPE_WHY  # noqa: E402
from dpd_infra.spec.silence_annotation import SILENCE_ANNOTATION  # noqa: E402

FOLDER = ROOT / "docs" / "rules"
CASES = ROOT / "tests" / "pure" / "rules" / "cases"

FAMILIES = (
    (0, "Disaggregation, roles and placement"),
    (100, "Environment, PD buffer and cache"),
    (200, "GPU memory and flags"),
    (300, "Routing"),
    (400, "Endpoint: server, source, scaling, names, secrets"),
    (500, "Platform"),
    (600, "Changes from one stack to another"),
    (700, "Shape of a manifest"),
)
"""The first number of each family."""

_SCOPES = {EndpointSubject: "one endpoint", StackSubject: "the whole stack"}
_SHAPE_SCOPE = "one value of a stack file"


def examples() -> dict[str, Finding]:
    """What each rule says of the input that its test trips it on."""
    found: dict[str, Finding] = {}
    for path in sorted(CASES.glob("[a-z]*.py")):
        for case in import_module(f"tests.pure.rules.cases.{path.stem}").CASES:
            found[case.rule] = next(finding for finding in case.trip.findings if finding.rule == case.rule)
    return found


def page(rule: Rule, example: Finding | None) -> str:
    """A rule's page."""
    scope = _SCOPES.get(rule.scope, "a file" if rule.scope.__name__ == "FileSubject" else "a change from one stack to another")
    facts = [f"**{rule.severity}**", f"reads {scope}", *([f"from operator {rule.since} on"] if rule.since else [])]
    lines = _head(rule.id, rule.title, facts, " ".join((rule.check.__doc__ or "").split()), rule.why)
    if example is not None:
        lines += ["## For example", "", f"> {_text(example.what)}", ">", f"> Fix: {_text(example.fix)}", ""]
    lines += ["## Sources", "", *(f"- {source}" for source in rule.sources), ""]
    if rule.scope is EndpointSubject:
        silence = [f"- rule: {rule.id}", "  reason: why it does not apply to this endpoint"]
        lines += [
            "## To silence it",
            "",
            "In the endpoint's entry of a stack file, or in a raw manifest's metadata:",
            "",
            "```yaml",
            "silence:",
            *(f"  {line}" for line in silence),
            "```",
            "",
            "```yaml",
            "annotations:",
            f'  {SILENCE_ANNOTATION}: "{rule.id}: why it does not apply to this endpoint"',
            "```",
            "",
        ]
    return "\n".join(lines)


def shape_page() -> str:
    """The page of what a spec refuses by itself."""
    return "\n".join(_head(SHAPE_RULE, SHAPE_TITLE, ["**error**", f"reads {_SHAPE_SCOPE}"], SHAPE_FINDS, SHAPE_WHY))


def index(rules: tuple[Rule, ...]) -> str:
    """The table of all rules."""
    lines = ["# Rules", "", "What `dpd check`, the components and the policy pack hold. `dpd check --explain DPD101` prints one.", ""]
    rows = [(SHAPE_RULE, SHAPE_TITLE, "error"), *((rule.id, rule.title, str(rule.severity)) for rule in rules)]
    for start, name in FAMILIES:
        family = [row for row in rows if start <= int(row[0][3:]) < start + 100]
        if family:
            lines += [f"## {name}", "", "| | | |", "|---|---|---|"]
            lines += [f"| [{rule}]({rule}.md) | {_text(title)} | {severity} |" for rule, title, severity in family]
            lines.append("")
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    rules, found = all_rules(), examples()
    made = {f"{rule.id}.md": page(rule, found.get(rule.id)) for rule in rules}
    return {"README.md": index(rules), f"{SHAPE_RULE}.md": shape_page(), **made}


def stale() -> list[str]:
    """The names of pages that are missing, differ, or belong to no rule."""
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def _head(rule: str, title: str, facts: list[str], finds: str, why: str) -> list[str]:
    return [f"# {rule}: {_text(title)}", "", " · ".join(facts), "", "## What it finds", "", _text(finds), "", "## Why", "", _text(why), ""]


def _text(text: str) -> str:
    """Text as Markdown shows it: angle brackets are no HTML, and a bar ends no cell."""
    return text.replace("<", "&lt;").replace("|", "\\|")


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options: Any = parser.parse_args(arguments)
    old = stale()
    if options.check:
        print("\n".join(f"docs/rules/{name} is not current: python tools/make_rule_docs.py" for name in old) or "all pages are current")
        return 1 if old else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = pages()
    for name in old:
        if name in made:
            (FOLDER / name).write_text(made[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    print(f"{len(made)} pages, {len(old)} of them changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
