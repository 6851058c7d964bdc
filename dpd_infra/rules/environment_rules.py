"""Rules on the worker's environment: hash seed, LMCache's switches, transport, and what the operator sets itself."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import (
    CACHING_ROUTING_GUIDE,
    CRD_3_2,
    DPD_BLOG,
    DPD_GUIDE,
    DPD_TROUBLESHOOTING,
    LIBFABRIC_EFA,
    LMCACHE,
    PYTHON_DOCS,
    thread,
)
from dpd_infra.rules.environment import ENVIRONMENT, Variable
from dpd_infra.rules.patches import remove_variable, set_variable
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Patch, Severity
from dpd_infra.spec.values import mapping

HASH_SEED = "PYTHONHASHSEED"
_LARGEST_SEED = 4_294_967_295

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""PyTorch's old and new name of its allocator's configuration."""

UNREAD_VARIABLES = ("NIXL_BACKEND", "VLLM_NIXL_BACKEND", "LMCACHE_NIXL_BACKEND")
"""Names people set to choose NIXL's transport; neither vLLM nor LMCache 0.4.3 reads one of them."""

ROLE_VARIABLES = (
    "LMCACHE_ENABLE_PD",
    "LMCACHE_ENABLE_XPYD",
    "LMCACHE_PD_ROLE",
    "LMCACHE_NIXL_ROLE",
    "LMCACHE_PD_BUFFER_SIZE",
    "LMCACHE_NIXL_BUFFER_SIZE",
    "LMCACHE_PD_BUFFER_DEVICE",
    "LMCACHE_PD_PEER_HOST",
    "LMCACHE_PD_PEER_INIT_PORT",
    "LMCACHE_PD_PEER_ALLOC_PORT",
    "LMCACHE_NIXL_PEER_HOST",
    "LMCACHE_NIXL_PEER_INIT_PORT",
    "LMCACHE_NIXL_PEER_ALLOC_PORT",
    "LMCACHE_PD_PROXY_HOST",
    "LMCACHE_PD_PROXY_PORT",
    "LMCACHE_CONFIG_FILE",
)
"""LMCache's settings that differ by role (LMCache, v1/config.py, with its old names): the operator writes them for each role."""

REMOTE_VARIABLES = ("LMCACHE_REMOTE_URL", "LMCACHE_REMOTE_SERDE")
"""What the operator sets for a second level of the cache."""


@rule(
    "DPD101",
    "PYTHONHASHSEED is fixed",
    severity=Severity.ERROR,
    why="LMCache names chunks by Python's hash: with another seed on the decoder it finds none of them (Retrieved 0 out of N) and "
    "computes every prompt again, and nothing fails.",
    sources=(DPD_GUIDE, DPD_TROUBLESHOOTING, PYTHON_DOCS, thread("LMCache/LMCache", 1133, 1403, 2511, 2979)),
    since="3.2",
)
def hash_seed_is_fixed(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Under a pdSpec: not set, `random`, or no number that Python takes."""
    if endpoint.reading.disaggregated:
        yield from _seed(endpoint)


@rule(
    "DPD102",
    "A shared cache needs a fixed PYTHONHASHSEED",
    severity=Severity.WARNING,
    why="LMCache names chunks by Python's hash, with a seed of its own in each pod: pods find nothing in the second level that others "
    "wrote, and the router's picture of a pod's cache matches nothing.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1133, 1403), thread("vllm-project/vllm", 21161)),
    since="2.1",
)
def shared_cache_has_seed(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Without a pdSpec, with a second-level cache or kvaware routing: not set, `random`, or no number."""
    reading = endpoint.reading
    shared = mapping(reading.spec.get("kvCacheSpec")).get("enableL2Cache") is True
    routing = mapping(reading.spec.get("intelligentRoutingSpec"))
    kvaware = routing.get("enabled") is True and routing.get("routingStrategy") == "kvaware"
    if not reading.disaggregated and (shared or kvaware):
        yield from _seed(endpoint)


def _seed(endpoint: EndpointSubject) -> Iterator[Violation]:
    variable = endpoint.reading.environment.get(HASH_SEED)
    if variable is not None and (variable.value is None or (variable.integer is not None and 0 <= variable.integer <= _LARGEST_SEED)):
        return
    what = f"{HASH_SEED} is {variable.value!r}" if variable else f"{HASH_SEED} is not set"
    yield Violation(
        endpoint.at(*(variable.path if variable else ENVIRONMENT)),
        what,
        f'set {HASH_SEED} to "0", or another number to {_LARGEST_SEED}',
        value=variable.value if variable else None,
        patch=set_variable(endpoint, HASH_SEED, "0"),
    )


@rule(
    "DPD108",
    "The decoder does not save what it decodes",
    severity=Severity.WARNING,
    why="The environment is the same for both roles: with LMCACHE_SAVE_DECODE_CACHE the decoder stores the KV cache of every generated "
    "token too, in memory and time that decoding needs. The guide sets it to False.",
    sources=(DPD_GUIDE, LMCACHE),
    since="3.2",
)
def decode_cache_is_not_saved(endpoint: EndpointSubject) -> Iterator[Violation]:
    """LMCACHE_SAVE_DECODE_CACHE true under a pdSpec."""
    name = "LMCACHE_SAVE_DECODE_CACHE"
    if (variable := _dpd_variable(endpoint, name)) is not None and variable.is_true:
        patch = set_variable(endpoint, name, "False")
        yield Violation(endpoint.at(*variable.path), f"{name} is {variable.value}", f'set {name} to "False"', variable.value, patch)


@rule(
    "DPD109",
    "Partial chunks are sent whatever is said",
    severity=Severity.WARNING,
    why="With disaggregation LMCache 0.4.3 turns save_unfull_chunk on by itself, because the decoder would lack the prompt's tail; older "
    "releases hang on prompts shorter than a chunk.",
    sources=(thread("LMCache/LMCache", 2510, 2540), LMCACHE),
    since="3.2",
)
def unfull_chunks_are_saved(endpoint: EndpointSubject) -> Iterator[Violation]:
    """LMCACHE_SAVE_UNFULL_CHUNK false under a pdSpec."""
    name = "LMCACHE_SAVE_UNFULL_CHUNK"
    if (variable := _dpd_variable(endpoint, name)) is not None and variable.value is not None and not variable.is_true:
        what = f"{name} is {variable.value or 'empty'}"
        yield Violation(endpoint.at(*variable.path), what, f"remove {name}", variable.value, _removal(endpoint, variable))


@rule(
    "DPD110",
    "The transfer channel is NIXL",
    severity=Severity.ERROR,
    why="LMCache's disaggregation has one channel, nixl: with any other it stops with Unsupported channel type.",
    sources=(thread("LMCache/LMCache", 2593), LMCACHE),
    since="3.2",
)
def channel_is_nixl(endpoint: EndpointSubject) -> Iterator[Violation]:
    """LMCACHE_TRANSFER_CHANNEL other than nixl under a pdSpec."""
    name = "LMCACHE_TRANSFER_CHANNEL"
    if (variable := _dpd_variable(endpoint, name)) is not None and variable.value not in {None, "nixl"}:
        what = f"{name} is {variable.value!r}"
        yield Violation(
            endpoint.at(*variable.path), what, f"remove {name}, or set it to nixl", variable.value, _removal(endpoint, variable)
        )


@rule(
    "DPD111",
    "Variables are ones that something reads",
    severity=Severity.WARNING,
    why="Neither vLLM nor LMCache reads it: NIXL's backend comes from their configuration and is UCX unless that says otherwise. The KV "
    "cache goes over whatever that is, and the variable makes it look chosen.",
    sources=(thread("vllm-project/vllm", 41814, 50832), LMCACHE),
)
def unread_variables(endpoint: EndpointSubject) -> Iterator[Violation]:
    """NIXL_BACKEND, VLLM_NIXL_BACKEND, LMCACHE_NIXL_BACKEND."""
    for name in UNREAD_VARIABLES:
        if (variable := endpoint.reading.environment.get(name)) is not None:
            fix = f"remove {name}; the backend in use is in LMCache's configuration dump at start-up, under nixl_backends"
            yield Violation(
                endpoint.at(*variable.path), f"{name} is not read by anything", fix, variable.value, _removal(endpoint, variable)
            )


@rule(
    "DPD112",
    "GPU memory can be registered with the network card",
    severity=Severity.ERROR,
    why="With expandable segments PyTorch maps GPU memory in a way that cannot be registered for RDMA: transfers fall to 0.3 GB/s "
    "instead of 200, with no warning.",
    sources=(thread("ai-dynamo/nixl", 1754), thread("ray-project/ray", 62339)),
    since="3.2",
)
def no_expandable_segments(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`expandable_segments:True` in PyTorch's allocator configuration under a pdSpec."""
    for name in ALLOCATOR_VARIABLES:
        variable = _dpd_variable(endpoint, name)
        parts = [part.strip() for part in (variable.value or "").split(",")] if variable else []
        kept = [part for part in parts if part.replace(" ", "").lower() != "expandable_segments:true"]
        if variable is not None and kept != parts:
            patch = set_variable(endpoint, name, ",".join(kept)) if kept else _removal(endpoint, variable)
            fix = f'set {name} to "{",".join(kept)}"' if kept else f"remove {name}"
            yield Violation(endpoint.at(*variable.path), f"{name} is {variable.value}", fix, variable.value, patch)


@rule(
    "DPD113",
    "The operator's own variables are left to it",
    severity=Severity.WARNING,
    why="The operator sets it as well, and which of two equal names a container sees is luck; what differs by role cannot be set here at "
    "all, because both roles have one environment.",
    sources=(CACHING_ROUTING_GUIDE, DPD_BLOG, LMCACHE),
    since="2.1",
)
def operator_variables(endpoint: EndpointSubject) -> Iterator[Violation]:
    """LMCACHE_REMOTE_URL with a second-level cache; LMCache's settings of a role under a pdSpec."""
    reading = endpoint.reading
    cache = mapping(reading.spec.get("kvCacheSpec"))
    owned = [*REMOTE_VARIABLES] if cache.get("enableL2Cache") is True else []
    owned += ROLE_VARIABLES if reading.disaggregated else ()
    for name in owned:
        if (variable := reading.environment.get(name)) is not None:
            instead = _INSTEAD.get(name, "the operator has its value")
            yield Violation(
                endpoint.at(*variable.path),
                f"{name} is set by the operator",
                f"remove {name}: {instead}",
                patch=_removal(endpoint, variable),
            )


_INSTEAD = {
    "LMCACHE_REMOTE_URL": "say kvCacheSpec.l2CacheSpec instead",
    "LMCACHE_PD_BUFFER_SIZE": "say PD_BUFFER_SIZE instead",
    "LMCACHE_NIXL_BUFFER_SIZE": "say PD_BUFFER_SIZE instead",
    "LMCACHE_CONFIG_FILE": "say kvCacheSpec.cacheConfigFile instead",
}


@rule(
    "DPD114",
    "EFA is not switched off",
    severity=Severity.ERROR,
    why="The KV cache moves over EFA with RDMA: another libfabric provider, or EFA without RDMA, takes it over TCP at a hundredth of the "
    "speed, and the endpoint looks healthy.",
    sources=(LIBFABRIC_EFA, thread("awslabs/awsome-distributed-ai", 1215), thread("NVIDIA/aicr", 2275)),
    since="3.2",
)
def efa_is_on(endpoint: EndpointSubject) -> Iterator[Violation]:
    """FI_PROVIDER other than efa, FI_EFA_USE_DEVICE_RDMA off, or UCX_TLS of tcp only, under a pdSpec."""
    wrong = {
        "FI_PROVIDER": lambda value: value and "efa" not in value.lower().split(","),
        "FI_EFA_USE_DEVICE_RDMA": lambda value: value.strip().lower() in {"0", "false", "no", "off"},
        "UCX_TLS": lambda value: value.strip().lower() in {"tcp", "tcp,self", "self,tcp"},
    }
    for name, is_wrong in wrong.items():
        variable = _dpd_variable(endpoint, name)
        if variable is not None and variable.value is not None and is_wrong(variable.value):
            what = f"{name} is {variable.value}"
            yield Violation(endpoint.at(*variable.path), what, f"remove {name}", variable.value, _removal(endpoint, variable))


@rule(
    "DPD115",
    "EFA variables come with EFA devices",
    severity=Severity.WARNING,
    why="Variables choose EFA, and only a request for vpc.amazonaws.com/efa puts the devices into the pod: without them libfabric falls "
    "back to TCP silently. Whether the operator requests them by itself is not documented.",
    sources=(thread("awslabs/ai-on-sagemaker-hyperpod", 134), thread("aws/sagemaker-hyperpod-cli", 306)),
    since="3.2",
)
def efa_variables_with_devices(endpoint: EndpointSubject) -> Iterator[Violation]:
    """FI_PROVIDER=efa or FI_EFA_… where a role requests no EFA devices."""
    reading = endpoint.reading
    without = [server.name for server in reading.servers if not server.efa_devices] if reading.disaggregated else []
    chosen = [variable for name, variable in reading.environment.items() if name == "FI_PROVIDER" or name.startswith("FI_EFA_")]
    if without and chosen:
        fix = "write efa: explicit" if endpoint.spec is not None else "request vpc.amazonaws.com/efa in both roles' resources"
        what = f"{chosen[0].name} is set, {' and '.join(without)} requests no EFA devices"
        yield Violation(endpoint.at(*chosen[0].path), what, fix, chosen[0].value)


@rule(
    "DPD116",
    "Roles have no environment of their own",
    severity=Severity.ERROR,
    why="The resource has one environment, spec.worker.environmentVariables, for both roles: the API server refuses or drops any other.",
    sources=(CRD_3_2, DPD_GUIDE),
    since="3.2",
)
def no_role_environment(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`env`, `environment` or `environmentVariables` in prefillSpec or decodingSpec."""
    if not endpoint.reading.disaggregated:
        return
    for server in endpoint.reading.servers:
        for key in ("env", "environment", "environmentVariables"):
            if key in server.block:
                what = f"{server.name} has an environment of its own"
                yield Violation(endpoint.at(*server.path, key), what, "move it to spec.worker.environmentVariables, for both roles")


def _dpd_variable(endpoint: EndpointSubject, name: str) -> Variable | None:
    return endpoint.reading.environment.get(name) if endpoint.reading.disaggregated else None


def _removal(endpoint: EndpointSubject, variable: Variable) -> Patch | None:
    return remove_variable(endpoint, variable.name)
