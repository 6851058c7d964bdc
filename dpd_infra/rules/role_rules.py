"""Rules between the two roles: their GPUs, their parallel sizes and the flags that must agree or must not undo each other."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, DPD_BLOG, DPD_GUIDE, DPD_TROUBLESHOOTING, KUBERNETES_DOCS, LMCACHE, VLLM, thread
from dpd_infra.plan.quantities import is_whole, quantity
from dpd_infra.plan.sizing.kv_cache import tensor_parallel_problems
from dpd_infra.plan.worker_args import Flag
from dpd_infra.render.endpoint_roles import GPU_RESOURCE
from dpd_infra.rules.patches import remove, set_flag, set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.wording import as_flag
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import mapping

TENSOR_PARALLEL = "tensor-parallel-size"


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
    why="The DPD guide and AWS's blog say one decode deployment with one replica; the guide's troubleshooting and the CRD allow more. "
    "The sources contradict each other, so more than one decoder is untested ground.",
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
    "decode ranks without KV cache.",
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
        f"say it once, for both roles: {as_flag(endpoint, prefill.args.last(TENSOR_PARALLEL), TENSOR_PARALLEL, sizes[0])}",
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
    asked = {server.name: server.gpus for server in reading.servers if server.gpus}
    if reading.disaggregated and len(set(asked.values())) > 1:
        # Both roles have the one size: no size is right for both.
        if any(server.engine_gpus not in (None, server.gpus) for server in reading.servers):
            wanted = " and ".join(f"{name} asks for {gpus} GPUs" for name, gpus in asked.items())
            name = "gpus" if endpoint.spec is not None else "nvidia.com/gpu"
            yield Violation(
                endpoint.at(*reading.servers[-1].resources_path),
                f"{wanted}, and both have the same parallel sizes",
                f"give both the same {name}",
                related=tuple(endpoint.at(*server.resources_path) for server in reading.servers),
            )
        return
    told: set[tuple[object, ...]] = set()
    for server in reading.servers:
        ranks, flag = server.engine_gpus, server.args.last(TENSOR_PARALLEL)
        if not server.gpus or ranks is None or ranks == server.gpus:
            continue
        # What both roles have of the worker is one mistake.
        cause = (flag.path if flag else None, server.gpus, ranks)
        alike = [
            other.name
            for other in reading.servers
            if (found.path if (found := other.args.last(TENSOR_PARALLEL)) else None, other.gpus, other.engine_gpus) == cause
        ]
        if cause in told:
            continue
        told.add(cause)
        others = ranks // (server.tensor_parallel_size or 1)
        wanted = server.gpus // others if server.gpus % others == 0 else None
        said = f"--{TENSOR_PARALLEL} {server.tensor_parallel_size}" if flag else f"no --{TENSOR_PARALLEL} (vLLM's default is 1)"
        both = f"{said} times {others} by the other parallel sizes" if others != 1 else said
        yield Violation(
            endpoint.at(*(flag.path if flag else server.resources_path)),
            f"{' and '.join(alike)} {'requests' if len(alike) == 1 else 'request'} {server.gpus} GPUs and "
            f"{'has' if len(alike) == 1 else 'have'} {both}: {ranks} ranks",
            f"write {as_flag(endpoint, flag, TENSOR_PARALLEL, wanted)}"
            if wanted
            else f"request {ranks} GPUs, or choose sizes whose product is {server.gpus}",
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
        # An object of a cluster has the CRD's default there, which nobody wrote.
        if value is not None and not (key == "replicas" and value == 1 and endpoint.get("metadata", "resourceVersion") is not None):
            yield Violation(
                endpoint.at("spec", key),
                f"spec.{key} stands beside pdSpec",
                f"remove it; {instead} is what counts here",
                value=value if isinstance(value, int) else None,
                patch=remove(endpoint, ("spec", key)),
            )


@rule(
    "DPD017",
    "Requests are within their limits",
    severity=Severity.ERROR,
    why="Kubernetes refuses a pod that requests more than its limit. GPUs and EFA devices come whole, and their request is their limit.",
    sources=(KUBERNETES_DOCS,),
)
def devices_are_limited(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A request over its limit; of `nvidia.com/…` or `vpc.amazonaws.com/efa` one that is not its limit, or no whole number."""
    for server in endpoint.reading.servers:
        requests, limits = mapping(server.resources.get("requests")), mapping(server.resources.get("limits"))
        for name, value in requests.items():
            asked, limit, is_device = quantity(value), quantity(limits.get(name)), "/" in name
            path: Path = (*server.resources_path, "limits", name)
            own: Path = (*server.resources_path, "requests", name)
            if asked is None or (not is_device and (limit is None or asked <= limit)):
                continue
            if is_device and not is_whole(asked):
                what = f"{server.name} requests {value} of {name}, which come whole"
                yield Violation(endpoint.at(*own), what, "request a whole number", value=value)
            elif asked != limit:
                limited = f"limits it to {limits[name]}" if name in limits else "has no limit"
                yield Violation(
                    endpoint.at(*(path if name in limits else own)),
                    f"{server.name} requests {value} of {name} and {limited}",
                    f'write limits: {{{name}: "{value}"}}',
                    value=limits.get(name),
                    patch=set_value(endpoint, path, str(value)) if endpoint.spec is None else None,
                )
