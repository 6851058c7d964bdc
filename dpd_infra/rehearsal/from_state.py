"""Rehearse what is really deployed: an exported state becomes the rehearsal's state, and the account is what that state says exists."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from dpd_infra.plan.access import principal_label
from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.engine import Engine
from dpd_infra.rehearsal.environment import hermetic
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.server import PACKAGES
from dpd_infra.rehearsal.simulation import Call
from dpd_infra.rehearsal.wire import ARCHIVE_SIGNATURE, ASSET_SIGNATURE, SECRET_SIGNATURE, SIGNATURE_KEY, Asset, Secret, conceal, reveal
from dpd_infra.rehearsal.workspace import STAND_IN

_URN = "urn:pulumi:"
_REGION = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:([a-z0-9-]+):\d{12}:")
_ACCOUNT = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(\d{12}):")


class StateRefused(Exception):
    """A file that is no exported state, or the state of another stack; the message says which."""


@dataclass(frozen=True)
class ExportedState:
    """What `pulumi stack export` wrote."""

    document: Mapping[str, Any]
    sealed: int
    """Encrypted values, which a stand-in replaces: the rehearsal has no key."""

    project: str
    stack: str

    @classmethod
    def read(cls, path: Path, *, project: str, stack: str) -> ExportedState:
        """Read an export of a stack of this project. Raises `StateRefused`."""
        state = cls.parse(path)
        if (state.project, state.stack) != (project, stack.rsplit("/", 1)[-1]):
            raise StateRefused(state.refused(path, project=project, stack=stack))
        return state

    @classmethod
    def parse(cls, path: Path) -> ExportedState:
        """Read an export of any stack, or what the file backend (and `dpd rehearse --keep`) has of it. Raises `StateRefused`."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise StateRefused(f"{path} cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise StateRefused(f"{path} is no JSON: {error}") from None
        except RecursionError:
            raise StateRefused(f"{path} is no state: its JSON is nested too deeply") from None
        deployment = _deployment(document)
        resources = deployment.get("resources") if isinstance(deployment, dict) else None
        urns = [str(item.get("urn")) if isinstance(item, dict) else "" for item in resources] if isinstance(resources, list) else []
        if not isinstance(deployment, dict) or not isinstance(resources, list) or not urns or not all(urn.count("::") > 1 for urn in urns):
            raise StateRefused(f"{path} is no state with resources: write it with `pulumi stack export --stack STACK --file {path}`")
        if broken := list(_broken(resources)):
            told = "".join(f"\n  {line}" for line in broken)
            raise StateRefused(f"{path} is no state as Pulumi writes it; write it anew with `pulumi stack export`:{told}")
        named = sorted({tuple(urn.split("::")[:2]) for urn in urns})
        if len(named) > 1:
            found = ", ".join(f"{where.removeprefix(_URN)} of project {whose}" for where, whose in named)
            raise StateRefused(f"{path} is the state of more than one stack: {found}")
        where, project = named[0]
        sealed = Counter[str]()
        opened = {**deployment, "resources": _open(resources, sealed), "secrets_providers": None}
        # The rehearsal encrypts with a passphrase of its own.
        opened.pop("secrets_providers")
        whole = {"version": document.get("version", 3), "deployment": opened}
        return cls(whole, sealed.total(), project, where.removeprefix(_URN))

    def refused(self, path: Path, *, project: str, stack: str) -> str:
        """That this is the state of another stack than the one that was asked for."""
        short = stack.rsplit("/", 1)[-1]
        return f"{path} is the state of stack {self.stack} of project {self.project}, not of {short} of project {project}"

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resources, with stand-ins for what was encrypted."""
        return self.document["deployment"]["resources"]

    @property
    def account_number(self) -> str | None:
        """The account that most ARNs in the state name."""
        found = Counter(_ACCOUNT.findall(json.dumps([item.get("outputs") for item in self.resources])))
        return found.most_common(1)[0][0] if found else None

    def deployer(self, stack_file: str) -> str | None:
        """Who deploys: the one cluster administrator that the library itself let in and the stack file does not name."""
        entries = [item for item in self.resources if item["type"] == "aws:eks/accessEntry:AccessEntry"]
        principals = [str(item["inputs"].get("principalArn")) for item in entries]
        own = [
            principal
            for principal, item in zip(principals, entries, strict=True)
            if item["urn"].endswith(principal_label(principal)) and principal not in stack_file
        ]
        return own[0] if len(own) == 1 else None


def _deployment(document: Any) -> Any:
    """The resources and what belongs to them, by an export's key or by those of a file backend."""
    if not isinstance(document, dict):
        return None
    checkpoint = document.get("checkpoint")
    return document.get("deployment") or (checkpoint.get("latest") if isinstance(checkpoint, dict) else None)


def import_state(state: ExportedState, engine: Engine) -> None:
    """Make it the state of an engine's stack, and let the account have what it says exists."""
    try:
        fill(engine.account, state.resources)
    except StateRefused as refused:
        raise StateRefused(f"the state of stack {state.stack} of project {state.project} is not understood:\n{refused}") from None
    nowhere = hermetic(engine.state_dir, "")["AWS_SHARED_CREDENTIALS_FILE"]
    for item in state.resources:
        if item["type"] == "pulumi:providers:aws-native":
            # The SDK takes it from the environment, which is another one here.
            for properties in ("inputs", "outputs"):
                item.setdefault(properties, {})["sharedCredentialsFile"] = nowhere
    file = engine.work_dir / "exported.json"
    file.write_text(json.dumps(state.document), encoding="utf-8")
    try:
        engine.command("stack", "import", "--file", str(file))
    except CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip().removeprefix("error: ")
        raise StateRefused(f"the engine does not take the state of stack {state.stack} of project {state.project}: {said}") from None
    finally:
        file.unlink()


def _open(value: Any, sealed: Counter[str]) -> Any:
    """Every encrypted value as a secret stand-in."""
    if isinstance(value, list):
        return [_open(item, sealed) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(SIGNATURE_KEY) == SECRET_SIGNATURE and "plaintext" not in value:
        sealed["sealed"] += 1
        return {SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": json.dumps(STAND_IN)}
    return {key: _open(item, sealed) for key, item in value.items()}


_SHAPE: Mapping[str, tuple[type, str]] = {
    "type": (str, "text"),
    "id": (str, "text"),
    "provider": (str, "text"),
    "parent": (str, "text"),
    "custom": (bool, "true or false"),
    "external": (bool, "true or false"),
    "delete": (bool, "true or false"),
    "inputs": (dict, "a mapping"),
    "outputs": (dict, "a mapping"),
}
"""What is read of a resource (pulumi 3.272, sdk/go/common/apitype: ResourceV3). The engine itself looks at the rest."""


def _broken(resources: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What of the resources is not as the engine writes it."""
    for index, item in enumerate(resources):
        place = f"deployment.resources[{index}]"
        if item["urn"].count("::") < 3 or not item["urn"].startswith(_URN):
            yield f"{place}.urn is {item['urn']!r}, no URN"
        if item.get("type") is None:
            yield f"{place} has no type"
        for key, (kind, called) in _SHAPE.items():
            if item.get(key) is not None and not isinstance(item[key], kind):
                yield f"{place}.{key} is no {called.removeprefix('a ')}: {json.dumps(item[key])[:40]}"
        yield from _unreadable(item, place)


def _unreadable(value: Any, place: str) -> Iterator[str]:
    """Secrets whose text is no JSON."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unreadable(item, f"{place}[{index}]")
    elif isinstance(value, dict) and value.get(SIGNATURE_KEY) == SECRET_SIGNATURE:
        try:
            json.loads(value.get("plaintext", "null"))
        except (TypeError, ValueError, RecursionError):
            yield f"{place}.plaintext is no JSON"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _unreadable(item, f"{place}.{key}")


def fill(account: SimulatedAccount, resources: Iterable[Mapping[str, Any]]) -> None:
    """Let everything that a state names exist in the account. Raises `StateRefused` with everything that the simulation does not know."""
    custom = [item for item in resources if item.get("custom") and item.get("id") and not item.get("delete")]
    settings = {
        f"{item['urn']}::{item['id']}": (item["type"].rpartition(":")[2], reveal(_value(item.get("inputs") or {})))
        for item in custom
        if item["type"].startswith("pulumi:providers:")
    }
    providers: dict[str, SimulatedProvider] = {kind.package: kind(account) for kind in PACKAGES}
    things = [item for item in custom if not item["type"].startswith("pulumi:")]
    refused: list[str] = []
    # What lives in Kubernetes is found by the cluster that its provider speaks to.
    for item in sorted(things, key=lambda thing: thing["type"].startswith("kubernetes:")):
        package, given = settings.get(item.get("provider") or "", (item["type"].partition(":")[0], {}))
        provider = providers.get(package)
        if provider is None:
            continue
        try:
            record = _record(account, provider, given, item)
        except SimulatedError as error:
            refused.append(f"  {item['urn']}: {error}")
            continue
        if account.find(record.type, record.id, region=record.region, cluster=record.cluster) is None:
            account.add(record)
    if refused:
        raise StateRefused("\n".join(refused))


def _record(account: SimulatedAccount, provider: SimulatedProvider, settings: Mapping[str, Any], item: Mapping[str, Any]) -> Resource:
    """A resource of a state as the account has it. Raises `SimulatedError` for what no such provider could have made."""
    inputs, outputs = _value(item.get("inputs") or {}), _value(item.get("outputs") or {})
    # A provider that found its region in the environment need not have it in the state.
    configured = provider.configure({**settings, "region": settings.get("region") or _region_of(outputs)})
    call = Call(account, configured, item["type"], item["urn"], reveal(inputs), id=item["id"])
    kind = provider.type_for(item["type"])
    return Resource(
        item["type"],
        item["id"],
        conceal(inputs),
        conceal({**inputs, **outputs}),
        region=call.region if kind.regional else "",
        cluster=kind.scope(call),
        urn="" if item.get("external") else item["urn"],
    )


def _region_of(outputs: Mapping[str, Any]) -> str:
    """Where a resource says that it is."""
    named = outputs.get("region")
    found = Counter(_REGION.findall(json.dumps(conceal(outputs))))
    return named if isinstance(named, str) and named else found.most_common(1)[0][0] if found else ""


def _value(value: Any) -> Any:
    """A value of a state as the simulation has it."""
    if isinstance(value, list):
        return [_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    signature = value.get(SIGNATURE_KEY)
    if signature == SECRET_SIGNATURE:
        return Secret(_value(json.loads(value["plaintext"])))
    if signature in (ASSET_SIGNATURE, ARCHIVE_SIGNATURE):
        return Asset(value)
    if signature:
        return value.get("id") or value.get("urn")
    return {key: _value(item) for key, item in value.items()}
