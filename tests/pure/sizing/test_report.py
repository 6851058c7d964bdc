"""A report carries unit, confidence, formula, source and working with every number, and says what it leaves out."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import MODELS, find_model
from dpd_infra.catalog.prices import PriceList
from dpd_infra.catalog.sources import Confidence, Source
from dpd_infra.plan.sizing.buffer import chunk_bytes
from dpd_infra.plan.sizing.quantity import Unit, human
from dpd_infra.plan.sizing.report import size_endpoint
from dpd_infra.plan.sizing.serving import RoleFlags, Serving
from dpd_infra.plan.sizing.workload import Lengths, Workload

LOAD = Workload(Lengths.constant(4096), Lengths.constant(256), requests_per_second=3)
PRICES = PriceList("2026-11-01", Source("contract", "contract"), {"ml.p5.48xlarge": 60.0})


def serving(
    name: str = "Llama-3.3-70B-Instruct", instance: str = "ml.p5.48xlarge", max_model_len: int = 16_384, buffer_gib: float = 8
) -> Serving:
    model = find_model(name)
    assert model is not None
    return Serving(model, INSTANCE_TYPES[instance], max_model_len, pd_buffer_bytes=int(buffer_gib * 1024**3))


def test_every_quantity_has_unit_confidence_formula_and_source() -> None:
    report = size_endpoint(serving(), LOAD, PRICES)
    quantities = [each for section in report.sections for each in section.quantities]
    assert len(quantities) > 35
    for each in quantities:
        assert isinstance(each.unit, Unit)
        assert isinstance(each.confidence, Confidence)
        assert each.formula
        assert each.sources or each.confidence is Confidence.PUBLISHED
        assert each.heading in each.explain()


def test_the_names_of_quantities_carry_their_unit_or_say_what_they_count() -> None:
    report = size_endpoint(serving(), LOAD, PRICES)
    words = {
        Unit.BYTES: "bytes",
        Unit.SECONDS: "seconds",
        Unit.TOKENS: "tokens",
        Unit.CHUNKS: "chunks",
        Unit.REQUESTS: "requests",
        Unit.REPLICAS: "replicas",
        Unit.REQUESTS_PER_SECOND: "rate",
    }
    for section in report.sections:
        for each in section.quantities:
            assert words.get(each.unit, "") in each.name, each.name


def test_the_working_shows_what_went_in() -> None:
    model = serving().model
    text = chunk_bytes.quantity(model, 8).explain()
    assert "kv_bytes_per_token = 40,960" in text
    assert "chunk_tokens = 256" in text
    assert "10,485,760 bytes = 10.00 MiB (exact)" in text
    assert "LMCache" in text


def test_the_report_is_plain_data() -> None:
    data = json.loads(json.dumps(size_endpoint(serving(), LOAD, PRICES).to_dict()))
    values = {(section["title"], each["name"]): each["value"] for section in data["sections"] for each in section["quantities"]}
    assert values["KV cache, each rank", "kv_bytes_per_token"] == 40_960
    assert values["Cost", "cost_per_hour"] == 120
    assert data["not_modelled"] == []


def test_without_a_price_the_report_says_so_and_shows_no_cost() -> None:
    report = size_endpoint(serving(), LOAD)
    assert report.quantity("cost_per_hour") is None
    assert any("no price of ml.p5.48xlarge is known" in text for text in report.not_modelled)


def test_what_is_not_modelled_is_named_and_the_rest_is_there() -> None:
    model = find_model("Qwen/Qwen3-32B-FP8")
    assert model is not None
    report = size_endpoint(Serving(model, INSTANCE_TYPES["ml.p5.48xlarge"], 16_384), LOAD, PRICES)
    assert any("block-scaled fp8" in text for text in report.not_modelled)
    assert report.quantity("kv_bytes_per_token") is not None
    assert report.quantity("prefill_seconds") is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"buffer_gib": 32}, "the PD buffer does not fit beside vLLM's share"),
        ({"buffer_gib": 16}, "stay free beside vLLM's share"),
        ({"buffer_gib": 0.5}, "smaller than one prompt of max-model-len"),
        ({"buffer_gib": 8}, "worst case only"),
        ({"name": "Llama-3.1-405B-Instruct"}, "weights and activations do not fit"),
        ({"name": "Mistral-Large-Instruct-2407", "max_model_len": 1_000_000}, "fewer than max-model-len"),
    ],
)
def test_what_does_not_fit_is_said(changes: dict[str, object], problem: str) -> None:
    report = size_endpoint(serving(**changes))  # type: ignore[arg-type]
    assert any(problem in text for text in report.problems), report.problems


def test_a_set_up_that_fits_has_no_problem() -> None:
    model = find_model("Llama-3.3-70B-Instruct")
    assert model is not None
    fits = Serving(model, INSTANCE_TYPES["ml.p5en.48xlarge"], 16_384, pd_buffer_bytes=8 * 1024**3, prefill=RoleFlags(8))
    assert size_endpoint(fits, LOAD).problems == ()


@pytest.mark.parametrize("instance", [name for name, kind in INSTANCE_TYPES.items() if kind.dpd])
def test_every_model_of_the_catalog_is_sized_on_every_node_that_dpd_supports(instance: str) -> None:
    for shape, _ in MODELS:
        report = size_endpoint(Serving(shape, INSTANCE_TYPES[instance], 16_384), LOAD)
        assert report.quantity("prefill_seconds") is not None, shape.name


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (10_485_760, Unit.BYTES, "10.00 MiB"),
        (512, Unit.BYTES, "512 B"),
        (8 * 1024**3, Unit.BYTES, "8.00 GiB"),
        (0.0065536, Unit.SECONDS, "6.55 ms"),
        (3.25, Unit.SECONDS, "3.25 s"),
        (1235.4, Unit.TOKENS_PER_SECOND, "1,235 tokens/s"),
        (34, Unit.REQUESTS, "34 requests"),
        (1.742, Unit.RATIO, "1.74"),
    ],
)
def test_numbers_are_written_for_people(value: float, unit: Unit, text: str) -> None:
    assert human(value, unit) == text


@pytest.mark.parametrize(
    "changes",
    [
        {"tensor_parallel_size": 16},
        {"tensor_parallel_size": 3},
        {"max_model_len": 0},
        {"prefillers": 0},
        {"instance": INSTANCE_TYPES["ml.c5.4xlarge"]},
    ],
)
def test_a_serving_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    values: dict[str, object] = {"model": serving().model, "instance": INSTANCE_TYPES["ml.p5.48xlarge"], "max_model_len": 16_384}
    with pytest.raises(ValueError, match=r"GPUs|ranks|at least|tensor_parallel_size"):
        Serving(**(values | changes))  # type: ignore[arg-type]


def test_sizing_imports_neither_pulumi_nor_numpy_nor_pydantic() -> None:
    code = (
        "import sys, dpd_infra.plan.sizing.report; print([m for m in ('pulumi', 'numpy', 'pydantic', 'yaml', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
