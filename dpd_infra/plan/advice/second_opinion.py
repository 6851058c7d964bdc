"""A second opinion on the times: NVIDIA's AIConfigurator, where it is installed, with the difference to ours beside each figure."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpd_infra.catalog.models import KvFormat, ModelShape, WeightFormat
from dpd_infra.plan.sizing.decode import decode_seconds
from dpd_infra.plan.sizing.outcome import colocated, disaggregated
from dpd_infra.plan.sizing.prefill import prefill_seconds
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Workload

LIBRARY = "aiconfigurator"
HOW_TO_GET_IT = "For a second opinion of the times: pip install 'dpd-infra[models]' (aiconfigurator 0.12, Python below 3.14, 670 MB)"

MOST_DIFFERENCE = 0.1
"""Share from which on the two disagree."""

_SYSTEMS = {"H100": "h100_sxm", "H200": "h200_sxm", "B200": "b200_sxm", "B300": "b300_sxm"}
_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
}

Estimate = Callable[..., Any]
"""`aiconfigurator.cli.api.cli_estimate`."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of both."""

    what: str
    ours: float
    theirs: float
    unit: str

    @property
    def difference(self) -> float:
        """Ours above theirs, as a share."""
        return self.ours / self.theirs - 1


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """What the library says, or why it says nothing."""

    compared: tuple[Compared, ...]
    version: str
    """Of the library and of the vLLM that its tables were measured with."""
    note: str
    """How to get the library, what it could not estimate, or where the two disagree; empty where there is nothing to say."""

    def to_dict(self) -> dict[str, Any]:
        """The opinion as plain data."""
        return {
            "version": self.version,
            "compared": [asdict(each) | {"difference": each.difference} for each in self.compared],
            "note": self.note,
        }


def second_opinion(serving: Serving, workload: Workload, estimate: Estimate | None = None) -> SecondOpinion:
    """Ask the library for the same prefill, decode step, and both ways of serving. Seconds: it reads its tables first.

    `estimate` stands in for the library's own function. Without the library the opinion is one line that says how to get it.
    """
    call = estimate or _library()
    if call is None:
        return SecondOpinion((), "", HOW_TO_GET_IT)
    system = _SYSTEMS.get(serving.gpu.name)
    if system is None:
        return SecondOpinion((), "", f"AIConfigurator has no tables of {serving.gpu.name}")
    with TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(to_config(serving.model)), encoding="utf-8")
        try:
            return _ask(call, system, folder, serving, workload)
        except Exception as error:  # noqa: BLE001  # whatever a foreign library raises, the report goes on without it
            return SecondOpinion((), "", f"AIConfigurator could not estimate this: {error}")


def is_installed() -> bool:
    """Whether the library is there."""
    return find_spec(LIBRARY) is not None


def _library() -> Estimate | None:
    if not is_installed():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Estimate = import_module(f"{LIBRARY}.cli.api").cli_estimate
    logging.getLogger(LIBRARY).setLevel(logging.CRITICAL)
    logging.getLogger(f"{LIBRARY}_core").setLevel(logging.CRITICAL)
    return found


def _ask(call: Estimate, system: str, folder: str, serving: Serving, workload: Workload) -> SecondOpinion:
    ranks, prompt, output = serving.tensor_parallel_size, round(workload.input.mean), max(2, round(workload.output.mean))
    apart, together = disaggregated(serving, workload), colocated(serving, workload)
    batch, each = max(1, round(apart.batch)), max(1, round(together.batch))
    shared: dict[str, Any] = {"backend_name": "vllm", "isl": prompt, "osl": output}
    if serving.kv_format is KvFormat.FP8:
        shared["kvcache_quant_mode"] = "fp8"
    alone: dict[str, Any] = shared | {"tp_size": ranks}
    both = shared | {"prefill_tp_size": ranks, "decode_tp_size": ranks}
    if serving.model.is_mixture:
        alone |= {"moe_tp_size": ranks, "moe_ep_size": 1}
        both |= {"prefill_moe_tp_size": ranks, "prefill_moe_ep_size": 1, "decode_moe_tp_size": ranks, "decode_moe_ep_size": 1}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prefill = call(folder, system, mode="static_ctx", batch_size=1, **alone)
        decode = call(folder, system, mode="static_gen", batch_size=batch, **alone)
        colocation = call(folder, system, mode="agg", batch_size=each, **alone)
        pair = call(
            folder,
            system,
            mode="disagg",
            prefill_batch_size=1,
            decode_batch_size=batch,
            prefill_num_workers=serving.prefillers,
            decode_num_workers=serving.decoders,
            **both,
        )
    step = decode_seconds(serving.model, serving.gpu, ranks, batch, prompt + output // 2, serving.kv_format)
    compared = [
        Compared("prefill", prefill_seconds(serving.model, serving.gpu, ranks, prompt) * 1000, float(prefill.ttft), "ms"),
        Compared(f"decode step, batch {batch}", step * 1000, float(decode.tpot), "ms"),
        Compared("disaggregated, TPOT", apart.tpot_seconds * 1000, float(pair.tpot), "ms"),
        Compared("colocated, TPOT", together.tpot_seconds * 1000, float(colocation.tpot), "ms"),
    ]
    if workload.concurrency is not None:
        # Of an open load both serve what comes.
        most = float(pair.raw["tokens/s"]), float(colocation.raw["tokens/s"]) * together.engines
        compared.append(Compared("disaggregated, output", apart.output_tokens_per_second, most[0], "tokens/s"))
        compared.append(Compared("colocated, output", together.output_tokens_per_second, most[1], "tokens/s"))
    return SecondOpinion(tuple(compared), f"{_version()}, tables of vLLM {prefill.backend_version}".lstrip(", "), _disagreement(compared))


def _version() -> str:
    try:
        return version(LIBRARY)
    except PackageNotFoundError:
        return ""


def _disagreement(compared: list[Compared]) -> str:
    apart = [each.what for each in compared if abs(each.difference) > MOST_DIFFERENCE]
    if not apart:
        return ""
    return f"more than {MOST_DIFFERENCE:.0%} apart in {'; '.join(apart)}: measure before either is trusted there"


def to_config(model: ModelShape) -> dict[str, Any]:
    """A config.json of a shape, with what readers of shapes look at."""
    kind = _kind(model)
    config: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[kind]],
        "model_type": kind,
        "hidden_size": model.hidden_size,
        "intermediate_size": model.intermediate_size,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.query_heads,
        "num_key_value_heads": model.kv_heads,
        "vocab_size": model.vocabulary,
        "max_position_embeddings": model.max_model_len,
        "tie_word_embeddings": model.tied_embeddings,
        "torch_dtype": "bfloat16",
    }
    if model.latent:
        config |= asdict(model.latent)
    else:
        config["head_dim"] = model.head_dim
    if model.sliding_window:
        config["sliding_window"] = model.sliding_window
        config["layer_types"] = [
            "sliding_attention" if index < model.windowed_layers else "full_attention" for index in range(model.layers)
        ]
    config |= _expert_config(model, kind)
    if model.weight_format is WeightFormat.MXFP4:
        config["quantization_config"] = {"quant_method": "mxfp4"}
    elif model.weight_format is WeightFormat.FP8_BLOCK:
        config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    elif model.weight_format is WeightFormat.FP8:
        config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3"}
    return config


def _expert_config(model: ModelShape, kind: str) -> dict[str, Any]:
    experts = model.experts
    if experts is None:
        return {}
    config: dict[str, Any] = {"num_experts_per_tok": experts.active}
    if kind == "deepseek_v3":
        config |= {"n_routed_experts": experts.count, "moe_intermediate_size": experts.width, "first_k_dense_replace": experts.dense_layers}
        config |= {"n_shared_experts": experts.shared_width // experts.width, "moe_layer_freq": 1, "topk_method": "noaux_tc"}
    elif kind == "qwen3_moe":
        config |= {"num_experts": experts.count, "moe_intermediate_size": experts.width, "decoder_sparse_step": 1, "mlp_only_layers": []}
    else:
        config |= {"num_local_experts": experts.count}
    return config


def _kind(model: ModelShape) -> str:
    if model.latent:
        return "deepseek_v3"
    if model.experts:
        return "gpt_oss" if model.attention_sinks else "qwen3_moe" if model.qk_norm else "mixtral"
    return "qwen3" if model.qk_norm else "qwen2" if model.qkv_bias else "llama"
