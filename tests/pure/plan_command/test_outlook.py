"""Subnets, groups, roles and endpoints of a plan are read from what is registered, whoever registered it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan import outlook as outlook_module
from dpd_infra.plan.labels import label
from dpd_infra.plan.outlook import outlook
from tests.pure.plan_command.registrations import Made
from tests.pure.steps import assert_linear, steps

SUBNET = "aws:ec2/subnet:Subnet"


def subnet(name: str, cidr: str = "10.0.0.0/24") -> Made:
    return Made(SUBNET, name, {"cidrBlock": cidr, "availabilityZone": "us-east-2a"})


def hyperpod(*groups: dict[str, Any], subnets: tuple[Made, ...] = ()) -> Made:
    wired = {"vpcConfig": tuple(each.urn for each in subnets)} if subnets else {}
    return Made("aws-native:sagemaker:Cluster", "gpus", {"instanceGroups": list(groups)}, property_dependencies=wired)


def group(name: str, kind: str = "ml.p5.48xlarge", count: int = 1) -> dict[str, Any]:
    return {"instanceGroupName": name, "instanceType": kind, "instanceCount": count}


def endpoint(name: str = "llama", **spec: Any) -> Made:
    return Made(
        "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig",
        f"{name}-config",
        {"metadata": {"name": name, "namespace": "serving"}, "spec": {"modelName": "Llama", "instanceType": "ml.p5.48xlarge", **spec}},
    )


def role_part(replicas: int, gpus: str, pool: str | None = None) -> dict[str, Any]:
    selector = {"nodeSelector": {"sagemaker.amazonaws.com/instance-group-name": pool}} if pool else {}
    return {"replicas": replicas, "resources": {"requests": {"nvidia.com/gpu": gpus}}, **selector}


def test_a_subnet_has_its_block_less_the_five_that_aws_keeps() -> None:
    (found,) = outlook([subnet("a", "10.0.0.0/28")]).subnets
    # VPC user guide, subnet sizing: of the 16 addresses of a /28 eleven are left.
    assert (found.usable, found.room, found.needed) == (11, 11, {})


def test_a_subnet_knows_who_takes_its_addresses() -> None:
    gpu, shared, public = subnet("gpu"), subnet("shared"), subnet("public")
    cluster = hyperpod(group("gpu", count=2), group("cpu", "ml.c5.4xlarge"), subnets=(gpu,))
    eks = Made("aws:eks/cluster:Cluster", "eks", property_dependencies={"vpcConfig": (gpu.urn, shared.urn)})
    nat = Made("aws:ec2/natGateway:NatGateway", "nat", property_dependencies={"subnetId": (public.urn,)})
    ecr, sts = (
        Made("aws:ec2/vpcEndpoint:VpcEndpoint", name, property_dependencies={"subnetIds": (shared.urn,)}) for name in ("ecr", "sts")
    )
    found = {each.name: each for each in outlook([gpu, shared, public, cluster, eks, nat, ecr, sts]).subnets}
    # HyperPod prerequisites: 81 addresses a P5 node; our stand-in for a CPU node is 50. EKS user guide: six a subnet.
    assert found["gpu"].needed == {"nodes": 2 * 81 + 50, "EKS control plane": 6}
    assert found["gpu"].room == 256 - 5 - 212 - 6
    assert found["shared"].needed == {"EKS control plane": 6, "interface endpoints": 2}
    assert found["public"].needed == {"NAT gateway": 1}


def test_a_subnet_that_is_too_small_has_no_room() -> None:
    small = subnet("gpu", "10.0.0.0/26")
    (found,) = outlook([small, hyperpod(group("gpu", count=2), subnets=(small,))]).subnets
    assert found.room == 64 - 5 - 162 < 0


def test_groups_count_what_their_nodes_have_and_what_endpoints_ask() -> None:
    apart = endpoint(
        pdSpec={"prefillSpec": role_part(3, "8", "prefill"), "decodingSpec": role_part(1, "8", "decode"), "routingThreshold": 4096}
    )
    found = {each.name: each for each in outlook([hyperpod(group("prefill", count=4), group("decode", count=2)), apart]).groups}
    assert (found["prefill"].gpus, found["prefill"].asked_gpus, found["prefill"].efa_devices) == (32, 24, 128)
    assert (found["decode"].gpus, found["decode"].asked_gpus, found["decode"].addresses) == (16, 8, 162)


def test_a_role_without_a_group_is_counted_where_only_one_group_can_take_it() -> None:
    apart = endpoint(pdSpec={"prefillSpec": role_part(1, "8"), "decodingSpec": role_part(1, "8")})
    one = outlook([hyperpod(group("gpu", count=2), group("cpu", "ml.c5.4xlarge")), apart]).groups
    assert {each.name: each.asked_gpus for each in one} == {"gpu": 16, "cpu": 0}
    two = outlook([hyperpod(group("a"), group("b")), apart]).groups
    assert {each.name: each.asked_gpus for each in two} == {"a": 0, "b": 0}


def test_a_type_that_the_catalog_does_not_hold_has_no_gpu_count() -> None:
    (found,) = outlook([hyperpod(group("odd", "ml.x9.huge", 3))]).groups
    assert (found.gpus, found.efa_devices, found.addresses) == (None, None, 3 * 81)


def test_a_role_has_its_policies_however_they_are_attached() -> None:
    trust = {
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": ["eks.amazonaws.com"], "AWS": "arn:x"}}]
    }
    allow = {"Statement": {"Sid": "Read", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}}
    role = Made("aws:iam/role:Role", "r", {"name": "reader", "assumeRolePolicy": json.dumps(trust), "managedPolicyArns": ["arn:managed"]})
    own = Made("aws:iam/policy:Policy", "p", {"name": "invoke", "policy": json.dumps(allow)})
    wired = {"role": (role.urn,)}
    by_arn = Made(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "a", {"role": "reader", "policyArn": "arn:aws:x"}, property_dependencies=wired
    )
    by_name = Made(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "b", {"role": "reader"}, property_dependencies={"policyArn": (own.urn,)}
    )
    inline = Made("aws:iam/rolePolicy:RolePolicy", "c", {"name": "permissions", "policy": json.dumps(allow)}, property_dependencies=wired)
    foreign = Made("aws:iam/rolePolicy:RolePolicy", "d", {"role": "other", "policy": json.dumps(allow)})
    found = outlook([role, own, by_arn, by_name, inline, foreign])
    (reader,) = found.roles
    assert reader.trusted_by == ("eks.amazonaws.com", "arn:x")
    assert reader.managed == ("arn:managed", "arn:aws:x", "invoke")
    assert reader.inline == {"permissions": allow}
    assert [(policy.name, policy.document) for policy in found.policies] == [("invoke", allow)]


def test_a_colocated_endpoint_has_one_role() -> None:
    (found,) = outlook([endpoint(replicas=2, worker={"resources": {"limits": {"nvidia.com/gpu": 4}}})]).endpoints
    assert not found.disaggregated
    assert (found.namespace, found.name, found.routing_threshold, found.routing_strategy) == ("serving", "llama", None, None)
    (role,) = found.roles
    assert (role.role, role.replicas, role.gpus, role.instance_group, role.instance_type) == ("colocated", 2, 4, None, "ml.p5.48xlarge")


data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "spec", "pdSpec", "name", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
KINDS = [
    *("aws:iam/role:Role", "aws:iam/policy:Policy", "aws:iam/rolePolicy:RolePolicy", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"),
    *("kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig", "aws:eks/cluster:Cluster", "aws:ec2/vpc:Vpc"),
]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(["name", "policy", "assumeRolePolicy", "metadata", "spec", "role"]), data))
def test_inputs_of_any_shape_end_in_no_exception(kind: str, inputs: dict[str, Any]) -> None:
    made = Made(kind, "odd", inputs)
    outlook([made])
    assert isinstance(label(made), str)


KINDS = st.sampled_from(["ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.c5.4xlarge"])
POOLS = st.lists(st.tuples(st.sampled_from("abcd"), KINDS), max_size=5)
ASKED = st.lists(st.tuples(st.none() | st.sampled_from("abcde"), KINDS, st.integers(0, 3), st.sampled_from("48")), max_size=6)


@given(POOLS, ASKED)
def test_a_group_is_asked_for_by_name_and_by_type_where_it_is_alone_of_it(
    pools: list[tuple[str, str]], asked: list[tuple[str | None, str, int, str]]
) -> None:
    made = [hyperpod(*(group(name, kind) for name, kind in pools))]
    for number, (pool, kind, replicas, gpus) in enumerate(asked):
        parts = {"prefillSpec": role_part(replicas, gpus, pool), "decodingSpec": role_part(0, gpus, pool)}
        made.append(endpoint(f"e{number}", instanceType=kind, pdSpec=parts))
    for found, (name, kind) in zip(outlook(made).groups, pools, strict=True):
        alone = [each for _, each in pools].count(kind) == 1
        whose = [each for each in asked if each[0] == name or (each[0] is None and alone and each[1] == kind)]
        assert found.asked_gpus == sum(replicas * int(gpus) for _, _, replicas, gpus in whose)


def test_the_groups_of_a_plan_take_work_that_grows_with_them() -> None:
    def work(count: int) -> int:
        made = [hyperpod(*(group(f"g{number}") for number in range(count)))]
        made += [endpoint(f"e{number}", pdSpec={"prefillSpec": role_part(1, "8", f"g{number}")}) for number in range(count)]
        return steps(outlook_module, lambda: outlook(made))

    assert_linear(work)
