"""Between the engine's protocol and plain data: what a request holds, and what an answer is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2
from pulumi.runtime import rpc

from dpd_infra.testing.answers import SecretValue
from dpd_infra.testing.recording import UNKNOWN, Recorded, Unknown

# The SDK's own names of the marks that stand in its messages; they are part of the engine's protocol.
_MARK = rpc._special_sig_key  # noqa: SLF001
_SECRET = rpc._special_secret_sig  # noqa: SLF001
_RESOURCE = rpc._special_resource_sig  # noqa: SLF001

STACK_TYPE = "pulumi:pulumi:Stack"

_TIMEOUTS = ("create", "update", "delete")


def plain_struct(message: struct_pb2.Struct) -> tuple[dict[str, Any], frozenset[str]]:
    """A message as plain data, and the dotted paths of what was secret in it."""
    secrets: set[str] = set()
    return {key: _plain(value, key, secrets) for key, value in message.fields.items()}, frozenset(secrets)


def _plain(value: struct_pb2.Value, path: str, secrets: set[str]) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value == rpc.UNKNOWN else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_plain(item, f"{path}[{index}]", secrets) for index, item in enumerate(value.list_value.values)]
    if kind == "struct_value":
        return _plain_object(value.struct_value, path, secrets)
    return None


def _plain_object(message: struct_pb2.Struct, path: str, secrets: set[str]) -> Any:
    fields = message.fields
    mark = fields[_MARK].string_value if _MARK in fields else ""
    if mark == _SECRET:
        secrets.add(path)
        return _plain(fields["value"], path, secrets)
    if mark == _RESOURCE:
        return fields["urn"].string_value
    # Assets and archives carry a mark too: what is left of them is the path, the text or the parts.
    return {key: _plain(value, f"{path}.{key}", secrets) for key, value in fields.items() if key != _MARK}


def wire_value(value: Any) -> Any:
    """Plain data with `UNKNOWN` and `secret(...)` in it, as a message takes it."""
    if isinstance(value, Unknown):
        return rpc.UNKNOWN
    if isinstance(value, SecretValue):
        return {_MARK: _SECRET, "value": wire_value(value.value)}
    if isinstance(value, Mapping):
        return {str(key): wire_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [wire_value(part) for part in value]
    return value


def reference(urn: str, identity: str) -> dict[str, str]:
    """A resource as a value: the SDK asks for the rest."""
    return {_MARK: _RESOURCE, "urn": urn, "id": identity}


def recorded(request: Any, urn: str, prefix: str) -> Recorded:
    """A registration as plain data; `prefix` begins every URN of the stack."""
    inputs, secrets = plain_struct(request.object)
    timeouts = request.customTimeouts
    return Recorded(
        type=request.type,
        name=request.name,
        urn=urn,
        custom=request.custom,
        inputs=inputs,
        secrets=secrets,
        parent=_parent(request.parent),
        provider=_provider_urn(request.provider),
        providers={package: _provider_urn(reference) for package, reference in request.providers.items()},
        protect=request.protect if request.HasField("protect") else None,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={key: tuple(sorted(value.urns)) for key, value in request.propertyDependencies.items()},
        timeouts={key: getattr(timeouts, key) for key in _TIMEOUTS if getattr(timeouts, key)},
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
        deleted_with=request.deletedWith,
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        aliases=(*(_alias(alias, request, prefix) for alias in request.aliases), *request.aliasURNs),
        import_id=request.importId,
        hooks=_hooks(request.hooks),
        version=request.version,
        replacement_trigger=_plain(request.replacement_trigger, "", set()),
    )


def recorded_read(request: Any, urn: str) -> Recorded:
    """A read of an existing resource as plain data."""
    inputs, secrets = plain_struct(request.properties)
    return Recorded(
        type=request.type,
        name=request.name,
        urn=urn,
        custom=True,
        inputs=inputs,
        secrets=secrets,
        parent=_parent(request.parent),
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
        version=request.version,
        read=True,
    )


def make_urn(prefix: str, parent: str, type_: str, name: str) -> str:
    """A URN as the engine makes it: the types of all ancestors but the stack. `prefix` is `urn:pulumi:<stack>::<project>`."""
    ancestors = parent.split("::")[2] if _parent(parent) else ""
    return f"{prefix}::{ancestors + '$' if ancestors else ''}{type_}::{name}"


def _parent(urn: str) -> str:
    return "" if f"::{STACK_TYPE}::" in urn else urn


def _provider_urn(reference: str) -> str:
    """A provider reference is `<urn>::<id>`."""
    return reference.rsplit("::", 1)[0] if reference else ""


def _alias(alias: Any, request: Any, prefix: str) -> str:
    """An alias as the URN that it stands for: what it leaves out is as the resource has it."""
    if alias.urn:
        return alias.urn
    spec = alias.spec
    _, _, stack, project = prefix.replace("::", ":").split(":", 3)
    old = f"urn:pulumi:{spec.stack or stack}::{spec.project or project}"
    parent = "" if spec.noParent else spec.parentUrn or request.parent
    return make_urn(old, parent, spec.type or request.type, spec.name or request.name)


def _hooks(binding: Any) -> dict[str, tuple[str, ...]]:
    return {_camel(field.name): tuple(names) for field, names in binding.ListFields()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
