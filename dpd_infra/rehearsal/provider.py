"""The gRPC face of a simulated provider: what the engine asks of any provider plugin, answered from the simulated account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc

from dpd_infra.rehearsal import values
from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.answers import Answers, diff_response, fail_to_become_ready
from dpd_infra.rehearsal.channel import own_channel
from dpd_infra.rehearsal.diff import DEFAULTS_KEY, Difference, compare
from dpd_infra.rehearsal.errors import InitError, SimulatedError
from dpd_infra.rehearsal.simulation import Call, Invoke, Made, ResourceType
from dpd_infra.rehearsal.urn import type_of
from dpd_infra.rehearsal.wire import UNKNOWN, conceal, decode, encode, reveal
from dpd_infra.rehearsal.world.replacements import published
from dpd_infra.rehearsal.world.rules import providers as rules


class SimulatedProvider(provider_pb2_grpc.ResourceProviderServicer):
    """One package's provider over a `SimulatedAccount`.

    Subclasses name their `package`, list their resource types and invokes, and say what an unlisted type is (`type_for`). One server
    answers every provider instance of the program: the engine opens one connection an instance, so the configuration is kept by peer.
    """

    package = ""
    distribution = ""
    """The Python package of the SDK, whose version the provider claims to have."""

    def __init__(self, account: SimulatedAccount, types: Iterable[ResourceType] = (), invokes: Mapping[str, Invoke] | None = None) -> None:
        self.account = account
        self.types = {item.token: item for item in types}
        self.invokes = dict(invokes or {})
        self._settings: dict[str, dict[str, Any]] = {}
        self._last_settings: dict[str, Any] = {}
        self._engine = ""

    # What subclasses decide

    def type_for(self, token: str) -> ResourceType:
        """The simulation of one type. Raises `SimulatedError` for a type that the package does not have."""
        try:
            return self.types[token]
        except KeyError:
            raise SimulatedError(rules.TYPE(token=token)) from None

    def configure(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Check and complete a provider configuration. Raises `SimulatedError`."""
        return settings

    def diff_settings(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
        """How two provider configurations differ."""
        return compare(old, new)

    def authorize(self, call: Call) -> None:
        """Refuse, by raising, a call that its caller may not make."""

    def construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> provider_pb2.ConstructResponse:
        """Build a remote component. Packages that have none refuse."""
        raise SimulatedError(rules.COMPONENT(token=request.type))

    def reach(self, call: Call, *, deletes: bool = False) -> bool:
        """Refuse, by raising, where what a resource lives in is gone; False where that counts as the resource's own end."""
        return True

    def finish(self, call: Call, outputs: dict[str, Any]) -> dict[str, Any]:
        """Outputs that every resource of the package has."""
        return outputs

    # Life cycle of the plugin

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ProviderHandshakeResponse:
        self._engine = request.engine_address or self._engine
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True, accept_outputs=True)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self._engine = request.address or self._engine
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=sdk_version(self.distribution))

    def GetMapping(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.GetMappingResponse:
        return provider_pb2.GetMappingResponse()

    def GetMappings(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.GetMappingsResponse:
        return provider_pb2.GetMappingsResponse()

    # Configuration

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        old = request.old_inputs if request.old_inputs.fields else request.olds
        with Answers(context):
            return diff_response(self.diff_settings(reveal(decode(old)), reveal(decode(request.news))), delete_first=False)

    def Configure(self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext) -> provider_pb2.ConfigureResponse:
        with Answers(context):
            settings = self.configure(reveal(decode(request.args)))
            with self.account.lock:
                self._settings[context.peer()] = settings
                self._last_settings = settings
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=True, acceptOutputs=True)

    def settings(self, context: grpc.ServicerContext) -> dict[str, Any]:
        """The configuration of the provider instance that is calling."""
        return self._settings.get(context.peer(), self._last_settings)

    # Resources

    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        with Answers(context):
            token = type_of(request.urn)
            kind = self.type_for(token)
            inputs = self.name_automatically(kind, request, decode(request.news))
            call = self._call(context, request.urn, inputs)
            failures = [provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in kind.check(call).items()]
            return provider_pb2.CheckResponse(inputs=encode(inputs), failures=failures)

    def name_automatically(self, kind: ResourceType, request: provider_pb2.CheckRequest, inputs: dict[str, Any]) -> dict[str, Any]:
        """Fill the name as the real provider does: the resource's name, a dash and seven random hex digits, kept from then on."""
        if kind.autoname is None or inputs.get(kind.autoname) is not None or f"{kind.autoname}Prefix" in inputs:
            return inputs
        old = decode(request.olds)
        kept = old.get(kind.autoname) if kind.autoname in (old.get(DEFAULTS_KEY) or []) else None
        name = kept or f"{request.urn.rsplit('::', 1)[-1]}-{request.randomSeed.hex()[:7]}"
        return {**inputs, kind.autoname: name, DEFAULTS_KEY: [kind.autoname]}

    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        with Answers(context):
            kind = self.type_for(type_of(request.urn))
            old, new = reveal(decode(request.old_inputs)), reveal(decode(request.news))
            call = self._call(context, request.urn, new, id=request.id)
            forced = (*kind.replace_on, *published(call.token), *kind.extra_replaces(call, old))
            difference = compare(old, new, replace_on=forced, unordered=kind.unordered)
            return diff_response(difference, delete_first=kind.delete_first(call, old))

    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        with Answers(context):
            given = decode(request.properties)
            call = self._call(context, request.urn, given, timeout=request.timeout)
            kind = self.type_for(call.token)
            if request.preview:
                return provider_pb2.CreateResponse(properties=encode(values.with_unknowns(given, kind)))
            with self.account.operation("create", call.token, request.urn) as (ids, fault):
                self.authorize(call)
                failed: InitError | None = None
                try:
                    made = kind.create(call)
                    failed = InitError([rules.INJECTED(message=fault.message)], id=made.id, outputs=made.outputs) if fault else None
                except InitError as error:
                    made, failed = Made(error.id, error.outputs), error
                outputs = self.finish(call, values.outputs(given, made.outputs))
                self._remember(call, kind, made.id, given, outputs)
                ids.append(made.id)
                if failed is not None:
                    self.account.refuse("create", call.token, request.urn, failed)
                    fail_to_become_ready(context, failed, outputs)
            return provider_pb2.CreateResponse(id=made.id, properties=encode(outputs))

    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        with Answers(context):
            given, old = decode(request.news), decode(request.olds)
            call = self._call(context, request.urn, given, id=request.id, timeout=request.timeout)
            kind = self.type_for(call.token)
            # What the service computed stays, what the program once gave and gives no longer goes.
            computed = {key: value for key, value in old.items() if key not in decode(request.old_inputs)}
            if request.preview:
                unknown = dict.fromkeys(kind.volatile, UNKNOWN)
                return provider_pb2.UpdateResponse(properties=encode(values.keep_inside({**computed, **given}, old, kind) | unknown))
            with self.account.operation("update", call.token, request.urn) as (ids, _):
                ids.append(request.id)
                self.authorize(call)
                if call.record is None:
                    raise SimulatedError(rules.RESOURCE_IS_THERE(token=call.token, id=request.id))
                base = values.keep_inside({**computed, **given}, old, kind)
                before = decode(request.old_inputs)
                untouched = {key: base[key] for key in given if key in before and reveal(before[key]) == reveal(given[key])}
                # An update only sends what changed: what somebody else set meanwhile (an autoscaler's count) stays.
                base |= values.live(untouched, call.record.outputs)
                failed: InitError | None = None
                try:
                    changed = kind.update(call)
                except InitError as error:
                    failed, changed = error, error.outputs
                outputs = self.finish(call, values.outputs(base, changed))
                call.record.inputs, call.record.outputs = conceal(given), conceal(outputs)
                if failed is not None:
                    self.account.refuse("update", call.token, request.urn, failed)
                    self.account.save()
                    fail_to_become_ready(context, failed, outputs)
            return provider_pb2.UpdateResponse(properties=encode(outputs))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        with Answers(context):
            call = self._call(context, request.urn, decode(request.old_inputs), id=request.id, timeout=request.timeout)
            if not self.reach(call, deletes=True) or call.record is None:
                return empty_pb2.Empty()
            with self.account.operation("delete", call.token, request.urn) as (ids, _):
                ids.append(request.id)
                self.authorize(call)
                self.type_for(call.token).delete(call)
                self.account.remove(call.record)
            return empty_pb2.Empty()

    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        with Answers(context):
            call = self._call(context, request.urn, decode(request.inputs), id=request.id)
            if not self.reach(call) or call.record is None:
                return provider_pb2.ReadResponse()
            with self.account.lock:
                changed = self.type_for(call.token).read(call)
                if changed:
                    call.record.outputs = conceal({**call.record.outputs, **changed})
                    self.account.save()
            if request.properties.fields:
                live = values.live(decode(request.properties), call.record.outputs)
                inputs = values.live(decode(request.inputs), call.record.outputs)
                return provider_pb2.ReadResponse(id=request.id, properties=encode(live), inputs=encode(inputs))
            return provider_pb2.ReadResponse(id=request.id, properties=encode(call.record.outputs), inputs=encode(call.record.inputs))

    # Functions

    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        with Answers(context):
            invoke = self.invokes.get(request.tok)
            if invoke is None:
                raise SimulatedError(rules.FUNCTION(token=request.tok))
            settings = self.settings(context)
            arguments = reveal(decode(request.args))
            if arguments.get("region"):
                settings = {**settings, "region": arguments["region"]}
            with self.account.lock:
                response = provider_pb2.InvokeResponse()
                # `return` is a keyword in Python.
                getattr(response, "return").CopyFrom(encode(invoke(self.account, settings, arguments)))
                return response

    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> provider_pb2.CallResponse:
        with Answers(context):
            raise SimulatedError(rules.METHOD(token=request.tok))

    def Construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> provider_pb2.ConstructResponse:
        with Answers(context):
            return self.construct(request, context)

    # Helpers

    def _call(self, context: grpc.ServicerContext, urn: str, inputs: Mapping[str, Any], *, id: str = "", timeout: float = 0) -> Call:
        call = Call(self.account, self.settings(context), type_of(urn), urn, reveal(inputs), id=id, timeout=timeout)
        call.tell = lambda text: self._tell(urn, text)
        if id:
            kind = self.type_for(call.token)
            call.record = self.account.find(call.token, id, region=call.region if kind.regional else "", cluster=kind.scope(call))
        return call

    def _tell(self, urn: str, text: str) -> None:
        """Hand a warning to the engine, as a provider does; without an engine it stays with the account."""
        if not self._engine:
            return
        with own_channel(self._engine) as channel:
            request = engine_pb2.LogRequest(severity=engine_pb2.WARNING, message=text, urn=urn)
            # A warning that does not arrive is no reason to fail.
            with suppress(grpc.RpcError):
                engine_pb2_grpc.EngineStub(channel).Log(request, timeout=5)

    def _remember(self, call: Call, kind: ResourceType, id: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        region = call.region if kind.regional else ""
        self.account.add(Resource(call.token, id, conceal(inputs), conceal(outputs), region=region, cluster=kind.scope(call), urn=call.urn))


def sdk_version(distribution: str) -> str:
    """The installed version of a Python package; `0.0.0` where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "0.0.0"
