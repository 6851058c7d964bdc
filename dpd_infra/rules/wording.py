"""What a fix calls a setting: by its name in the manifest for a raw manifest, by the short form's for an endpoint of a stack file."""

from __future__ import annotations

from dpd_infra.plan.worker_args import Flag
from dpd_infra.render.provenance import OriginKind
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.finding import Path, pointer


def named(endpoint: EndpointSubject, raw: str, short: str, path: Path = ()) -> str:
    """A field's name where the user wrote it, or would: `path` is its place in the manifest, where an override may have put it."""
    if endpoint.spec is None:
        return raw
    origin = endpoint.rendered.provenance.origins.get(path)
    return raw if origin is not None and origin.kind is OriginKind.OVERRIDE else short


def buffer_size(endpoint: EndpointSubject) -> str:
    """The PD buffer's name."""
    variable = endpoint.reading.environment.get("PD_BUFFER_SIZE")
    return named(endpoint, "PD_BUFFER_SIZE", "cache.pdBufferBytes", variable.path if variable else ())


def as_flag(endpoint: EndpointSubject, flag: Flag | None, name: str, value: object) -> str:
    """A flag with a value as the user writes it: `--max-model-len 16384`, or `worker.maxModelLen: 16384` where there is a field for it."""
    origin = endpoint.rendered.provenance.origins.get(flag.path) if endpoint.spec is not None and flag is not None else None
    if origin is None or isinstance(origin.setting[-1], int) or origin.kind is OriginKind.OVERRIDE:
        return f"--{name} {value}"
    own = origin.setting[len(endpoint.rendered.context.path) :]
    return f"{pointer(own)}: {value}" if own and own[-1] != "args" else f"--{name} {value}"
