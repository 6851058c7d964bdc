"""What one run of a program registered, as plain data with the questions that tests ask of it."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.plan.tree import waits_for


class Unknown:
    """A value that a preview cannot know."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
"""The one value of its kind: compare with `is`."""


@dataclass(frozen=True)
class Recorded:
    """One registration: what the program asked the engine for."""

    type: str
    """The type token, `aws:ec2/vpc:Vpc`."""
    name: str
    urn: str
    custom: bool
    """True for what a provider manages, false for a component."""
    inputs: dict[str, Any]
    """By the provider's own (camelCase) names. Secrets are unwrapped, numbers without a fraction are int, unknown values are `UNKNOWN`, a
    resource is its URN, and an asset what it is made of."""
    secrets: frozenset[str]
    """Dotted paths of the inputs that were secret, `spec.containers[0].env`."""
    parent: str
    """The parent's URN; empty for a child of the stack."""
    provider: str
    """The URN of the explicit (or inherited) provider; empty for a default one."""
    providers: Mapping[str, str]
    """URNs of the providers that a component hands on to its children, by package."""
    protect: bool | None
    dependencies: tuple[str, ...]
    """URNs of everything it waits for, sorted: `depends_on` and what its inputs come from."""
    property_dependencies: Mapping[str, tuple[str, ...]]
    """By input: the URNs of what the value comes from."""
    timeouts: Mapping[str, str]
    """`create`, `update`, `delete`, where set."""
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    delete_before_replace: bool | None
    retain_on_delete: bool | None
    deleted_with: str
    """The URN of the resource whose deletion makes its own unnecessary; empty for none."""
    additional_secret_outputs: tuple[str, ...]
    aliases: tuple[str, ...]
    """The URNs it may have in the state from before."""
    import_id: str
    """The id to import, or of what was read; empty for none."""
    hooks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of resource hooks by event, `beforeCreate`."""
    version: str = ""
    """The provider plugin's version, where said."""
    replacement_trigger: Any = None
    """The value whose change replaces the resource, where said."""
    read: bool = False
    """True where an existing resource was only read."""

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"

    @property
    def kind(self) -> str:
        """The last part of the type: `Vpc`."""
        return self.type.rsplit(":", 1)[-1]


@dataclass
class Recording:
    """What one run of a program registered. Asking for a resource that is not there fails the test and says what there is."""

    preview: bool
    resources: list[Recorded] = field(default_factory=list)
    """In the order of registration; the stack itself is left out."""
    component_outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What `register_outputs` was given, by URN; secrets are unwrapped."""
    secret_component_outputs: dict[str, frozenset[str]] = field(default_factory=dict)
    """Dotted paths of those that were secret, by URN."""
    invokes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Token and arguments of every data source that was asked."""
    logs: list[tuple[str, str]] = field(default_factory=list)
    """Level name (`warning`) and message of every `pulumi.log` call."""
    returned: Any = None
    """What the program returned; a mapping of outputs is resolved, what is not known becomes `UNKNOWN`."""
    exports: dict[str, Any] = field(default_factory=dict)
    """The stack's outputs, resolved the same way."""
    secret_exports: frozenset[str] = frozenset()
    """Dotted paths of the stack's outputs that were secret."""
    error: BaseException | None = None
    """The expected error, where one was expected."""
    _by_urn: dict[str, Recorded] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<Recording of {'a preview' if self.preview else 'an update'}: {len(self.resources)} resources>"

    def __iter__(self) -> Iterator[Recorded]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    def __getitem__(self, urn: str) -> Recorded:
        if urn not in self._by_urn:
            raise KeyError(f"nothing was registered as {urn}{_near(urn, self._by_urn)}")
        return self._by_urn[urn]

    def __contains__(self, urn: object) -> bool:
        return urn in self._by_urn

    def add(self, resource: Recorded) -> None:
        """Keep a registration. Raises `ValueError` for a URN that is there already, in the engine's words."""
        if resource.urn in self._by_urn:
            raise ValueError(f"Duplicate resource URN '{resource.urn}'; try giving it a unique name")
        self._by_urn[resource.urn] = resource
        self.resources.append(resource)

    def of_type(self, type_: str) -> list[Recorded]:
        """Every resource of a type; the type may be shortened to its last part, `Subnet`. None is an empty list."""
        return [resource for resource in self.resources if type_ in (resource.type, resource.kind)]

    def named(self, name: str) -> Recorded:
        """The one resource with this name."""
        found = [resource for resource in self.resources if resource.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise AssertionError(f"{len(found)} resources are named {name!r}: {found}. Ask with `one(type, name)`.")
        names = list(dict.fromkeys(resource.name for resource in self.resources))
        raise AssertionError(f"no resource is named {name!r}{_near(name, names)}{self._so_far()}")

    def one(self, type_: str, name: str | None = None) -> Recorded:
        """The one resource of a type, and of a name where several have the type."""
        of_type = self.of_type(type_)
        found = [resource for resource in of_type if name in (None, resource.name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise AssertionError(f"{len(found)} resources are of type {type_}: {', '.join(r.name for r in found)}. Name one of them.")
        if of_type:
            near = _near(name or "", [resource.name for resource in of_type])
            raise AssertionError(f"no {type_} is named {name!r}{near}; there are {', '.join(r.name for r in of_type)}")
        types = list(dict.fromkeys([*(r.type for r in self.resources), *(r.kind for r in self.resources)]))
        raise AssertionError(f"no resource is of type {type_}{_near(type_, types)}{self._so_far()}")

    @property
    def custom(self) -> list[Recorded]:
        """Every resource that a provider manages."""
        return [resource for resource in self.resources if resource.custom]

    @property
    def components(self) -> list[Recorded]:
        """Every component."""
        return [resource for resource in self.resources if not resource.custom]

    def children(self, parent: Recorded) -> list[Recorded]:
        """The direct children of a component (or of a resource)."""
        return [resource for resource in self.resources if resource.parent == parent.urn]

    def warnings(self) -> list[str]:
        """What `pulumi.log.warn` was told."""
        return [message for level, message in self.logs if level == "warning"]

    def depends_path(self, a: Recorded, b: Recorded) -> list[Recorded] | None:
        """The shortest way from `a` to `b` along what the engine waits for, ends included; None where `a` may be made before `b`.

        A resource waits for its explicit and property dependencies, its provider and its parent, and so for what those wait for. A
        component that is asked about as `b` is reached by reaching itself; its children are resources of their own.
        """
        came_from: dict[str, str | None] = {a.urn: None}
        queue = deque([a.urn])
        while queue:
            urn = queue.popleft()
            if urn == b.urn and urn != a.urn:
                return [self[step] for step in _walk_back(came_from, urn)]
            for other in waits_for(self[urn]):
                if other in self and other not in came_from:
                    came_from[other] = urn
                    queue.append(other)
        return None

    def _so_far(self) -> str:
        kinds: dict[str, int] = {}
        for resource in self.resources:
            kinds[resource.kind] = kinds.get(resource.kind, 0) + 1
        if not kinds:
            return "; the program registered nothing"
        listed = ", ".join(f"{kind} x{count}" if count > 1 else kind for kind, count in sorted(kinds.items()))
        return f"; registered were {listed}"


def _walk_back(came_from: Mapping[str, str | None], urn: str) -> list[str]:
    path = [urn]
    while (step := came_from[path[-1]]) is not None:
        path.append(step)
    return path[::-1]


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"; near it are {', '.join(near)}" if near else ""
