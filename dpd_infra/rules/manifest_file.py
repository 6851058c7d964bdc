"""Raw manifests: the InferenceEndpointConfigs of a text are checked by the facts of the CRD and by the rules, other kinds are named."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.crd import API_GROUP, KIND
from dpd_infra.catalog.sources import KUBERNETES_DOCS
from dpd_infra.render.endpoint import EndpointContext, RenderedManifest
from dpd_infra.render.provenance import Provenance
from dpd_infra.rules.check import Silenced, findings_of, judged
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.rules.wide_subjects import FileSubject, NamedEndpoint
from dpd_infra.spec.finding import Finding, Path, Severity
from dpd_infra.spec.yaml_source import Dialect, Document, SourceText, load_documents

if TYPE_CHECKING:
    from dpd_infra.spec.operator import OperatorFacts

COMPANION_KINDS = frozenset({"LocalQueue", "ClusterQueue"})
"""Kinds that rules read beside an endpoint."""

_LISTS = ("List", f"{KIND}List")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that is no endpoint."""

    what: str
    """`Deployment web`, `a list`, `no kind`."""
    line: int


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """One endpoint's verdict."""

    document: int
    """Which document of the text, from 0."""
    name: str
    findings: tuple[Finding, ...]
    silenced: tuple[Silenced, ...] = ()
    """What the manifest's annotation keeps quiet."""


@dataclass(frozen=True, slots=True)
class ManifestPlace:
    """One resource of a text: a document, or an item of a `List`."""

    document: Document
    path: Path
    """Where in the document it begins."""
    data: Any

    @property
    def kind(self) -> str:
        """Its kind, empty where it has none."""
        kind = self.data.get("kind") if isinstance(self.data, dict) else None
        return kind if isinstance(kind, str) else ""

    @property
    def line(self) -> int:
        """Where it begins, 1-based."""
        return self.document.locate(self.path).line


@rule(
    "DPD703",
    "An endpoint stands in a file once",
    severity=Severity.ERROR,
    why="`kubectl apply` takes a file's objects in turn: of two with one name and namespace the last one stays, and the first is lost.",
    sources=(KUBERNETES_DOCS,),
)
def each_endpoint_once(file: FileSubject) -> Iterator[Violation]:
    """Two documents of one name and namespace."""
    *before, last = file.endpoints
    for other in before:
        if (other.name, other.namespace) == (last.name, last.namespace):
            where = f" in namespace {last.namespace}" if last.namespace else ""
            what = f"{last.name}{where} stands in line {other.line} already"
            yield Violation(last.at, what, "rename one of the two, or keep one", value=last.name)
            return


def resources(text: SourceText, file: str) -> Iterator[ManifestPlace]:
    """Every resource of a text, in order, items of lists one by one; empty documents are none. Raises `YamlProblem`."""
    for document in load_documents(text, file, Dialect.KUBERNETES):
        data = document.data
        if isinstance(data, dict) and data.get("kind") in _LISTS and isinstance(data.get("items"), list):
            for index, item in enumerate(data["items"]):
                yield ManifestPlace(document, ("items", index), item)
        elif data is not None:
            yield ManifestPlace(document, (), data)


def check_manifests(text: SourceText, file: str, operator: OperatorFacts | None = None) -> Iterator[CheckedManifest | Skipped]:
    """Check the endpoints of a text one by one, so that a large text needs no more memory than its largest document.

    Findings carry file, line and column. Raises `YamlProblem` at the first document that cannot be read.
    """
    companions = tuple(_companions(text, file))
    names: dict[tuple[str, str], NamedEndpoint] = {}
    for place in resources(text, file):
        if place.kind == KIND or _is_misspelt(place):
            subject = manifest_subject(place.data, place.path, operator, number=place.document.index + 1)
            stack = StackSubject(operator=operator, endpoints={subject.name: subject}, companions=companions)
            verdict = judged(stack)
            found = verdict.findings
            if (named := _named(place)) is not None:
                first = names.setdefault((named.name, named.namespace), named)
                found += [] if first is named else findings_of("DPD703", FileSubject((first, named)), named.name)
            placed = tuple(place.document.placed(finding) for finding in found)
            silenced = tuple(Silenced(place.document.placed(entry.finding), entry.reason) for entry in verdict.silenced)
            yield CheckedManifest(place.document.index, subject.name, placed, silenced)
        else:
            yield Skipped(described(place.data), place.line)


def manifest_subject(
    document: Mapping[str, Any], path: Path = (), operator: OperatorFacts | None = None, *, number: int = 1
) -> EndpointSubject:
    """A raw manifest as rules read it; `path` is where it stands in its document, `number` names one without a name."""
    context = EndpointContext(region="", addon_version=operator.addon_version if operator else "", path=path)
    rendered = RenderedManifest(dict(document), Provenance(), context)
    return EndpointSubject(_text(document, "metadata", "name") or f"document {number}", rendered, operator=operator)


def _is_misspelt(place: ManifestPlace) -> bool:
    """Whether a kind is nearly ours, no list of it and of no other API: passed over, it would look as if it had been checked."""
    kind = place.kind
    if kind in _LISTS or not difflib.get_close_matches(kind.lower(), [KIND.lower()], cutoff=0.85):
        return False
    group, slash, _ = _text(place.data, "apiVersion").partition("/")
    return not slash or bool(difflib.get_close_matches(group.lower(), [API_GROUP]))


def _named(place: ManifestPlace) -> NamedEndpoint | None:
    name = _text(place.data, "metadata", "name")
    namespace = _text(place.data, "metadata", "namespace")
    return NamedEndpoint(name, namespace, (*place.path, "metadata", "name"), place.line) if name else None


def described(data: Any) -> str:
    """A resource that is no endpoint, in a few words."""
    if isinstance(data, dict):
        kind, name = _text(data, "kind"), _text(data, "metadata", "name")
        return f"{kind} {name}".strip() if kind else "a document without a kind"
    return "a list" if isinstance(data, list) else "a text" if isinstance(data, str) else "a single value"


def _companions(text: SourceText, file: str) -> Iterator[Mapping[str, Any]]:
    if any(kind in text.text for kind in COMPANION_KINDS):
        yield from (place.data for place in resources(text, file) if place.kind in COMPANION_KINDS)


def _text(data: Any, *path: str) -> str:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, str) else ""
