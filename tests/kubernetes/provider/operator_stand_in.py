"""A stand-in for the inference operator: it moves `.status.state` of every endpoint as documented, and holds each by a finalizer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tests.kubernetes.client import MERGE, ApiError, Client

PATH = "/apis/inference.sagemaker.aws.amazon.com/v1"
FINALIZER = "tests.example.com/operator"
INTERVAL_SECONDS = 0.5

Outcome = Callable[[dict[str, Any]], dict[str, Any]]
"""From an endpoint to the status that it reaches in the end."""


def condition(status: str, message: str) -> dict[str, Any]:
    """One condition of a status."""
    kind = {"type": "Ready", "reason": "Reconciled", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**kind, "status": status, "message": message}


def complete(_endpoint: dict[str, Any]) -> dict[str, Any]:
    """Both roles serve (DPD guide: the message)."""
    return {"state": "DeploymentComplete", "conditions": [condition("True", "DPD prefill and decode deployments are ready")]}


def failed(message: str) -> Outcome:
    """The operator gives up."""
    return lambda _endpoint: {"state": "DeploymentFailed", "conditions": [condition("False", message)]}


def pending(_endpoint: dict[str, Any]) -> dict[str, Any]:
    """It never gets further."""
    return {"state": "DeploymentInProgress", "conditions": [condition("Unknown", "pods are loading the model")]}


class StandIn:
    """The operator while the block runs. Change `outcome` as it goes."""

    def __init__(self, client: Client, outcome: Outcome = complete) -> None:
        self.outcome = outcome
        self._client = client
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            for endpoint in self._client.must("GET", f"{PATH}/inferenceendpointconfigs")["items"]:
                # It may be gone, or changed, since it was listed: the next round sees it again.
                with suppress(ApiError):
                    self._reconcile(endpoint)

    def _reconcile(self, endpoint: dict[str, Any]) -> None:
        metadata = endpoint["metadata"]
        where = f"{PATH}/namespaces/{metadata['namespace']}/inferenceendpointconfigs/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            self._client.must("PATCH", where, {"metadata": {"finalizers": None}}, MERGE)
            return
        if FINALIZER not in metadata.get("finalizers", []):
            self._client.must("PATCH", where, {"metadata": {"finalizers": [FINALIZER]}}, MERGE)
        before = endpoint.get("status") or {}
        seen = {"observedGeneration": metadata["generation"]}
        if before.get("observedGeneration") != metadata["generation"]:
            # A new spec is begun before it is finished.
            status = {"state": "DeploymentInProgress", "conditions": [condition("Unknown", "creating deployments")], **seen}
        else:
            status = {**self.outcome(endpoint), **seen}
        if status != before:
            self._client.must("PATCH", f"{where}/status", {"status": status}, MERGE)
