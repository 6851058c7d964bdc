"""Rules on the levels of the KV cache beside the GPU: the node's memory and the shared second level."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.operator_releases import DPD_PREFERRED, AddonVersion
from dpd_infra.catalog.sources import CACHING_ROUTING_GUIDE, CRD_3_2, LMCACHE, RELEASE_NOTES, thread
from dpd_infra.plan.pieces import pieces
from dpd_infra.plan.quantities import in_gib, quantity
from dpd_infra.plan.sizing.buffer import minimum_pd_buffer_bytes
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.reading import ServerReading
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation, once_a_stack
from dpd_infra.rules.wording import named
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import mapping, text

BACKENDS = ("redis", "tieredstorage")
"""The second levels there are (CRD)."""

REDIS_SCHEMES = ("redis://", "rediss://", "redis-sentinel://", "unix://")
"""How LMCache's URL of a redis begins (LMCache, v1/storage_backend/connector)."""

L1_VARIABLE = "LMCACHE_MAX_LOCAL_CPU_SIZE"
DEFAULT_L1_GB = 5.0
"""LMCache's max_local_cpu_size, GB for each rank (LMCache, v1/config.py). What the operator sets is not published."""

_GIB = 2**30
_CACHE = ("spec", "kvCacheSpec")


@rule(
    "DPD120",
    "A second-level cache says where it is",
    severity=Severity.ERROR,
    why="The operator needs to know the backend, and for redis its address; the CRD's own pattern lets misspelt names through.",
    sources=(CACHING_ROUTING_GUIDE, CRD_3_2),
    since="2.1",
)
def second_level_is_complete(endpoint: EndpointSubject) -> Iterator[Violation]:
    """enableL2Cache without l2CacheSpec or backend, a backend that is none, or redis without a URL of it."""
    cache = mapping(endpoint.reading.spec.get("kvCacheSpec"))
    if cache.get("enableL2Cache") is not True or text(cache.get("cacheConfigFile")):
        return
    spec = (*_CACHE, "l2CacheSpec")
    backend = mapping(cache.get("l2CacheSpec")).get("l2CacheBackend")
    if backend is None:
        fix = "add l2CacheSpec: {l2CacheBackend: tieredstorage}, or redis with l2CacheLocalUrl"
        yield Violation(endpoint.at(*spec), "enableL2Cache is true, no backend is named", fix)
    elif isinstance(backend, str) and backend.lower() not in BACKENDS:
        path = (*spec, "l2CacheBackend")
        near = next((name for name in BACKENDS if name in backend.lower()), None)
        patch = set_value(endpoint, path, near) if near else None
        yield Violation(endpoint.at(*path), f"{backend!r} is no backend", f"write {near or ' or '.join(BACKENDS)}", backend, patch)
    elif isinstance(backend, str) and backend.lower() == "redis":
        url, name = text(mapping(cache.get("l2CacheSpec")).get("l2CacheLocalUrl")), named(endpoint, "l2CacheLocalUrl", "cache.l2.url")
        place = (*spec, "l2CacheLocalUrl")
        if not url:
            yield Violation(endpoint.at(*place), "the backend is redis, no URL is given", f"add {name}: redis://<host>:6379", "redis")
        elif not url.startswith(REDIS_SCHEMES):
            yield Violation(
                endpoint.at(*place), "the backend is redis, and its URL is of another kind", f"write {name}: redis://<host>:6379"
            )


@rule(
    "DPD121",
    "A second level that is described is switched on",
    severity=Severity.WARNING,
    why="l2CacheSpec has no effect while enableL2Cache is not true, and its default is false.",
    sources=(CRD_3_2,),
    since="2.1",
)
def second_level_is_on(endpoint: EndpointSubject) -> Iterator[Violation]:
    """l2CacheSpec without `enableL2Cache: true`."""
    cache = mapping(endpoint.reading.spec.get("kvCacheSpec"))
    if cache.get("l2CacheSpec") is not None and cache.get("enableL2Cache") is not True:
        path = (*_CACHE, "enableL2Cache")
        patch = set_value(endpoint, path, value=True)
        yield Violation(endpoint.at(*path), "l2CacheSpec is given, enableL2Cache is not true", "set enableL2Cache: true", patch=patch)


@rule(
    "DPD122",
    "tieredstorage needs the cluster's tiered storage",
    severity=Severity.ERROR,
    why="The backend is a daemon that HyperPod runs on every node of a cluster with tiered storage: without it pods find nobody to ask.",
    sources=(CACHING_ROUTING_GUIDE, LMCACHE),
    since="2.1",
)
def tiered_storage_is_on(endpoint: EndpointSubject) -> Iterator[Violation]:
    """The backend tieredstorage on a platform without `cluster.tieredStorage`."""
    stack = endpoint.stack
    if stack is None or stack.platform is None or not pieces(stack.platform).cluster or not _uses_tiered_storage(endpoint):
        return
    if stack.platform.cluster.tiered_storage is not None:
        return
    yield Violation(
        endpoint.at(*_CACHE, "l2CacheSpec", "l2CacheBackend"),
        "the second level is tieredstorage, the cluster has none",
        "add cluster: {tieredStorage: {memoryPercent: 20}} to the platform",
        value="tieredstorage",
        related=(stack.at("cluster", "tieredStorage"),),
    )


@once_a_stack
def _namespaces_on_tiered_storage(stack: StackSubject) -> frozenset[str]:
    """Where there are endpoints whose second level is tieredstorage."""
    return frozenset(_namespace(endpoint) for endpoint in stack.endpoints.values() if _uses_tiered_storage(endpoint))


def _namespace(endpoint: EndpointSubject) -> str:
    return str(endpoint.get("metadata", "namespace") or "default")


def _uses_tiered_storage(endpoint: EndpointSubject) -> bool:
    cache = mapping(endpoint.reading.spec.get("kvCacheSpec"))
    backend = text(mapping(cache.get("l2CacheSpec")).get("l2CacheBackend")).lower()
    return cache.get("enableL2Cache") is True and backend == "tieredstorage"


@rule(
    "DPD123",
    "Pods and tiered storage share a node's memory",
    severity=Severity.ERROR,
    why="Tiered storage takes its percentage of every node's memory: a pod that asks for more than the rest stays Pending or is killed.",
    sources=(CACHING_ROUTING_GUIDE,),
    since="2.1",
)
def memory_beside_tiered_storage(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A memory request over what tiered storage leaves of the node."""
    stack = endpoint.stack
    tiered = stack.platform.cluster.tiered_storage if stack is not None and stack.platform is not None else None
    sizes = endpoint.reading.node_sizes
    if tiered is None or not sizes:
        return
    node = max(sizes, key=lambda size: size.memory_gib)
    left = node.memory_gib * _GIB * (100 - tiered.memory_percent) // 100
    for server in endpoint.reading.servers:
        asked = server.asked("memory")
        if asked is not None and left < asked < node.memory_gib * _GIB:
            yield Violation(
                endpoint.at(*server.resources_path, "requests", "memory"),
                f"{server.name} asks for {in_gib(asked)}; tiered storage takes {tiered.memory_percent} % of the {node.memory_gib} GiB of "
                f"{node.name} and leaves {in_gib(left)}",
                f"ask for less than {in_gib(left)}, or lower cluster.tieredStorage.memoryPercent",
                value=endpoint.get(*server.resources_path, "requests", "memory"),
            )


@rule(
    "DPD124",
    "A pod's memory holds the first level of the cache",
    severity=Severity.WARNING,
    why=f"LMCache pins its pool in the node's memory for each rank, {DEFAULT_L1_GB:g} GB unless told otherwise (the operator's own figure "
    "is not published): a pod whose limit is below it is killed, or logs Local cpu memory under pressure.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1878)),
    since="2.1",
)
def first_level_fits(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Ranks times the pool over the pod's memory."""
    reading = endpoint.reading
    if not _has_first_level(endpoint):
        return
    each = _pool_gb(endpoint)
    for server in reading.servers[:1]:
        asked, ranks = _memory_limit(server), server.tensor_parallel_size
        if asked is None or each is None or not ranks or ranks < 1:
            continue
        pool = int(ranks * each * 10**9)
        if pool >= asked[0]:
            yield Violation(
                endpoint.at(*asked[1]),
                f"{server.name} may use {in_gib(asked[0])}; the first level takes {ranks} x {each:g} GB ({in_gib(pool)})",
                f"give it well over {in_gib(pool)} of memory, or lower {L1_VARIABLE}",
                value=endpoint.get(*asked[1]),
            )


@rule(
    "DPD125",
    "The first level of the cache holds one prompt",
    severity=Severity.WARNING,
    why="A prompt of full length that does not fit the pool of a rank is never cached whole: LMCache logs Local cpu memory under "
    "pressure and drops chunks.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1878)),
    since="2.1",
)
def first_level_holds_a_prompt(endpoint: EndpointSubject) -> Iterator[Violation]:
    """LMCACHE_MAX_LOCAL_CPU_SIZE under the KV cache of max-model-len tokens of one rank."""
    reading = endpoint.reading
    variable, server = reading.environment.get(L1_VARIABLE), reading.prefill
    each, longest, ranks, kv_format = _pool_gb(endpoint), reading.max_model_len(server), server.tensor_parallel_size, server.kv_format
    if variable is None or each is None or not _has_first_level(endpoint) or reading.chunk_tokens is None:
        return
    if reading.model is None or longest is None or not ranks or ranks < 1 or kv_format is None:
        return
    needed = minimum_pd_buffer_bytes(reading.model, longest, ranks, kv_format, reading.chunk_tokens)
    if each * 10**9 < needed:
        least = -(-needed // 10**9)
        yield Violation(
            endpoint.at(*variable.path),
            f"{L1_VARIABLE} is {each:g} GB a rank, one prompt of {longest:,} tokens takes {in_gib(needed)}",
            f'set {L1_VARIABLE} to "{least}" or more',
            value=variable.value,
        )


def _has_first_level(endpoint: EndpointSubject) -> bool:
    cache = endpoint.reading.spec.get("kvCacheSpec")
    return cache is not None and mapping(cache).get("enableL1Cache") is not False


def _pool_gb(endpoint: EndpointSubject) -> float | None:
    variable = endpoint.reading.environment.get(L1_VARIABLE)
    if variable is None:
        return DEFAULT_L1_GB
    try:
        size = float(variable.value or "")
    except ValueError:
        return None
    return size if 0 < size < 10**6 else None


def _memory_limit(server: ServerReading) -> tuple[int, tuple[str | int, ...]] | None:
    for part in ("limits", "requests"):
        size = quantity(mapping(server.resources.get(part)).get("memory"))
        if size is not None:
            return int(size), (*server.resources_path, part, "memory")
    return None


@rule(
    "DPD126",
    "Switching a cache off works from operator 3.3 on",
    severity=Severity.WARNING,
    why="Operators before 3.3 do not honour enableL1Cache: false and enableL2Cache: false.",
    sources=(RELEASE_NOTES,),
    since="2.1",
)
def switches_are_honoured(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A level switched off for an add-on below v1.4.0-eksbuild.1."""
    if endpoint.operator is None or AddonVersion.parse(endpoint.operator.addon_version) >= DPD_PREFERRED:
        return
    for key in ("enableL1Cache", "enableL2Cache"):
        if endpoint.get(*_CACHE, key) is False:
            what = f"{key} is false, and add-on {endpoint.operator.addon_version} does not honour it"
            yield Violation(endpoint.at(*_CACHE, key), what, f"raise operator.addonVersion to {DPD_PREFERRED}", value=False)


@rule(
    "DPD127",
    "KV caching and routing need vLLM",
    severity=Severity.WARNING,
    why="The operator's cache and router speak to vLLM only.",
    sources=(CACHING_ROUTING_GUIDE,),
    since="2.1",
)
def cache_needs_vllm(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A kvCacheSpec or a router with an image that holds another server."""
    reading = endpoint.reading
    if reading.server is None or reading.server.name == "vLLM":
        return
    used = [key for key in ("kvCacheSpec", "intelligentRoutingSpec", "pdSpec") if reading.spec.get(key) is not None]
    if used:
        what = f"{used[0]} is given, {reading.image} holds {reading.server.name}"
        yield Violation(endpoint.at("spec", "worker", "image"), what, f"use a vLLM image, or leave out {', '.join(used)}", reading.image)


@rule(
    "DPD128",
    "Tiered storage is shared by all",
    severity=Severity.ADVICE,
    why="The tiered cache is one for all endpoints of the cluster, without isolation between them, and its data is not encrypted at "
    "rest: what one team's users wrote lies where another team's pods read.",
    sources=(CACHING_ROUTING_GUIDE,),
    since="2.1",
)
def tiered_storage_is_shared(endpoint: EndpointSubject) -> Iterator[Violation]:
    """The backend tieredstorage on a platform with several teams, or beside endpoints of other namespaces that use it."""
    stack = endpoint.stack
    if stack is None or not _uses_tiered_storage(endpoint):
        return
    others = _namespaces_on_tiered_storage(stack) - {_namespace(endpoint)}
    teams = list(stack.platform.teams) if stack.platform is not None else []
    if others or len(teams) > 1:
        whom = f"namespaces {', '.join(sorted(others))}" if others else f"teams {', '.join(teams)}"
        yield Violation(
            endpoint.at(*_CACHE, "l2CacheSpec", "l2CacheBackend"),
            f"the second level is tieredstorage, which it shares with {whom}",
            "use redis of its own where prompts must stay apart",
            value="tieredstorage",
        )
