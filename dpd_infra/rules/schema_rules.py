"""Rules on the shape of a manifest: what the API server refuses of it, said before it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.crd import API_VERSION, OF_V1
from dpd_infra.catalog.crd.releases import HELD, UNKNOWN_FIELD, field_brought
from dpd_infra.catalog.sources import CRD_3_2
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Patch, Severity, pointer

if TYPE_CHECKING:
    from dpd_infra.catalog.crd.validate import Problem

REFUSED = "DPD701"
UNKNOWN = "DPD702"
SHAPE_RULES = frozenset({REFUSED, UNKNOWN})
"""They speak of the places that they refuse; every other rule is silent about those."""


_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NAME_FORM = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_QUANTITY_FORM = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
_WORKSPACE_FORM = r"^https:\/\/aps-workspaces\.[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*\.amazonaws\.com\/workspaces\/ws-[a-zA-Z0-9-]+$|^$"

FORM_EXAMPLES: dict[str, str] = {
    _WORKSPACE_FORM: "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-11111111-2222-3333-4444-555555555555",
    r"^[a-zA-Z0-9:/_-]*$": "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012",
    r"^s3://([^/]+)(/[^,=]*)?$": "s3://my-bucket/captures/",
    r"^Z[A-Z0-9]+$": "Z0123456789ABC",
    r"^$|^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$": "llama-70b",
    r"^ml\..*": "ml.p5.48xlarge",
    _QUANTITY_FORM: "8, 500m or 16Gi",
    _NAME_FORM: "llama-70b",
    r"(?i)redis|tieredstorage": "tieredstorage",
    r"^/.*": "/health",
    r"^/[a-zA-Z0-9\-_.\/]*$": "/metrics",
    r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}": "Llama-3.3-70B-Instruct",
    r"^[0-9a-f]{40}$": "6f6073b423013f6a7d4d9f39144961bfbfbc386b",
    r"^[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+$": "meta-llama/Llama-3.3-70B-Instruct",
    r"^arn:aws:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-fA-F0-9-]+$": (
        "arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012"
    ),
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$": "llm.example.com",
    r"^s3://([^/]+)/?(.*)$": "s3://hyperpod-tls-my-bucket/certificates",
    r"^http$|^grpc$": "http",
}
"""A text of each form that the CRD asks for in a spec."""


@rule(
    REFUSED,
    "The API server takes the manifest",
    severity=Severity.ERROR,
    why="The API server refuses the object as a whole, and nothing of it reaches the operator.",
    sources=(CRD_3_2,),
)
def api_server_takes_it(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A field of the wrong type, out of its range, missing, unknown or twice in a list."""
    of_v1 = [problem for problem in endpoint.problems if problem.expected == [OF_V1]]
    if of_v1:
        fields = ", ".join(pointer(problem.path) for problem in of_v1)
        what = f"v1alpha1 does not have what came with v1: {fields}"
        yield Violation(
            endpoint.at("apiVersion"),
            what,
            f"write {OF_V1}",
            value=endpoint.get("apiVersion"),
            patch=set_value(endpoint, ("apiVersion",), API_VERSION),
        )
    for problem in endpoint.problems:
        if problem in of_v1:
            continue
        # A field that a later operator brought is told with that operator's name (DPD002, DPD440).
        if problem.certain and not (problem.keyword == UNKNOWN_FIELD and field_brought(problem.path) is not None):
            yield _violation(endpoint, problem)


@rule(
    UNKNOWN,
    "Every field is one that is known",
    severity=Severity.WARNING,
    why=f"The CRD of operator {HELD} is held here and the documented fields of later ones: a field that is in neither may be misspelt, "
    "and is "
    "passed on unchanged.",
    sources=(CRD_3_2,),
)
def fields_are_known(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A field that no document shows, for an operator whose CRD is not held."""
    for problem in endpoint.problems:
        if not problem.certain:
            yield _violation(endpoint, problem)


@rule(
    "DPD704",
    "An endpoint has a spec",
    severity=Severity.ERROR,
    why="The CRD does not ask for a spec: the API server stores an endpoint without one, and the operator has nothing to deploy.",
    sources=(CRD_3_2,),
)
def there_is_a_spec(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A resource that has a name and nothing else."""
    if "spec" not in endpoint.manifest:
        yield Violation(endpoint.at("metadata"), "there is no spec", "add spec with modelName, modelSourceConfig and worker at least")


def _violation(endpoint: EndpointSubject, problem: Problem) -> Violation:
    value = problem.value if isinstance(problem.value, (str, int, float)) else None
    fix, meant = _fix(problem)
    place = endpoint.at(*problem.path)
    patch = Patch(place, meant) if meant is not None and endpoint.get(*problem.path) is not None else None
    name = pointer(problem.path)
    says_name = problem.keyword in {"required", "unknownField"}
    found = f", found {value!r}" if value is not None and problem.keyword not in {"type", "unknownField"} else ""
    what = f"{problem.message}{found}" if says_name else f"{name} {problem.message}{found}"
    return Violation(place, what, fix, value=value, patch=patch)


def _fix(problem: Problem) -> tuple[str, Any]:
    """What to do, and the value that was plainly meant; None where it is not plain."""
    value, expected = problem.value, problem.expected
    wanted = (
        set(expected) if isinstance(expected, list) and problem.keyword == "type" else {expected} if isinstance(expected, str) else set()
    )
    if problem.keyword == "required":
        return f"add {pointer(problem.path)}", None
    if problem.keyword == "unknownField":
        return (f"write {' or '.join(expected)}" if expected else "remove it, or see whether it belongs elsewhere"), None
    if problem.keyword == "duplicate":
        return "keep one of the two", None
    if problem.keyword == "type":
        if "string" in wanted and isinstance(value, bool):
            return "put it in quotes: kubectl reads yes, no, on, off, y and n without them as true and false", str(value).lower()
        if "string" in wanted and isinstance(value, (int, float)):
            return "put it in quotes: without them it is a number", str(value)
        if "integer" in wanted and isinstance(value, str) and _INTEGER.fullmatch(value):
            return "take the quotes away", int(value)
        if "boolean" in wanted and isinstance(value, str) and value.lower() in {"true", "false"}:
            return "take the quotes away", value.lower() == "true"
    if problem.keyword == "enum" and isinstance(value, str):
        near = [allowed for allowed in expected if isinstance(allowed, str) and allowed.lower() == value.lower()]
        if near:
            return f"write {near[0]}", near[0]
    return _in_words(problem), None


def _in_words(problem: Problem) -> str:
    """The fix as the problem's own sentence has it."""
    if problem.keyword == "pattern":
        example = FORM_EXAMPLES.get(str(problem.expected))
        return f"write text of that form{f', for example {example}' if example else ''}"
    _, _, wanted = problem.message.partition("must be ")
    if wanted:
        return f"write {wanted.replace(', or left out', ', or leave it out')}"
    _, _, wanted = problem.message.partition("must have ")
    if wanted:
        return f"let it have {wanted}"
    return "write plain data: text in quotes, numbers, true or false, lists and mappings of them"
