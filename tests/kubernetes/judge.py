"""The API server as judge of what is held of the CRD: whether both refuse a document, or neither."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.crd.validate import UNKNOWN_FIELD, Problem, validate_document
from tests.kubernetes.client import CONNECTIONS, Answer, Client
from tests.kubernetes.crd import keeps
from tests.pure.crd.fuzz_documents import GROUP, VERSIONS, Broken
from tests.pure.endpoint.test_published_example import PUBLISHED

NAMESPACE = "judged"
_WORKER = ("image", "modelInvocationPort", "modelVolumeMount", "resources")
"""What both versions demand of a worker."""


@dataclass(frozen=True)
class Verdict:
    """What the server and we say of one document."""

    case: Broken
    refused: bool
    """By the server, or not kept as it is."""
    difference: str
    """What the two do not agree on, with the document; empty where they agree."""


class Judge:
    """Judges documents on one API server, by server-side apply without storing, with strict field validation."""

    def __init__(self, client: Client) -> None:
        """Makes the namespace, and an endpoint of each version: a status can only be given to what is there."""
        self._client = client
        client.make_namespace(NAMESPACE)
        for version in VERSIONS:
            spec = {key: PUBLISHED["spec"][key] for key in ("modelName", "modelSourceConfig", "instanceType")}
            spec["worker"] = {key: PUBLISHED["spec"]["worker"][key] for key in _WORKER}
            api_version = f"{GROUP}/{version}"
            metadata = {"name": _with_status(version), "namespace": NAMESPACE}
            client.make({"apiVersion": api_version, "kind": PUBLISHED["kind"], "metadata": metadata, "spec": spec})

    def verdicts(self, cases: Iterable[Broken]) -> list[Verdict]:
        """Judge documents, several at a time; in their order."""
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            return list(threads.map(self.verdict, cases))

    def verdict(self, case: Broken) -> Verdict:
        """Judge one document."""
        answer, part = self._answer(case)
        kept = keeps(answer, case.document, part)
        problems = [problem for problem in validate_document(case.document, "3.2") if not _taken_all_the_same(problem)]
        if kept != bool(problems):
            return Verdict(case, not kept, "")
        ours = "; ".join(problem.message for problem in problems) or "we take it"
        theirs = answer.message or ("the server takes it" if kept else f"the server keeps {json.dumps(answer.body.get(part))}")
        return Verdict(case, not kept, f"{case.what}: {theirs}, but {ours}\n{json.dumps(case.document)}")

    def _answer(self, case: Broken) -> tuple[Answer, str]:
        document: dict[str, Any] = {**case.document, "metadata": {**case.document["metadata"], "namespace": NAMESPACE}}
        if "status" not in document:
            return self._client.apply(document), "spec"
        # The server drops a status that is not given by itself.
        document["metadata"]["name"] = _with_status(case.what.version)
        return self._client.apply(document, subresource="status"), "status"


def _taken_all_the_same(problem: Problem) -> bool:
    """What we refuse for the operator's sake: `REFUSED_THOUGH_TAKEN` has one of each, and the server's answer to it."""
    # What can be scaled the server reads as a count.
    scaled = problem.path in {("spec", "replicas"), ("status", "replicas")}
    return not scaled and (_beyond_32_bits(problem) or _nearly_an_integer(problem) or _dropped(problem))


def _beyond_32_bits(problem: Problem) -> bool:
    bounds = {"minimum": -(2**31), "maximum": 2**31 - 1}
    beyond = isinstance(problem.value, (int, float)) and -(2**63) <= problem.value < 2**63
    return beyond and problem.keyword in bounds and problem.expected == bounds[problem.keyword]


def _nearly_an_integer(problem: Problem) -> bool:
    """The server takes a positive number for an integer where the two differ by under a billionth (go-openapi, IsFloat64AJSONInteger)."""
    number = problem.value
    if problem.keyword != "type" or "integer" not in problem.expected or not isinstance(number, float):
        return False
    return number > 0 and number - int(number) < 1e-9 * (number + int(number))


def _dropped(problem: Problem) -> bool:
    """A null in an object without fields; every other object without fields that the CRD has takes any."""
    return problem.keyword == UNKNOWN_FIELD and problem.value is None and problem.path[-3:-1] == ("volumeClaimTemplate", "metadata")


def _with_status(version: str) -> str:
    return f"with-status-{version}"
