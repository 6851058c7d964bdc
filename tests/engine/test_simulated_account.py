"""The simulated account refuses what AWS and Kubernetes refuse: each order that a platform must keep is broken once."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as native
import pulumi_kubernetes as k8s
import pytest

from dpd_infra.rehearsal import Failure, OperatorBehaviour, RehearsalFailed, SimulatedAccount
from dpd_infra.rehearsal.account import Resource
from tests.engine.conftest import MakeProject
from tests.engine.harness import EngineProject
from tests.engine.raw_platform import POLICY, TRUST, RawPlatform, kubeconfig, trust

HYPERPOD = "aws-native:sagemaker:Cluster"
NODE_ADDONS = ("coredns", "cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server")


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in NODE_ADDONS if name not in names)


def test_a_whole_platform_comes_up_settles_scales_and_goes(engine: MakeProject) -> None:
    groups = {"decode": 1, "prefill": 2, "system": 2}
    project = engine(RawPlatform(groups=groups))
    assert set(project.preview().outcome.counts) == {"create"}
    first = project.up()
    assert set(first.outcome.counts) == {"create"}
    assert project.up().changes == 0
    assert project.refresh().changes == 0
    project.program = RawPlatform(groups=groups, prefill_replicas=2)
    assert project.up().changed == {"endpoint": "update"}
    project.destroy()
    assert len(project.account) == 0
    gone = [operation.name for operation in project.account.journal if operation.action == "delete"]
    for first_name, then in (
        ("endpoint", "amazon-sagemaker-hyperpod-inference"),
        ("amazon-sagemaker-hyperpod-inference", "cert-manager"),
        ("coredns", "hyperpod"),
        ("hyperpod", "hyperpod-dependencies"),
        ("hyperpod-dependencies", "oidc"),
        ("nat", "igw"),
    ):
        assert gone.index(first_name) < gone.index(then) or then == "oidc", (first_name, then)


REFUSALS: list[tuple[str, RawPlatform, str, str]] = [
    ("no NAT route", RawPlatform(default_route=False), "hyperpod", "no default route through a NAT gateway"),
    ("config-map authentication", RawPlatform(authentication_mode="CONFIG_MAP"), "deployer", "authentication mode must be set to one of"),
    ("no access entry", RawPlatform(deployer_access=False), "hyperpod-dependencies", "asked for the client to provide credentials"),
    ("no access policy", RawPlatform(deployer_policy=False), "hyperpod-dependencies", "is forbidden: User"),
    ("no dependency chart", RawPlatform(dependencies=False), "hyperpod", "Dependencies are not installed on EKS cluster test"),
    ("chart waits for pods", RawPlatform(dependencies_wait=True), "hyperpod-dependencies", "context deadline exceeded"),
    ("no lifecycle script", RawPlatform(lifecycle_script=False), "hyperpod", "sagemaker-test-lifecycle/scripts/on_create.sh"),
    ("role without policy", RawPlatform(node_policy=False), "hyperpod", "no policy is attached"),
    ("coredns before nodes", RawPlatform(addons_after_nodes=False, hyperpod=False), "coredns", "InsufficientNumberOfReplicas"),
    ("no nodes in any group", RawPlatform(groups={"system": 0}), "coredns", "last state: 'DEGRADED'"),
    ("no S3 CSI driver", RawPlatform(node_addons=without("aws-mountpoint-s3-csi-driver")), "amazon-sagemaker", "CSIDriver s3.csi.aws.com"),
    ("no FSx CSI driver", RawPlatform(node_addons=without("aws-fsx-csi-driver")), "amazon-sagemaker", "missing CSIDriver fsx.csi.aws.com"),
    ("no cert-manager", RawPlatform(node_addons=without("cert-manager")), "amazon-sagemaker", "certificaterequests.cert-manager.io"),
    ("role without the prefix", RawPlatform(operator_role="inference"), "amazon-sagemaker", "role name with prefix 'SageMakerHyperPodInf"),
    (
        "no TLS bucket named",
        RawPlatform(operator_configuration=("executionRoleArn",)),
        "amazon-sagemaker",
        "tlsCertificateS3Bucket: is missing",
    ),
    ("no role named", RawPlatform(operator_configuration=("tlsCertificateS3Bucket",)), "amazon-sagemaker", "executionRoleArn: is missing"),
    ("no OIDC provider", RawPlatform(oidc_provider=False), "amazon-sagemaker", "sts:AssumeRoleWithWebIdentity"),
    ("no operator", RawPlatform(operator=False), "endpoint", 'no matches for kind "InferenceEndpointConfig" in version'),
    ("endpoint before the operator", RawPlatform(endpoint_after_operator=False), "endpoint", "no matches for kind"),
    ("more replicas than nodes", RawPlatform(prefill_replicas=2), "endpoint", "Insufficient nvidia.com/gpu"),
    ("no such group", RawPlatform(groups={"decode": 2, "system": 1}), "endpoint", "didn't match Pod's node affinity/selector"),
]


@pytest.mark.parametrize(("program", "resource", "message"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_a_broken_order_is_refused_with_the_reason(engine: MakeProject, program: RawPlatform, resource: str, message: str) -> None:
    with pytest.raises(RehearsalFailed) as caught:
        engine(program).up()
    lines = [line for line in str(caught.value).splitlines() if not line.startswith(" ")]
    assert any(line.startswith(resource) for line in lines), lines
    assert message in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The types of everything that an `up` without a failure makes."""
    project = EngineProject(tmp_path_factory.mktemp("undisturbed"), RawPlatform())
    project.up()
    return sorted(item.type for item in project.account)


@pytest.mark.parametrize("nth", [1, 9, 17, 25, 33, 36])
def test_a_create_that_fails_and_an_up_again_converge_with_nothing_twice(engine: MakeProject, undisturbed: list[str], nth: int) -> None:
    project = engine(RawPlatform(), SimulatedAccount(fail_on=nth))
    with pytest.raises(RehearsalFailed, match="An internal failure occurred"):
        project.up()
    project.up()
    assert project.up().changes == 0
    assert sorted(item.type for item in project.account) == undisturbed
    created = [operation.urn for operation in project.account.journal if operation.action == "create"]
    assert len(created) == len(set(created))


def test_a_resource_left_half_made_is_finished_by_the_next_up(engine: MakeProject) -> None:
    account = SimulatedAccount(fail_on=Failure("hyperpod", message="operation CREATE failed: capacity", half_made=True))
    project = engine(RawPlatform(), account)
    with pytest.raises(RehearsalFailed, match=r"hyperpod .*capacity"):
        project.up()
    assert len(account.all(HYPERPOD)) == 1
    assert project.up().op("hyperpod") == "update"
    assert project.up().changes == 0
    assert len(account.all(HYPERPOD)) == 1


def test_an_addon_that_waited_in_vain_turns_active_at_the_next_up(engine: MakeProject) -> None:
    project = engine(RawPlatform(groups={"system": 0}, endpoint=False))
    with pytest.raises(RehearsalFailed, match="DEGRADED"):
        project.up()
    project.program = RawPlatform(groups={"system": 1}, endpoint=False)
    project.up()
    assert project.up().changes == 0


def test_a_slow_model_needs_the_endpoints_own_timeout(engine: MakeProject) -> None:
    account = SimulatedAccount(operator=OperatorBehaviour(seconds=1500))
    project = engine(RawPlatform(), account)
    with pytest.raises(RehearsalFailed) as caught:
        project.up()
    assert "timed out after 600 s waiting for jsonpath={.status.state}=DeploymentComplete" in str(caught.value)
    project.program = RawPlatform(endpoint_timeout="45m")
    assert project.up().op("endpoint") == "update", "the object is kept in the state and waited for again"
    assert project.up().changes == 0


def test_an_endpoint_that_fails_says_what_the_operator_said(engine: MakeProject) -> None:
    account = SimulatedAccount(operator=OperatorBehaviour(failure="model not found in s3://models/llama"))
    with pytest.raises(RehearsalFailed) as caught:
        engine(RawPlatform(), account).up()
    assert "status.state is DeploymentFailed: model not found in s3://models/llama" in str(caught.value)


def test_groups_in_another_order_are_no_change_and_a_new_first_group_is_one_update(engine: MakeProject) -> None:
    project = engine(RawPlatform(endpoint=False, operator=False))
    project.up()
    project.program = RawPlatform(endpoint=False, operator=False, group_order=("system", "decode", "prefill"))
    assert project.preview().changes == 0
    groups = {"analysis": 1, "decode": 1, "prefill": 1, "system": 2}
    project.program = RawPlatform(endpoint=False, operator=False, groups=groups)
    assert project.up().changed == {"hyperpod": "update"}
    cluster = project.account.all(HYPERPOD)[0]
    assert {group["instanceGroupName"]: group["instanceCount"] for group in cluster.outputs["instanceGroups"]} == groups


def test_what_is_fixed_in_a_group_or_has_no_room_is_refused_at_the_update(engine: MakeProject) -> None:
    options = {"endpoint": False, "operator": False, "node_addons": ()}
    project = engine(RawPlatform(**options))
    project.up()
    project.program = RawPlatform(**options, spot=True)
    with pytest.raises(RehearsalFailed, match="capacityRequirements of instance group decode cannot be changed"):
        project.up()
    # 81 addresses a p5 node (HyperPod prerequisites): 8187 are too few for 120.
    project.program = RawPlatform(**options, groups={"decode": 1, "prefill": 120, "system": 2})
    with pytest.raises(RehearsalFailed, match="Insufficient free addresses"):
        project.up()


def test_kubernetes_goes_up_one_minor_version_at_a_time(engine: MakeProject) -> None:
    options = {"hyperpod": False, "endpoint": False, "operator": False, "node_addons": ()}
    project = engine(RawPlatform(**options))
    project.up()
    project.program = RawPlatform(**options, version="1.35")
    with pytest.raises(RehearsalFailed, match=r"Unsupported Kubernetes minor version update from 1\.33 to 1\.35"):
        project.up()
    project.program = RawPlatform(**options, version="1.34")
    assert project.up().changed == {"eks": "update"}


def test_what_an_autoscaler_set_stays_unless_the_groups_change(engine: MakeProject) -> None:
    project = engine(RawPlatform(endpoint=False, operator=False, node_addons=()))
    project.up()
    cluster = project.account.all(HYPERPOD)[0]
    cluster.outputs["instanceGroups"][1]["instanceCount"] = 7
    assert project.up().changes == 0, "nothing is compared with the account without a refresh"
    assert project.refresh().diff("hyperpod") == {"instanceGroups[1].instanceCount"}


def test_a_network_edit_deletes_the_cluster_before_its_replacement(engine: MakeProject) -> None:
    project = engine(RawPlatform(endpoint=False, operator=False, node_addons=()))
    project.up()
    project.program = RawPlatform(endpoint=False, operator=False, node_addons=(), cidr="10.9.0.0/16")
    assert project.preview().op("hyperpod") == "replace"
    assert len(project.account.all(HYPERPOD)) == 1, "a preview makes nothing"
    assert "vpcConfig" in " ".join(project.preview().diff("hyperpod"))


def test_destroy_fails_while_something_still_stands_in_the_way(engine: MakeProject) -> None:
    project = engine(RawPlatform(tls_force_destroy=False))
    project.up()
    with pytest.raises(RehearsalFailed, match="BucketNotEmpty"):
        project.destroy()
    assert [item.type for item in project.account if item.type == "aws:s3/bucket:Bucket"] == ["aws:s3/bucket:Bucket"]


def test_secrets_are_nowhere_in_plain_text(engine: MakeProject) -> None:
    words = ("correct-horse", "battery-staple")

    def program() -> None:
        eks = RawPlatform(hyperpod=False, node_addons=(), operator=False, endpoint=False)
        eks()
        k8s.core.v1.Secret(
            "token",
            metadata={"name": "token", "namespace": "default"},
            string_data={"token": pulumi.Output.secret(words[0])},
            opts=pulumi.ResourceOptions(provider=eks.kubernetes),
        )
        config = pulumi.Config()
        aws.iam.Role("role", assume_role_policy=TRUST, description=config.require_secret("word"))
        pulumi.export("word", config.require_secret("word"))
        pulumi.export("inside", {"a": [pulumi.Output.secret(words[0])], "b": "open"})

    account = SimulatedAccount()
    project = engine(program, account, secrets={"test:word": words[1]})
    account.path = project.folder / "account.json"
    run = project.up()
    assert run.outputs["word"] == "[secret]"
    assert words[0] not in str(run.outputs)
    assert run.outcome.secret_outputs == {"word", "inside"}
    read = [path.read_text(encoding="utf-8", errors="replace") for path in project.folder.rglob("*") if path.is_file()]
    assert any("sts:AssumeRole" in text for text in read), "what is no secret is there to be found"
    assert not [word for word in words for text in read if word in text]
    # Unchanged secrets are no change, changed ones are.
    assert project.up().changes == 0
    words = ("another-horse", words[1])
    assert project.up().changed == {"token": "replace"}


def test_an_explicit_name_is_deleted_before_its_replacement_and_a_made_up_one_after(engine: MakeProject) -> None:
    path = "/one/"

    def program() -> None:
        aws.iam.Role("named", name="taken", assume_role_policy=TRUST, path=path)
        aws.iam.Role("unnamed", assume_role_policy=TRUST, path=path)

    project = engine(program)
    project.up()
    names = {item.id for item in project.account}
    path = "/two/"
    assert project.up().changed == {"named": "replace", "unnamed": "replace"}
    steps = [(operation.action, operation.name) for operation in project.account.journal[2:]]
    assert steps.index(("delete", "named")) < steps.index(("create", "named"))
    assert steps.index(("create", "unnamed")) < steps.index(("delete", "unnamed"))
    assert "taken" in names & {item.id for item in project.account}


def test_a_role_goes_only_after_its_policies(engine: MakeProject) -> None:
    keep = True

    def program() -> None:
        role = aws.iam.Role("role", assume_role_policy=TRUST, opts=pulumi.ResourceOptions(retain_on_delete=False))
        arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
        aws.iam.RolePolicyAttachment("attached", role=role.name, policy_arn=arn, opts=pulumi.ResourceOptions(retain_on_delete=keep))

    project = engine(program)
    project.up()
    with pytest.raises(RehearsalFailed, match="DeleteConflict: Cannot delete entity, must detach all policies first"):
        project.destroy()


def test_policies_that_do_not_fit_are_refused(engine: MakeProject) -> None:
    def policy() -> None:
        aws.iam.Policy("policy", policy=POLICY.replace("logs:PutLogEvents", "s3:GetObject" + "x" * 6200))

    def role() -> None:
        aws.iam.Role("role", assume_role_policy=TRUST.replace("sts:AssumeRole", "sts:AssumeRole" + "x" * 2000))

    with pytest.raises(RehearsalFailed, match="LimitExceeded: Cannot exceed quota for PolicySize: 6144"):
        engine(policy).up()
    with pytest.raises(RehearsalFailed, match="LimitExceeded: Cannot exceed quota for ACLSizePerRole: 2048"):
        engine(role).up()


def test_a_static_identifier_keeps_the_kubernetes_provider_when_the_cluster_is_replaced(engine: MakeProject) -> None:
    identifier: str | None = "static"
    name = "one"

    def program() -> None:
        role = aws.iam.Role("eks", assume_role_policy=trust("eks.amazonaws.com"))
        attached = aws.iam.RolePolicyAttachment("eks", role=role.name, policy_arn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        subnets = [
            aws.ec2.Subnet(zone, vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=f"us-east-2{zone}")
            for index, zone in enumerate("ab")
        ]
        cluster = aws.eks.Cluster(
            "eks",
            name=name,
            role_arn=role.arn,
            vpc_config={"subnet_ids": [subnet.id for subnet in subnets]},
            opts=pulumi.ResourceOptions(depends_on=[attached]),
        )
        provider = k8s.Provider("provider", kubeconfig=kubeconfig(cluster), cluster_identifier=identifier)
        k8s.core.v1.Namespace("space", metadata={"name": "space"}, opts=pulumi.ResourceOptions(provider=provider))

    project = engine(program)
    project.up()
    name = "two"
    assert project.preview().op("provider") == "update"
    identifier = None
    other = engine(program)
    other.up()
    name = "three"
    assert other.preview().op("provider") == "replace"
    assert other.preview().op("space") == "replace"


def test_a_type_without_a_model_gets_an_id_and_an_arn(engine: MakeProject) -> None:
    def program() -> None:
        table = aws.dynamodb.Table("table", attributes=[{"name": "id", "type": "S"}], hash_key="id")
        repository = native.ecr.Repository("repository", repository_name="images")
        pulumi.export("arn", table.arn)
        pulumi.export("repository", repository.arn)

    project = engine(program)
    outputs = project.up().outputs
    assert outputs["arn"].startswith("arn:aws:dynamodb:us-east-2:123456789012:table/")
    assert outputs["repository"].startswith("arn:aws:ecr:us-east-2:123456789012:repository/")
    assert project.up().changes == 0
    project.destroy()
    assert len(project.account) == 0


def test_who_calls_and_where_can_be_asked(engine: MakeProject) -> None:
    def program() -> None:
        identity = aws.get_caller_identity()
        pulumi.export("caller", identity.arn)
        pulumi.export("role", aws.iam.get_session_context(arn=identity.arn).issuer_arn)
        pulumi.export("partition", aws.get_partition().partition)
        pulumi.export("region", aws.get_region().region)
        pulumi.export("zones", aws.get_availability_zones(state="available").names)
        west = aws.Provider("west", region="us-west-2", default_tags={"tags": {"team": "inference"}})
        pulumi.export("west", aws.get_region_output(opts=pulumi.InvokeOptions(provider=west)).region)
        bucket = aws.s3.Bucket("bucket", tags={"own": "tag"}, opts=pulumi.ResourceOptions(provider=west))
        pulumi.export("tags", bucket.tags_all)
        pulumi.export("bucketRegion", bucket.region)

    outputs = engine(program).up().outputs
    assert outputs["caller"] == "arn:aws:sts::123456789012:assumed-role/rehearsal-deployer/session"
    assert outputs["role"] == "arn:aws:iam::123456789012:role/rehearsal-deployer"
    assert (outputs["partition"], outputs["region"], outputs["west"]) == ("aws", "us-east-2", "us-west-2")
    assert outputs["zones"] == ["us-east-2a", "us-east-2b", "us-east-2c"]
    assert outputs["tags"] == {"team": "inference", "own": "tag"}
    assert outputs["bucketRegion"] == "us-west-2"


def test_who_calls_is_the_assumed_role_with_its_path(engine: MakeProject) -> None:
    role = "arn:aws:iam::111122223333:role/teams/deployer"

    def program() -> None:
        assumed = aws.Provider(
            "assumed",
            region="us-east-2",
            assume_roles=[aws.ProviderAssumeRoleArgs(role_arn=arn) for arn in ("arn:aws:iam::111122223333:role/hub", role)],
        )
        options = pulumi.InvokeOptions(provider=assumed)
        caller = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(provider=assumed))
        pulumi.export("caller", caller.arn)
        pulumi.export("role", caller.arn.apply(lambda arn: aws.iam.get_session_context(arn=arn, opts=options).issuer_arn))

    outputs = engine(program).up().outputs
    assert outputs == {"caller": "arn:aws:sts::111122223333:assumed-role/deployer/session", "role": role}


def test_what_is_made_while_somebody_reads_does_not_disturb_the_reader() -> None:
    account = SimulatedAccount()

    class MakesMore(dict[str, str]):
        def get(self, key: str, default: object = None) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
            account.add(Resource(HYPERPOD, f"made while reading {len(account)}", {}, {}))
            return super().get(key, default)

    for name in ("one", "two"):
        account.add(Resource(HYPERPOD, name, {}, MakesMore(name=name)))
    assert [item.id for item in account.all(HYPERPOD, name="two")] == ["two"]
