"""The API server as judge of what is held of the CRD: whether both refuse a document, or neither."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.crd.validate import Problem, validate_document
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
        problems = [problem for problem in validate_document(case.document, "3.2") if not _stored_all_the_same(problem)]
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


def _stored_all_the_same(problem: Problem) -> bool:
    """A number beyond 32 bits, which we refuse for the sake of the operator: the server stores it, but where the field can be scaled."""
    bounds = {"minimum": -(2**31), "maximum": 2**31 - 1}
    beyond = isinstance(problem.value, (int, float)) and -(2**63) <= problem.value < 2**63
    scaled = problem.path in {("spec", "replicas"), ("status", "replicas")}
    return not scaled and beyond and problem.keyword in bounds and problem.expected == bounds[problem.keyword]


def _with_status(version: str) -> str:
    return f"with-status-{version}"
