"""Write the tables of docs/policy.md from the register of policies.

python tools/make_policy_docs.py            write them
python tools/make_policy_docs.py --check    say whether they are current, and end with 1 where they are not
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpd_infra.policy.endpoint_rules import BEYOND_THE_MANIFEST  # noqa: E402 - run as a script, the repository is not on the path before
from dpd_infra.policy.registry import AnyPolicy, StackPolicy, own_policies  # noqa: E402
from dpd_infra.spec.finding import Severity  # noqa: E402

PAGE = ROOT / "docs" / "policy.md"
START, END = "<!-- made by tools/make_policy_docs.py -->", "<!-- end -->"

_LEVELS = {Severity.ERROR: "mandatory", Severity.WARNING: "advisory", Severity.ADVICE: "advisory"}


def made() -> str:
    """What stands between the two marks."""
    return "\n".join([START, "", *_own(), *_endpoint_rules(), END])


def _own() -> Iterator[str]:
    for policy in own_policies():
        reads = "the whole stack" if isinstance(policy, StackPolicy) else "each resource"
        yield f"### {policy.id}: {policy.title}"
        yield ""
        yield f"**{_LEVELS[policy.severity]}** · reads {reads}"
        yield ""
        yield f"Finds: {_first_letter(' '.join((policy.check.__doc__ or '').split()))}"
        yield ""
        yield f"Why: {policy.why}"
        yield ""
        yield from _settings(policy)
        yield from (f"- {source}" for source in policy.sources)
        yield ""


def _settings(policy: AnyPolicy) -> Iterator[str]:
    for name, schema in () if isinstance(policy, StackPolicy) else policy.config.items():
        yield f"Setting `{name}`: {schema['description']}"
        yield ""


def _endpoint_rules() -> Iterator[str]:
    left_out = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in sorted(BEYOND_THE_MANIFEST))
    yield "## Rules on endpoints"
    yield ""
    yield f"Not in the pack, because they read the stack file around an endpoint: {left_out}."
    yield ""
    yield "Every other [rule](rules/README.md) on one endpoint is a policy under its own id, for any program's `InferenceEndpointConfig`."
    yield ""


def _first_letter(text: str) -> str:
    return text[:1].lower() + text[1:]


def page() -> str:
    """The page with its made part as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return before + made() + after


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options: Any = parser.parse_args(arguments)
    current = PAGE.read_text(encoding="utf-8") == page()
    if options.check:
        print("docs/policy.md is current" if current else "docs/policy.md is not current: python tools/make_policy_docs.py")
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
