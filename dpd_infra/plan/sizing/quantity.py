"""A number with all that makes it checkable: unit, confidence, formula, source and the values that went in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, update_wrapper
from math import isfinite
from typing import Any, Generic, ParamSpec, TypeVar

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import ModelShape
from dpd_infra.catalog.sources import Confidence, Source

P = ParamSpec("P")
R = TypeVar("R", int, float)

KIB, MIB, GIB = 1024, 1024**2, 1024**3


class Unit(StrEnum):
    """What a number counts. Functions and fields carry the same word in their names."""

    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    TOKENS = "tokens"
    TOKENS_PER_SECOND = "tokens/s"
    CHUNKS = "chunks"
    REQUESTS = "requests"
    REQUESTS_PER_SECOND = "requests/s"
    SECONDS = "s"
    REPLICAS = "replicas"
    RATIO = ""
    DOLLARS_PER_HOUR = "USD/h"
    DOLLARS_PER_MILLION_TOKENS = "USD per million output tokens"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of a report."""

    name: str
    value: float
    unit: Unit
    confidence: Confidence
    formula: str
    sources: tuple[Source, ...]
    working: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The values that went into the formula, by their names in it."""
    note: str = ""
    """Where the number holds, or why it differs from a published one."""
    label: str = ""
    """Of what, where a report holds the same formula more than once: `prompt of 4,096 tokens`."""

    @property
    def heading(self) -> str:
        """Name and label."""
        return f"{self.name} ({self.label})" if self.label else self.name

    @property
    def text(self) -> str:
        """The value for people: bytes as KiB, MiB or GiB, seconds as ms below one second."""
        return human(self.value, self.unit)

    def explain(self) -> str:
        """The working in one paragraph: formula, values, result, confidence and source."""
        values = ", ".join(f"{key} = {_plain(value)}" for key, value in self.working.items())
        lines = [
            f"{self.heading} = {self.formula}",
            f"  with {values}" if values else "",
            f"  = {self._exactly()} ({self.confidence})",
            f"  {self.note}" if self.note else "",
        ]
        return "\n".join([line for line in lines if line] + [f"  source: {source}" for source in self.sources])

    def to_dict(self) -> dict[str, Any]:
        """The quantity as plain data for `--json`."""
        return {
            "name": self.name,
            "label": self.label,
            "value": self.value,
            "unit": self.unit.value,
            "confidence": self.confidence.value,
            "formula": self.formula,
            "working": {key: _plain(value) for key, value in self.working.items()},
            "sources": [str(source) for source in self.sources],
            "note": self.note,
        }

    def _exactly(self) -> str:
        if self.unit is Unit.BYTES:
            return f"{self.value:,.0f} bytes" + (f" = {self.text}" if self.value >= KIB else "")
        return self.text


class Formula(Generic[P, R]):
    """A function with its formula in words: call it for the value, or `.quantity(...)` for the value with all that stands behind it."""

    def __init__(self, function: Callable[P, R], text: str | Callable[P, str], meaning: _Meaning) -> None:
        self._function, self._text, self._meaning = function, text, meaning
        update_wrapper(self, function)
        _FORMULAS[getattr(function, "__name__", "")] = self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The value; raises ValueError for inputs outside what the formula is valid for."""
        return self._function(*args, **kwargs)

    def quantity(self, *args: P.args, **kwargs: P.kwargs) -> Quantity:
        """The value as a `Quantity`; raises what the function raises."""
        value = self._function(*args, **kwargs)
        text = self._text if isinstance(self._text, str) else self._text(*args, **kwargs)
        meaning = self._meaning

        def worked() -> dict[str, Any]:
            working = _working(self._function, text, args, kwargs)
            return working | meaning.parts(*args, **kwargs) if meaning.parts else working

        name = getattr(self._function, "__name__", "")
        return Quantity(name, value, meaning.unit, meaning.confidence, text, meaning.sources, _Working(worked), meaning.note)


class _Working(Mapping[str, Any]):
    """The values behind a number, gathered when somebody looks at them: a preview's short form never does."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _values(self) -> dict[str, Any]:
        return self._make()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class _Meaning:
    unit: Unit
    confidence: Confidence
    sources: tuple[Source, ...]
    note: str
    parts: Callable[..., dict[str, Any]] | None


def formula(
    text: str | Callable[P, str],
    unit: Unit,
    confidence: Confidence,
    *sources: Source,
    note: str = "",
    parts: Callable[P, dict[str, Any]] | None = None,
) -> Callable[[Callable[P, R]], Formula[P, R]]:
    """Attach its formula to a function: the text uses its parameters' names and the symbols of a model (L, H_q, H_kv, d, N) and GPU.

    `parts` gives further values for the working: what the formula went through on its way.
    """

    def attach(function: Callable[P, R]) -> Formula[P, R]:
        return Formula(function, text, _Meaning(unit, confidence, sources, note, parts))

    return attach


def human(value: float, unit: Unit) -> str:
    """A value for people."""
    if unit is Unit.BYTES or unit is Unit.BYTES_PER_SECOND:
        tail = "/s" if unit is Unit.BYTES_PER_SECOND else ""
        for size, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
            if abs(value) >= size:
                return f"{value / size:,.2f} {name}{tail}"
        return f"{value:,.0f} B{tail}"
    if unit is Unit.SECONDS:
        return f"{value:,.2f} s" if abs(value) >= 1 else f"{value * 1000:,.2f} ms"
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= KIB else f"{value:,.2f}"
    return f"{number} {unit}".rstrip()


def json_ready(data: Any) -> Any:
    """Plain data that JSON can hold: what is infinite becomes null."""
    if isinstance(data, dict):
        return {str(key): json_ready(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [json_ready(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def at_least(minimum: float, **values: float) -> None:
    """Refuse inputs outside what a formula is valid for: raises ValueError that names the first value below `minimum`."""
    for name, value in values.items():
        if not value >= minimum:
            raise ValueError(f"{name} is {value:,}, and must be at least {minimum:,}")


_FORMULAS: dict[str, Formula[..., Any]] = {}
"""Every formula by name: where the text of one names another, its value belongs to the working."""


def _symbols(value: object) -> dict[str, Any]:
    """The symbols that formula texts use for a model or a GPU."""
    if isinstance(value, Gpu):
        return {
            "HBM": value.memory_bytes,
            "hbm_bandwidth": value.memory_bandwidth_bytes_per_second,
            "bf16_flops": value.bf16_flops,
            "fp8_flops": value.fp8_flops,
        }
    if not isinstance(value, ModelShape):
        return {}
    symbols: dict[str, Any] = {
        "L": value.layers,
        "H_q": value.query_heads,
        "H_kv": value.kv_heads,
        "d": value.head_dim,
        "N": value.parameters,
        "N_active": value.active_parameters,
        "hidden_size": value.hidden_size,
        "weight_bytes": value.weight_bytes,
    }
    if value.latent:
        symbols |= {"kv_lora_rank": value.latent.kv_lora_rank, "qk_rope_head_dim": value.latent.qk_rope_head_dim}
    return symbols


def _working(function: Callable[..., Any], text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Each value the formula text names: parameters, symbols of the model and the GPU, and the values of other formulas."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
    working: dict[str, Any] = {}
    for name, value in given.items():
        symbols = _symbols(value)
        if symbols:
            working[name] = value
            working |= {word: symbols[word] for word in words if word in symbols}
        elif name in words or isinstance(value, StrEnum):
            working[name] = value
    for word in words:
        other = _FORMULAS.get(word)
        if other is None or word == getattr(function, "__name__", ""):
            continue
        parameters = inspect.signature(other).parameters
        if all(name in given or parameter.default is not inspect.Parameter.empty for name, parameter in parameters.items()):
            working[word] = other(**{name: given[name] for name in parameters if name in given})
    return working


def _plain(value: Any) -> Any:
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return getattr(value, "name", str(value))
