"""What a simulated resource type is: its name, how it differs, what it answers, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.diff import DEFAULTS_KEY
from dpd_infra.rehearsal.holders import whose
from dpd_infra.rehearsal.urn import name_of
from dpd_infra.rehearsal.world.rule import Said


@dataclass
class Call:
    """One request of the engine about one resource. `inputs` are plain: secrets are opened, and none is unknown outside a preview."""

    account: SimulatedAccount
    settings: Mapping[str, Any]
    """The provider's own configuration, plain."""
    token: str
    urn: str
    inputs: Mapping[str, Any]
    id: str = ""
    record: Resource | None = None
    """What exists in the account; None before the create."""
    timeout: float = 0
    """Seconds the program allows; 0 where it says nothing."""
    tell: Callable[[str], None] | None = None
    """Where warnings about the resource go."""

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return name_of(self.urn)

    @property
    def region(self) -> str:
        """The AWS region: of the resource if it names one, else of its provider."""
        return str(self.inputs.get("region") or self.settings.get("region") or "")

    def arn(self, service: str, path: str, *, region: bool = True) -> str:
        """An ARN in the simulated account."""
        return f"arn:aws:{service}:{self.region if region else ''}:{self.account.id}:{path}"

    def text(self, path: str, default: str = "") -> str:
        """One input by dotted path, as text."""
        value: Any = self.inputs
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return default if value is None else str(value)

    def taken(self, said: Said, holder: Resource | None) -> Said:
        """The refusal of what is taken, with whose it is where another stack of the account has it."""
        return whose(said, holder, self.urn, self.account)

    def warn(self, text: str) -> None:
        """Say what the real provider or service would warn of, without failing."""
        self.account.warnings.append((self.urn, text))
        if self.tell is not None:
            self.tell(text)

    def now(self) -> Mapping[str, Any]:
        """The outputs as they stand in the account."""
        return self.record.outputs if self.record else {}


@dataclass(frozen=True)
class Made:
    """What a create answers: the id and the outputs that the service computes."""

    id: str
    outputs: Mapping[str, Any] = field(default_factory=dict)


class ResourceType:
    """The simulation of one resource type. Subclasses override what the real service does beyond remembering its inputs."""

    token: str = ""
    replace_on: ClassVar[tuple[str, ...]] = ()
    """Dotted input paths whose change forces a replacement, beside those that the provider's schema publishes (world/replacements.py)."""
    delete_before_replace: ClassVar[bool] = False
    unordered: ClassVar[tuple[str, ...]] = ()
    """Dotted paths of arrays whose order means nothing."""
    autoname: ClassVar[str | None] = None
    """The input that the provider fills with the resource's name and a random suffix when it is left out."""
    unknown_inside: ClassVar[tuple[str, ...]] = ()
    """Dotted paths, below an input, that only exist after the create: unknown in its preview."""
    volatile: ClassVar[tuple[str, ...]] = ()
    """Outputs that any update changes: unknown in its preview."""
    regional: ClassVar[bool] = True
    """Whether ids are unique per region only."""

    def check(self, call: Call) -> Mapping[str, Said]:
        """Problems found before anything is made, by property."""
        return {}

    def create(self, call: Call) -> Made:
        """Make it. Raises `SimulatedError` where the service would refuse."""
        raise NotImplementedError

    def update(self, call: Call) -> Mapping[str, Any]:
        """Change it; answers the outputs that the service computes anew (none, unless overridden)."""
        return {}

    def read(self, call: Call) -> Mapping[str, Any]:
        """Outputs that changed by themselves since they were last written (none, unless overridden)."""
        return {}

    def delete(self, call: Call) -> None:
        """Refuse, by raising, where the service would; the record is removed afterwards."""

    def extra_replaces(self, call: Call, old: Mapping[str, Any]) -> tuple[str, ...]:
        """Input paths that force a replacement for this particular change."""
        return ()

    def delete_first(self, call: Call, old: Mapping[str, Any]) -> bool:
        """Whether a replacement deletes before it creates: always for some types, else where a name that was given stays the same."""
        if self.delete_before_replace:
            return True
        name = self.autoname
        if name is None or name in (call.inputs.get(DEFAULTS_KEY) or []):
            return False
        return name in call.inputs and call.inputs[name] == old.get(name)

    def scope(self, call: Call) -> str:
        """The EKS cluster whose Kubernetes the resource lives in; empty for AWS's own."""
        return ""


Invoke = Callable[[SimulatedAccount, Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
"""A data source: account, provider settings, arguments -> result."""
