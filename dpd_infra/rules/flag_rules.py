"""Rules on the flags of the server: those that must agree, that undo each other, that are not the user's to set, or that vLLM refuses."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, DPD_BLOG, LMCACHE, VLLM, thread
from dpd_infra.plan.worker_args import Flag
from dpd_infra.rules.memory_rules import UTILIZATION
from dpd_infra.rules.patches import set_flag
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.wording import as_flag
from dpd_infra.spec.finding import Path, Severity

SHARED_FLAGS = (
    "model",
    "max-model-len",
    "dtype",
    "kv-cache-dtype",
    "quantization",
    "block-size",
    "pipeline-parallel-size",
    "prefill-context-parallel-size",
    "decode-context-parallel-size",
    "data-parallel-size",
    "revision",
    "tokenizer",
    "rope-scaling",
    "rope-theta",
    "hf-overrides",
    "sliding-window",
)
"""What fixes the form of the KV cache or which prompts are taken: a decoder reads what a prefiller wrote."""

OPERATOR_FLAGS = ("kv-transfer-config", "kv-events-config")
"""What the operator itself sets for disaggregation: connector and cache are provisioned by it (DPD blog)."""


@rule(
    "DPD012",
    "The roles agree on what the KV cache depends on",
    severity=Severity.ERROR,
    why="The decoder reads what the prefiller wrote: another model, format or block size gives it bytes it misreads or refuses, and a "
    "shorter limit makes it refuse what the prefiller took.",
    sources=(LMCACHE, VLLM, thread("vllm-project/vllm", 41037, 42895)),
    since="3.2",
)
def roles_agree(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A flag of the KV cache's form, of the model or of the longest prompt that has different values."""
    if not endpoint.reading.disaggregated:
        return
    prefill, decode = endpoint.reading.servers
    for name in SHARED_FLAGS:
        first, second = prefill.args.last(name), decode.args.last(name)
        if (first and (first.integer or first.value)) == (second and (second.integer or second.value)):
            continue
        given = [flag for flag in (second, first) if flag is not None]
        at = next((flag for flag in given if "pdSpec" in flag.path), given[0])
        yield Violation(
            endpoint.at(*at.path),
            f"--{name} is {first.value if first else 'not given'} for prefill and {second.value if second else 'not given'} for decode",
            f"say --{name} once, in worker.args",
            value=at.value,
        )


@rule(
    "DPD013",
    "A list of flags does not undo itself",
    severity=Severity.WARNING,
    why="vLLM takes the last of two equal flags and only logs that there were two: the first one looks as if it worked.",
    sources=(VLLM, CRD_3_2),
)
def flags_once(endpoint: EndpointSubject) -> Iterator[Violation]:
    """One flag with two values, or `--x` beside `--no-x`, in the worker's list or in one role's list."""
    seen: set[tuple[str | int, ...]] = set()
    for server in endpoint.reading.servers:
        by_list: dict[tuple[object, ...], Flag] = {}
        for flag in server.args.flags:
            key = (flag.name, flag.keys, flag.flag_path[:-1])
            before = by_list.get(key)
            by_list[key] = flag
            if before is None or (before.value, before.off) == (flag.value, flag.off) or flag.flag_path in seen:
                continue
            seen.add(flag.flag_path)
            yield Violation(
                endpoint.at(*flag.flag_path),
                f"{_said(before)} is undone by {_said(flag)} further on",
                f"keep {_said(flag)} only",
                value=flag.value,
                related=(endpoint.at(*before.flag_path),),
            )


def _said(flag: Flag) -> str:
    return flag.text if flag.value is None else f"{flag.text} {flag.value}"


@rule(
    "DPD014",
    "The operator sets connector and cache itself",
    severity=Severity.WARNING,
    why="With pdSpec the operator gives each role its connector; a flag of your own is the same for both roles or comes last and wins, "
    "and a worker without its role serves as if it were colocated.",
    sources=(DPD_BLOG, thread("kserve/kserve", 5987), thread("ai-dynamo/dynamo", 13238)),
    since="3.2",
)
def operator_flags(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`--kv-transfer-config` and its like under a pdSpec."""
    if not endpoint.reading.disaggregated:
        return
    seen: set[tuple[str | int, ...]] = set()
    for server in endpoint.reading.servers:
        for flag in server.args.flags:
            if flag.name in OPERATOR_FLAGS and flag.flag_path not in seen:
                seen.add(flag.flag_path)
                yield Violation(endpoint.at(*flag.flag_path), f"{flag.text} is the operator's to set", f"remove {flag.text} and its value")


@rule(
    "DPD015",
    "The decoder runs CUDA graphs",
    severity=Severity.ADVICE,
    why="AWS's design has the prefiller run eagerly and the decoder with full CUDA graphs: without them every token costs more time.",
    sources=(DPD_BLOG,),
    since="3.2",
)
def decoder_has_graphs(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`--enforce-eager` in force on the decoder."""
    if not endpoint.reading.disaggregated:
        return
    flag = endpoint.reading.decode.args.last("enforce-eager")
    if flag is not None and endpoint.reading.decode.args.is_on("enforce-eager"):
        what = "the decoder runs with --enforce-eager, without CUDA graphs"
        fix = "remove it from the decoder; write it in the prefill role's args if it is meant for the prefiller"
        yield Violation(endpoint.at(*flag.flag_path), what, fix)


@rule(
    "DPD207",
    "max-model-len is within the model's own",
    severity=Severity.ERROR,
    why="vLLM refuses a length over the model's max_position_embeddings unless it is told how to stretch it.",
    sources=(VLLM,),
)
def length_is_the_models(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A max-model-len over the model's, without --hf-overrides, --rope-scaling or VLLM_ALLOW_LONG_MAX_MODEL_LEN."""
    reading = endpoint.reading
    allowed = reading.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if reading.model is None or (allowed is not None and allowed.value != "0"):
        return
    seen: set[Path] = set()
    for server in reading.servers:
        flag = server.args.last("max-model-len")
        stretched = any(other.name in {"hf-overrides", "rope-scaling"} for other in server.args.flags)
        if flag is None or flag.integer is None or flag.path in seen or stretched or flag.integer <= reading.model.max_model_len:
            continue
        seen.add(flag.path)
        yield Violation(
            endpoint.at(*flag.path),
            f"--max-model-len {flag.integer:,} is over the {reading.model.max_model_len:,} of {reading.model.name}",
            f"write {as_flag(endpoint, flag, 'max-model-len', reading.model.max_model_len)}, or stretch the model with --hf-overrides",
            value=flag.integer,
            patch=set_flag(endpoint, flag, reading.model.max_model_len),
        )


@rule(
    "DPD208",
    "The scheduler's limits go together",
    severity=Severity.ERROR,
    why="vLLM refuses max-num-batched-tokens below max-num-seqs, and below max-model-len where chunked prefill is off.",
    sources=(VLLM,),
)
def scheduler_limits(endpoint: EndpointSubject) -> Iterator[Violation]:
    """max-num-batched-tokens under max-num-seqs, or under max-model-len without chunked prefill."""
    for server in endpoint.reading.servers:
        flag = server.args.last("max-num-batched-tokens")
        tokens = flag.integer if flag else None
        if flag is None or tokens is None:
            continue
        limits = [("max-num-seqs", server.args.integer("max-num-seqs"), "")]
        if server.args.is_on("enable-chunked-prefill") is False:
            limits.append(("max-model-len", endpoint.reading.max_model_len(server), ", and chunked prefill is off"))
        for name, least, also in limits:
            if least is not None and tokens < least:
                yield Violation(
                    endpoint.at(*flag.path),
                    f"{server.name}: --max-num-batched-tokens {tokens:,} is below --{name} {least:,}{also}",
                    f"write --max-num-batched-tokens {least} or more",
                    value=tokens,
                    patch=set_flag(endpoint, flag, least),
                )


_POSITIVE = (
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "data-parallel-size",
    "max-num-seqs",
    "max-num-batched-tokens",
    "max-model-len",
    "port",
    "block-size",
)


@rule(
    "DPD209",
    "Flags have values that vLLM takes",
    severity=Severity.ERROR,
    why="vLLM ends at once on a flag that it cannot read, and the pod restarts for ever.",
    sources=(VLLM,),
)
def values_are_read(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A number that is none or is not positive, a utilisation outside 0 to 1, or a flag without its value."""
    if endpoint.reading.server is not None and endpoint.reading.server.name != "vLLM":
        return
    seen: set[Path] = set()
    for server in endpoint.reading.servers:
        for flag in server.args.flags:
            problem = "" if flag.keys or flag.off or flag.flag_path in seen else _value_problem(flag)
            if problem:
                seen.add(flag.flag_path)
                shown = flag.text if flag.value is None else f"{flag.text} {flag.value}"
                yield Violation(endpoint.at(*flag.path), f"{shown}: {problem}", _value_fix(flag), value=flag.value)


def _value_problem(flag: Flag) -> str:
    if flag.value is not None and "$(" in flag.value:
        return ""
    if flag.name == UTILIZATION:
        if flag.number is None:
            return "is no number"
        return "" if 0 < flag.number <= 1 else "must be above 0 and at most 1"
    if flag.name not in _POSITIVE:
        return ""
    if flag.value is None:
        return "has no value"
    if flag.integer is None:
        return "is no whole number"
    is_auto = flag.name == "max-model-len" and flag.integer == -1
    return "" if flag.integer > 0 or is_auto else "must be 1 or more"


def _value_fix(flag: Flag) -> str:
    if flag.name != UTILIZATION:
        return f"write --{flag.name} with a whole number"
    number = flag.number
    is_percent = number is not None and 1 < number <= 100
    return f"write --{UTILIZATION} {number / 100:g}" if is_percent and number is not None else f"write --{UTILIZATION} 0.75"
