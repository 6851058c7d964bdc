"""The model catalog against the parameter counts that the checkpoints themselves publish."""

from __future__ import annotations

import pytest

from dpd_infra.catalog.models import MODELS, WeightFormat, find_model, model_names

# safetensors totals of the published checkpoints (Hugging Face), bf16 parameters.
PUBLISHED_PARAMETERS = {
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": 70_553_706_496,
    "meta-llama/Llama-3.1-405B-Instruct": 405_853_388_800,
    "Qwen/Qwen2.5-72B-Instruct": 72_706_203_648,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": 480_154_875_392,
    "mistralai/Mistral-Large-Instruct-2407": 122_610_069_504,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "mistralai/Mixtral-8x22B-v0.1": 140_620_634_112,
    "deepseek-ai/DeepSeek-V3": 671_026_419_200,
    "deepseek-ai/DeepSeek-R1": 671_026_419_200,
    "moonshotai/Kimi-K2-Instruct": 1_026_408_232_448,
    "openai/gpt-oss-120b": 116_829_156_672,
    "openai/gpt-oss-20b": 20_914_757_184,
}


def test_every_model_of_the_catalog_has_a_published_parameter_count_and_a_source() -> None:
    assert set(PUBLISHED_PARAMETERS) == set(model_names())
    assert all(shape.source for shape, _ in MODELS)


@pytest.mark.parametrize("name", PUBLISHED_PARAMETERS)
def test_the_shape_gives_the_published_parameter_count_to_the_last_one(name: str) -> None:
    model = find_model(name)
    assert model is not None
    assert model.parameters == PUBLISHED_PARAMETERS[name]


@pytest.mark.parametrize(
    ("name", "billions"),
    # The model cards' own words: "22B activated", "37B activated", "32B activated", "12.9B active" (Mixtral), "39B active".
    [("Qwen3-235B-A22B", 22), ("DeepSeek-V3", 37), ("Kimi-K2-Instruct", 32), ("Mixtral-8x7B", 12.9), ("Mixtral-8x22B", 39)],
)
def test_active_parameters_of_a_mixture_are_those_of_its_card(name: str, billions: float) -> None:
    model = find_model(name)
    assert model is not None
    assert model.is_mixture
    assert model.active_parameters / 1e9 == pytest.approx(billions, rel=0.03)


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama/Llama-3.3-70B-Instruct",
        "Llama-3.3-70B-Instruct",
        "llama-3.3-70b-instruct",
        "Llama-3.3-70B",
        "Meta-Llama-3.3-70B-Instruct",
        "llama_3_3_70b",
    ],
)
def test_a_model_is_found_by_the_names_users_write(name: str) -> None:
    model = find_model(name)
    assert model is not None
    assert model.name == "meta-llama/Llama-3.3-70B-Instruct"


@pytest.mark.parametrize(
    "name", ["", "llama", "70b", "my-Llama-3.3-70B-Instruct-tuned", "Llama-3.3-70B-Instruct-AWQ", "nvidia/Llama-3.3-70B-Instruct-NVFP4"]
)
def test_a_name_that_is_not_known_for_sure_is_not_guessed(name: str) -> None:
    assert find_model(name) is None


def test_an_fp8_name_gives_fp8_weights_of_half_the_size() -> None:
    bf16, fp8 = find_model("Llama-3.3-70B-Instruct"), find_model("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic")
    assert bf16
    assert fp8
    assert fp8.weight_format is WeightFormat.FP8
    assert 0.5 < fp8.weight_bytes / bf16.weight_bytes < 0.52


def test_gpt_oss_weights_have_the_published_checkpoint_size() -> None:
    model = find_model("gpt-oss-120b")
    assert model is not None
    # The model card's table: checkpoint size 60.8 GiB.
    assert model.weight_bytes / 1024**3 == pytest.approx(60.8, abs=0.1)


def test_a_step_reads_more_experts_the_more_tokens_it_has_and_never_more_than_all() -> None:
    model = find_model("Qwen3-235B-A22B")
    assert model is not None
    reads = [model.weight_bytes_read(tokens) for tokens in (1, 2, 8, 64, 4096)]
    assert reads == sorted(reads)
    assert len(set(reads)) == 5
    assert reads[-1] == pytest.approx(model.weight_bytes)
    assert reads[0] == pytest.approx(2 * model.active_parameters, rel=0.001)
