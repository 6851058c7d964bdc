"""Policies on what an account is governed by: tags, and who may take a role."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.catalog.sources import IAM_USER_GUIDE, SETUP_GUIDE, Source
from dpd_infra.plan.iam.trust import GATED_MODEL_ACCOUNT_PREFIX
from dpd_infra.policy.registration import HYPERPOD_CLUSTER, NotKnownYet, Registration, mapping, mappings, texts
from dpd_infra.policy.registry import Breach, Context, resource_policy
from dpd_infra.spec.finding import Severity
from dpd_infra.testing.recording import UNKNOWN

TAGGING_GUIDE = Source("Tagging AWS resources and Tag Editor user guide", "docs.aws.amazon.com/tag-editor/latest/userguide")

TAGGABLE = frozenset(
    {
        "aws:cloudwatch/logGroup:LogGroup",
        "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
        "aws:ec2/eip:Eip",
        "aws:ec2/flowLog:FlowLog",
        "aws:ec2/internetGateway:InternetGateway",
        "aws:ec2/natGateway:NatGateway",
        "aws:ec2/routeTable:RouteTable",
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:ec2/subnet:Subnet",
        "aws:ec2/vpc:Vpc",
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "aws:eks/accessEntry:AccessEntry",
        "aws:eks/addon:Addon",
        "aws:eks/cluster:Cluster",
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        "aws:iam/policy:Policy",
        "aws:iam/role:Role",
        "aws:kms/key:Key",
        "aws:s3/bucket:Bucket",
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        HYPERPOD_CLUSTER,
    }
)
"""Of the types that this library makes, those that take tags (pulumi-aws 7.51 and pulumi-aws-native 1.84: a `tags` argument). An object in
a bucket takes some too, and no bill is split by them."""

_ROLES = frozenset({"aws:iam/role:Role", "aws-native:iam:Role"})
_EKS_ISSUER = "oidc.eks."


@resource_policy(
    "DPD716",
    "What can be tagged is tagged",
    types=TAGGABLE,
    severity=Severity.WARNING,
    why="GPU capacity is most of an AWS bill, and only tags say whose it is.",
    sources=(TAGGING_GUIDE,),
    config={
        "keys": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "The keys that every resource must carry; none: any tag will do.",
        }
    },
)
def resources_are_tagged(resource: Registration, context: Context) -> Iterator[Breach]:
    """A resource of a type that takes tags with none beside its name, or without the keys that the policy's configuration asks for."""
    tags = {**_provider_tags(resource), **_tags(resource.get("tagsAll")), **_tags(resource.get("tags"))}
    wanted = [str(key) for key in context.config.get("keys") or ()]
    missing = [key for key in wanted if key not in tags]
    if missing:
        what = f"the tag {missing[0]} is missing" if len(missing) == 1 else f"the tags {', '.join(missing)} are missing"
        yield Breach(what, "add it here or to the provider's defaultTags")
    elif not wanted and not tags.keys() - {"Name"}:
        yield Breach("it carries no tag beside its name", "add tags here or to the provider's defaultTags")


def _provider_tags(resource: Registration) -> dict[str, Any]:
    """The provider's defaultTags, which the AWS provider adds to each resource; on the wire they are JSON text."""
    found = resource.provider.get("defaultTags")
    if found is UNKNOWN:
        raise NotKnownYet("the provider's defaultTags")
    return _tags(mapping(_parsed(found)).get("tags"))


def _tags(found: Any) -> dict[str, Any]:
    """Tags as a mapping, whether they are one or a list of keys and values."""
    if isinstance(found, list):
        return {str(entry.get("key")): entry.get("value") for entry in found if isinstance(entry, Mapping)}
    return dict(found) if isinstance(found, Mapping) else {}


@resource_policy(
    "DPD718",
    "Trust policies name who may take the role",
    types=_ROLES,
    severity=Severity.ERROR,
    why="A wildcard subject lets pods take the role that were never meant to: whoever may create a service account in the cluster has its "
    "permissions.",
    sources=(SETUP_GUIDE, IAM_USER_GUIDE),
)
def trust_policies_name_who(role: Registration, _context: Context) -> Iterator[Breach]:
    """Everybody as principal without a condition; an EKS cluster's OIDC provider without a subject, or with a wildcard in it.

    The one pattern let through is the operator's own for gated JumpStart models, in a namespace that is named.
    """
    for statement in _statements(role):
        principal = statement.get("Principal")
        if _is_anybody(principal) and not statement.get("Condition"):
            yield Breach("anybody may take this role: the principal is * and there is no condition", "name the account, role or service")
        if any(_EKS_ISSUER in provider for provider in texts(mapping(principal).get("Federated"))):
            yield from _subject_breaches(statement)


def _statements(role: Registration) -> list[Mapping[str, Any]]:
    document = role.get("assumeRolePolicy") if role.type.startswith("aws:") else role.get("assumeRolePolicyDocument")
    return [entry for entry in mappings(mapping(_parsed(document)).get("Statement")) if entry.get("Effect") == "Allow"]


def _parsed(document: Any) -> Any:
    """A value that providers take as JSON text and as itself; None for a text that is no JSON."""
    if not isinstance(document, str):
        return document
    try:
        return json.loads(document)
    except ValueError:
        return None


def _is_anybody(principal: Any) -> bool:
    return principal == "*" or "*" in texts(mapping(principal).get("AWS"))


def _subject_breaches(statement: Mapping[str, Any]) -> Iterator[Breach]:
    subjects = [
        (operator, subject)
        for operator, keys in mapping(statement.get("Condition")).items()
        for key, values in mapping(keys).items()
        if key.lower().endswith(":sub")
        for subject in texts(values)
    ]
    if not subjects:
        yield Breach(
            "any service account of the cluster may take this role: no condition names the subject", "add the subject with StringEquals"
        )
    for operator, subject in subjects:
        # StringEquals compares letter by letter: a star there is a star.
        if "like" in operator.lower() and not _is_closed(subject):
            yield Breach(f"the subject {subject} is a pattern", "name the namespace and the service account, with StringEquals")


def _is_closed(subject: str) -> bool:
    documented = subject.rpartition(":")[2] == f"{GATED_MODEL_ACCOUNT_PREFIX}*"
    return not set(subject.removesuffix("*") if documented else subject) & set("*?")
