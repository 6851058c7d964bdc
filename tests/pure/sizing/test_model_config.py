"""A shape read from a published config.json is the shape in the catalog, which the parameter counts prove."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import WeightFormat, find_model
from dpd_infra.plan.sizing.model_config import UnsupportedConfigError, model_from_config, read_model_config
from dpd_infra.plan.sizing.report import size_endpoint
from dpd_infra.plan.sizing.serving import Serving

CONFIGS = Path(__file__).with_name("configs")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("meta-llama--Meta-Llama-3.1-70B", "Llama-3.1-70B"),
        ("Qwen--Qwen3-32B-FP8", "Qwen/Qwen3-32B-FP8"),
        ("Qwen--Qwen3-235B-A22B", "Qwen3-235B-A22B"),
        ("mistralai--Mixtral-8x22B-v0.1", "Mixtral-8x22B"),
        ("deepseek-ai--DeepSeek-V3", "DeepSeek-V3"),
        ("moonshotai--Kimi-K2-Instruct", "Kimi-K2-Instruct"),
        ("openai--gpt-oss-120b", "gpt-oss-120b"),
    ],
)
def test_the_published_config_gives_the_shape_of_the_catalog(file: str, name: str) -> None:
    read, held = read_model_config(CONFIGS / f"{file}.json", "x"), find_model(name)
    assert held is not None
    assert replace(read, name=held.name, source=held.source) == held


def config(**changes: Any) -> dict[str, Any]:
    data = json.loads((CONFIGS / "meta-llama--Meta-Llama-3.1-70B.json").read_text())
    return data | changes


def test_qwen_2_5_has_biases_on_queries_keys_and_values() -> None:
    read = model_from_config(config(model_type="qwen2", intermediate_size=29_568, vocab_size=152_064), "x", "c")
    assert read.parameters == 72_706_203_648


def test_a_model_without_key_value_heads_is_multi_head() -> None:
    data = config()
    del data["num_key_value_heads"]
    read = model_from_config(data, "x", "c")
    assert read.attention == "MHA"
    assert read.kv_heads == 64


def test_mistral_windows_every_layer_and_an_unused_window_counts_for_nothing() -> None:
    assert model_from_config(config(model_type="mistral", sliding_window=4096), "x", "c").windowed_layers == 80
    assert model_from_config(config(model_type="qwen2", sliding_window=4096, use_sliding_window=False), "x", "c").sliding_window is None


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"quant_method": "fp8"}, WeightFormat.FP8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, WeightFormat.FP8_BLOCK),
        ({"quant_method": "fbgemm_fp8"}, WeightFormat.FP8),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}}, WeightFormat.FP8),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, WeightFormat.FP8),
    ],
)
def test_fp8_weights_are_recognised(quantization: dict[str, Any], expected: WeightFormat) -> None:
    assert model_from_config(config(quantization_config=quantization), "x", "c").weight_format is expected


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "llama4"},
        {"model_type": None},
        {"quantization_config": {"quant_method": "awq", "bits": 4}},
        {
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}},
            }
        },
        {"model_type": "qwen3_moe"},
        {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": [1]},
        {"sliding_window": 4096, "max_window_layers": 70, "use_sliding_window": True},
        {"sliding_window": 4096, "layer_types": ["linear_attention"]},
        {"model_type": "deepseek_v3"},
        {"num_hidden_layers": "80"},
        {"num_attention_heads": 0},
        {"num_hidden_layers": 80.5},
        {"quantization_config": "fp8"},
    ],
)
def test_what_would_be_described_wrongly_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedConfigError, match=r"^c: "):
        model_from_config(config(**changes), "x", "c")


def test_a_missing_key_is_named() -> None:
    data = config()
    del data["num_hidden_layers"]
    with pytest.raises(UnsupportedConfigError, match="num_hidden_layers is missing"):
        model_from_config(data, "x", "c")


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(UnsupportedConfigError):
        read_model_config(path)
    path.write_text("[]")
    with pytest.raises(UnsupportedConfigError, match="is an object"):
        read_model_config(path)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 200),
    st.sampled_from([2**63, 10**400, -(10**30)]),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers() | st.none(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers() | st.none(), max_size=2),
)
KEYS = [*sorted(config()), "head_dim", "quantization_config", "text_config", "layer_types", "num_experts", "first_k_dense_replace"]


@settings(max_examples=300)
@given(
    st.sampled_from(["llama", "qwen3_moe", "gpt_oss", "deepseek_v3"]),
    st.dictionaries(st.sampled_from([*KEYS, "q_lora_rank", "num_experts_per_tok", "sliding_window"]), ODD, max_size=4),
)
def test_whatever_stands_in_a_config_it_is_a_shape_to_reckon_with_or_refused(kind: str, changes: dict[str, Any]) -> None:
    """A refusal names the file; a shape goes through every figure of a size without an exception that is not one of ours."""
    latent = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
    experts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 1024}
    data = config(model_type=kind) | latent | experts | changes
    refusal, values = "", list[float]()
    try:
        shape = model_from_config(data, "x", "c")
        report = size_endpoint(Serving(shape, INSTANCE_TYPES["ml.p5.48xlarge"], 4096))
        values = [each.value for section in report.sections for each in section.quantities]
    except ValueError as error:
        refusal = str(error)
    assert all(isfinite(value) for value in values)
    assert values or refusal.startswith(("c: ", "x cannot be split")) or "must be at least" in refusal
    assert len(refusal) < 1500
