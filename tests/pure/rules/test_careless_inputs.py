"""Slips that the CRD takes and a deployment fails of, each with the one rule that says it."""

from __future__ import annotations

from typing import Any

import pytest

from dpd_infra.spec.finding import Severity
from tests.pure.rules.cases.pods_and_words import HEALTH, LIVENESS, SCALING, WORKSPACE, scaled, shell
from tests.pure.rules.kit import Edit, Raw, Stack, both, colocated, devices, endpoint, flag, more, platform, put, raw, role, stack

SOURCE = "spec|modelSourceConfig"
CERTIFICATE = "arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012"


def errors_and_warnings(given: Raw | Stack) -> list[str]:
    before = {finding.rule for finding in (raw() if isinstance(given, Raw) else stack()).findings}
    return [finding.rule for finding in given.findings if finding.severity is not Severity.ADVICE and finding.rule not in before]


def second_level(url: str) -> dict[str, object]:
    return {"enableL1Cache": True, "enableL2Cache": True, "l2CacheSpec": {"l2CacheBackend": "redis", "l2CacheLocalUrl": url}}


def words(*args: str) -> Edit:
    return put("spec|worker|args", list(args))


def zones(prefill: str, decode: str) -> tuple[Edit, ...]:
    label = "topology.kubernetes.io/zone"
    return put(f"spec|pdSpec|prefillSpec|nodeSelector|{label}", prefill), put(f"spec|pdSpec|decodingSpec|nodeSelector|{label}", decode)


@pytest.mark.parametrize(
    ("edits", "rule"),
    [
        # A folded YAML text where a list of words was meant: one finding, and none for each flag that seems to be missing.
        (
            (words("--model /opt/ml/model --tensor-parallel-size 8 --port 8000 --gpu-memory-utilization 0.75 --max-model-len 16384"),),
            "DPD018",
        ),
        ((more("--max-num-seqs ", "16"),), "DPD018"),
        ((more(" --max-num-seqs", "16"),), "DPD018"),
        ((more("\t--max-num-seqs=16"),), "DPD018"),
        ((more(" --max-num-seqs 16"),), "DPD018"),
        ((more("\u2014max-num-seqs", "16"),), "DPD018"),
        ((role("decodingSpec", "--max-num-seqs 16"),), "DPD018"),
        ((flag("--max-model-len", None), more("--max-model-length", "16384")), "DPD037"),
        ((zones("us-east-2a", "us-east-2b")), "DPD035"),
        ((put("spec|pdSpec|topologySpec|availabilityZone", "us-east-2"),), "DPD035"),
        ((devices("nvidia.com/gpu", "7.5", "7.5"),), "DPD017 DPD029"),
        ((both("resources|requests|cpu", "100"), both("resources|limits|cpu", "50")), "DPD017"),
        ((both("resources|requests|cpu", "-1"), both("resources|limits|cpu", "50")), "DPD456"),
        ((both("resources|limits|ephemeral-storage", "-1E30"),), "DPD456"),
        ((put("spec|kubernetes|initContainers", [{"name": "wait", "image": "i:1", "resources": {"limits": {"cpu": -1}}}]),), "DPD456"),
        ((put(f"{LIVENESS}", {"initialDelaySeconds": 900}),), "DPD451"),
        ((put("spec|worker|probes|startupProbe", {"httpGet": HEALTH, "failureThreshold": 3}),), "DPD410"),
        ((put(f"{LIVENESS}", {"httpGet": HEALTH, "initialDelaySeconds": 900, "successThreshold": 2}),), "DPD451"),
        ((put(f"{SOURCE}|modelLocation", "s3://my-models/llama"),), "DPD429"),
        ((put(f"{SOURCE}|s3Storage|bucketName", "My_Models"),), "DPD429"),
        ((put(f"{SOURCE}|s3Storage|bucketName", "arn:aws:s3:us-east-2:111122223333:accesspoint/models"),), ""),
        ((put(f"{SOURCE}|s3Storage|bucketName", "arn:aws:s3:::models"),), "DPD429"),
        ((put(f"{SOURCE}|s3Storage|region", "us-east-22x"),), "DPD429"),
        ((put(SOURCE, {"modelSourceType": "fsx", "fsxStorage": {"fileSystemId": "llama"}}),), "DPD429"),
        ((put("spec|kvCacheSpec", second_level("http://cache:6379")),), "DPD120"),
        ((put("spec|kvCacheSpec", second_level("rediss://cache:6379")),), ""),
        ((scaled(0),), "DPD439"),
        ((scaled(1, targetValue=0),), "DPD437"),
        ((put("spec|tags", [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]),), "DPD449"),
        ((put("spec|tags", [{"name": f"tag-{number}", "value": "1"} for number in range(51)]),), "DPD449"),
        ((put("spec|kubernetes|volumes", [{"name": "Weights", "emptyDir": {}}]),), "DPD450"),
        ((put("spec|kubernetes|volumes", [{"name": "w", "emptyDir": {}, "hostPath": {"path": "/mnt"}}]),), "DPD450"),
    ],
)
def test_a_slip_has_one_finding(edits: tuple[Edit, ...], rule: str) -> None:
    assert sorted(set(errors_and_warnings(raw(*edits)))) == sorted(rule.split())


def test_a_maximum_of_nothing_is_refused() -> None:
    trigger = {"serverAddress": WORKSPACE, "query": "sum(vllm:num_requests_waiting)", "targetValue": 4}
    given = raw(put(SCALING, {"minReplicaCount": 0, "maxReplicaCount": 0, "prometheusTrigger": trigger}))
    assert "DPD435" in errors_and_warnings(given)


@pytest.mark.parametrize(
    "edits",
    [
        (colocated, shell("vllm serve /opt/ml/model --tensor-parallel-size 8 --port 8000")),
        (colocated, put("spec|worker|command", ["bash", "-c"]), words("vllm serve /opt/ml/model --tensor-parallel-size 8")),
        (colocated, put("spec|worker|command", ["bash", "/run.sh"]), words("--tensor-parallel-size", "8")),
        (colocated, shell('exec vllm serve "${@}"', "x", "--tensor-parallel-size", "8")),
        (colocated, shell('exec vllm serve --tensor-parallel-size "$2"', "x", "--tensor-parallel-size", "8")),
        (more('--hf-overrides={"rope_scaling": {"factor": 2.0}}'),),
        (more("--override-generation-config", '{"temperature": 0.2}'),),
        (more("--chat-template", "---\n{{ messages }} "),),
        (more("--chat-template", "- {{ messages }}"),),
        (more("--chat-template", " - {{ messages }}"),),
        (more("--chat-template", "  -x\n  {{ messages }}"),),
        (more("--data-parallel-size-local", "1"),),
        (zones("us-east-2a", "us-east-2a")),
    ],
)
def test_what_looks_like_a_slip_and_is_none(edits: tuple[Edit, ...]) -> None:
    assert set(errors_and_warnings(raw(*edits))) & {"DPD018", "DPD019", "DPD035", "DPD037"} == set()


@pytest.mark.parametrize("word", [" --enable-chunked-prefill", "\t--enable-chunked-prefill", "--enable-chunked-prefill "])
def test_a_blank_at_either_end_of_a_word_is_taken_away_by_the_fix(word: str) -> None:
    given = raw(more(word))
    (found,) = [finding for finding in given.findings if finding.rule == "DPD018"]
    assert found.patch is not None
    assert given.patched(found.patch)["spec"]["worker"]["args"][-1] == "--enable-chunked-prefill"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (raw(put("spec|tags", [{"name": f"tag-{number}", "value": "1"} for number in range(51)])), ("spec", "tags")),
        (
            stack(endpoint("tags", {f"tag-{number}": "1" for number in range(51)})),
            ("config", "dpd-infra:endpoints", "llama-70b", "tags"),
        ),
    ],
)
def test_too_many_tags_are_told_of_all_of_them(given: Raw | Stack, path: tuple[str, ...]) -> None:
    (found,) = [finding for finding in given.findings if finding.rule == "DPD449"]
    assert found.path == path


def test_v1alpha1_with_fields_of_v1_is_one_finding_with_its_patch() -> None:
    given = raw(put("apiVersion", "inference.sagemaker.aws.amazon.com/v1alpha1"))
    (found,) = [finding for finding in given.findings if finding.rule in {"DPD701", "DPD702"}]
    assert found.path == ("apiVersion",)
    assert "spec.pdSpec" in found.what
    assert found.patch is not None
    assert raw().findings == given.findings_in(given.patched(found.patch))


KEY = "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
CAPTURE = {"s3Uri": "s3://hyperpod-tls-ours/llm", "sagemakerEndpoint": {"enabled": True}}


@pytest.mark.parametrize(
    ("setting", "value", "field", "given"),
    [
        ("tls", {"certificateArn": CERTIFICATE, "domainName": "llm.example.com"}, "certificateArns", CERTIFICATE),
        ("dns", {"hostedZoneId": "Z0123456789ABC", "recordName": "llm.example.com"}, "hostedZoneIds", "Z0123456789ABC"),
        ("dataCapture", {**CAPTURE, "s3Uri": "s3://captures/llm"}, "dataCaptureBuckets", "captures"),
        ("dataCapture", {**CAPTURE, "sagemakerEndpoint": {"enabled": True, "kmsKeyId": KEY}}, "dataCaptureKeyArns", KEY),
        ("tls", {"outputS3Uri": "s3://ours/llm"}, "tlsBucket", "ours"),
    ],
)
def test_what_the_operators_role_may_not_do_is_said_where_this_platform_makes_the_role(
    setting: str, value: object, field: str, given: str
) -> None:
    asks = endpoint(setting, value)
    (found,) = [finding for finding in stack(asks).findings if finding.rule == "DPD446"]
    assert f"dpd-infra:platform.operator.{field}" in found.fix
    assert given in found.what
    right = given if field == "tlsBucket" else [given]
    assert errors_and_warnings(stack(asks, platform(f"operator|{field}", right))).count("DPD446") == 0
    wrong = f"{given[:-1]}9" if field != "hostedZoneIds" else "Z9"
    assert errors_and_warnings(stack(asks, platform(f"operator|{field}", wrong if field == "tlsBucket" else [wrong]))).count("DPD446") == 1
    assert errors_and_warnings(stack(asks, platform("operator|adopt", True))).count("DPD446") == 0


def alone(document: dict[str, Any]) -> None:
    """Leave the dev stack its endpoints, for the operator of another stack."""
    del document["dpd-infra:platform"]
    document["dpd-infra:operator"] = {"addonVersion": "v1.4.0-eksbuild.1"}


def there_already(document: dict[str, Any]) -> None:
    """The operator is somebody else's."""
    document["dpd-infra:platform"]["existing"] = {"operator": {"addonVersion": "v1.4.0-eksbuild.1"}}
    document["dpd-infra:platform"].pop("operator", None)


@pytest.mark.parametrize("owner", [alone, there_already, platform("operator|adopt", True)])
@pytest.mark.parametrize(
    ("setting", "value", "field", "said"),
    # The actions are those of the guides on certificates, DNS and data capture.
    [
        ("tls", {"certificateArn": CERTIFICATE, "domainName": "llm.example.com"}, "certificateArns", "acm:GetCertificate"),
        ("dns", {"hostedZoneId": "Z0123456789ABC"}, "hostedZoneIds", "route53:ChangeResourceRecordSets"),
        ("dataCapture", {**CAPTURE, "s3Uri": "s3://captures/llm"}, "dataCaptureBuckets", "s3:PutObject"),
        ("dataCapture", {**CAPTURE, "sagemakerEndpoint": {"enabled": True, "kmsKeyId": KEY}}, "dataCaptureKeyArns", "kms:GenerateDataKey"),
        ("tls", {"outputS3Uri": "s3://ours/llm"}, "tlsBucket", "s3:PutObject"),
    ],
)
def test_what_the_role_of_an_operator_elsewhere_needs_is_advised(owner: Edit, setting: str, value: object, field: str, said: str) -> None:
    (found,) = [finding for finding in stack(owner, endpoint(setting, value)).findings if finding.rule == "DPD454"]
    assert found.severity is Severity.ADVICE
    assert said in found.what
    assert f"dpd-infra:platform.operator ({field})" in found.fix
    assert [finding for finding in stack(endpoint(setting, value)).findings if finding.rule == "DPD454"] == []


def test_what_many_endpoints_need_of_an_operator_elsewhere_is_advised_once() -> None:
    def edit(document: dict[str, Any]) -> None:
        one = document["dpd-infra:endpoints"]["llama-70b"]
        for number in range(7):
            document["dpd-infra:endpoints"][f"llama-{number}"] = {**one, "dns": {"hostedZoneId": f"Z012345678{number}"}}

    def quiet(document: dict[str, Any]) -> None:
        document["dpd-infra:endpoints"]["llama-0"]["silence"] = [{"rule": "DPD454", "reason": "allowed by hand"}]

    (found,) = [finding for finding in stack(alone, edit).findings if finding.rule == "DPD454"]
    assert found.subject == "llama-0"
    assert "6 other endpoints" in found.what
    (next_one,) = [finding for finding in stack(alone, edit, quiet).findings if finding.rule == "DPD454"]
    assert next_one.subject == "llama-1"
    assert "5 other endpoints" in next_one.what


@pytest.mark.parametrize(
    ("key", "given", "findings"),
    [
        # The CRD takes a key's id, its ARN, an alias and the ARN of an alias.
        (KEY.rpartition("/")[2], [KEY], 0),
        (KEY.rpartition("/")[2], [f"{KEY[:-1]}9"], 1),
        ("alias/captures", [KEY], 0),
        ("arn:aws:kms:us-east-2:111122223333:alias/captures", [KEY], 0),
        ("alias/captures", [], 1),
        ("alias/aws/s3", [], 0),
    ],
)
def test_a_key_may_be_named_by_its_id_or_an_alias(key: str, given: list[str], findings: int) -> None:
    asks = endpoint("dataCapture", {**CAPTURE, "sagemakerEndpoint": {"enabled": True, "kmsKeyId": key}})
    assert errors_and_warnings(stack(asks, platform("operator|dataCaptureKeyArns", given))).count("DPD446") == findings


def test_what_stands_behind_the_equals_sign_of_a_variables_name_is_not_shown() -> None:
    def edit(document: dict[str, Any]) -> None:
        document["spec"]["worker"]["environmentVariables"].append({"name": "DB_PASSWORD=my-own-key"})

    (found,) = [finding for finding in raw(edit).findings if finding.rule == "DPD452"]
    assert "DB_PASSWORD" in found.what
    assert "my-own-key" not in f"{found.what} {found.fix} {found.value}"


@pytest.mark.parametrize(("is_on", "findings"), [(True, 2), (False, 0)])
def test_what_is_switched_off_is_captured_nowhere(*, is_on: bool, findings: int) -> None:
    off = {
        "s3Uri": "s3://captures/llm",
        "sagemakerEndpoint": {"enabled": is_on, "kmsKeyId": KEY},
        "modelPod": {"enabled": False, "kmsKeyId": KEY},
    }
    assert errors_and_warnings(stack(endpoint("dataCapture", off))).count("DPD446") == findings


@pytest.mark.parametrize("capture", [{}, {"s3Uri": "s3://hyperpod-tls-ours/llm"}])
@pytest.mark.parametrize("written", ["stack", "raw"])
def test_a_capture_of_nothing_is_told_of_the_whole_of_it(capture: dict[str, Any], written: str) -> None:
    given = stack(endpoint("dataCapture", capture)) if written == "stack" else raw(put("spec|dataCapture", capture))
    (found,) = [finding for finding in given.findings if finding.rule == "DPD455"]
    assert found.path[-1] == "dataCapture"
    assert found.severity is Severity.ADVICE
    for place in ("sagemakerEndpoint", "loadBalancer", "modelPod"):
        on = {**capture, place: {"enabled": True}}
        given = stack(endpoint("dataCapture", on)) if written == "stack" else raw(put("spec|dataCapture", on))
        assert "DPD455" not in {finding.rule for finding in given.findings}


def test_what_is_captured_into_a_bucket_of_the_operators_policy_needs_nothing_more() -> None:
    assert errors_and_warnings(stack(endpoint("dataCapture", CAPTURE))).count("DPD446") == 0


@pytest.mark.parametrize(
    "edit",
    [
        words("--port 8000 " * 100_000),
        more("--" + "max-model-len" * 100_000, "1"),
        put(f"{SOURCE}|s3Storage|bucketName", "s3://" + "a" * 1_000_000),
        put(f"{SOURCE}|modelLocation", "s3://a/" + "b" * 1_000_000),
        put(f"{SOURCE}|s3Storage|region", "us-east-2" * 100_000),
    ],
)
def test_a_slip_of_a_million_letters_is_told_in_a_few(edit: Edit) -> None:
    said = [finding for finding in raw(edit).findings if finding.rule in {"DPD018", "DPD037", "DPD429"}]
    assert all(len(finding.what) + len(finding.fix) < 1200 for finding in said)


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "vpc.amazonaws.com/efa", "cpu", "memory"])
@pytest.mark.parametrize("amount", ["1E30", "9e99", "1" * 30 + "E", 10**400])
def test_an_amount_beyond_all_sense_is_told_of(name: str, amount: str | int) -> None:
    found = raw(both(f"resources|requests|{name}", amount), both(f"resources|limits|{name}", amount)).findings
    assert [finding for finding in found if finding.severity is Severity.ERROR and "resources" in finding.path]
