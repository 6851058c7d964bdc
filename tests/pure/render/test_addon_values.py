"""The operator's configuration values against the keys that the setup guide and AWS's Terraform module send."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.render.addon_values import canonical_json, merged, render_operator_configuration
from dpd_infra.render.bucket_policy import tls_only_policy
from dpd_infra.spec.operator import OperatorSpec

EXECUTION = "arn:aws:iam::111122223333:role/SageMakerHyperPodInference-prod-us-east-2-execution"
LOAD_BALANCER = "arn:aws:iam::111122223333:role/prod-us-east-2-load-balancer"
KEDA = "arn:aws:iam::111122223333:role/prod-us-east-2-keda"
GATED = "arn:aws:iam::111122223333:role/gated"
CLUSTER = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abc"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


def configuration(spec: OperatorSpec, *, load_balancer: str | None = LOAD_BALANCER, keda: str | None = KEDA) -> dict[str, Any]:
    return render_operator_configuration(
        spec,
        execution_role_arn=EXECUTION,
        tls_bucket="hyperpod-tls-prod",
        cluster_arn=CLUSTER,
        load_balancer_role_arn=load_balancer,
        keda_role_arn=keda,
    )


def test_the_values_are_those_of_the_setup_guide() -> None:
    assert configuration(OperatorSpec(gated_model_role_arn=GATED)) == {
        "executionRoleArn": EXECUTION,
        "tlsCertificateS3Bucket": "hyperpod-tls-prod",
        "hyperpodClusterArn": CLUSTER,
        "jumpstartGatedModelDownloadRoleArn": GATED,
        "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": LOAD_BALANCER}},
        "keda": {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": KEDA}}}},
    }


def test_controllers_that_are_there_already_are_not_installed_again() -> None:
    values = configuration(OperatorSpec(), load_balancer=None, keda=None)
    assert values["alb"] == {"enabled": False}
    assert values["keda"] == {"enabled": False}
    assert "jumpstartGatedModelDownloadRoleArn" not in values


def test_the_users_own_values_are_merged_key_by_key() -> None:
    own = {"keda": {"auth": {"aws": {"region": "us-east-2"}}}, "tolerations": [{"operator": "Exists"}]}
    values = configuration(OperatorSpec(configuration=own))
    assert values["keda"]["auth"]["aws"] == {"region": "us-east-2", "irsa": {"enabled": True, "roleArn": KEDA}}
    assert values["tolerations"] == [{"operator": "Exists"}]
    assert values["alb"] == configuration(OperatorSpec())["alb"]


@given(OBJECTS, OBJECTS)
def test_a_merge_holds_all_that_is_laid_over_and_what_it_does_not_touch(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    before = (json.dumps(ours), json.dumps(theirs))
    result = merged(ours, theirs)
    assert merged(result, theirs) == result
    assert set(result) == set(ours) | set(theirs)
    assert all(result[key] == ours[key] for key in set(ours) - set(theirs))
    assert all(result[key] == value for key, value in theirs.items() if not isinstance(value, dict))
    assert (json.dumps(ours), json.dumps(theirs)) == before


@given(OBJECTS)
def test_equal_values_are_equal_text_whatever_their_order(value: dict[str, Any]) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(dict(reversed(value.items()))) == text


def test_the_text_has_no_spaces_or_line_ends_of_its_own() -> None:
    assert canonical_json({"b": [1, 2], "a": {"c": True}}) == '{"a":{"c":true},"b":[1,2]}'


def test_a_bucket_refuses_requests_without_tls_for_itself_and_its_objects() -> None:
    (statement,) = tls_only_policy("arn:aws:s3:::b")["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Principal"] == "*"
    assert statement["Resource"] == ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
