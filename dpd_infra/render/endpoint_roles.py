"""The roles of an endpoint in its manifest, and the nodes of its colocated twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpd_infra.plan.endpoint_pods import node_type, role_efa_devices, role_gpus
from dpd_infra.render.draft import Draft, SpecReader
from dpd_infra.render.provenance import Origin
from dpd_infra.spec.finding import Path
from dpd_infra.spec.vocabulary import Role

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint import EndpointSpec

INSTANCE_GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
"""The label that every HyperPod node carries with its instance group's name (HyperPod DLC page)."""

INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
"""The label with the instance type; on HyperPod its value keeps the `ml.` prefix."""

GPU_RESOURCE = "nvidia.com/gpu"
EFA_RESOURCE = "vpc.amazonaws.com/efa"

_SPEC_KEYS = {Role.PREFILL: "prefillSpec", Role.DECODE: "decodingSpec"}
_SCALING_KEYS = {Role.PREFILL: "prefillAutoScaling", Role.DECODE: "decodingAutoScaling"}


def put_roles(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    """`spec.pdSpec` with both roles."""
    root: Path = ("spec", "pdSpec")
    for role in Role:
        _put_role(draft, said, spec, role, (*root, _SPEC_KEYS[role]))
    draft.put((*root, "routingThreshold"), *said.read("routing", "threshold"))
    for field, key in (("same_zone", "sameAZ"), ("zone", "availabilityZone"), ("placement_group", "placementGroup")):
        value, origin = said.read("placement", field)
        if value is not None:
            draft.put((*root, "topologySpec", key), value, origin)
    for role in Role:
        scaling, origin = said.read(role.value, "autoscaling")
        if scaling is not None:
            draft.put((*root, "autoScalingSpec", _SCALING_KEYS[role]), scaling, origin, same_shape=True)


def _put_role(draft: Draft, said: SpecReader, spec: EndpointSpec, role: Role, root: Path) -> None:
    name = role.value
    draft.put((*root, "replicas"), *said.read(name, "replicas"))
    sequences, origin = said.read(name, "max_num_seqs")
    for text in () if sequences is None else ("--max-num-seqs", str(sequences)):
        draft.append((*root, "args"), text, origin)
    args, origin = said.read(name, "args")
    for index, text in enumerate(args):
        draft.append((*root, "args"), text, origin.below((index,)))
    if spec.role(role).instance_group is not None:
        draft.put((*root, "nodeSelector", INSTANCE_GROUP_LABEL), *said.read(name, "instance_group"))
    labels, origin = said.read(name, "node_selector")
    for key, value in labels.items():
        draft.put((*root, "nodeSelector", key), value, origin.below((key,)))
    put_resources(draft, said, (*root, "resources"), _worked_out(said, spec, role), (name, "resources"))


def _worked_out(said: SpecReader, spec: EndpointSpec, role: Role) -> dict[str, tuple[str, Origin]]:
    count, origin = said.read(role.value, "gpus")
    if count is None:
        origin = said.derived(_whole_count(spec), role.value, "gpus")
    amounts = {GPU_RESOURCE: (str(role_gpus(spec, role)), origin)}
    devices = role_efa_devices(spec, role)
    if devices:
        amounts[EFA_RESOURCE] = (str(devices), said.read("efa")[1])
    return amounts


def _whole_count(spec: EndpointSpec) -> str:
    kind = node_type(spec)
    if kind is None or not kind.gpus:
        return "eight GPUs a node: the count of every type that DPD supports"
    return f"all {kind.gpus} GPUs of {kind.name} ({kind.sources[0]})"


def put_resources(draft: Draft, said: SpecReader, root: Path, amounts: dict[str, tuple[str, Origin]], names: tuple[str, str]) -> None:
    """Requests and limits: the amounts that were worked out as both, and what the user wrote over them."""
    for part in ("limits", "requests"):
        for resource, (amount, origin) in amounts.items():
            draft.put((*root, part, resource), amount, origin)
        said_here, origin = said.read(*names, part)
        for resource, amount in said_here.items():
            draft.put((*root, part, resource), amount, origin.below((resource,)))


def role_selectors(spec: EndpointSpec) -> list[tuple[Role, dict[str, str]]]:
    """The node labels that each role asks for, each set once; empty where no role asks for any."""
    found: list[tuple[Role, dict[str, str]]] = []
    for role in Role:
        asked = spec.role(role)
        group = {INSTANCE_GROUP_LABEL: asked.instance_group} if asked.instance_group is not None else {}
        labels = {**group, **asked.node_selector}
        if labels not in [other for _, other in found]:
            found.append((role, labels))
    return found if any(labels for _, labels in found) else []


def put_colocated_nodes(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    """The colocated twin of roles with their own nodes: it may run on the nodes of either role.

    The custom resource has no node selector outside of roles, and an instance type excludes a node affinity, so the type becomes
    one of the affinity's conditions.
    """
    root: Path = ("spec", "nodeAffinity")
    affinity, origin = said.read("node_affinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms: list[dict[str, Any]] = [{}]
    if affinity is not None:
        draft.put(root, affinity, origin, same_shape=True)
        terms = (affinity.get(required) or {}).get("nodeSelectorTerms") or [{}]
    else:
        field = "instance_type" if spec.instance_type is not None else "instance_types"
        types, origin = said.read(field)
        values = [types] if isinstance(types, str) else list(types)
        terms = [{"matchExpressions": [{"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": values}]}]
    joined: list[dict[str, Any]] = []
    for term in terms:
        for _, labels in role_selectors(spec):
            asked = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
            joined.append({**term, "matchExpressions": [*term.get("matchExpressions", []), *asked]})
    place = (*root, required, "nodeSelectorTerms")
    for leaf in [leaf for leaf in draft.provenance.origins if leaf[: len(place)] == place]:
        del draft.provenance.origins[leaf]
    draft.put(place, joined, origin)
    _point_at_selectors(draft, said, spec, place)


def _point_at_selectors(draft: Draft, said: SpecReader, spec: EndpointSpec, place: Path) -> None:
    """Let each role's conditions name the role as their origin."""
    groups = role_selectors(spec)
    terms = draft.document["spec"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for index, term in enumerate(terms):
        role, labels = groups[index % len(groups)]
        own = len(term["matchExpressions"]) - len(labels)
        for offset, key in enumerate(labels):
            is_group = key == INSTANCE_GROUP_LABEL and key not in spec.role(role).node_selector
            origin = said.read(role.value, "instance_group")[1] if is_group else said.read(role.value, "node_selector")[1].below((key,))
            for leaf in [
                leaf for leaf in draft.provenance.origins if leaf[: len(place) + 3] == (*place, index, "matchExpressions", own + offset)
            ]:
                draft.provenance.origins[leaf] = origin
