"""How a simulated provider answers the engine: differences, refusals, and resources that exist but are not ready."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

import grpc
from pulumi.runtime.proto import provider_pb2, status_pb2

from dpd_infra.rehearsal.diff import Change, Difference
from dpd_infra.rehearsal.errors import InitError, SimulatedError
from dpd_infra.rehearsal.wire import encode

_KINDS = {
    (Change.ADD, False): provider_pb2.PropertyDiff.ADD,
    (Change.ADD, True): provider_pb2.PropertyDiff.ADD_REPLACE,
    (Change.DELETE, False): provider_pb2.PropertyDiff.DELETE,
    (Change.DELETE, True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    (Change.UPDATE, False): provider_pb2.PropertyDiff.UPDATE,
    (Change.UPDATE, True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


def diff_response(difference: Difference, *, delete_first: bool) -> provider_pb2.DiffResponse:
    """A difference in the engine's words."""
    some = provider_pb2.DiffResponse.DIFF_SOME if difference.changes else provider_pb2.DiffResponse.DIFF_NONE
    return provider_pb2.DiffResponse(
        changes=some,
        diffs=difference.top_level,
        replaces=sorted({re.split(r"[.\[]", path, maxsplit=1)[0] for path in difference.replaces}),
        deleteBeforeReplace=delete_first,
        hasDetailedDiff=True,
        detailedDiff={
            path: provider_pb2.PropertyDiff(kind=_KINDS[change, path in difference.replaces], inputDiff=True)
            for path, change in difference.changes.items()
        },
    )


def fail_to_become_ready(context: grpc.ServicerContext, error: InitError, outputs: Mapping[str, Any]) -> NoReturn:
    """End the call as a provider does whose resource exists but is not ready."""
    detail = provider_pb2.ErrorResourceInitFailed(id=error.id, properties=encode(outputs), reasons=error.reasons)
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    with suppress(Exception):  # how grpc leaves an aborted call
        context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise _Aborted


class _Aborted(Exception):
    """The call has been answered with an error already."""


class Answers:
    """Turn a `SimulatedError` into the gRPC error that carries its message."""

    def __init__(self, context: grpc.ServicerContext) -> None:
        self.context = context

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SimulatedError):
            self.context.abort(grpc.StatusCode.UNKNOWN, str(error))
        if isinstance(error, Exception) and not isinstance(error, _Aborted):
            self.context.abort(grpc.StatusCode.INTERNAL, f"the simulation failed: {type(error).__name__}: {error}")
