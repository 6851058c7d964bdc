"""What else a program may stand on: pulumi-eks, an operator that came with its cluster, and things that somebody else made."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as k8s
import pytest

from dpd_infra.rehearsal import RehearsalFailed, SimulatedAccount
from dpd_infra.rehearsal.account import Resource
from tests.engine.conftest import MakeProject
from tests.engine.raw_platform import RawPlatform

OPERATOR = "amazon-sagemaker-hyperpod-inference"


def eks_program(**options: object) -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    subnets = [
        aws.ec2.Subnet(zone, vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=f"us-east-2{zone}")
        for index, zone in enumerate("ab")
    ]
    cluster = eks.Cluster(
        "mine",
        authentication_mode=eks.AuthenticationMode.API,
        private_subnet_ids=[subnet.id for subnet in subnets],
        skip_default_node_group=True,
        **options,  # pyright: ignore[reportArgumentType]
    )
    provider = k8s.Provider("provider", kubeconfig=cluster.kubeconfig_json, cluster_identifier="mine")
    k8s.core.v1.Namespace("space", metadata={"name": "space"}, opts=pulumi.ResourceOptions(provider=provider))
    pulumi.export("arn", cluster.eks_cluster.apply(lambda made: made.arn))
    pulumi.export("mode", cluster.eks_cluster.apply(lambda made: made.access_config.authentication_mode))
    pulumi.export("oidc", cluster.oidc_provider_arn)


def test_a_program_on_pulumi_eks_rehearses(engine: MakeProject) -> None:
    project = engine(lambda: eks_program(name="shared", create_oidc_provider=True))
    assert set(project.preview().outcome.counts) == {"create"}
    run = project.up()
    assert run.outputs["arn"] == "arn:aws:eks:us-east-2:123456789012:cluster/shared"
    assert run.outputs["mode"] == "API"
    assert str(run.outputs["oidc"]).startswith("arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-2.amazonaws.com/id/")
    assert project.up().changes == 0
    project.destroy()
    assert len(project.account) == 0


def test_pulumi_eks_without_an_oidc_provider_has_no_arn_for_it(engine: MakeProject) -> None:
    assert not engine(eks_program).up().outputs["oidc"]


def no_subnets() -> None:
    eks.Cluster("mine")


def test_pulumi_eks_without_subnets_is_told_to_name_them(engine: MakeProject) -> None:
    with pytest.raises(RehearsalFailed, match="the rehearsal has no default VPC") as caught:
        engine(no_subnets).up()
    assert "Traceback" not in str(caught.value)


def adopting() -> None:
    platform = RawPlatform(operator=False, endpoint=False)
    platform()
    options = pulumi.InvokeOutputOptions(depends_on=[platform.cluster])
    pulumi.export("version", aws.eks.get_addon_output(cluster_name="test", addon_name=OPERATOR, opts=options).addon_version)


def test_an_operator_that_came_with_the_cluster_can_be_adopted_and_goes_with_it(engine: MakeProject) -> None:
    project = engine(adopting)
    assert project.up().outputs["version"] == "v1.4.0-eksbuild.1"
    project.destroy()
    assert len(project.account) == 0


def test_an_operator_that_did_not_come_is_not_found(engine: MakeProject) -> None:
    with pytest.raises(RehearsalFailed, match=f"ResourceNotFoundException: No addon: {OPERATOR} found in cluster: test"):
        engine(adopting, SimulatedAccount(operator_preinstalled=False)).up()


def test_an_operator_that_came_first_is_in_the_way_of_a_second(engine: MakeProject) -> None:
    with pytest.raises(RehearsalFailed, match=f"{OPERATOR} .*ResourceInUseException: Addon already exists"):
        engine(RawPlatform(endpoint=False), SimulatedAccount(operator_preinstalled=True)).up()


def test_a_log_group_that_is_there_already_is_in_the_way(engine: MakeProject) -> None:
    name = "/aws/eks/test/cluster"
    account = SimulatedAccount()
    account.add(Resource("aws:cloudwatch/logGroup:LogGroup", name, {}, {"name": name}, region="us-east-2"))

    def program() -> None:
        aws.cloudwatch.LogGroup("logs", name=name)

    with pytest.raises(RehearsalFailed, match="ResourceAlreadyExistsException: The specified log group already exists"):
        engine(program, account).up()


def test_what_somebody_else_made_can_be_read_by_id(engine: MakeProject) -> None:
    account = SimulatedAccount()
    account.add(Resource("aws:ec2/vpc:Vpc", "vpc-1", {}, {"cidrBlock": "10.0.0.0/16", "arn": "arn:x"}, region="us-east-2"))

    def program() -> None:
        pulumi.export("block", aws.ec2.Vpc.get("theirs", "vpc-1").cidr_block)

    project = engine(program, account)
    assert project.up().outputs == {"block": "10.0.0.0/16"}
    project.destroy()
    assert len(account) == 1, "what was only read is not deleted"
