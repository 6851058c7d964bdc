"""The wire format between engine and provider: protobuf structs to plain values and back, with secrets and unknowns kept apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import struct_pb2

# Signatures of Pulumi's property format (pulumi.runtime.rpc, pulumi 3.272).
SIGNATURE_KEY: Final = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a format marker
ASSET_SIGNATURE: Final = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE_SIGNATURE: Final = "0def7320c3a5731c473e5ecbe6d01bc7"
RESOURCE_SIGNATURE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT_SIGNATURE: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Unknown:
    """A value that is not known before the update runs. There is one: `UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Secret:
    """A value the engine marked secret; its text form never shows it."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, text or archive as the engine sends it: the hash of its content tells whether it changed."""

    fields: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """The engine's SHA-256 of the content."""
        return str(self.fields.get("hash", ""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asset) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)


def decode(struct: struct_pb2.Struct) -> dict[str, Any]:
    """The properties of a message, with `Secret`, `Asset` and `UNKNOWN` in place of their signatures."""
    return {key: _decode(value) for key, value in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value == UNKNOWN_TEXT else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _decode_struct(value.struct_value)
    return None


def _decode_struct(struct: struct_pb2.Struct) -> Any:
    signature = struct.fields[SIGNATURE_KEY].string_value if SIGNATURE_KEY in struct.fields else ""
    if not signature:
        return decode(struct)
    fields = {key: value for key, value in struct.fields.items() if key != SIGNATURE_KEY}
    if signature == SECRET_SIGNATURE:
        return Secret(_decode(fields["value"]))
    if signature == OUTPUT_SIGNATURE:
        inner = _decode(fields["value"]) if "value" in fields else UNKNOWN
        return Secret(inner) if "secret" in fields and fields["secret"].bool_value else inner
    if signature == RESOURCE_SIGNATURE:
        return _decode(fields["id"]) if "id" in fields else fields["urn"].string_value
    return Asset({SIGNATURE_KEY: signature, **{key: _decode(value) for key, value in fields.items()}})


def encode(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """The reverse of `decode`."""
    return struct_pb2.Struct(fields={key: _encode(value) for key, value in values.items()})


def _encode(value: Any) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, Unknown):
        return struct_pb2.Value(string_value=UNKNOWN_TEXT)
    if isinstance(value, Secret):
        return struct_pb2.Value(struct_value=encode({SIGNATURE_KEY: SECRET_SIGNATURE, "value": value.value}))
    if isinstance(value, Asset):
        return struct_pb2.Value(struct_value=encode(value.fields))
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=encode(value))
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_encode(item) for item in value]))


def _rebuild(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _rebuild(item, leaf) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rebuild(item, leaf) for item in value]
    return leaf(value)


def reveal(value: Any) -> Any:
    """The value with every `Secret` opened, however deep."""
    return _rebuild(value, lambda leaf: reveal(leaf.value) if isinstance(leaf, Secret) else leaf)


def conceal(value: Any) -> Any:
    """The value as it may be kept in a file: secrets become a digest, assets their hash, unknowns a word."""

    def leaf(item: Any) -> Any:
        if isinstance(item, Secret):
            text = json.dumps(conceal(item.value), sort_keys=True, default=str)
            return f"[secret sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}]"
        if isinstance(item, Asset):
            return f"[asset {item.hash[:16]}]"
        return "[unknown]" if isinstance(item, Unknown) else item

    return _rebuild(value, leaf)


def has_unknown(value: Any) -> bool:
    """Whether an unknown hides anywhere in the value."""
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(has_unknown(item) for item in value)
    return isinstance(value, Unknown)


def has_secret(value: Any) -> bool:
    """Whether a secret hides anywhere in the value."""
    if isinstance(value, Mapping):
        return any(has_secret(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(has_secret(item) for item in value)
    return isinstance(value, Secret)


def overlay(base: Any, extra: Any) -> Any:
    """`base` with `extra` laid over it: mappings are merged key by key and keep their secrets, anything else is replaced."""
    if isinstance(base, Secret):
        return Secret(overlay(base.value, extra))
    if isinstance(base, Mapping) and isinstance(extra, Mapping):
        merged = dict(base)
        for key, value in extra.items():
            merged[key] = overlay(base[key], value) if key in base else value
        return merged
    return extra
