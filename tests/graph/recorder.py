"""Runs a Pulumi program without an engine and keeps everything it registered, options included.

The SDK's own mocks show a resource's type, name and inputs. This monitor keeps the whole request, refuses a URN that comes twice as the
engine does, and answers a preview as a preview: what a provider would compute is unknown.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import rpc, settings
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks, set_mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_pulumi_func

from tests.graph.mock_outputs import INVOKES, outputs_of

PROJECT = "dpd-infra"
STACK = "test"


class Unknown:
    """A value that a preview cannot know."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Recorded:
    """One registration: what the program asked the engine for."""

    type: str
    name: str
    urn: str
    custom: bool
    inputs: dict[str, Any]
    """Plain values; secrets are unwrapped, numbers without a fraction are int, unknown values are `UNKNOWN`."""
    secrets: frozenset[str]
    """Dotted paths of the inputs that were secret."""
    parent: str
    """The parent's URN; empty for a child of the stack."""
    provider: str
    """The URN of the explicit (or inherited) provider; empty for a default one."""
    providers: dict[str, str]
    """Providers handed on to children, by package (components)."""
    protect: bool | None
    dependencies: tuple[str, ...]
    property_dependencies: dict[str, tuple[str, ...]]
    timeouts: dict[str, str]
    """`create`, `update`, `delete`, where set."""
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    delete_before_replace: bool | None
    retain_on_delete: bool | None
    deleted_with: str
    additional_secret_outputs: tuple[str, ...]
    aliases: tuple[str, ...]
    import_id: str
    read: bool = False
    """True where an existing resource was only read."""

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"


@dataclass
class Recording:
    """What one run of a program registered."""

    preview: bool
    resources: list[Recorded] = field(default_factory=list)
    component_outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What `register_outputs` was given, by URN."""
    invokes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    logs: list[tuple[str, str]] = field(default_factory=list)
    """Level name and message of every `pulumi.log` call."""
    returned: Any = None
    """What the program returned; a mapping of outputs is resolved, what is not known becomes `UNKNOWN`."""
    exports: dict[str, Any] = field(default_factory=dict)
    """The stack's outputs, resolved the same way."""
    error: BaseException | None = None
    """The expected error, where one was expected."""

    def __getitem__(self, urn: str) -> Recorded:
        return next(r for r in self.resources if r.urn == urn)

    def of_type(self, type_: str) -> list[Recorded]:
        """Every resource of a type; the type may be shortened to its last part, `Subnet`."""
        return [r for r in self.resources if r.type == type_ or r.type.rsplit(":", 1)[-1] == type_]

    def named(self, name: str) -> Recorded:
        """The one resource with this name."""
        return self._only([r for r in self.resources if r.name == name], name)

    def one(self, type_: str, name: str | None = None) -> Recorded:
        """The one resource of a type, and of a name where several have the type."""
        return self._only([r for r in self.of_type(type_) if name in (None, r.name)], f"{type_} {name or ''}")

    @property
    def custom(self) -> list[Recorded]:
        """Every resource that a provider manages."""
        return [r for r in self.resources if r.custom]

    def children(self, component: Recorded) -> list[Recorded]:
        """The direct children of a component."""
        return [r for r in self.resources if r.parent == component.urn]

    def depends_path(self, a: Recorded, b: Recorded) -> list[Recorded] | None:
        """The shortest way from `a` to `b` along what the engine waits for, ends included; None where `a` may be made before `b`.

        A resource waits for its explicit and property dependencies, its provider and its parent, and so for what those wait for. A
        component that is asked about as `b` is reached by reaching itself; its children are resources of their own.
        """
        index = {r.urn: r for r in self.resources}
        came_from: dict[str, str | None] = {a.urn: None}
        queue = deque([a.urn])
        while queue:
            urn = queue.popleft()
            if urn == b.urn and urn != a.urn:
                return [index[step] for step in _walk_back(came_from, urn)]
            for other in _edges(index[urn]):
                if other in index and other not in came_from:
                    came_from[other] = urn
                    queue.append(other)
        return None

    @staticmethod
    def _only(found: list[Recorded], what: str) -> Recorded:
        assert len(found) == 1, f"expected one resource {what}, found {found}"
        return found[0]


def _walk_back(came_from: Mapping[str, str | None], urn: str) -> list[str]:
    path = [urn]
    while (step := came_from[path[-1]]) is not None:
        path.append(step)
    return path[::-1]


def _edges(resource: Recorded) -> Iterable[str]:
    yield from resource.dependencies
    for urns in resource.property_dependencies.values():
        yield from urns
    if resource.provider:
        yield resource.provider
    if resource.parent:
        yield resource.parent


def run_program(
    program: Callable[[], Any],
    *,
    preview: bool,
    config: Mapping[str, str] | None = None,
    secret_keys: Iterable[str] = (),
    invokes: Mapping[str, dict[str, Any]] | None = None,
    outputs: Callable[[str, str, Mapping[str, Any]], dict[str, Any]] | None = None,
    expect: type[BaseException] | None = None,
    project: str = PROJECT,
    stack: str = STACK,
) -> Recording:
    """Run a program to its end and return what it registered.

    `config` holds full keys (`aws:region`). `invokes` overrides results by token; `outputs(type, name, inputs)` adds to a resource's
    outputs in update mode. With `expect`, that error is kept in `.error` beside what was registered until then; not raising it fails.
    """
    return contextvars.copy_context().run(
        _run, program, preview, dict(config or {}), list(secret_keys), {**INVOKES, **(invokes or {})}, outputs, expect, project, stack
    )


def _run(
    program: Callable[[], Any],
    preview: bool,
    config: dict[str, str],
    secret_keys: list[str],
    invokes: dict[str, dict[str, Any]],
    outputs: Callable[[str, str, Mapping[str, Any]], dict[str, Any]] | None,
    expect: type[BaseException] | None,
    project: str,
    stack: str,
) -> Recording:
    recording = Recording(preview)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        settings.reset_options(project=project, stack=stack, preview=preview)
        pulumi.runtime.set_all_config(config, secret_keys)
        monitor = _RecordingMonitor(recording, invokes, outputs, f"urn:pulumi:{stack}::{project}")
        set_mocks(monitor.mocks, project=project, stack=stack, preview=preview, monitor=monitor, logger=_Log(recording))
        loop.run_until_complete(run_pulumi_func(lambda: _call(program, recording)))
        recording.returned = loop.run_until_complete(_resolve(recording.returned))
        root = settings.get_root_resource()
        recording.exports = loop.run_until_complete(_resolve(dict(getattr(root, "outputs", {}))))
    except BaseException as error:  # noqa: BLE001 raised again unless it is the expected one
        # Where the program fails, the resources it had begun may fail too, and the SDK raises one of theirs.
        cause = recording.error or error
        if expect is None or not isinstance(cause, expect):
            raise cause from (None if cause is error else error)
        recording.error = cause
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        asyncio.set_event_loop(None)
    assert expect is None or recording.error is not None, f"{expect.__name__} was expected and not raised"
    return recording


def _call(program: Callable[[], Any], recording: Recording) -> None:
    try:
        recording.returned = program()
    except BaseException as error:
        recording.error = error
        raise


async def _resolve(value: Any) -> Any:
    """An output's value, or those of a mapping's outputs; anything else as it is."""
    if isinstance(value, pulumi.Output):
        known = await value.is_known()
        return await value.future() if known else UNKNOWN
    if isinstance(value, Mapping):
        return {key: await _resolve(item) for key, item in value.items()}
    return value


class _Log(logging.Logger):
    """Keeps what `pulumi.log` says."""

    def __init__(self, recording: Recording) -> None:
        super().__init__("recorded", logging.INFO)
        self.recording = recording

    def handle(self, record: logging.LogRecord) -> None:
        self.recording.logs.append((record.levelname.lower(), record.getMessage()))


class _NoMocks(Mocks):
    """The base class wants one; the monitor answers by itself."""

    def call(self, args: MockCallArgs) -> Any:
        raise NotImplementedError(args.token)

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        raise NotImplementedError(args.typ)


class _RecordingMonitor(MockMonitor):
    def __init__(
        self,
        recording: Recording,
        invokes: Mapping[str, dict[str, Any]],
        outputs: Callable[[str, str, Mapping[str, Any]], dict[str, Any]] | None,
        urn_prefix: str,
    ) -> None:
        super().__init__(_NoMocks())
        self.invokes = invokes
        self.urn_prefix = urn_prefix
        self.recording = recording
        self.more_outputs = outputs
        self.lock = threading.Lock()

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """As the engine makes it: the types of all ancestors but the stack."""
        ancestors = parent.split("::")[2] if parent and "::pulumi:pulumi:Stack::" not in parent else ""
        return f"{self.urn_prefix}::{ancestors + '$' if ancestors else ''}{type_}::{name}"

    def Invoke(self, request: Any) -> Any:
        with self.lock:
            self.recording.invokes.append((request.tok, _plain(request.args, "", set())))
        assert request.tok in self.invokes, f"no result for the invoke {request.tok}: add it to tests/graph/mock_outputs.py"
        result = struct_pb2.Struct()
        result.update(self.invokes[request.tok])
        response = resource_pb2.ResourceInvokeResponse()
        getattr(response, "return").CopyFrom(result)
        return response

    def RegisterResource(self, request: Any) -> Any:
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        recorded = _recorded(request, urn)
        self._keep(recorded)
        identity, state = self._answer(recorded, request.object)
        self.resources[urn] = MockMonitor.ResourceRegistration(urn, identity, {})
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=state)

    def ReadResource(self, request: Any) -> Any:
        urn = self.make_urn(request.parent, request.type, request.name)
        recorded = _recorded_read(request, urn)
        self._keep(recorded)
        _, state = self._answer(recorded, request.properties)
        self.resources[urn] = MockMonitor.ResourceRegistration(urn, request.id, {})
        return resource_pb2.ReadResourceResponse(urn=urn, properties=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:
        with self.lock:
            self.recording.component_outputs[request.urn] = _plain(request.outputs, "", set())
        return empty_pb2.Empty()

    def _keep(self, recorded: Recorded) -> None:
        with self.lock:
            if any(r.urn == recorded.urn for r in self.recording.resources):
                message = f"Duplicate resource URN '{recorded.urn}'; try giving it a unique name"
                raise ValueError(message)
            self.recording.resources.append(recorded)

    def _answer(self, recorded: Recorded, given: struct_pb2.Struct) -> tuple[str, struct_pb2.Struct]:
        """The id and the state. A preview knows the inputs only, and an id only of what is read."""
        state = struct_pb2.Struct()
        state.CopyFrom(given)
        if not recorded.custom or (self.recording.preview and not recorded.read):
            return "", state
        identity, outputs = outputs_of(recorded.type, recorded.name, recorded.inputs)
        if self.more_outputs is not None:
            outputs |= self.more_outputs(recorded.type, recorded.name, recorded.inputs)
        state.update(outputs)
        return recorded.import_id or identity, state


def _recorded(request: Any, urn: str) -> Recorded:
    secrets: set[str] = set()
    return Recorded(
        type=request.type,
        name=request.name,
        urn=urn,
        custom=request.custom,
        inputs=_plain(request.object, "", secrets),
        secrets=frozenset(secrets),
        parent="" if "::pulumi:pulumi:Stack::" in request.parent else request.parent,
        provider=_provider_urn(request.provider),
        providers={package: _provider_urn(reference) for package, reference in request.providers.items()},
        protect=request.protect if request.HasField("protect") else None,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={key: tuple(sorted(value.urns)) for key, value in request.propertyDependencies.items()},
        timeouts={
            key: getattr(request.customTimeouts, key) for key in ("create", "update", "delete") if getattr(request.customTimeouts, key)
        },
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
        deleted_with=request.deletedWith,
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        aliases=tuple(str(alias) for alias in request.aliases) + tuple(request.aliasURNs),
        import_id=request.importId,
    )


def _recorded_read(request: Any, urn: str) -> Recorded:
    secrets: set[str] = set()
    return Recorded(
        type=request.type,
        name=request.name,
        urn=urn,
        custom=True,
        inputs=_plain(request.properties, "", secrets),
        secrets=frozenset(secrets),
        parent="" if "::pulumi:pulumi:Stack::" in request.parent else request.parent,
        provider=_provider_urn(request.provider),
        providers={},
        protect=None,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={},
        timeouts={},
        ignore_changes=(),
        replace_on_changes=(),
        delete_before_replace=None,
        retain_on_delete=None,
        deleted_with="",
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        aliases=(),
        import_id=request.id,
        read=True,
    )


def _provider_urn(reference: str) -> str:
    """A provider reference is `<urn>::<id>`."""
    return reference.rsplit("::", 1)[0] if reference else ""


def _plain(value: Any, path: str, secrets: set[str]) -> Any:
    if isinstance(value, struct_pb2.Struct):
        signature = value.fields[rpc._special_sig_key].string_value if rpc._special_sig_key in value.fields else ""
        if signature == rpc._special_secret_sig:
            secrets.add(path)
            return _plain(value["value"], path, secrets)
        return {key: _plain(value[key], f"{path}.{key}" if path else key, secrets) for key in value}
    if isinstance(value, struct_pb2.ListValue):
        return [_plain(item, f"{path}[{index}]", secrets) for index, item in enumerate(value)]
    if value == rpc.UNKNOWN:
        return UNKNOWN
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
