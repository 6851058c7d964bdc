"""Who may take the roles: the subjects of the documents, verbatim."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpd_infra.plan.iam.storage_roles import s3_csi_accounts
from dpd_infra.plan.iam.trust import gated_model_identity, issuer_name, web_identity
from tests.pure.iam.iam_samples import ACCOUNT, REGIONS, issuer, provider, roles

# SageMaker AI developer guide, sagemaker-hyperpod-model-deployment-setup and inference gateway; the S3 driver's v2 from its own manifests.
SUBJECTS = {
    "inference": ["system:serviceaccount:hyperpod-inference-system:hyperpod-inference-controller-manager"],
    "load balancers": ["system:serviceaccount:hyperpod-inference-system:aws-load-balancer-controller"],
    "keda": ["system:serviceaccount:hyperpod-inference-system:keda-operator"],
    "gateway": ["system:serviceaccount:hyperpod-inference-system:inference-gateway-controller"],
    "s3 v1": ["system:serviceaccount:kube-system:s3-csi-driver-sa"],
    "s3 v2, all": [
        "system:serviceaccount:kube-system:s3-csi-driver-sa",
        "system:serviceaccount:kube-system:s3-csi-driver-controller-sa",
        "system:serviceaccount:mount-s3:default",
    ],
    "fsx": ["system:serviceaccount:kube-system:fsx-csi-controller-sa"],
}


def _federated(role: str, partition: str) -> dict[str, Any]:
    (statement,) = [s for s in roles(partition)[role].trust["Statement"] if "Federated" in s["Principal"]]
    return statement


def _services(role: str) -> dict[str, dict[str, Any]]:
    return {s["Principal"]["Service"]: s for s in roles()[role].trust["Statement"] if "Service" in s["Principal"]}


@pytest.mark.parametrize("partition", REGIONS)
@pytest.mark.parametrize("role", SUBJECTS)
def test_service_accounts_are_matched_by_their_exact_subject_and_audience(role: str, partition: str) -> None:
    statement = _federated(role, partition)
    equals = statement["Condition"].pop("StringEquals")
    assert statement["Condition"] == {}
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Principal"] == {"Federated": provider(partition)}
    subjects = equals[f"{issuer(partition)}:sub"]
    assert ([subjects] if isinstance(subjects, str) else subjects) == SUBJECTS[role]
    assert equals[f"{issuer(partition)}:aud"] == "sts.amazonaws.com"


def test_only_the_gated_model_role_matches_a_pattern_and_only_in_named_namespaces() -> None:
    assert [role for role, plan in roles().items() if "StringLike" in json.dumps(plan.trust)] == ["gated"]
    condition = _federated("gated", "aws")["Condition"]
    assert condition["StringLike"] == {
        f"{issuer('aws')}:sub": [
            "system:serviceaccount:default:hyperpod-inference-service-account*",
            "system:serviceaccount:team-a:hyperpod-inference-service-account*",
        ]
    }
    assert condition["StringEquals"] == {f"{issuer('aws')}:aud": "sts.amazonaws.com"}


@pytest.mark.parametrize("namespaces", [[], ["*"], ["team-?"]])
def test_a_gated_model_role_for_unnamed_namespaces_is_refused(namespaces: list[str]) -> None:
    with pytest.raises(ValueError, match="must be named"):
        gated_model_identity(provider("aws"), issuer("aws"), namespaces)


def test_services_take_roles_only_for_the_platforms_own_account_where_they_say_for_whom() -> None:
    assert _services("inference")["sagemaker.amazonaws.com"]["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    assert _services("cluster")["eks.amazonaws.com"]["Condition"] == {
        "StringEquals": {"aws:SourceAccount": ACCOUNT},
        "ArnLike": {"aws:SourceArn": f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/dpd-prod"},
    }
    assert _services("flow logs")["vpc-flow-logs.amazonaws.com"]["Condition"] == {
        "StringEquals": {"aws:SourceAccount": ACCOUNT},
        "ArnLike": {"aws:SourceArn": f"arn:aws:ec2:us-west-2:{ACCOUNT}:vpc-flow-log/*"},
    }
    # HyperPod is not among the features that SageMaker's guide names as senders of aws:SourceAccount.
    assert _services("node") == {
        "sagemaker.amazonaws.com": {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    }


@pytest.mark.parametrize(
    ("version", "count"),
    [("v1.14.1-eksbuild.1", 1), ("v1.99.0", 1), ("v2.0.0-eksbuild.1", 3), ("v2.8.0-eksbuild.1", 3), ("v10.0.0-eksbuild.1", 3)],
)
def test_the_s3_driver_has_three_accounts_from_v2_on(version: str, count: int) -> None:
    assert len(s3_csi_accounts(version)) == count


@pytest.mark.parametrize("version", ["", "2.0.0", "v2", "latest"])
def test_a_malformed_driver_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="not an add-on version"):
        s3_csi_accounts(version)


def test_an_issuer_is_named_without_its_scheme() -> None:
    assert issuer_name(f"https://{issuer('aws')}") == issuer("aws") == issuer_name(issuer("aws"))
    for bad in ("", "https://", "http://issuer"):
        with pytest.raises(ValueError, match="not an OIDC issuer"):
            issuer_name(bad)


def test_a_web_identity_for_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a service account"):
        web_identity(provider("aws"), issuer("aws"), [])
