"""What a spec refuses is said once, in words about the user's file, with what to write; the rest is still read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Finding, Severity, pointer
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.spec.shape import build
from dpd_infra.spec.shape_rule import SHAPE_RULE
from dpd_infra.spec.yaml_source import load_document

ENDPOINT = "model: {name: m, s3: {bucket: my-models}}\ninstanceType: ml.p5.48xlarge\n"

Case = tuple[str, str, str, str, Any]
"""Lines of an endpoint; then of its one finding: path, what, fix, and the value that was plainly meant."""

CASES: dict[str, Case] = {
    "a quoted whole number": (
        'prefill: {replicas: "2"}',
        "prefill.replicas",
        "must be a whole number or auto, found '2'",
        "take the quotes away: 2",
        2,
    ),
    "a word for a number": (
        "prefill: {replicas: two}",
        "prefill.replicas",
        "must be a whole number or auto, found 'two'",
        "write a whole number or auto",
        None,
    ),
    "a fraction": (
        "prefill: {replicas: 1.5}",
        "prefill.replicas",
        "must be a whole number or auto, found 1.5",
        "write a whole number or auto",
        None,
    ),
    "a boolean for a number": (
        "prefill: {replicas: true}",
        "prefill.replicas",
        "must be a whole number or auto, found true",
        "write a whole number or auto",
        None,
    ),
    "below the range": ("prefill: {replicas: 0}", "prefill.replicas", "must be 1 or more, found 0", "write 1 or more", None),
    "above the range": ("worker: {port: 70000}", "worker.port", "must be 65535 or less, found 70000", "write 65535 or less", None),
    "above a fraction's range": (
        "worker: {gpuMemoryUtilization: 2}",
        "worker.gpuMemoryUtilization",
        "must be 1 or less, found 2",
        "write 1 or less",
        None,
    ),
    "a quoted fraction": (
        'worker: {gpuMemoryUtilization: "0.9"}',
        "worker.gpuMemoryUtilization",
        "must be a number or auto, found '0.9'",
        "take the quotes away: 0.9",
        0.9,
    ),
    "another case of auto": (
        "prefill: {replicas: Auto}",
        "prefill.replicas",
        "must be a whole number or auto, found 'Auto'",
        "write auto",
        "auto",
    ),
    "a number for text": ("tags: {a: 1}", "tags.a", "must be text, found 1", "put it in quotes: without them YAML reads a number", "1"),
    "a boolean for text": (
        "tags: {a: true}",
        "tags.a",
        "must be text, found true",
        "put it in quotes: without them YAML reads true or false",
        "true",
    ),
    "yes for true": ("metrics: {enabled: yes}", "metrics.enabled", "must be true or false, found 'yes'", "write true", True),
    "a quoted false": (
        'placement: {sameZone: "false"}',
        "placement.sameZone",
        "must be true or false, found 'false'",
        "write false",
        False,
    ),
    "an enum in another case": (
        "routing: {strategy: prefixAware}",
        "routing.strategy",
        "must be prefixaware, kvaware, session or roundrobin, found 'prefixAware'",
        "write prefixaware",
        "prefixaware",
    ),
    "no member of an enum": (
        "cache: {l2: {backend: disk}}",
        "cache.l2.backend",
        "must be redis or tieredstorage, found 'disk'",
        "write redis or tieredstorage",
        None,
    ),
    "a text for a list": ("worker: {args: --foo}", "worker.args", "must be a list, found '--foo'", "write a list", None),
    "a list for a mapping": ("prefill: [1]", "prefill", "must be a mapping of keys to values", "write a mapping of keys to values", None),
    "nothing for a mapping": (
        "prefill:",
        "prefill",
        "must be a mapping of keys to values, found nothing",
        "write a mapping of keys to values, or remove the key",
        None,
    ),
    "a number in a list of texts": (
        "worker: {args: [--x, 1]}",
        "worker.args[1]",
        "must be text, found 1",
        "put it in quotes: without them YAML reads a number",
        "1",
    ),
    "a key with a slip": ("routing: {treshold: 4}", "routing.treshold", "unknown key 'treshold'", "did you mean 'threshold'?", None),
    "a key of nowhere": (
        "kueue: {queueName: q, colour: 1}",
        "kueue.colour",
        "unknown key 'colour'",
        "remove it; the keys here are: queueName, priorityClass",
        None,
    ),
    "a missing key": ("kueue: {}", "kueue.queueName", "the needed key 'queueName' is missing", "add kueue.queueName", None),
    "a union of text and mapping": (
        "worker: {environment: {A: [x]}}",
        "worker.environment.A",
        "must be text or a mapping of keys to values",
        "write text or a mapping of keys to values",
        None,
    ),
    "a union's number": (
        "worker: {environment: {A: 1}}",
        "worker.environment.A",
        "must be text or a mapping of keys to values, found 1",
        "put it in quotes: without them YAML reads a number",
        "1",
    ),
    "a union of numbers": (
        "prefill: {autoscaling: {cloudWatchTrigger: {targetValue: abc}}}",
        "prefill.autoscaling.cloudWatchTrigger.targetValue",
        "must be a number, found 'abc'",
        "write a number",
        None,
    ),
    "a quantity of the wrong kind": (
        "prefill: {resources: {requests: {cpu: [1]}}}",
        "prefill.resources.requests.cpu",
        "must be a whole number or text",
        "write a whole number or text",
        None,
    ),
    "a fraction for a quantity": (
        "prefill: {resources: {requests: {cpu: 1.5}}}",
        "prefill.resources.requests.cpu",
        "must be a whole number or text, found 1.5",
        "put it in quotes: without them YAML reads a number",
        "1.5",
    ),
    "no quantity": (
        "prefill: {resources: {requests: {memory: lots}}}",
        "prefill.resources.requests.memory",
        "must be a Kubernetes quantity such as 8, 500m or 1024Gi, found 'lots'",
        "write a Kubernetes quantity such as 8, 500m or 1024Gi",
        None,
    ),
    "an empty text": ("silence: [{rule: DPD001, reason: ''}]", "silence[0].reason", "must not be empty, found ''", "write something", None),
    "a text of the wrong form": (
        "namespace: My_NS",
        "namespace",
        "must match ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$, found 'My_NS'",
        "write a value of that form, for example default",
        None,
    ),
    "an entry that empties its list": (
        "dataCapture: {modelPod: {enabled: true, captureOptions: [{captureMode: x}]}}",
        "dataCapture.modelPod.captureOptions[0].captureMode",
        "must be Input or Output, found 'x'",
        "write Input or Output",
        None,
    ),
    "two ways to nodes": (
        "instanceTypes: [ml.p5.48xlarge]",
        "",
        "say exactly one of instanceType, instanceTypes, nodeAffinity; here are instanceType, instanceTypes",
        "say exactly one of instanceType, instanceTypes, nodeAffinity, for example instanceType: ml.p5.48xlarge",
        None,
    ),
    "a fixed field overridden": (
        "overrides: {metadata: {name: x}}",
        "",
        "overrides: metadata.name is not to be overridden, other parts of the stack go by it",
        "take metadata.name out of overrides: what it stands for has a key of the entry or is the entry's own name",
        None,
    ),
    "a contradiction inside": (
        "model: {name: m, s3: {bucket: my-models}, location: x}\ninstanceType: ml.p5.48xlarge",
        "model",
        "for s3 the folder is s3.prefix; location stands beside the other sources",
        "write the folder as s3.prefix and remove location, for example s3: {bucket: my-models, prefix: Llama-3.3-70B-Instruct}",
        None,
    ),
    "an instance type of EC2": (
        "model: {name: m, s3: {bucket: my-models}}\ninstanceType: p5.48xlarge",
        "instanceType",
        "must match ^ml\\..*, found 'p5.48xlarge'",
        "write ml.p5.48xlarge",
        "ml.p5.48xlarge",
    ),
}


def findings_of(lines: str) -> tuple[EndpointSpec | None, list[Finding]]:
    whole = lines if "instanceType:" in lines else ENDPOINT + lines
    return build(EndpointSpec, load_document(whole).data, (), "llama")


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_mistake_is_said_once_with_what_to_write(name: str) -> None:
    lines, path, what, fix, meant = CASES[name]
    _, findings = findings_of(lines)
    assert [(pointer(finding.path), finding.what, finding.fix) for finding in findings] == [(path, what, fix)]
    finding = findings[0]
    assert (finding.rule, finding.severity, finding.subject) == (SHAPE_RULE, Severity.ERROR, "llama")
    assert finding.why
    patch = finding.patch
    assert (patch.value if patch else None, type(patch.value if patch else None)) == (meant, type(meant))


def test_several_mistakes_are_all_said_and_the_rest_is_still_read() -> None:
    spec, findings = findings_of("prefill: {replicas: '2', colour: 1}\ndecode: {replicas: 0}\nrouting: {threshold: 1000}")
    assert sorted(".".join(map(str, finding.path)) for finding in findings) == ["decode.replicas", "prefill.colour", "prefill.replicas"]
    assert spec is not None
    assert (spec.prefill.replicas, spec.decode.replicas, spec.routing.threshold) == (2, 1, 1000)


def test_what_was_taken_out_as_wrong_is_not_missed_afterwards() -> None:
    _, findings = findings_of("model: {name: m, s3: {bucket: B}}\ninstanceType: ml.p5.48xlarge")
    assert [finding.path for finding in findings] == [("model", "s3", "bucket")]


def test_a_contradiction_beside_a_wrong_value_is_said_too() -> None:
    _, findings = findings_of("instanceTypes: [ml.p5.48xlarge]\nprefill: {replicas: two}")
    assert [finding.path for finding in findings] == [("prefill", "replicas"), ()]


@pytest.mark.parametrize("data", [None, [], 5, "text", True])
def test_anything_but_a_mapping_is_one_finding(data: Any) -> None:
    spec, findings = build(EndpointSpec, data, ("e",), "x")
    assert spec is None
    assert [(finding.path, finding.what.split(",")[0]) for finding in findings] == [(("e",), "must be a mapping of keys to values")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(field.alias or name for name, field in EndpointSpec.model_fields.items())
PLATFORM_FIELDS = sorted(field.alias or name for name, field in PlatformSpec.model_fields.items())


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_no_endpoint_whatever_its_values_makes_anything_but_findings(data: dict[str, Any]) -> None:
    spec, findings = build(EndpointSpec, data, ("e",), "x")
    assert (spec is not None) or findings
    for finding in findings:
        assert finding.what
        assert finding.fix
        assert finding.why
    # One place, one finding, but for what a section's parts say of each other.
    places = [finding.path for finding in findings]
    assert all(places.count(place) <= 2 for place in places)


@given(st.dictionaries(st.sampled_from(PLATFORM_FIELDS), JSON, max_size=4))
def test_no_platform_whatever_its_values_makes_anything_but_findings(data: dict[str, Any]) -> None:
    spec, findings = build(PlatformSpec, data, ("p",), "platform")
    assert (spec is not None) or findings
    assert all(finding.what and finding.fix and finding.why for finding in findings)


def test_a_name_of_the_wrong_form_is_to_be_renamed() -> None:
    data = {"name": "dev", "instanceGroups": {"gpu_x": {"instanceType": "ml.p5.48xlarge", "count": 1}}}
    _, findings = build(PlatformSpec, data, (), "platform")
    (found,) = [finding for finding in findings if finding.path == ("instanceGroups", "gpu_x")]
    assert (found.what, found.fix, found.value) == ("the name 'gpu_x' must match ^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", "rename it", "gpu_x")
