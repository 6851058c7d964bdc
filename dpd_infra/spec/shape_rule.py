"""The rule on shapes: its id and words, and the finding on a text that cannot be read at all."""

from __future__ import annotations

from dpd_infra.spec.finding import Finding, Severity
from dpd_infra.spec.yaml_source import YamlProblem

SHAPE_RULE = "DPD000"
"""The id of every finding about a value's shape: type, range, pattern, unknown or missing key."""

SHAPE_TITLE = "Every value has the shape that its key asks for"
SHAPE_FINDS = (
    "A value of the wrong type, out of its range or its pattern, a key that is unknown, missing or there twice, and text that is not YAML."
)
SHAPE_WHY = "What cannot be read as it was meant cannot become a resource, and nothing is guessed."


def unreadable(problem: YamlProblem, file: str) -> Finding:
    """The one finding on a file that cannot be read as YAML."""
    return Finding(
        SHAPE_RULE,
        Severity.ERROR,
        (),
        problem.what,
        "Nothing in a file that cannot be read can be checked.",
        problem.fix or "correct the YAML there",
        file=problem.file or file,
        line=problem.line,
        column=problem.column,
    )
