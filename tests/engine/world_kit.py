"""A program against the simulated account without the engine: every registration is a create call, in the order of the program's graph."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.account import ACCOUNT_ID, Resource
from dpd_infra.rehearsal.aws import AwsProvider, base
from dpd_infra.rehearsal.aws_native import AwsNativeProvider
from dpd_infra.rehearsal.errors import InitError, SimulatedError
from dpd_infra.rehearsal.kubernetes import KubernetesProvider
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.simulation import Call
from dpd_infra.rehearsal.values import outputs as merged
from dpd_infra.rehearsal.wire import conceal, reveal
from dpd_infra.testing.answers import Answers
from dpd_infra.testing.program import Program, run_program
from dpd_infra.testing.recording import Recording

REGION = "us-east-2"


@dataclass
class Direct:
    """The providers of one account, called as the engine would call them."""

    account: SimulatedAccount = field(default_factory=SimulatedAccount)

    def __post_init__(self) -> None:
        self.providers: dict[str, SimulatedProvider] = {
            kind.package: kind(self.account) for kind in (AwsProvider, AwsNativeProvider, KubernetesProvider)
        }

    def create(self, token: str, name: str, inputs: Mapping[str, Any], *, region: str = REGION, timeout: float = 0) -> Resource:
        """Make one resource. Raises `SimulatedError` where it is refused, or does not become ready."""
        provider, call = self._call(token, name, inputs, region=region, timeout=timeout)
        kind = provider.type_for(token)
        if kind.autoname and call.inputs.get(kind.autoname) is None:
            call.inputs = {**call.inputs, kind.autoname: f"{name}-0123456"}
        given = dict(call.inputs)
        failed: InitError | None = None
        provider.authorize(call)
        try:
            made = kind.create(call)
            identity, computed = made.id, made.outputs
        except InitError as error:
            failed, identity, computed = error, error.id, error.outputs
        outputs = provider.finish(call, merged(given, computed))
        where = call.region if kind.regional else ""
        record = Resource(token, identity, conceal(given), conceal(outputs), region=where, cluster=kind.scope(call), urn=call.urn)
        self.account.add(record)
        if failed is not None:
            raise failed
        return record

    def update(self, record: Resource, **changed: Any) -> Mapping[str, Any]:
        """Change some inputs of a resource that was made."""
        provider, call = self._call(record.type, "", {**record.inputs, **changed}, record=record)
        answer = provider.type_for(record.type).update(call)
        record.inputs = dict(call.inputs)
        record.outputs = merged({**record.outputs, **call.inputs}, answer)
        return answer

    def delete(self, record: Resource) -> None:
        """Delete a resource."""
        provider, call = self._call(record.type, "", record.inputs, record=record)
        if provider.reach(call, deletes=True):
            provider.type_for(record.type).delete(call)
            self.account.remove(record)

    def _call(
        self, token: str, name: str, inputs: Mapping[str, Any], *, region: str = REGION, timeout: float = 0, record: Resource | None = None
    ) -> tuple[SimulatedProvider, Call]:
        provider = self.providers[token.partition(":")[0]]
        clusters = self.account.all(base.CLUSTER)
        settings = {"region": region, "cluster": clusters[0].id if clusters else ""}
        urn = record.urn if record else f"urn:pulumi:dev::test::{token}::{name}"
        call = Call(self.account, settings, token, urn, reveal(inputs), record=record, timeout=timeout)
        call.id = record.id if record else ""
        return provider, call


class WorldAnswers(Answers):
    """Answers of the test kit's monitor, from the simulated account: what it refuses ends the program."""

    def __init__(self, direct: Direct) -> None:
        super().__init__(account_id=ACCOUNT_ID, region=REGION)
        object.__setattr__(self, "direct", direct)
        object.__setattr__(self, "refused", [])
        object.__setattr__(self, "made", {})
        object.__setattr__(self, "lock", threading.Lock())

    direct: Direct
    refused: list[SimulatedError]
    made: dict[tuple[str, str], Resource]
    lock: threading.Lock

    def resource(self, type_: str, name: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if type_.partition(":")[0] not in self.direct.providers:
            return super().resource(type_, name, inputs)
        with self.lock:
            try:
                made = self.direct.create(type_, name, inputs)
            except SimulatedError as error:
                self.refused.append(error)
                raise
        self.made[type_, name] = made
        return made.id, {key: value for key, value in made.outputs.items() if key not in inputs or value != inputs[key]}

    def invoke(self, token: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        provider = self.direct.providers.get(token.partition(":")[0])
        function = provider.invokes.get(token) if provider else None
        if function is None:
            return super().invoke(token, arguments)
        with self.lock:
            return dict(function(self.direct.account, {"region": REGION}, arguments))


@dataclass
class World:
    """What a program made: the account, what it registered, and which resource each registration became."""

    direct: Direct
    recording: Recording
    made: Mapping[tuple[str, str], Resource]

    @property
    def account(self) -> SimulatedAccount:
        """The account."""
        return self.direct.account

    def of(self, token: str, name: str | None = None) -> Resource:
        """The one resource of a type (and name)."""
        found = [record for (type_, name_), record in self.made.items() if type_ == token and name in (None, name_)]
        assert len(found) == 1, (token, name, sorted(self.made))
        return found[0]

    def copy(self) -> World:
        """The same account once more, to change."""
        twin = SimulatedAccount(world=self.account.world)
        for record in self.account:
            twin.add(copy.deepcopy(record))
        made = {}
        for key, record in self.made.items():
            found = twin.find(record.type, record.id, region=record.region, cluster=record.cluster)
            if found is not None:
                made[key] = found
        return World(Direct(twin), self.recording, made)


def make(program: Program | Callable[[], Any], account: SimulatedAccount | None = None, **options: Any) -> World:
    """Let a program make everything. Raises the first `SimulatedError` that it met."""
    direct = Direct(SimulatedAccount() if account is None else account)
    answers = WorldAnswers(direct)
    config = {"aws:region": REGION, "aws-native:region": REGION, **options.pop("config", {})}
    try:
        recording = run_program(program, answers=answers, config=config, **options)
    except BaseException:
        if answers.refused:
            raise answers.refused[0] from None
        raise
    return World(direct, recording, answers.made)


Key = tuple[str, str]
"""Type and name of a resource."""


def without_edge(world: World, later: Key, first: Key) -> World:
    """The account when `later` is about to be made too early: its wait for `first` is not there.

    With it goes what `later` waited for through `first` alone, and everything that waits for `later` is not there yet.
    """
    before = _ancestors(world.recording, later, cut=first)
    return _without(world, later, ({first} | _ancestors(world.recording, first)) - before)


def without(world: World, later: Key, first: Key) -> World:
    """The account when `later` is about to be made and `first` is not there, whatever else is."""
    return _without(world, later, {first})


def _without(world: World, later: Key, lost: set[Key]) -> World:
    twin = world.copy()
    for key in {later, *lost, *_dependents(world.recording, later)}:
        record = twin.made.get(key)
        if record is not None:
            twin.account.remove(record)
    return twin


def is_implied(world: World, later: Key, first: Key) -> bool:
    """Whether `later` waits for `first` through others too."""
    return first in _ancestors(world.recording, later, cut=first)


def still_waits(world: World, resource: Key, first: Key, *, without_edge: Key) -> bool:
    """Whether a resource waits for `first` though `without_edge` does not."""
    return first in _ancestors(world.recording, resource, cut=first, cut_of=without_edge)


def _ancestors(recording: Recording, of: Key, *, cut: Key | None = None, cut_of: Key | None = None) -> set[Key]:
    """Everything that a resource waits for; `cut` is a direct wait that is left out: its own, or that of `cut_of`."""
    (start,) = (resource for resource in recording if (resource.type, resource.name) == of)
    left, seen = [start], set[str]()
    while left:
        resource = left.pop()
        lost = cut if (resource.type, resource.name) == (cut_of or of) else None
        for urn in (*resource.dependencies, resource.provider):
            if urn in recording and urn not in seen and _key(recording, urn) != lost:
                seen.add(urn)
                left.append(recording[urn])
    return {_key(recording, urn) for urn in seen}


def _dependents(recording: Recording, of: Key) -> set[Key]:
    """Everything that waits for a resource, directly or through others."""
    return {_key(recording, resource.urn) for resource in recording if of in _ancestors(recording, _key(recording, resource.urn))}


def _key(recording: Recording, urn: str) -> Key:
    return recording[urn].type, recording[urn].name
