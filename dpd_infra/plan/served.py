"""What is served, as a manifest says it: the names of its model, how its weights and its KV cache are held."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dpd_infra.catalog.models import KvFormat, ModelShape, WeightFormat, find_model
from dpd_infra.plan.worker_args import WorkerArgs
from dpd_infra.spec.finding import Path
from dpd_infra.spec.values import mapping


def model_names(body: Mapping[str, Any]) -> tuple[tuple[str, Path], ...]:
    """What the model may be known by, the name of its files first, each with its place. `body`: the resource's `spec`."""
    source: Path = ("spec", "modelSourceConfig")
    config = mapping(body.get("modelSourceConfig"))
    found: list[tuple[Any, Path]] = [
        (mapping(config.get("huggingFaceModel")).get("modelId"), (*source, "huggingFaceModel", "modelId")),
        (config.get("modelLocation"), (*source, "modelLocation")),
        (body.get("modelName"), ("spec", "modelName")),
    ]
    texts = [(name.strip("/") if path[-1] == "modelLocation" else name, path) for name, path in found if isinstance(name, str)]
    return tuple((name, path) for name, path in texts if name)


def model_by_name(names: tuple[tuple[str, Path], ...]) -> ModelShape | None:
    """The first that the catalog holds."""
    return next((shape for name, _ in names if (shape := _found(name)) is not None), None)


def model_as_served(model: ModelShape | None, args: WorkerArgs) -> ModelShape | None:
    """The model as a server holds it: `--quantization` and `--dtype` considered; None where they make it unknown."""
    said = (args.text("quantization") or "").lower()
    if model is None or (args.text("dtype") or "auto").lower() in {"float", "float32"}:
        return None
    if said == "fp8":
        return model.with_weights(WeightFormat.FP8)
    return model if not said else None


def kv_format(args: WorkerArgs) -> KvFormat | None:
    """How the KV cache is held; None for a format that sizing does not know."""
    said = (args.text("kv-cache-dtype") or "auto").lower()
    if said in {"auto", "bfloat16", "float16"}:
        return KvFormat.BF16
    return KvFormat.FP8 if said.startswith("fp8") else None


@lru_cache(maxsize=1024)
def _found(name: str) -> ModelShape | None:
    return find_model(name)
