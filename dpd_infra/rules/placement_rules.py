"""Rules on where pods go: zones, node labels, and what a pod asks of a node."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from dpd_infra.catalog.sources import (
    CRD_3_2,
    EKS_PREREQUISITES_GUIDE,
    HYPERPOD_CONSTANTS,
    KUBERNETES_DOCS,
    PREREQUISITES_GUIDE,
    thread,
)
from dpd_infra.plan.groups import GROUP_LABEL
from dpd_infra.plan.pieces import gpu_zone
from dpd_infra.plan.quantities import in_gib, quantity
from dpd_infra.render.endpoint_roles import EFA_RESOURCE, GPU_RESOURCE, INSTANCE_TYPE_LABEL
from dpd_infra.rules.demand import demands, nodes_needed
from dpd_infra.rules.patches import remove, set_value
from dpd_infra.rules.reading import mapping
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Severity

_GIB = 2**30

HYPERPOD_LABELS: dict[str, tuple[str, ...]] = {
    GROUP_LABEL: (),
    INSTANCE_TYPE_LABEL: (),
    "sagemaker.amazonaws.com/cluster-name": (),
    "sagemaker.amazonaws.com/node-health-status": ("Schedulable", "Unschedulable"),
    "sagemaker.amazonaws.com/deep-health-check-status": ("Passed",),
    "topology.kubernetes.io/region": (),
    "topology.kubernetes.io/zone": (),
}
"""The labels of HyperPod nodes, and the values of those that have few (HyperPod on EKS prerequisites)."""

_LABEL_DOMAINS = ("sagemaker.amazonaws.com/", "node.kubernetes.io/instance-type", "topology.kubernetes.io/")


@rule(
    "DPD020",
    "Both roles stay in one zone",
    severity=Severity.WARNING,
    why="EFA traffic cannot cross zones: with roles in two zones the KV cache goes over TCP or not at all.",
    sources=(PREREQUISITES_GUIDE, CRD_3_2),
    since="3.2",
)
def same_zone(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`topologySpec.sameAZ: false`."""
    path = ("spec", "pdSpec", "topologySpec", "sameAZ")
    if endpoint.get(*path) is False:
        what = "sameAZ is false: prefill and decode may run in different zones"
        fix = "set it to true, the operator's default"
        yield Violation(endpoint.at(*path), what, fix, value=False, patch=set_value(endpoint, path, value=True))


@rule(
    "DPD021",
    "The endpoint's zone is the GPU zone",
    severity=Severity.ERROR,
    why="All GPU nodes of the platform are in one zone: pods that ask for another stay Pending.",
    sources=(PREREQUISITES_GUIDE, CRD_3_2),
    since="3.2",
)
def zone_is_gpu_zone(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`topologySpec.availabilityZone`, or a zone label that a role selects, that is not the platform's."""
    if endpoint.stack is None or endpoint.stack.platform is None:
        return
    zone = gpu_zone(endpoint.stack.platform)
    if zone is None:
        return
    places = [("spec", "pdSpec", "topologySpec", "availabilityZone")]
    places += [(*server.path, "nodeSelector", "topology.kubernetes.io/zone") for server in endpoint.reading.servers]
    for path in places:
        asked = endpoint.get(*path)
        if isinstance(asked, str) and asked and asked != zone:
            yield Violation(
                endpoint.at(*path),
                f"{asked} is asked for, the GPU zone is {zone}",
                f"write {zone}, or leave it out",
                value=asked,
                patch=set_value(endpoint, path, zone),
                related=(endpoint.stack.at("network", "zone"),),
            )


@rule(
    "DPD022",
    "Placement groups are EC2's, nodes are HyperPod's",
    severity=Severity.ADVICE,
    why="HyperPod places its nodes itself; what topologySpec.placementGroup does there is documented nowhere.",
    sources=(CRD_3_2,),
    since="3.2",
)
def placement_group(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A placementGroup in the topologySpec."""
    path = ("spec", "pdSpec", "topologySpec", "placementGroup")
    if endpoint.get(*path):
        what = f"placement group {endpoint.get(*path)!r} is asked for"
        yield Violation(endpoint.at(*path), what, "leave it out unless you have seen it work", patch=remove(endpoint, path))


@rule(
    "DPD023",
    "A spare node lets image and flags be changed",
    severity=Severity.ADVICE,
    why="A Deployment starts the new pod before it stops the old one (25 % surge, rounded up): with every node taken, the new pod stays "
    "Pending and the old one keeps serving.",
    sources=(KUBERNETES_DOCS, thread("vllm-project/vllm", 49238)),
    since="3.2",
)
def spare_node(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Nodes for all pods and none for the one more that a change of image or flags needs."""
    stack = endpoint.stack
    if stack is None or stack.platform is None or not endpoint.reading.disaggregated:
        return
    asked = [demand for other in stack.endpoints.values() for demand in demands(other)]
    own = list(demands(endpoint))
    pools: dict[tuple[str, ...], list[str]] = {}
    for server, demand in zip(endpoint.reading.servers, own, strict=True):
        names = [demand.group] if demand.group else [group.name for group in stack.groups if group.spec.instance_type in demand.types]
        pools.setdefault(tuple(names), []).append(server.name)
    for names, roles in pools.items():
        groups = [group for group in stack.groups if group.name in names]
        kinds = {group.spec.instance_type for group in groups}
        kind = groups[0].kind if len(kinds) == 1 else None
        if kind is None or not kind.gpus:
            continue
        here = [demand for demand in asked if demand.group in names or (demand.group is None and kinds & set(demand.types))]
        nodes = sum(group.spec.count for group in groups)
        if nodes_needed(here, kind.gpus, kind.efa_devices) == nodes:
            path = (*endpoint.reading.servers[0].path, "replicas") if len(roles) > 1 else ("spec", "pdSpec", _KEYS[roles[0]], "replicas")
            yield Violation(
                endpoint.at(*path),
                f"{' and '.join(names)}: {nodes} {'node' if nodes == 1 else 'nodes'}, all taken: {' and '.join(roles)} cannot be changed "
                "without an interruption",
                f"raise instanceGroups.{names[0]}.count to {groups[0].spec.count + 1} before a change, or delete the old pod during one",
            )


_KEYS = {"prefill": "prefillSpec", "decode": "decodingSpec"}


@rule(
    "DPD024",
    "A pod's requests fit a node",
    severity=Severity.ERROR,
    why="The scheduler places a pod on a node that has all it asks for, beside what kubelet and daemons take: a pod that asks for the "
    "whole of "
    "a node's processors or memory, or for more devices than it has, stays Pending for ever.",
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
    "Both roles ask for as many EFA devices a GPU",
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
    "DPD027",
    "Node selectors name labels that HyperPod nodes carry",
    severity=Severity.ERROR,
    why="A label that no node has, or another value of it, keeps the pods Pending with no other sign.",
    sources=(EKS_PREREQUISITES_GUIDE, thread("aws/sagemaker-hyperpod-cli", 386, 399)),
    since="3.2",
)
def selectors_match(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An unknown label of HyperPod's domains, a wrong value, or an instance type without `ml.`."""
    if not endpoint.reading.disaggregated:
        return
    for server in endpoint.reading.servers:
        for key, value in mapping(server.block.get("nodeSelector")).items():
            path = (*server.path, "nodeSelector", key)
            known = HYPERPOD_LABELS.get(key)
            if known is None and key.startswith(_LABEL_DOMAINS):
                near = difflib.get_close_matches(key, HYPERPOD_LABELS, n=1, cutoff=0)
                yield Violation(endpoint.at(*path), f"{server.name}: HyperPod nodes carry no label {key}", f"use {near[0]}", value=value)
            elif known and value not in known:
                patch = set_value(endpoint, path, known[0]) if len(known) == 1 else None
                what = f"{server.name}: {key} is never {value}"
                yield Violation(endpoint.at(*path), what, f"write {' or '.join(known)}", value=value, patch=patch)
            elif key == INSTANCE_TYPE_LABEL and isinstance(value, str) and not value.startswith("ml."):
                patch = set_value(endpoint, path, f"ml.{value}")
                what = f"{server.name}: the label's value on HyperPod nodes keeps its prefix"
                yield Violation(endpoint.at(*path), what, f"write ml.{value}", value=value, patch=patch)


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
    why="Under pdSpec the operator ignores worker.resources, which the CRD asks for all the same: a device that is requested there only is "
    "never given.",
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
