"""What docs/changes.md says of a field beside the engine's own plan: the field's old stack is brought up, its new one previewed."""

from __future__ import annotations

import copy
import importlib.util
import json
import runpy
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pulumi_kubernetes as kubernetes

import dpd_infra as dpd
from dpd_infra.catalog.changes import FieldChange, Outcome, field_changes
from dpd_infra.rehearsal import RehearsalFailed, SimulatedAccount
from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.engine import Step
from dpd_infra.spec.yaml_writing import write_yaml
from tests.engine.estate import EFA_GROUP, HYPERPOD_ARN, NODE_GROUP, REGION, THEIR_EKS, VPC, Estate
from tests.engine.harness import REPOSITORY, EngineProject


def _tool() -> Any:
    """tools/make_change_docs.py, which has the samples."""
    name = "make_change_docs"
    if name not in sys.modules:
        folder = REPOSITORY / "tools"
        sys.path.insert(0, str(folder))
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


TOOL = _tool()
FIELDS: dict[str, Any] = TOOL.fields()
SECRETS = {"dpd-infra:one": "hf_one", "dpd-infra:other": "hf_other"}
"""The Hugging Face tokens that samples name."""


def program() -> None:
    """The program that users run, unchanged."""
    runpy.run_path(str(REPOSITORY / "stacks" / "__main__.py"), run_name="__main__")


def endpoints_program() -> None:
    """The endpoints of a stack, on the operator of an EKS cluster that is somebody else's."""
    stack = dpd.StackSpec.from_config()
    assert stack.operator is not None
    clusters = [{"name": "theirs", "cluster": {"server": f"https://their-eks.gr7.{REGION}.eks.amazonaws.com"}}]
    provider = kubernetes.Provider("theirs", kubeconfig=json.dumps({"clusters": clusters, "users": []}), cluster_identifier=THEIR_EKS)
    operator = dpd.OperatorHandle(stack.operator, stack.operator.addon_version, provider, "their-hyperpod", stack.aws.region, (provider,))
    for name, endpoint in stack.endpoints.items():
        dpd.Endpoint(name, endpoint, operator=operator, hugging_face_token=stack.hugging_face_token(name))


def stacks_of(field: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration before and after a field's change."""
    return TOOL.stacks_of(field, FIELDS[field])


@dataclass
class Family:
    """Fields whose samples begin with the same stack."""

    old: dict[str, Any]
    new: dict[str, dict[str, Any]]
    """The configuration afterwards, by field."""


def families(fields: Iterable[str]) -> list[Family]:
    """Fields by the stack that their samples begin with, the largest family first."""
    found: dict[str, Family] = {}
    for field in fields:
        old, new = stacks_of(field)
        found.setdefault(write_yaml(old), Family(old, {})).new[field] = new
    return sorted(found.values(), key=lambda family: -len(family.new))


def kinds(steps: Iterable[Step]) -> dict[str, str]:
    """What happens to the resources, by the kinds' names as the table has them.

    The gravest of what happens to one kind counts; one that is made while another one goes took its place.
    """
    found: dict[str, set[str]] = {}
    for step in steps:
        op = {"create-replacement": "replace", "delete-replaced": "replace"}.get(step.op, step.op)
        package, _, rest = step.type.partition(":")
        module, _, kind = rest.partition(":")
        if op not in _OPS or package == "dpd" or (package == "pulumi" and module != "providers"):
            continue
        name = f"{kind} provider" if package == "pulumi" else kind if package == "kubernetes" else f"{module.split('/')[0]} {kind}"
        found.setdefault(name, set()).add(op)
    return {name: "replace" if {"create", "delete"} <= ops else next(op for op in _OPS if op in ops) for name, ops in found.items()}


_OPS = ("replace", "delete", "create", "update")


def said(change: FieldChange) -> dict[str, str]:
    """What the table says happens, without Pulumi's own options: no step of the engine shows them."""
    return {kind: op for kind, op in change.resources.items() if op != "options"}


@dataclass(frozen=True)
class Planned:
    """What the engine would do."""

    kinds: Mapping[str, str]
    refusal: str = ""
    """Why it would not, in its words: something is protected, or the program refuses the change."""
    protected: frozenset[str] = frozenset()
    """The names of what it would take away were it not protected."""


class Standing:
    """A stack that is up, and what the engine says of changes to it. Nothing that is previewed is done."""

    def __init__(self, folder: Path, old: dict[str, Any], **options: Any) -> None:
        account = options.pop("account", None) or account_of(old)
        self.project = EngineProject(folder, options.pop("program", program), config=old, account=account, secrets=SECRETS, **options)
        self.project.up()

    def plan(self, new: dict[str, Any]) -> Planned:
        """Preview a change: as it is, and where protection is in the way, once more without it."""
        self.project.config = new
        try:
            return Planned(kinds(self.project.preview().outcome.steps))
        except RehearsalFailed as refused:
            if "protect" not in refused.message:
                return Planned({}, refused.message)
            kept = self.project.state_file.read_text(encoding="utf-8")
            state = json.loads(kept)
            held = {resource["urn"] for resource in state["checkpoint"]["latest"]["resources"] if resource.pop("protect", None)}
            self.project.state_file.write_text(json.dumps(state), encoding="utf-8")
            try:
                steps = self.project.preview().outcome.steps
                gone = frozenset(step.name for step in steps if step.urn in held and step.op in {"replace", "delete"})
                return Planned(kinds(steps), refused.message, gone)
            finally:
                self.project.state_file.write_text(kept, encoding="utf-8")

    def do(self, new: dict[str, Any], *, without: str) -> Planned:
        """Change it, after something of one type was deleted behind its back."""
        for item in self.project.account.all(without):
            self.project.account.remove(item)
        self.project.config = new
        return Planned(kinds(self.project.up().outcome.steps))


def differences(field: str, planned: Planned) -> list[str]:
    """Where the engine's plan is another than the table's entry; nothing where they agree."""
    change = field_changes()[field]
    found = []
    if dict(planned.kinds) != said(change):
        found.append(f"{field}: the engine {dict(planned.kinds)}, the table {said(change)} {planned.refusal}")
    taken = {kind for kind, op in change.resources.items() if op in {"replace", "delete"}}
    if taken & ALWAYS_PROTECTED and not planned.refusal:
        found.append(f"{field}: the engine says nothing against what it does to {sorted(taken & ALWAYS_PROTECTED)}")
    by_program = change.outcome is Outcome.REFUSED and not change.resources
    if bool(planned.refusal) != (by_program or bool(planned.protected)):
        found.append(f"{field}: the engine says {planned.refusal or 'nothing against it'}; protected are {sorted(planned.protected)}")
    return found


ALWAYS_PROTECTED = {"sagemaker Cluster", "eks Cluster", "kms Key"}
"""Kinds that a platform has one of, and protects (docs/troubleshooting.md, a destroy is refused)."""


def account_of(config: Mapping[str, Any]) -> SimulatedAccount:
    """An account in which everything exists that the samples name as somebody else's, before and after."""
    platform: Mapping[str, Any] = config.get("dpd-infra:platform") or {
        "existing": dict.fromkeys(("network", "controlPlane", "cluster", "operator"))
    }
    theirs = platform.get("existing") or {}
    estate = Estate(
        network="network" in theirs, control_plane="controlPlane" in theirs, cluster="cluster" in theirs, operator="operator" in theirs
    )
    account = estate.account
    for name in ("app", "batch"):
        account.add(Resource(base.ROLE, name, {}, {"name": name, "arn": f"arn:aws:iam::{account.id}:role/{name}"}))
    if estate.network or estate.control_plane:
        _second_network(account)
    if estate.control_plane:
        arn = f"arn:aws:eks:{REGION}:{account.id}:cluster/other-eks"
        endpoint = f"https://other-eks.gr7.{REGION}.eks.amazonaws.com"
        _twin(account, THEIR_EKS, "other-eks", name="other-eks", arn=arn, endpoint=endpoint)
        for item in [one for one in account if one.outputs.get("clusterName") == THEIR_EKS]:
            _twin(account, item.id, item.id.replace(THEIR_EKS, "other-eks"), clusterName="other-eks")
    if estate.cluster:
        arn = HYPERPOD_ARN.replace("cluster/a", "cluster/b")
        _twin(account, HYPERPOD_ARN, arn, clusterArn=arn, clusterName="other")
    return account


def _second_network(account: SimulatedAccount) -> None:
    """More subnets and groups in their VPC, and another VPC like it."""
    _twin(account, VPC, "vpc-0b", mainRouteTableId="rtb-10", defaultSecurityGroupId="sg-10")
    _twin(account, "rtb-0a", "rtb-0b")
    for old, new, vpc in ((NODE_GROUP, "sg-0d", VPC), (EFA_GROUP, "sg-1a", "vpc-0b"), (NODE_GROUP, "sg-1b", "vpc-0b")):
        _twin(account, old, new, vpcId=vpc)
        for item in [*account.all(base.INGRESS_RULE, securityGroupId=old), *account.all(base.EGRESS_RULE, securityGroupId=old)]:
            itself = {key: new for key in ("referencedSecurityGroupId",) if key in item.outputs}
            _twin(account, item.id, f"{item.id}-{new}", securityGroupId=new, **itself)
    for old, new, zone, vpc, block in (
        ("subnet-0a", "subnet-0d", "a", VPC, "10.50.192.0/20"),
        ("subnet-0a", "subnet-0e", "b", VPC, "10.50.208.0/20"),
        ("subnet-0a", "subnet-0f", "b", VPC, "10.50.224.0/20"),
        ("subnet-0a", "subnet-1a", "a", "vpc-0b", "10.50.64.0/18"),
        ("subnet-0b", "subnet-1b", "a", "vpc-0b", "10.50.0.0/20"),
        ("subnet-0c", "subnet-1c", "b", "vpc-0b", "10.50.16.0/20"),
    ):
        _twin(account, old, new, vpcId=vpc, availabilityZone=f"{REGION}{zone}", cidrBlock=block)
        _twin(account, f"rtbassoc-{old}", f"rtbassoc-{new}", subnetId=new)


def _twin(account: SimulatedAccount, identity: str, new: str, **outputs: Any) -> None:
    [item] = [one for one in account if one.id == identity]
    account.add(replace(item, id=new, inputs={}, outputs={**copy.deepcopy(item.outputs), **outputs}))
