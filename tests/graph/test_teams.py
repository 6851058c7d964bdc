"""Teams and the model store: namespaces, quota, members, who may invoke, and the jobs that copy models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
import pytest

import dpd_infra as dpd
from dpd_infra.components.endpoint_clients import EndpointClients
from dpd_infra.components.model_store import ModelStore
from dpd_infra.components.teams import Teams
from dpd_infra.render.staging import staging_script
from dpd_infra.spec.model_store import ModelStoreSpec
from dpd_infra.spec.teams import TeamSpec
from tests.graph.kit import ACCOUNT_FACTS, assert_tagged
from tests.graph.mock_outputs import ACCOUNT, ISSUER
from tests.graph.recorder import UNKNOWN, Recorded, Recording, run_program

OIDC = ISSUER.removeprefix("https://")
RESEARCHER = f"arn:aws:iam::{ACCOUNT}:role/researcher"
REVISION = "6f6073b423013f6a7d4d9f39144961bfbfbc386b"
SEARCH = {
    "labels": {"cost-centre": "42"},
    "quota": {"gpus": 16, "cpu": "192", "endpoints": 2, "hard": {"services": "5"}},
    "members": {
        "lead": {"principalArn": RESEARCHER, "right": "admin"},
        "others": {"group": "search-engineers"},
        "guest": {"user": "guest@example.com", "right": "view"},
    },
    "invoke": {"endpoints": ["Llama-70B"], "roles": ["search-app"]},
}
TEAMS = {"search": SEARCH, "ads": {"namespace": "advertising", "members": {"lead": {"principalArn": RESEARCHER, "right": "view"}}}}


def control_plane(*resources: pulumi.Resource) -> dpd.ControlPlaneHandle:
    return dpd.ControlPlaneHandle(
        name="eks-given",
        arn="unused",
        version="1.33",
        oidc_provider_arn=f"arn:aws:iam::{ACCOUNT}:oidc-provider/{OIDC}",
        oidc_issuer=OIDC,
        cluster_security_group_id="unused",
        kubernetes_provider=kubernetes.Provider("kubernetes", kubeconfig="{}"),
        resources=resources,
    )


def teams(preview: bool, data: dict[str, Any] | None = None) -> Recording:
    def program() -> dict[str, Any]:
        access = aws.ssm.Parameter("access", type="String", value="x")
        specs = {name: TeamSpec.from_yaml_data(spec) for name, spec in (data or TEAMS).items()}
        made = Teams("teams", specs, account=ACCOUNT_FACTS, control_plane=control_plane(access))
        aws.ssm.Parameter("waits", type="String", value="x", opts=pulumi.ResourceOptions(depends_on=list(made.resources)))
        return {"namespaces": made.namespaces, **{f"policy {team}": arn for team, arn in made.invoke_policy_arns.items()}}

    return run_program(program, preview=preview)


def bindings(recording: Recording, name: str) -> list[dict[str, Any]]:
    return recording.one("RoleBinding", name).inputs["subjects"]


def test_a_team_has_a_labelled_namespace_and_a_quota(preview: bool) -> None:
    recording = teams(preview)
    namespace = recording.named("teams-search-namespace").inputs["metadata"]
    assert namespace["name"] == "search"
    assert namespace["labels"].items() >= {"cost-centre": "42", "dpd-infra/team": "search"}.items()
    assert recording.named("teams-search-quota").inputs["spec"]["hard"] == {
        "requests.nvidia.com/gpu": "16",
        "requests.cpu": "192",
        "count/inferenceendpointconfigs.inference.sagemaker.aws.amazon.com": "2",
        "services": "5",
    }
    assert recording.returned["namespaces"] == {"ads": "advertising", "search": "search"}


def test_a_quota_of_cpu_gives_containers_without_requests_a_request(preview: bool) -> None:
    recording = teams(preview)
    [limits] = recording.of_type("LimitRange")
    assert limits.inputs["spec"]["limits"] == [{"type": "Container", "defaultRequest": {"cpu": "100m", "memory": "128Mi"}}]
    assert limits.urn in recording.named("teams-search-quota").dependencies
    without = teams(preview, {"search": {"quota": {"gpus": 8}}})
    assert without.of_type("LimitRange") == []


def test_members_are_bound_by_right_to_kubernetes_own_roles_and_to_endpoints(preview: bool) -> None:
    recording = teams(preview)
    assert bindings(recording, "teams-search-edit-members") == [
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "search-engineers"}
    ]
    assert bindings(recording, "teams-search-view-members")[0]["kind"] == "User"
    assert recording.named("teams-search-view-members").inputs["roleRef"]["name"] == "view"
    reading, writing = (recording.named(f"teams-search-{right}-endpoints").inputs["rules"][0]["verbs"] for right in ("view", "edit"))
    assert reading == ["get", "list", "watch"]
    assert set(writing) == {"create", "delete", "get", "list", "patch", "update", "watch"}
    assert {r.inputs["metadata"]["namespace"] for r in recording.of_type("Role") if r.type.startswith("kubernetes:")} == {
        "search",
        "advertising",
    }


def test_a_principal_in_two_teams_has_one_access_entry_with_both_groups(preview: bool) -> None:
    recording = teams(preview)
    [entry] = recording.of_type("AccessEntry")
    assert entry.inputs["principalArn"] == RESEARCHER
    assert entry.inputs["kubernetesGroups"] == ["dpd-infra:ads:view", "dpd-infra:search:admin"]
    assert bindings(recording, "teams-search-admin-members")[0]["name"] == "dpd-infra:search:admin"


def test_no_binding_names_a_group_of_kubernetes_own() -> None:
    for recording in (teams(False), teams(True)):
        names = [one["name"] for binding in recording.of_type("RoleBinding") for one in binding.inputs["subjects"]]
        assert names
        assert not [name for name in names if name.startswith("system:")]


def test_who_may_invoke_is_allowed_that_endpoint_in_both_spellings_and_no_other(preview: bool) -> None:
    recording = teams(preview)
    policy = recording.one("aws:iam/policy:Policy")
    [statement] = json.loads(policy.inputs["policy"])["Statement"]
    assert statement["Action"] == ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
    endpoints = f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:endpoint"
    assert statement["Resource"] == [f"{endpoints}/Llama-70B", f"{endpoints}/llama-70b"]
    assert recording.one("RolePolicyAttachment").inputs["role"] == "search-app"
    assert_tagged(recording_of(recording, "aws:iam/policy:Policy"))


def recording_of(recording: Recording, type_: str) -> Recording:
    return Recording(recording.preview, recording.of_type(type_))


def test_an_existing_namespace_is_not_made_but_limited(preview: bool) -> None:
    recording = teams(preview, {"search": {"namespace": "hyperpod-ns-search", "existingNamespace": True, "quota": {"gpus": 8}}})
    assert recording.of_type("Namespace") == []
    assert recording.one("ResourceQuota").inputs["metadata"]["namespace"] == "hyperpod-ns-search"


def test_endpoints_wait_for_namespaces_and_quotas_and_these_for_access(preview: bool) -> None:
    recording = teams(preview)
    waits = {recording[urn].name for urn in recording.named("waits").dependencies}
    assert waits == {"teams-search-namespace", "teams-search-quota", "teams-search-requests", "teams-ads-namespace"}
    for name in ("teams-search-namespace", "teams-ads-namespace"):
        assert recording.depends_path(recording.named(name), recording.named("access"))


MODELS = {
    "llama": {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "revision": REVISION, "token": {"configKey": "dpd-infra:huggingFaceToken"}},
    "qwen": {"modelId": "Qwen/Qwen2.5-72B-Instruct", "revision": REVISION, "prefix": "qwen", "token": {"secretName": "hub", "key": "hf"}},
}


def store(preview: bool, expect: type[BaseException] | None = None, tokens: bool = True, **change: Any) -> Recording:
    spec = ModelStoreSpec.from_yaml_data({"models": MODELS, **change})

    def program() -> dict[str, Any]:
        nodes, access = (aws.ssm.Parameter(name, type="String", value="x") for name in ("nodes", "access"))
        made = ModelStore(
            "store",
            spec,
            account=ACCOUNT_FACTS,
            control_plane=control_plane(access),
            after=(nodes,),
            hugging_face_tokens={"dpd-infra:huggingFaceToken": pulumi.Output.secret("hf_xxx")} if tokens else None,
            image_mirrors={"public.ecr.aws": "111122223333.dkr.ecr.us-east-2.amazonaws.com/public"},
        )
        aws.ssm.Parameter("waits", type="String", value="x", opts=pulumi.ResourceOptions(depends_on=list(made.resources)))
        return {"bucket": made.bucket_name, "uris": made.uris}

    return run_program(program, preview=preview, expect=expect)


def job(recording: Recording, name: str) -> Recorded:
    return recording.one("kubernetes:batch/v1:Job", name)


def pod(recorded: Recorded) -> dict[str, Any]:
    return recorded.inputs["spec"]["template"]["spec"]


def test_the_bucket_is_private_encrypted_protected_and_never_emptied(preview: bool) -> None:
    recording = store(preview)
    bucket = recording.one("Bucket")
    assert bucket.inputs["bucket"] == f"inference-prod-models-{ACCOUNT}-us-east-2"
    assert (bucket.inputs["forceDestroy"], bucket.protect) == (False, True)
    assert recording.of_type("BucketServerSideEncryptionConfiguration")
    block = recording.one("BucketPublicAccessBlock").inputs
    assert all(block[key] is True for key in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"))
    assert recording.returned["uris"] == {
        "llama": f"s3://{bucket.inputs['bucket']}/Llama-3.3-70B-Instruct",
        "qwen": f"s3://{bucket.inputs['bucket']}/qwen",
    }


def test_a_job_copies_one_revision_with_the_script_from_a_mirrored_image(preview: bool) -> None:
    recording = store(preview)
    made = job(recording, "store-llama")
    [container] = pod(made)["containers"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (
        environment.items()
        >= {
            "MODEL_ID": "meta-llama/Llama-3.3-70B-Instruct",
            "REVISION": REVISION,
            "PREFIX": "Llama-3.3-70B-Instruct",
            "BUCKET": recording.returned["bucket"],
        }.items()
    )
    assert container["image"].startswith("111122223333.dkr.ecr.us-east-2.amazonaws.com/public/docker/library/python:")
    assert recording.one("ConfigMap").inputs["data"] == {"copy_model.py": staging_script()}
    assert pod(made)["securityContext"]["runAsNonRoot"] is True
    assert made.timeouts["create"] == "190m"


def test_another_revision_is_another_job() -> None:
    names = [
        job(store(False, models={"llama": {**MODELS["llama"], "revision": revision}}), "store-llama").inputs["metadata"]["name"]
        for revision in (REVISION, REVISION[::-1])
    ]
    assert len(set(names)) == 2
    assert all(len(name) <= 63 for name in names)


def test_tokens_come_from_secrets_and_only_there(preview: bool) -> None:
    recording = store(preview)
    [secret] = recording.of_type("Secret")
    assert secret.secrets == {"stringData"}
    references = {
        name: next(
            entry["valueFrom"]["secretKeyRef"] for entry in pod(job(recording, name))["containers"][0]["env"] if entry["name"] == "HF_TOKEN"
        )
        for name in ("store-llama", "store-qwen")
    }
    assert references == {
        "store-llama": {"name": secret.inputs["metadata"]["name"], "key": "token"},
        "store-qwen": {"name": "hub", "key": "hf"},
    }


def test_a_token_that_is_not_given_is_missed_before_anything_is_made() -> None:
    recording = store(True, expect=pulumi.RunError, tokens=False)
    assert "dpd-infra:huggingFaceToken" in str(recording.error)
    assert recording.of_type("ModelStore") == []


def test_the_jobs_role_is_one_service_accounts_and_reaches_the_models_folders_only() -> None:
    recording = store(False)
    trust = json.loads(recording.named("store-staging-role").inputs["assumeRolePolicy"])["Statement"][0]
    assert trust["Condition"]["StringEquals"][f"{OIDC}:sub"] == "system:serviceaccount:default:store-staging"
    account = recording.one("ServiceAccount").inputs["metadata"]
    assert (account["namespace"], account["name"]) == ("default", "store-staging")
    assert account["annotations"]["eks.amazonaws.com/role-arn"].endswith("inference-prod-us-east-2-model-staging")
    policy = json.loads(recording.named("store-staging-role-permissions").inputs["policy"])["Statement"]
    objects = next(statement for statement in policy if "s3:PutObject" in statement["Action"])
    bucket = f"arn:aws:s3:::{recording.returned['bucket']}"
    assert objects["Resource"] == [f"{bucket}/Llama-3.3-70B-Instruct/*", f"{bucket}/qwen/*"]
    assert not [action for statement in policy for action in statement["Action"] if "Delete" in action]


def test_jobs_wait_for_nodes_role_and_bucket_and_endpoints_for_the_jobs(preview: bool) -> None:
    recording = store(preview)
    made = job(recording, "store-llama")
    for name in ("nodes", "store-staging-role-permissions", "store-models-tls-only", "store-staging-script"):
        assert recording.depends_path(made, recording.named(name)), name
    assert made.urn in recording.named("waits").dependencies


def test_a_store_without_models_is_a_bucket(preview: bool) -> None:
    recording = store(preview, models={})
    assert not [r for r in recording.custom if r.type.startswith("kubernetes:")]


@pytest.mark.parametrize(
    "model", [{**MODELS["llama"], "revision": "main"}, {**MODELS["llama"], "modelId": "llama"}], ids=["branch", "no organisation"]
)
def test_a_model_that_can_change_is_not_copied(model: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pattern"):
        ModelStoreSpec.from_yaml_data({"models": {"llama": model}})


GET_GROUPS = "aws:ec2/getSecurityGroups:getSecurityGroups"


def clients(preview: bool, groups: list[str], expect: type[BaseException] | None = None) -> Recording:
    def program() -> dict[str, Any]:
        cluster = control_plane()
        operator = dpd.OperatorHandle(
            facts=dpd.OperatorFacts(addon_version="v1.4.0-eksbuild.1"),
            addon_version="v1.4.0-eksbuild.1",
            kubernetes_provider=cluster.kubernetes_provider,
            cluster_name="hp",
            region="us-east-2",
        )
        spec = dpd.EndpointSpec.from_yaml_data(
            {
                "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models"}},
                "instanceType": "ml.p5.48xlarge",
                "namespace": "search",
            }
        )
        endpoint = dpd.Endpoint("llama", spec, operator=operator)
        made = EndpointClients("llama", endpoint=endpoint, control_plane=cluster, account=ACCOUNT_FACTS, vpc_id="vpc-given")
        return {"load_balancer": made.load_balancer_group_id, "certificate": endpoint.certificate}

    def status(type_: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        del name, inputs
        written = {"tlsCertificateOutputS3Bucket": "hyperpod-tls-x", "tlsCertificateS3Keys": ["llama-ca.pem"]}
        return {"status": {"state": "DeploymentComplete", "tlsCertificate": written}} if "InferenceEndpointConfig" in type_ else {}

    return run_program(program, preview=preview, invokes={GET_GROUPS: {"ids": groups}}, outputs=status, expect=expect)


def test_clients_of_a_load_balancer_reach_it_and_nothing_else() -> None:
    recording = clients(False, ["sg-alb"])
    [rule] = recording.of_type("SecurityGroupEgressRule")
    assert (rule.inputs["referencedSecurityGroupId"], rule.inputs["fromPort"], rule.inputs["toPort"]) == ("sg-alb", 443, 443)
    [asked] = [arguments for token, arguments in recording.invokes if token == GET_GROUPS]
    wanted = {entry["name"]: entry["values"] for entry in asked["filters"]}
    assert wanted == {
        "tag:elbv2.k8s.aws/cluster": ["eks-given"],
        "tag:ingress.k8s.aws/resource": ["ManagedLBSecurityGroup"],
        "tag:ingress.k8s.aws/stack": ["hyperpod-inference-system/alb-llama-search", "search/alb-llama"],
    }


def test_a_load_balancer_is_not_looked_for_before_its_endpoint_is_ready() -> None:
    recording = clients(True, ["sg-alb"])
    assert [token for token, _ in recording.invokes if token == GET_GROUPS] == []
    assert recording.one("SecurityGroupEgressRule").inputs["referencedSecurityGroupId"] is UNKNOWN


@pytest.mark.parametrize("groups", [[], ["sg-1", "sg-2"]], ids=["none", "two"])
def test_a_load_balancer_without_a_group_of_its_own_is_said(groups: list[str]) -> None:
    recording = clients(False, groups, expect=pulumi.RunError)
    assert f"{len(groups)} security groups are marked" in str(recording.error)


def test_the_certificate_of_the_ca_is_where_the_operators_status_says() -> None:
    assert clients(False, ["sg-alb"]).returned["certificate"] == {"bucket": "hyperpod-tls-x", "keys": ["llama-ca.pem"]}
    assert clients(True, ["sg-alb"]).returned["certificate"] is UNKNOWN
