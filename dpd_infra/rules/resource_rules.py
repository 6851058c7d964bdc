"""Rules on what a pod asks of a node: processors, memory, GPUs, EFA devices, huge pages."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.instance_types import instance_type
from dpd_infra.catalog.sources import (
    CRD_3_2,
    DPD_GUIDE,
    HYPERPOD_CONSTANTS,
    KUBERNETES_DOCS,
    thread,
)
from dpd_infra.plan.quantities import in_gib, quantity
from dpd_infra.render.endpoint_roles import EFA_RESOURCE, GPU_RESOURCE
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import mapping

_GIB = 2**30


@rule(
    "DPD024",
    "A pod's requests fit a node",
    severity=Severity.ERROR,
    why="The scheduler places a pod on a node that has all it asks for, beside what kubelet and daemons take: a pod that asks for the "
    "whole of a node's processors or memory, or for more devices than it has, stays Pending for ever.",
    sources=(HYPERPOD_CONSTANTS, thread("daekeun-ml/aws-ai-infra-helper")),
)
def requests_fit_node(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Processors or memory of a node's size or over, GPUs or EFA devices over it."""
    sizes = endpoint.reading.node_sizes
    if not sizes or len(sizes) != len(endpoint.reading.instance_types):
        return
    largest = max(sizes, key=lambda size: (size.gpus, size.memory_gib))
    limits = {
        "cpu": (largest.vcpus, f"{largest.vcpus} vCPUs"),
        "memory": (largest.memory_gib * _GIB, f"{largest.memory_gib} GiB"),
        GPU_RESOURCE: (largest.gpus, f"{largest.gpus} GPUs"),
        EFA_RESOURCE: (largest.efa_devices, f"{largest.efa_devices} EFA devices"),
    }
    for server in endpoint.reading.servers:
        for name, (most, shown) in limits.items():
            asked = server.asked(name)
            if asked is None or asked < most or (asked == most and name not in {"cpu", "memory"}):
                continue
            part = "requests" if name in mapping(server.resources.get("requests")) else "limits"
            path = (*server.resources_path, part, name)
            written = mapping(server.resources.get(part)).get(name)
            number = f"{written} ({in_gib(asked)})" if name == "memory" else f"{written}"
            yield Violation(
                endpoint.at(*path),
                f"{server.name} asks for {name} {number}, a {largest.name} node has {shown}",
                f"ask for less than {shown}" if name in {"cpu", "memory"} else f"ask for {most} at most",
                value=written,
            )


@rule(
    "DPD025",
    "Both roles ask for the same number of EFA devices",
    severity=Severity.ERROR,
    why="Prefill and decode exchange the addresses of their EFA devices: with different counts the connection is not made (NIXL: "
    "Deserialization of tag failed).",
    sources=(thread("ai-dynamo/nixl", 1226, 1161),),
    since="3.2",
)
def equal_efa(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`vpc.amazonaws.com/efa` of the two roles that differs."""
    if not endpoint.reading.disaggregated:
        return
    prefill, decode = endpoint.reading.servers
    if prefill.efa_devices != decode.efa_devices:
        path = (*decode.resources_path, "requests", EFA_RESOURCE)
        what = f"prefill asks for {prefill.efa_devices} EFA devices, decode for {decode.efa_devices}"
        most = max(prefill.efa_devices, decode.efa_devices)
        yield Violation(endpoint.at(*path), what, f'ask for {EFA_RESOURCE}: "{most}" on both roles', value=decode.efa_devices)


@rule(
    "DPD026",
    "A role asks for the EFA devices that belong to its GPUs",
    severity=Severity.WARNING,
    why="Each GPU has EFA devices of its own beside it: with fewer, part of the GPUs share a card or go over TCP, and nothing says so.",
    sources=(HYPERPOD_CONSTANTS, thread("aws/sagemaker-hyperpod-cli", 306), thread("awslabs/awsome-distributed-ai", 1230, 1215)),
    since="3.2",
)
def whole_efa(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Fewer EFA devices than the share of the role's GPUs, where some are asked for."""
    sizes = endpoint.reading.node_sizes
    if not endpoint.reading.disaggregated or not sizes or len({(size.gpus, size.efa_devices) for size in sizes}) != 1:
        return
    size = sizes[0]
    for server in endpoint.reading.servers:
        share = size.efa_devices * server.gpus // size.gpus if size.gpus else 0
        if 0 < server.efa_devices < share:
            path = (*server.resources_path, "requests", EFA_RESOURCE)
            what = f"{server.name} asks for {server.efa_devices} EFA devices, {server.gpus} GPUs of {size.name} have {share}"
            yield Violation(endpoint.at(*path), what, f'ask for {EFA_RESOURCE}: "{share}"', value=server.efa_devices)


@rule(
    "DPD028",
    "Huge pages are there before they are asked for",
    severity=Severity.WARNING,
    why="A pod that requests huge pages stays Pending on nodes that set none aside, with no visible cause; that HyperPod's nodes do is "
    "documented nowhere.",
    sources=(thread("awslabs/awsome-distributed-ai", 1230), KUBERNETES_DOCS),
)
def huge_pages(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`hugepages-…` among a pod's resources."""
    for server in endpoint.reading.servers:
        for part in ("requests", "limits"):
            asked = [name for name in mapping(server.resources.get(part)) if name.startswith("hugepages-")]
            if asked:
                path = (*server.resources_path, part, asked[0])
                fix = "leave it out, or make sure that `kubectl describe node` lists it as allocatable"
                yield Violation(endpoint.at(*path), f"{server.name} asks for {asked[0]}", fix, value=endpoint.get(*path))
                break


@rule(
    "DPD029",
    "What roles need stands in the roles",
    severity=Severity.WARNING,
    why="Under pdSpec the operator ignores worker.resources, which the CRD asks for all the same: a device that is requested there only "
    "is never given.",
    sources=(CRD_3_2,),
    since="3.2",
)
def worker_resources_are_ignored(endpoint: EndpointSubject) -> Iterator[Violation]:
    """EFA devices, huge pages or a number of GPUs in worker.resources that no role asks for."""
    if not endpoint.reading.disaggregated:
        return
    worker = mapping(endpoint.reading.worker.get("resources"))
    seen: set[str] = set()
    for part in ("requests", "limits"):
        for name, value in mapping(worker.get(part)).items():
            asked = quantity(value)
            if name in {"cpu", "memory", "ephemeral-storage"} or name in seen or not asked:
                continue
            if all(server.asked(name) != asked for server in endpoint.reading.servers):
                seen.add(name)
                roles = " and ".join(f"{server.name} {server.asked(name) or 'none'}" for server in endpoint.reading.servers)
                yield Violation(
                    endpoint.at("spec", "worker", "resources", part, name),
                    f"worker.resources asks for {name} {value}, which is ignored here; the roles ask for {roles}",
                    f'ask for {name}: "{value}" in both roles\' resources, or leave it out',
                    value=value,
                )


@rule(
    "DPD030",
    "Both roles run on one kind of node",
    severity=Severity.WARNING,
    why="Prefill and decode exchange the addresses of their EFA devices and hold buffers of one size: on types with other counts or less "
    "memory the connection or the budget does not hold. AWS names types one at a time.",
    sources=(thread("ai-dynamo/nixl", 1226, 1161), DPD_GUIDE),
    since="3.2",
)
def one_kind_of_node(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Several instance types under a pdSpec that differ in EFA devices a GPU or in GPU memory."""
    reading = endpoint.reading
    kinds = [(name, path, instance_type(name)) for name, path in reading.instance_types]
    if not reading.disaggregated or len(kinds) < 2:
        return
    first = kinds[0][2]
    for name, path, kind in kinds[1:]:
        if first is None or kind is None or not first.gpus or not kind.gpus or first.gpu is None or kind.gpu is None:
            continue
        efa = f"{first.efa_devices} and {kind.efa_devices} EFA devices" if first.efa_devices != kind.efa_devices else ""
        memory = f"{first.gpu.name} and {kind.gpu.name} GPUs" if first.gpu.memory_bytes != kind.gpu.memory_bytes else ""
        if efa or memory:
            what = f"{kinds[0][0]} and {name} differ: {' and '.join(part for part in (efa, memory) if part)}"
            yield Violation(endpoint.at(*path), what, "keep one type, or types alike", value=name)
