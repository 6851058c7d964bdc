"""Rules between the two roles: their GPUs, their parallel sizes and the flags that must agree or must not undo each other."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, DPD_BLOG, DPD_GUIDE, DPD_TROUBLESHOOTING, KUBERNETES_DOCS, LMCACHE, VLLM, thread
from dpd_infra.plan.quantities import quantity
from dpd_infra.plan.sizing.kv_cache import tensor_parallel_problems
from dpd_infra.plan.worker_args import Flag
from dpd_infra.render.endpoint_roles import GPU_RESOURCE
from dpd_infra.rules.patches import remove, set_flag, set_value
from dpd_infra.rules.reading import mapping
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Severity

TENSOR_PARALLEL = "tensor-parallel-size"

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
    "DPD007",
    "Both roles request GPUs",
    severity=Severity.ERROR,
    why="A role's resources must include GPU requests for DPD to function; worker.resources is not used for roles.",
    sources=(CRD_3_2, DPD_GUIDE),
    since="3.2",
)
def roles_request_gpus(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A role without `requests: {nvidia.com/gpu: …}`, or with none of them."""
    if not endpoint.reading.disaggregated:
        return
    for server in endpoint.reading.servers:
        requested = quantity(mapping(server.resources.get("requests")).get(GPU_RESOURCE))
        if requested is not None and requested > 0:
            continue
        limit = quantity(mapping(server.resources.get("limits")).get(GPU_RESOURCE))
        amount = str(limit or 8)
        path = (*server.resources_path, "requests", GPU_RESOURCE)
        # `gpus` is the short form's own word for it, and its default asks for GPUs: only overrides can take them away there.
        patch = set_value(endpoint, path, amount) if endpoint.spec is None else None
        yield Violation(
            endpoint.at(*path),
            f"{server.name} requests no GPUs",
            f'write requests: {{{GPU_RESOURCE}: "{amount}"}} and the same limit under {".".join(map(str, server.path[1:]))}.resources',
            patch=patch,
        )


@rule(
    "DPD008",
    "One decoder for an endpoint",
    severity=Severity.WARNING,
    why="The DPD guide and AWS's blog say one decode deployment with one replica; the guide's troubleshooting and the CRD allow more. The "
    "sources contradict each other, so more than one decoder is untested ground.",
    sources=(DPD_GUIDE, DPD_BLOG, DPD_TROUBLESHOOTING, CRD_3_2),
    since="3.2",
)
def one_decoder(endpoint: EndpointSubject) -> Iterator[Violation]:
    """More than one decode replica, or decode autoscaling that can go beyond one."""
    if not endpoint.reading.disaggregated:
        return
    decode = endpoint.reading.decode
    fix = "keep one decoder and scale prefill; for more decode throughput add a second endpoint"
    if decode.scaling is not None and decode.most_replicas > 1:
        yield Violation(endpoint.at(*decode.scaling_path), f"decode can be scaled to {decode.most_replicas} replicas", fix)
    elif decode.scaling is None and decode.replicas > 1:
        path = (*decode.path, "replicas")
        yield Violation(endpoint.at(*path), f"decode has {decode.replicas} replicas", fix, value=decode.replicas)


@rule(
    "DPD009",
    "Both roles have one tensor-parallel size",
    severity=Severity.ERROR,
    why="In LMCache 0.4.3 sender rank i writes to receiver port i: a larger prefill size ends in an index error, a smaller one leaves "
    "decode "
    "ranks without KV cache.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1142, 1629), DPD_TROUBLESHOOTING),
    since="3.2",
)
def same_tensor_parallel_size(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Different sizes, from the worker's flags and the roles' own."""
    if not endpoint.reading.disaggregated:
        return
    prefill, decode = endpoint.reading.servers
    sizes = prefill.tensor_parallel_size, decode.tensor_parallel_size
    if None in sizes or sizes[0] == sizes[1]:
        return
    flag = decode.args.last(TENSOR_PARALLEL) or prefill.args.last(TENSOR_PARALLEL)
    at = flag.path if flag else decode.path
    yield Violation(
        endpoint.at(*at),
        f"prefill has --{TENSOR_PARALLEL} {sizes[0]}, decode has {sizes[1]}",
        f"say it once, in worker.args: --{TENSOR_PARALLEL} {sizes[0]}",
        value=sizes[1],
    )


@rule(
    "DPD010",
    "The parallel sizes use the GPUs that are requested",
    severity=Severity.ERROR,
    why="With fewer GPUs than ranks vLLM does not start; with more, GPUs are paid for and idle.",
    sources=(DPD_GUIDE, VLLM),
)
def parallel_size_is_gpus(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Tensor-parallel size (times the other parallel sizes) that is not the number of GPUs a pod requests."""
    reading = endpoint.reading
    if not reading.disaggregated and (reading.server is None or reading.server.name != "vLLM"):
        return
    for server in reading.servers:
        ranks = server.engine_gpus
        if not server.gpus or ranks is None or ranks == server.gpus:
            continue
        flag = server.args.last(TENSOR_PARALLEL)
        others = ranks // (server.tensor_parallel_size or 1)
        wanted = server.gpus // others if server.gpus % others == 0 else None
        said = f"--{TENSOR_PARALLEL} {server.tensor_parallel_size}" if flag else f"no --{TENSOR_PARALLEL} (vLLM's default is 1)"
        both = f"{said} times {others} by the other parallel sizes" if others != 1 else said
        yield Violation(
            endpoint.at(*(flag.path if flag else server.resources_path)),
            f"{server.name} requests {server.gpus} GPUs and has {both}: {ranks} ranks",
            f"write --{TENSOR_PARALLEL} {wanted}" if wanted else f"request {ranks} GPUs, or choose sizes whose product is {server.gpus}",
            value=server.tensor_parallel_size,
            patch=set_flag(endpoint, flag, wanted) if flag and wanted and _is_shared(endpoint, flag) else None,
            related=(endpoint.at(*server.resources_path),),
        )


def _is_shared(endpoint: EndpointSubject, flag: Flag) -> bool:
    """Whether changing this one flag changes all servers alike."""
    return all(server.args.last(flag.name) == flag and server.gpus == endpoint.reading.decode.gpus for server in endpoint.reading.servers)


@rule(
    "DPD011",
    "The model can be split over the ranks",
    severity=Severity.ERROR,
    why="vLLM gives every rank whole attention heads and an equal part of each layer, and does not start where it cannot.",
    sources=(VLLM, thread("vllm-project/vllm", 43523, 45330)),
)
def model_divides(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A tensor-parallel size that divides the model's heads or layers unevenly, for a model of the catalog."""
    model = endpoint.reading.model
    if model is None:
        return
    seen: set[int] = set()
    for server in endpoint.reading.servers:
        size, flag = server.tensor_parallel_size, server.args.last(TENSOR_PARALLEL)
        if size is None or flag is None or size in seen:
            continue
        seen.add(size)
        problems = tensor_parallel_problems(model, size)
        if problems:
            good = [str(other) for other in (1, 2, 4, 8) if not tensor_parallel_problems(model, other)]
            what = f"{model.name} cannot be split over {size} ranks: {'; '.join(problems)}"
            fix = f"use one of {', '.join(good)} with as many GPUs" if good else "choose another model"
            yield Violation(endpoint.at(*flag.path), what, fix, value=size)


@rule(
    "DPD012",
    "The roles agree on what the KV cache depends on",
    severity=Severity.ERROR,
    why="The decoder reads what the prefiller wrote: another model, format or block size gives it bytes it misreads or refuses, and a "
    "shorter "
    "limit makes it refuse what the prefiller took.",
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
    "and a "
    "worker without its role serves as if it were colocated.",
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
    "DPD016",
    "Nothing beside pdSpec counts pods",
    severity=Severity.WARNING,
    why="With pdSpec the roles have replicas and autoscaling of their own; what spec.replicas and spec.autoScalingSpec do beside it is "
    "documented nowhere.",
    sources=(CRD_3_2, DPD_GUIDE),
    since="3.2",
)
def no_replicas_beside_roles(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`spec.replicas` or `spec.autoScalingSpec` beside a pdSpec."""
    if not endpoint.reading.disaggregated:
        return
    for key, instead in (("replicas", "replicas of prefillSpec and decodingSpec"), ("autoScalingSpec", "pdSpec.autoScalingSpec")):
        value = endpoint.get("spec", key)
        if value is not None:
            yield Violation(
                endpoint.at("spec", key),
                f"spec.{key} stands beside pdSpec",
                f"remove it; {instead} is what counts here",
                value=value if isinstance(value, int) else None,
                patch=remove(endpoint, ("spec", key)),
            )


@rule(
    "DPD017",
    "Devices are limited to what is requested",
    severity=Severity.ERROR,
    why="Kubernetes refuses a pod whose request for GPUs or EFA devices differs from its limit, or that has a request and no limit.",
    sources=(KUBERNETES_DOCS,),
)
def devices_are_limited(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A request for `nvidia.com/…` or `vpc.amazonaws.com/efa` that is not its limit."""
    for server in endpoint.reading.servers:
        requests, limits = mapping(server.resources.get("requests")), mapping(server.resources.get("limits"))
        for name, value in requests.items():
            asked, limit = quantity(value), quantity(limits.get(name))
            if "/" not in name or asked is None or asked == limit:
                continue
            path = (*server.resources_path, "limits", name)
            yield Violation(
                endpoint.at(*(path if name in limits else (*server.resources_path, "requests", name))),
                f"{server.name} requests {value} of {name} and {'limits it to ' + str(limits[name]) if name in limits else 'has no limit'}",
                f'write limits: {{{name}: "{value}"}}',
                value=limits.get(name),
                patch=set_value(endpoint, path, str(value)) if endpoint.spec is None else None,
            )
