"""The rule on secrets: none stands in a manifest, and none is ever shown."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import DEPLOY_GUIDE, KUBERNETES_DOCS
from dpd_infra.rules.environment import ENVIRONMENT
from dpd_infra.rules.registry import rule
from dpd_infra.rules.secret_text import has_known_secret, is_plain, is_secret_flag, is_secret_variable, looks_random
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import entries, mapping, text

_DEEPEST = 100
_SHORT = 8
"""Nothing this short has the form of a secret."""

_HUB_VARIABLES = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})


@rule(
    "DPD430",
    "No secret stands in the manifest",
    severity=Severity.ERROR,
    why="Whoever may read the resource, the stack file or Pulumi's state reads it too, and it stays in their history. Arguments are "
    "shown by ps.",
    sources=(KUBERNETES_DOCS, DEPLOY_GUIDE),
)
def no_secrets(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A token, key or password in variables, arguments, URLs, headers or anywhere else, by its form, its name or its randomness."""
    told: set[Path] = set()
    for path, what, fix in _found(endpoint):
        if path not in told:
            told.add(path)
            yield Violation(endpoint.at(*path), what, fix, secret=True)


def _found(endpoint: EndpointSubject) -> Iterator[tuple[Path, str, str]]:
    reference = "put it into a Kubernetes Secret and refer to it: valueFrom: {secretKeyRef: {name: …, key: …}}"
    if endpoint.spec is not None:
        reference = "put it into a Kubernetes Secret and write {secretKeyRef: {name: …, key: …}} in its place"
    words: list[str] = []
    _collect(endpoint.manifest, words, 0)
    is_there = has_known_secret("\n".join(words))
    for path, name, value in _variables(endpoint):
        by_name, by_form = is_secret_variable(name), len(value) > _SHORT and (looks_random(value) or (is_there and has_known_secret(value)))
        if (by_name or by_form) and not is_plain(value):
            hub = ". A Hugging Face token belongs to the model's source" if name in _HUB_VARIABLES else ""
            yield path, f"{name} holds {'a secret by its name' if by_name else 'what looks like a secret'}", f"{reference}{hub}"
    for flag in {flag.path: flag for server in endpoint.reading.servers for flag in server.args.flags}.values():
        value = flag.value or ""
        by_form = len(value) > _SHORT and (looks_random(value) or (is_there and has_known_secret(value)))
        if value and (is_secret_flag(flag.name) or by_form) and not is_plain(value):
            fix = "hand it over as a variable from a Kubernetes Secret, which vLLM reads by itself (VLLM_API_KEY, HF_TOKEN)"
            yield flag.path, f"{flag.text} is followed by what looks like a secret", fix
    if is_there:
        for path, value in _texts(endpoint.manifest, ()):
            if has_known_secret(value):
                yield path, "what stands here has the form of a secret", "refer to a Kubernetes Secret, or leave it out"


def _variables(endpoint: EndpointSubject) -> Iterator[tuple[Path, str, str]]:
    """Every variable with a text of the worker and of init containers: its value's place, its name, its value."""
    lists: list[tuple[Path, object]] = [(ENVIRONMENT, endpoint.reading.worker.get("environmentVariables"))]
    for index, container in enumerate(entries(endpoint.get("spec", "kubernetes", "initContainers"))):
        lists.append((("spec", "kubernetes", "initContainers", index, "env"), mapping(container).get("env")))
    for place, variables in lists:
        for index, entry in enumerate(entries(variables)):
            name, value = text(mapping(entry).get("name")), text(mapping(entry).get("value"))
            if value:
                yield (*place, index, "value"), name, value


def _collect(value: object, words: list[str], depth: int) -> None:
    """Every text of a value, without its place: a first look that is cheap."""
    if depth > _DEEPEST:
        return
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, (dict, list)):
            _collect(part, words, depth + 1)


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif len(path) <= _DEEPEST:
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, part in parts:
            if isinstance(part, (str, dict, list)):
                yield from _texts(part, (*path, key))
