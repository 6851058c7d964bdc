"""A raw manifest becomes an entry of a stack that renders back to the same manifest, whatever stands in it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpd_infra.render.endpoint import endpoint_context, render_endpoint
from dpd_infra.render.from_manifest import CannotImport, import_manifest
from dpd_infra.render.manifest_difference import differences, merge_patch, same
from dpd_infra.render.overrides import merge
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.yaml_source import load_document
from tests.pure.crd.documents import documents
from tests.pure.endpoint.specs import NAMES, endpoints
from tests.pure.endpoint.test_published_example import PUBLISHED

SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def rendered(name: str, entry: dict[str, Any], region: str = "eu-west-1") -> dict[str, Any]:
    """What an entry becomes in a stack of some region, as the entry would be read from a file."""
    return render_endpoint(name, EndpointSpec.from_yaml_data(entry), endpoint_context(name, region=region, addon_version="")).document


def test_the_published_manifest_becomes_the_shortest_entry_that_says_it() -> None:
    imported = import_manifest(PUBLISHED)
    assert (imported.name, imported.differences, imported.left_out) == ("dpd-test", (), ())
    assert imported.entry == {
        "model": {
            "name": "Llama-3.3-70B-Instruct",
            "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct", "region": "us-east-2"},
        },
        "instanceType": "ml.p5.48xlarge",
        "worker": {"image": "public.ecr.aws/deep-learning-containers/vllm:server-hyperpod-cuda-v1.1"},
    }
    assert rendered("dpd-test", imported.entry) == PUBLISHED


@SLOW
@given(NAMES, endpoints())
def test_what_a_short_form_renders_to_is_imported_exactly(name: str, data: dict[str, Any]) -> None:
    manifest = rendered(name, data)
    imported = import_manifest(copy.deepcopy(manifest))
    assert imported.differences == ()
    assert same(rendered(name, imported.entry), manifest)


@SLOW
@given(NAMES, documents())
def test_any_manifest_that_the_crd_takes_is_imported_exactly(name: str, manifest: dict[str, Any]) -> None:
    manifest = {**manifest, "metadata": {"name": name, "namespace": "models"}}
    imported = import_manifest(copy.deepcopy(manifest))
    assert imported.differences == ()
    if not any("null" in what for what in imported.left_out):
        assert same(rendered(name, imported.entry), {key: value for key, value in manifest.items() if key != "status"})


PATHS = st.sampled_from(
    [
        ("spec", "worker", "args"),
        ("spec", "worker", "environmentVariables"),
        ("spec", "worker", "resources"),
        ("spec", "worker", "image"),
        ("spec", "pdSpec"),
        ("spec", "pdSpec", "prefillSpec", "resources"),
        ("spec", "instanceType"),
        ("spec", "endpointName"),
        ("spec", "intelligentRoutingSpec"),
        ("spec", "modelSourceConfig", "s3Storage"),
        ("spec", "loadBalancer"),
        ("spec", "kvCacheSpec", "enableL1Cache"),
        ("spec", "newField"),
        ("metadata", "labels"),
        ("metadata", "finalizers"),
    ]
)
JSON = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3),
    max_leaves=5,
)


@SLOW
@given(st.lists(st.tuples(PATHS, JSON | st.just("absent")), max_size=4), st.randoms(use_true_random=False))
def test_a_manifest_changed_beyond_the_short_form_is_imported_exactly(changes: list[tuple[tuple[str, ...], Any]], chance: Any) -> None:
    manifest: dict[str, Any] = copy.deepcopy(PUBLISHED)
    chance.shuffle(manifest["spec"]["worker"]["environmentVariables"])
    for path, value in changes:
        place: Any = manifest
        for step in path[:-1]:
            place = place.setdefault(step, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            if value == "absent":
                place.pop(path[-1], None)
            else:
                place[path[-1]] = value
    variables = manifest["spec"].get("worker", {}).get("environmentVariables") if isinstance(manifest["spec"].get("worker"), dict) else None
    imported = import_manifest(copy.deepcopy(manifest))
    if not isinstance(variables, list) or all(isinstance(entry, dict) and "name" in entry for entry in variables):
        assert imported.differences == ()
        assert same(rendered("dpd-test", imported.entry), manifest)


DATA = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


@given(DATA, DATA)
def test_a_merge_patch_turns_one_document_into_the_other(base: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert same(merge(base, merge_patch(base, wanted)), wanted)
    assert list(differences(wanted, wanted)) == []
    assert bool(list(differences(base, wanted))) == (not same(base, wanted))


VARIABLES = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("ABCDE"), "value": st.text(max_size=2)}),
    max_size=5,
    unique_by=lambda entry: entry["name"],
)


@given(VARIABLES, VARIABLES)
def test_variables_keep_the_order_of_the_manifest(base: list[Any], wanted: list[Any]) -> None:
    before, after = ({"spec": {"worker": {"environmentVariables": entries}}} for entries in (base, wanted))
    assert same(merge(before, merge_patch(before, after)), after)


def test_what_the_cluster_wrote_into_a_manifest_is_left_out_and_said() -> None:
    manifest: dict[str, Any] = copy.deepcopy(PUBLISHED)
    manifest["metadata"] |= {
        "creationTimestamp": None,
        "uid": "1",
        "resourceVersion": "2",
        "generation": 3,
        "managedFields": [{}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    manifest["status"] = {"state": "DeploymentComplete"}
    imported = import_manifest(manifest)
    assert imported.differences == ()
    assert rendered("dpd-test", imported.entry) == PUBLISHED
    assert set(imported.left_out) == {
        "metadata.creationTimestamp (null)",
        "status",
        *(f"metadata.{field}" for field in ("uid", "resourceVersion", "generation", "managedFields")),
        "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
    }


def test_a_manifest_without_a_namespace_takes_the_one_that_is_named_and_else_says_what_is_added() -> None:
    manifest: dict[str, Any] = copy.deepcopy(PUBLISHED)
    del manifest["metadata"]["namespace"]
    assert import_manifest(manifest, namespace="models").entry["namespace"] == "models"
    assert import_manifest(manifest, namespace="models").differences == ()
    assert import_manifest(manifest).differences == ('metadata.namespace is added: "default"',)


def test_what_cannot_be_said_is_said_to_differ() -> None:
    manifest: dict[str, Any] = copy.deepcopy(PUBLISHED)
    manifest["apiVersion"] = "inference.sagemaker.aws.amazon.com/v1alpha1"
    assert import_manifest(manifest).differences == (
        'apiVersion becomes "inference.sagemaker.aws.amazon.com/v1", it was "inference.sagemaker.aws.amazon.com/v1alpha1"',
    )


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("kind: Deployment\nmetadata: {name: web}", "not an InferenceEndpointConfig"),
        ("[1, 2]", "not an InferenceEndpointConfig"),
        ("kind: InferenceEndpointConfig\nmetadata: {generateName: x-}", "without metadata.name"),
    ],
)
def test_what_is_no_endpoint_is_refused(document: str, why: str) -> None:
    with pytest.raises(CannotImport, match=why):
        import_manifest(load_document(document).data)


def test_an_amount_of_thousands_of_digits_is_imported_as_it_stands() -> None:
    # Python reads no integer of more than 4300 digits.
    manifest = copy.deepcopy(PUBLISHED)
    for part in ("requests", "limits"):
        manifest["spec"]["pdSpec"]["prefillSpec"]["resources"][part]["nvidia.com/gpu"] = "1" * 5000
    for variable in manifest["spec"]["worker"]["environmentVariables"]:
        if variable["name"] == "PD_BUFFER_SIZE":
            variable["value"] = "1" * 5000
    assert import_manifest(manifest).differences == ()


def test_finalizers_of_a_live_object_are_its_controllers_and_those_of_a_file_are_the_users() -> None:
    manifest = copy.deepcopy(PUBLISHED)
    manifest["metadata"] |= {"finalizers": ["example.com/mine"]}
    assert import_manifest(copy.deepcopy(manifest)).entry["overrides"]["metadata"]["finalizers"] == ["example.com/mine"]
    manifest["metadata"] |= {"uid": "11111111-2222-3333-4444-555555555555"}
    live = import_manifest(manifest)
    assert "metadata.finalizers" in live.left_out
    assert "metadata" not in live.entry.get("overrides", {})
