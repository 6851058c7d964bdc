"""The resource monitor that keeps every request and answers it as an engine without a state would."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2

from dpd_infra.testing.answers import Answers, SecretValue
from dpd_infra.testing.mocks import PlatformMocks
from dpd_infra.testing.recording import Recorded, Recording
from dpd_infra.testing.remote import Child, remote_outputs
from dpd_infra.testing.wire import STACK_TYPE, make_urn, plain_struct, recorded, recorded_read, reference, wire_value

InvokeResult = Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What a data source answers: a result, or a function of its arguments. An exception of the function fails the data source."""

MoreOutputs = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
"""From type, name and inputs to outputs."""

Stacks = Mapping[str, Mapping[str, Any]] | Callable[[str], Mapping[str, Any]]
"""What other stacks export, by their full name: a mapping, or a function of the name."""

_GET_RESOURCE = "pulumi:pulumi:getResource"
_STACK_REFERENCE = "pulumi:pulumi:StackReference"


class Unanswered(AssertionError):
    """A data source that nobody said the result of."""

    def __init__(self, token: str, arguments: Mapping[str, Any]) -> None:
        self.asked = f"the program asks the data source {token} with {dict(arguments)}, and nothing says what it answers"
        self.token = token
        super().__init__(f'{self.asked}: pass invokes={{"{token}": {{...}}}} to run_program or run_project')


class RecordingMonitor(MockMonitor):
    """Keeps what a program registers in a `Recording`.

    A preview is answered as a preview: what a provider would compute is unknown, unless `known_in_preview` (a plan with stand-ins).
    """

    def __init__(
        self,
        recording: Recording,
        answers: Answers,
        *,
        project: str,
        stack: str,
        invokes: Mapping[str, InvokeResult] | None = None,
        outputs: MoreOutputs | None = None,
        stacks: Stacks | None = None,
        known_in_preview: bool = False,
    ) -> None:
        super().__init__(PlatformMocks(answers))
        self._recording = recording
        self._answers = answers
        self._invokes = invokes or {}
        self._more_outputs = outputs
        self._stacks = stacks or {}
        self._known = known_in_preview or not recording.preview
        self._prefix = f"urn:pulumi:{stack}::{project}"
        self._inside: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """A URN as the engine makes it; the SDK's own monitor leaves all ancestors but the nearest out."""
        return make_urn(self._prefix, parent, type_, name)

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - gRPC method names are the protocol's
        """Answer a data source. Raises `Unanswered` for one that nobody said the result of."""
        arguments, _ = plain_struct(request.args)
        if request.tok == _GET_RESOURCE and arguments.get("urn") in self._inside:
            # The SDK's own question about a resource that another one's output is.
            response = resource_pb2.ResourceInvokeResponse()
            getattr(response, "return").update(wire_value(self._inside[arguments["urn"]]))
            return response
        with self._lock:
            self._recording.invokes.append((request.tok, arguments))
        result = self._invokes.get(request.tok)
        response = resource_pb2.ResourceInvokeResponse()
        try:
            found = (
                result(arguments) if callable(result) else result if result is not None else self._answers.invoke(request.tok, arguments)
            )
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it stands for a provider's refusal, which a program may catch
            response.failures.add(reason=str(error))
            return response
        if found is None:
            raise Unanswered(request.tok, arguments)
        getattr(response, "return").update(wire_value(found))
        return response

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        """Keep a registration and answer it."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == STACK_TYPE:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        resource = recorded(request, urn, self._prefix)
        self._keep(resource)
        identity, state = self._answer(resource, request.object)
        if request.remote and self._known:
            state.update(wire_value(self._remote(resource)))
        self.resources[urn] = MockMonitor.ResourceRegistration(urn, identity, {})
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=state)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        """Keep a read of an existing resource, another stack's outputs among them, and answer it."""
        urn = self.make_urn(request.parent, request.type, request.name)
        resource = recorded_read(request, urn)
        self._keep(resource)
        _, state = self._answer(resource, request.properties)
        self.resources[urn] = MockMonitor.ResourceRegistration(urn, request.id, {})
        return resource_pb2.ReadResourceResponse(urn=urn, properties=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        """Keep a component's outputs, or the stack's."""
        outputs, secrets = plain_struct(request.outputs)
        with self._lock:
            if f"::{STACK_TYPE}::" in request.urn:
                self._recording.exports, self._recording.secret_exports = outputs, secrets
            else:
                self._recording.component_outputs[request.urn] = outputs
                self._recording.secret_component_outputs[request.urn] = secrets
        return empty_pb2.Empty()

    def _keep(self, resource: Recorded) -> None:
        with self._lock:
            self._recording.add(resource)

    def _answer(self, resource: Recorded, given: struct_pb2.Struct) -> tuple[str, struct_pb2.Struct]:
        """The id and the state. A preview knows the inputs only, and an id only of what is read."""
        state = struct_pb2.Struct()
        state.CopyFrom(given)
        if not resource.custom or not (self._known or resource.read):
            return "", state
        if resource.type == _STACK_REFERENCE:
            state.update(self._other_stack(resource.import_id))
            return resource.import_id, state
        identity, outputs = self._answers.resource(resource.type, resource.name, resource.inputs)
        if self._more_outputs is not None:
            outputs |= self._more_outputs(resource.type, resource.name, resource.inputs)
        state.update(wire_value(outputs))
        return resource.import_id or identity, state

    def _remote(self, resource: Recorded) -> dict[str, Any]:
        """The outputs of a plugin's component, which no engine makes here; a child among them is a reference that the SDK asks about."""
        outputs = remote_outputs(self._answers, resource.type, resource.name, resource.inputs)
        if self._more_outputs is not None:
            outputs |= self._more_outputs(resource.type, resource.name, resource.inputs)
        for key, child in outputs.items():
            if isinstance(child, Child):
                urn = self.make_urn(resource.urn, child.type, child.name)
                self._inside[urn] = {"urn": urn, "id": child.id, "state": child.state}
                outputs[key] = reference(urn, child.id)
        return outputs

    def _other_stack(self, name: str) -> dict[str, Any]:
        exported = self._stacks(name) if callable(self._stacks) else self._stacks.get(name)
        if exported is None:
            known = "" if callable(self._stacks) or not self._stacks else f"; stacks has {', '.join(self._stacks)}"
            raise AssertionError(
                f'the program reads the stack {name}, and nothing says what it exports: pass stacks={{"{name}": {{...}}}}{known}'
            )
        return {
            "name": name,
            "outputs": wire_value(exported),
            "secretOutputNames": [key for key, value in exported.items() if _has_secret(value)],
        }


def _has_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_secret(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(_has_secret(part) for part in value)
    return isinstance(value, SecretValue)
