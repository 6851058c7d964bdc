"""The simulated AWS account: what exists, who is calling, what the next calls will do, and a file that remembers it between rehearsals."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.holders import whose
from dpd_infra.rehearsal.journal import Action, Failure, Operation, OperatorBehaviour, Refusal
from dpd_infra.rehearsal.world.file import World
from dpd_infra.rehearsal.world.rules import providers as rules

ACCOUNT_ID = "123456789012"
"""AWS's documentation account number."""

DEPLOYER_ROLE = "rehearsal-deployer"
"""Name of the role that the simulated caller has assumed."""


@dataclass
class Resource:
    """One thing that exists in the account (or in a Kubernetes cluster of it)."""

    type: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    region: str = ""
    cluster: str = ""
    """The EKS cluster's name, for what lives inside Kubernetes."""
    urn: str = ""
    """The program's resource; empty for what a service or a controller made by itself, `world` for what a world file says exists."""

    def get(self, path: str, default: Any = None) -> Any:
        """One output by dotted path (`accessConfig.authenticationMode`)."""
        value: Any = self.outputs
        for key in path.split("."):
            if not isinstance(value, Mapping) or value.get(key) is None:
                return default
            value = value[key]
        return value


def _read(fields: Any) -> Resource:
    """A resource as the file has it. Raises `TypeError`."""
    if not all(isinstance(fields[name], dict) for name in ("inputs", "outputs")):
        raise TypeError(fields)
    return Resource(**fields)


class AccountDamaged(ValueError):
    """The account's file is not what a rehearsal wrote; the message names it and the way out."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged, so what the rehearsal made is not known ({why}): `dpd rehearse --reset` forgets the project's rehearsals "
            "and begins with nothing"
        )


class SimulatedAccount:
    """An AWS account that lives in memory, and in the JSON file at `path` when one is given.

    `world` bounds it: quotas, capacity, what exists already. The account persists between runs, the world is what it was given this time.
    Raises `AccountDamaged` where the file is not what an account wrote.

    `dependencies_preinstalled` says that HyperPod's dependency chart is already on every EKS cluster,
    `operator_preinstalled` that a new HyperPod cluster brings the inference operator's add-on (True), does not (False), or does if the
    program asks for an add-on that it has not made itself (None, the default). `fail_on` takes `Failure`s, or an
    integer N: the Nth create of this account object fails once.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        world: World | None = None,
        dependencies_preinstalled: bool = False,
        operator_preinstalled: bool | None = None,
        fail_on: int | Failure | Iterable[int | Failure] = (),
        operator: OperatorBehaviour | None = None,
    ) -> None:
        self.path = path
        self.dependencies_preinstalled = dependencies_preinstalled
        self.operator_preinstalled = operator_preinstalled
        self.operator = operator or OperatorBehaviour()
        self.world = world or World.default()
        self.journal: list[Operation] = []
        self.refusals: list[Refusal] = []
        self.warnings: list[tuple[str, str]] = []
        """URN and text of what the simulated services warned of."""
        self.number = ACCOUNT_ID
        """The twelve-digit account number."""
        self.deployer = ""
        """The ARN of whoever deploys, where it is another than the account's own `rehearsal-deployer`."""
        self.lock = threading.RLock()
        faults = [fail_on] if isinstance(fail_on, int | Failure) else list(fail_on)
        self.failures = [Failure(skip=fault - 1) if isinstance(fault, int) else fault for fault in faults]
        self._resources: dict[tuple[str, str, str, str], Resource] = {}
        self._serial = 0
        if path is not None and path.exists():
            self._load(path)
        self._put_existing()

    # Identity

    @property
    def id(self) -> str:
        """The twelve-digit account number."""
        return self.number

    @property
    def deployer_role_arn(self) -> str:
        """The IAM role behind the simulated caller."""
        return self.deployer or f"arn:aws:iam::{self.number}:role/{DEPLOYER_ROLE}"

    @property
    def caller_arn(self) -> str:
        """The session that makes the calls."""
        if ":role/" not in self.deployer_role_arn:
            return self.deployer_role_arn
        return f"arn:aws:sts::{self.number}:assumed-role/{self.deployer_role_arn.rsplit('/', 1)[-1]}/session"

    def hex(self, prefix: str, *seed: str, length: int = 17) -> str:
        """A new id such as `vpc-0f3a…`: stable for the same history of the account, never given twice."""
        self._serial += 1
        digest = hashlib.sha256("/".join((prefix, *seed, str(self._serial))).encode()).hexdigest()
        return f"{prefix}-{digest[:length]}" if prefix else digest[:length]

    # What exists

    def find(self, token: str, id: str, *, region: str = "", cluster: str = "") -> Resource | None:
        """The resource with this id, if it exists."""
        return self._resources.get((token, region, cluster, id))

    def all(self, *tokens: str, **outputs: Any) -> list[Resource]:
        """Every resource of these types whose outputs have these values."""
        return [
            resource
            for resource in self
            if resource.type in tokens and all(resource.outputs.get(key) == value for key, value in outputs.items())
        ]

    def first(self, token: str, **outputs: Any) -> Resource | None:
        """One resource of that type whose outputs have these values, if there is one."""
        found = self.all(token, **outputs)
        return found[0] if found else None

    def in_cluster(self, cluster: str, token: str | None = None) -> list[Resource]:
        """What lives in one EKS cluster's Kubernetes."""
        return [item for item in self if item.cluster == cluster and token in (None, item.type)]

    def __iter__(self) -> Iterator[Resource]:
        # Providers are configured while resources are made: what is there now, not what comes meanwhile.
        return iter(list(self._resources.values()))

    def __bool__(self) -> bool:
        return True  # an empty account is an account

    def __len__(self) -> int:
        return len(self._resources)

    # What changes

    def add(self, resource: Resource) -> None:
        """Let it exist from now on. Raises `SimulatedError` if something has that id already."""
        key = (resource.type, resource.region, resource.cluster, resource.id)
        if key in self._resources:
            raise SimulatedError(whose(rules.ONE_OF_AN_ID(token=resource.type, id=resource.id), self._resources[key], resource.urn, self))
        self._resources[key] = resource
        self.save()

    def remove(self, resource: Resource) -> None:
        """Let it be gone, as if somebody had deleted it."""
        self._resources.pop((resource.type, resource.region, resource.cluster, resource.id), None)
        self.save()

    def strike(self, action: Action, token: str, urn: str) -> Failure | None:
        """Raise the injected fault that this call meets, if any; a fault that leaves the resource half made is handed back instead."""
        struck = [failure for failure in self.failures if failure.strikes(action, token, urn)]
        if struck and not (struck[0].half_made and action == "create"):
            raise SimulatedError(rules.INJECTED(message=struck[0].message))
        return struck[0] if struck else None

    @contextmanager
    def operation(self, action: Action, token: str, urn: str) -> Iterator[tuple[list[str], Failure | None]]:
        """One changing call: holds the account's lock, meets injected faults, and is written down in the journal when it succeeds.

        Yields a list, whose last id is the one that the journal names, and the fault that leaves a new resource half made, if any.
        """
        with self.lock:
            ids: list[str] = []
            try:
                yield ids, self.strike(action, token, urn)
            except SimulatedError as error:
                self.refuse(action, token, urn, error)
                raise
            self.journal.append(Operation(action, token, urn, ids[-1] if ids else ""))
            self.save()

    def refuse(self, action: Action, token: str, urn: str, error: SimulatedError) -> None:
        """Write down that a call was refused."""
        broken = ("", "") if error.rule is rules.INJECTED else (error.rule.name, str(error.rule.source))
        self.refusals.append(Refusal(action, token, urn, str(error), *broken))

    def fork(self, *, without: Collection[str] = (), fail_on: Iterable[Failure] = ()) -> SimulatedAccount:
        """A copy in memory that goes its own way, without what these URNs made, with faults of its own and nothing in its journal."""
        other = copy.copy(self)
        other.path, other.lock, other.journal, other.failures = None, threading.RLock(), [], list(fail_on)
        other.refusals, other.warnings = [], []
        kept = {key: item for key, item in self._resources.items() if item.urn not in without or not item.urn}
        other._resources = copy.deepcopy(kept)  # noqa: SLF001 - of its own class
        return other

    # The file

    def save(self) -> None:
        """Write the account to its file, atomically; without a file nothing happens."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "version": 1,
            "serial": self._serial,
            "number": self.number,
            "deployer": self.deployer,
            "resources": [vars(resource) for resource in self._resources.values()],
        }
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f"{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(state, file)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _load(self, path: Path) -> None:
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            self._serial = int(state["serial"])
            self.number, self.deployer = str(state.get("number", ACCOUNT_ID)), str(state.get("deployer", ""))
            for fields in state["resources"]:
                resource = _read(fields)
                self._resources[(resource.type, resource.region, resource.cluster, resource.id)] = resource
        except OSError as error:
            raise AccountDamaged(path, error.strerror or str(error)) from None
        except json.JSONDecodeError as error:
            raise AccountDamaged(path, f"no JSON: {error}") from None
        except (ValueError, TypeError, AttributeError, KeyError):
            raise AccountDamaged(path, "JSON, but not an account") from None

    def _put_existing(self) -> None:
        from dpd_infra.rehearsal.world.existing import put_existing  # noqa: PLC0415 - it makes resources of this account

        put_existing(self, self.world.existing)
