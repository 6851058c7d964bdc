"""An endpoint becomes one custom resource that waits for the operator's word, and nothing at all where a rule is broken."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from dpd_infra.components.endpoint import Endpoint
from dpd_infra.components.handles import OperatorHandle
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.stack import StackRefused
from tests.graph.recorder import Recording, run_program

RESOURCE = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"
SECRET = "kubernetes:core/v1:Secret"

LLAMA: dict[str, Any] = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
    "instanceType": "ml.p5.48xlarge",
}
GATED: dict[str, Any] = {
    "model": {
        "name": "Llama-3.3-70B-Instruct",
        "huggingFace": {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "token": {"configKey": "dpd-infra:huggingFaceToken"}},
    },
    "instanceType": "ml.p5.48xlarge",
}


def endpoint(
    data: dict[str, Any], *, facts: str = "v1.4.0-eksbuild.1", actual: str = "v1.4.0-eksbuild.1", **arguments: Any
) -> Callable[[], Any]:
    """A program with an operator that stands behind one resource, and an endpoint on it."""

    def program() -> Endpoint:
        provider = kubernetes.Provider("eks", kubeconfig="{}")
        addon = pulumi.CustomResource("test:index:Operator", "operator", {})
        operator = OperatorHandle(
            facts=OperatorFacts(addon_version=facts),
            addon_version=pulumi.Output.from_input(actual),
            kubernetes_provider=provider,
            cluster_name="inference",
            region="us-east-2",
            resources=(addon,),
        )
        return Endpoint("llama", EndpointSpec.from_yaml_data(data), operator=operator, **arguments)

    return program


def one(recording: Recording) -> Any:
    return recording.one(RESOURCE)


def test_the_resource_waits_for_the_operators_own_word(preview: bool) -> None:
    resource = one(run_program(endpoint(LLAMA), preview=preview))
    assert resource.inputs["metadata"]["annotations"] == {
        "pulumi.com/waitFor": "jsonpath={.status[?(@=='DeploymentComplete'||@=='DeploymentFailed')]}"
    }
    assert resource.inputs["metadata"]["name"] == "llama"
    assert resource.inputs["spec"]["pdSpec"]["routingThreshold"] == 4096


def test_deletion_is_never_left_unawaited(preview: bool) -> None:
    # An object that is deleted later than the add-on keeps its finalizer for ever.
    resource = one(run_program(endpoint(LLAMA), preview=preview))
    assert "pulumi.com/skipAwait" not in resource.inputs["metadata"]["annotations"]
    assert resource.deleted_with == ""
    assert not resource.retain_on_delete


def test_pulumi_waits_longer_than_the_operator_does(preview: bool) -> None:
    data = {**LLAMA, "timeouts": {"deployMinutes": 90, "deleteMinutes": 20}}
    resource = one(run_program(endpoint(data), preview=preview))
    assert resource.inputs["spec"]["maxDeployTimeInSeconds"] == 90 * 60
    assert int(resource.timeouts["create"].removesuffix("m")) > 90
    assert int(resource.timeouts["update"].removesuffix("m")) > 90
    assert resource.timeouts["delete"] == "20m"


def test_it_comes_after_the_operator_and_through_its_provider(preview: bool) -> None:
    recording = run_program(endpoint(LLAMA), preview=preview)
    resource = one(recording)
    assert recording.depends_path(resource, recording.named("operator"))
    assert resource.provider == recording.one("pulumi:providers:kubernetes").urn


def test_an_endpoint_is_one_registration(preview: bool) -> None:
    recording = run_program(endpoint(LLAMA), preview=preview)
    assert sorted(resource.kind for resource in recording.resources) == ["InferenceEndpointConfig", "Operator", "kubernetes"]
    assert (one(recording).name, one(recording).parent) == ("llama", "")


def test_the_callers_options_are_those_of_the_custom_resource(preview: bool) -> None:
    def program() -> None:
        parent = pulumi.ComponentResource("test:index:Team", "search")
        first = pulumi.CustomResource("test:index:Operator", "first", {})
        options = pulumi.ResourceOptions(
            parent=parent,
            protect=True,
            depends_on=[first],
            ignore_changes=["spec.tags"],
            custom_timeouts=pulumi.CustomTimeouts(create="5h"),
            aliases=[pulumi.Alias(name="before")],
        )
        endpoint(GATED, hugging_face_token="hf_not_a_real_token", opts=options)()
        assert options.provider is None, "what the caller holds is not written to"

    recording = run_program(program, preview=preview)
    resource, secret = one(recording), recording.one(SECRET)
    assert resource.protect is True
    assert resource.parent == secret.parent == recording.one("test:index:Team").urn
    assert recording.named("first").urn in resource.dependencies
    assert recording.named("operator").urn in resource.dependencies
    assert resource.ignore_changes == ("spec.tags",)
    # A timeout that the caller leaves open stays longer than the operator's.
    assert resource.timeouts == {"create": "5h", "update": "70m", "delete": "30m"}
    assert [alias for alias in resource.aliases if "before" in alias]


def test_the_tokens_secret_waits_stays_and_goes_as_its_endpoint_does(preview: bool) -> None:
    def program() -> None:
        namespace = pulumi.CustomResource("kubernetes:core/v1:Namespace", "serving", {})
        cluster = pulumi.CustomResource("test:index:Cluster", "cluster", {})
        options = pulumi.ResourceOptions(
            depends_on=namespace, deleted_with=cluster, protect=True, retain_on_delete=True, hide_diffs=["spec"]
        )
        endpoint(GATED, hugging_face_token="hf_not_a_real_token", opts=options)()

    recording = run_program(program, preview=preview)
    secret = recording.one(SECRET)
    # A Secret of a namespace that is not there yet is refused, and an endpoint that is kept starts no pod without its token.
    assert set(secret.dependencies) == {recording.named("serving").urn, recording.named("operator").urn}
    assert (secret.protect, secret.retain_on_delete, secret.deleted_with) == (True, True, recording.named("cluster").urn)
    assert secret.deleted_with == one(recording).deleted_with


URN = "urn:pulumi:test::project::"
"""Of this kit's stack and project."""


@pytest.mark.parametrize(
    ("alias", "before"),
    [
        (pulumi.Alias(name="search"), f"{URN}test:index:Team${SECRET}::search-hugging-face-token"),
        (pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE), f"{URN}{SECRET}::llama-hugging-face-token"),
        (pulumi.Alias(name="old", parent=pulumi.ROOT_STACK_RESOURCE), f"{URN}{SECRET}::old-hugging-face-token"),
        (f"{URN}{RESOURCE}::llama", f"{URN}{SECRET}::llama-hugging-face-token"),
        (f"{URN}a:b:C${RESOURCE}::old", f"{URN}a:b:C${SECRET}::old-hugging-face-token"),
        (pulumi.Alias(type_="example:index:Model"), f"{URN}test:index:Team${SECRET}::llama-hugging-face-token"),
    ],
    ids=["a name", "a parent", "both", "a URN", "a URN below", "a type"],
)
def test_the_tokens_secret_moves_with_its_endpoint(alias: Any, before: str, preview: bool) -> None:
    # Made anew under another URN, the Secret would be deleted by its name when the old URN goes.
    def program() -> None:
        team = pulumi.ComponentResource("test:index:Team", "search")
        endpoint(GATED, hugging_face_token="hf_not_a_real_token", opts=pulumi.ResourceOptions(parent=team, aliases=[alias]))()

    recording = run_program(program, preview=preview)
    assert before in {*recording.one(SECRET).aliases, recording.one(SECRET).urn}
    assert len(recording.one(SECRET).aliases) == len(one(recording).aliases) == 1


def test_an_endpoint_has_what_the_sdks_own_custom_resource_has(preview: bool) -> None:
    def program() -> None:
        made = endpoint(LLAMA)()
        theirs = kubernetes.apiextensions.CustomResource("x", api_version="example.com/v1", kind="X", metadata={}, spec={})
        attributes = {name for name in vars(theirs) if not name.startswith("_")}
        assert attributes >= {"api_version", "kind", "metadata", "spec"}
        pulumi.export("read", {name: getattr(made, name) for name in attributes})
        pulumi.export("whole", made)

    exports = run_program(program, preview=preview).exports
    for found in (exports["read"], exports["whole"]):
        assert found["kind"] == "InferenceEndpointConfig"
        assert found["metadata"]["name"] == "llama"
        assert found["spec"]["modelName"] == "Llama-3.3-70B-Instruct"
        assert found["urn"] == f"{URN}{RESOURCE}::llama"
    assert exports["read"]["api_version"] == exports["whole"]["apiVersion"] == "inference.sagemaker.aws.amazon.com/v1"


def test_options_in_every_form_that_the_sdk_takes(preview: bool) -> None:
    def program() -> None:
        aws = pulumi.ProviderResource("aws", "ohio", {})
        options: dict[str, Any] = {"custom_timeouts": {"create": "5h"}, "providers": aws}
        endpoint(LLAMA, opts=pulumi.ResourceOptions(**options))()

    resource = one(run_program(program, preview=preview))
    assert resource.timeouts == {"create": "5h", "update": "70m", "delete": "30m"}


def test_options_that_are_none_are_refused_before_anything_is_registered() -> None:
    recording = run_program(endpoint(GATED, hugging_face_token="hf_not_a_real_token", opts={"protect": True}), expect=pulumi.RunError)
    assert "opts takes a pulumi.ResourceOptions, not dict" in str(recording.error)
    assert not recording.of_type(SECRET)


@pytest.mark.parametrize("listed", [False, True], ids=["provider", "providers"])
def test_another_clusters_provider_is_refused_before_anything_is_registered(listed: bool) -> None:
    def program() -> None:
        other = kubernetes.Provider("other", kubeconfig="{}")
        options = pulumi.ResourceOptions(providers=[other]) if listed else pulumi.ResourceOptions(provider=other)
        endpoint(GATED, hugging_face_token="hf_not_a_real_token", opts=options)()

    recording = run_program(program, expect=pulumi.RunError)
    assert "an endpoint goes where its operator is" in str(recording.error)
    assert not recording.of_type(RESOURCE)
    assert not recording.of_type(SECRET)


def test_providers_of_other_packages_are_what_is_handed_to_any_component(preview: bool) -> None:
    def program() -> None:
        aws = pulumi.ProviderResource("aws", "ohio", {})
        endpoint(LLAMA, opts=pulumi.ResourceOptions(providers=[aws]))()

    recording = run_program(program, preview=preview)
    assert one(recording).provider == recording.one("pulumi:providers:kubernetes").urn


def test_the_sdk_finds_no_annotations_to_evaluate_each_time_that_one_is_made() -> None:
    # pulumi 3.272, _types.resource_types: it makes a class of a resource class's annotations and evaluates them with each registration.
    assert inspect.get_annotations(Endpoint) == {}


def test_a_role_runs_on_the_instance_group_it_names(preview: bool) -> None:
    data = {**LLAMA, "prefill": {"replicas": 3, "instanceGroup": "pool-a"}, "decode": {"instanceGroup": "pool-b"}}
    roles = one(run_program(endpoint(data), preview=preview)).inputs["spec"]["pdSpec"]
    label = "sagemaker.amazonaws.com/instance-group-name"
    assert roles["prefillSpec"]["nodeSelector"] == {label: "pool-a"}
    assert roles["prefillSpec"]["replicas"] == 3
    assert roles["decodingSpec"]["nodeSelector"] == {label: "pool-b"}


def test_the_outputs_name_what_the_operator_makes() -> None:
    def program() -> None:
        pulumi.export("endpoint", endpoint({**LLAMA, "namespace": "serving"})().outputs)

    # DPD guide: the names of an endpoint's objects.
    assert run_program(program).exports["endpoint"] == {
        "endpointName": "llama",
        "url": "http://llama-serving-routing-service.hyperpod-inference-system.svc.cluster.local:443/v1/chat/completions",
        "prefillDeployment": "prefill-llama",
        "decodeDeployment": "decode-llama",
        "routerDeployment": "llama-serving-router",
        "certificate": None,
    }


def test_a_hugging_face_token_reaches_the_cluster_as_a_secret_only(preview: bool) -> None:
    recording = run_program(endpoint(GATED, hugging_face_token="hf_not_a_real_token"), preview=preview)
    secret, resource = recording.one(SECRET), one(recording)
    assert secret.inputs["stringData"] == {"token": "hf_not_a_real_token"}
    assert any(path.startswith("stringData") for path in secret.secrets)
    reference = resource.inputs["spec"]["modelSourceConfig"]["huggingFaceModel"]["tokenSecretRef"]
    assert reference == {"name": secret.inputs["metadata"]["name"], "key": "token"}
    assert "hf_not_a_real_token" not in repr(resource.inputs)
    assert recording.depends_path(resource, secret)


def test_a_token_that_is_named_and_not_given_registers_nothing() -> None:
    recording = run_program(endpoint(GATED), preview=False, expect=pulumi.RunError)
    assert "dpd-infra:huggingFaceToken" in str(recording.error)
    assert not recording.of_type(RESOURCE)


@pytest.mark.parametrize(
    ("change", "rule"),
    [({"instanceType": "ml.g5.48xlarge"}, "DPD001"), ({"namespace": "n" * 45}, "DPD004")],
)
def test_a_broken_rule_registers_nothing(change: dict[str, Any], rule: str) -> None:
    recording = run_program(endpoint({**LLAMA, **change}), preview=False, expect=StackRefused)
    assert isinstance(recording.error, StackRefused)
    assert rule in {finding.rule for finding in recording.error.findings}
    assert not recording.of_type(RESOURCE)


def test_an_operator_without_pd_spec_is_refused_before_anything_is_registered() -> None:
    recording = run_program(endpoint(LLAMA, facts="v1.2.1-eksbuild.1", actual="v1.2.1-eksbuild.1"), preview=False, expect=StackRefused)
    assert "v1.3.0-eksbuild.1" in str(recording.error)
    assert not recording.of_type(RESOURCE)


def test_an_operator_older_than_promised_stops_the_manifest() -> None:
    recording = run_program(endpoint(LLAMA, facts="v1.4.0-eksbuild.1", actual="v1.3.0-eksbuild.1"), preview=False, expect=Exception)
    assert "v1.3.0-eksbuild.1" in str(recording.error)
    assert not recording.of_type(RESOURCE)


def test_a_warning_is_logged_and_stops_nothing() -> None:
    recording = run_program(endpoint(LLAMA, facts="v1.3.0-eksbuild.1", actual="v1.3.0-eksbuild.1"), preview=False)
    assert any(
        "DPD003" in message and "routing Service" in message for level, message in recording.logs if level.lower().startswith("warn")
    )
    assert recording.of_type(RESOURCE)


def test_a_preview_tells_what_the_numbers_come_to_and_an_update_does_not_repeat_it(preview: bool) -> None:
    recording = run_program(endpoint(LLAMA), preview=preview)
    told = [message for level, message in recording.logs if level == "info"]
    if not preview:
        assert told == []
        return
    (text,) = told
    # sizing.md: 40,960 bytes a token and rank, 12 prompts of 16,384 tokens in 8 GiB.
    assert text.startswith("llama: meta-llama/Llama-3.3-70B-Instruct on ml.p5.48xlarge, TP 8, 1 prefill + 1 decode = 16 GPUs, 2 nodes\n")
    assert "KV cache 40.00 KiB a token and rank; the PD buffer of 8.00 GiB holds 12 prompts of 16,384 tokens" in text
    assert "under its load" not in text


def test_with_a_load_the_preview_tells_what_it_gets() -> None:
    load = {"requestsPerSecond": 6, "inputTokens": 6000, "outputTokens": 400}
    auto = LLAMA | {"load": load, "prefill": {"replicas": "auto"}, "decode": {"maxNumSeqs": "auto"}}
    recording = run_program(endpoint(auto), preview=True)
    (text,) = [message for level, message in recording.logs if level == "info"]
    assert "2 prefill + 1 decode = 24 GPUs, 3 nodes" in text
    assert "under its load: TTFT " in text
    assert one(recording).inputs["spec"]["pdSpec"]["prefillSpec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (LLAMA, {"kvBytesPerTokenPerRank": 40_960, "pdBufferBytes": 8_589_934_592, "promptsInBuffer": 12, "gpus": 16, "nodes": 2}),
        (LLAMA | {"disaggregated": False}, {"gpus": 16, "nodes": 2}),
        (
            LLAMA | {"model": {"name": "our-own", "s3": {"bucket": "my-models"}}},
            {"notSized": "the catalog does not know this model (our-own)"},
        ),
    ],
)
def test_the_sizes_are_plain_numbers_to_export(data: dict[str, Any], found: dict[str, Any]) -> None:
    def program() -> None:
        made = endpoint(data)()
        pulumi.export("sizing", made.sizing)
        assert found.items() <= {key: value.partition(";")[0] if key == "notSized" else value for key, value in made.sizing.items()}.items()

    run_program(program)
