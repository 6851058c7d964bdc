"""What EKS enforces of a control plane, of who may use it, and of its add-ons."""

from __future__ import annotations

from dpd_infra.catalog.sources import EKS_USER_GUIDE, Source, thread
from dpd_infra.rehearsal.world.rule import ASSUMED, WorldRule

_CREATE_CLUSTER = Source("EKS CreateCluster", "EKS API reference: name")
_ASSOCIATE_POLICY = Source("EKS AssociateAccessPolicy", "EKS API reference: policyArn")
_DESCRIBE_ADDON = Source("EKS DescribeAddon", "EKS API reference: ResourceNotFoundException")
_DELETION_PROTECTION = Source("EKS: deletion protection", "docs.aws.amazon.com/eks/latest/userguide/deletion-protection")
_MODULE = "terraform-aws-modules/terraform-aws-eks"

CLUSTER_NAME = WorldRule(
    "eks-cluster-name",
    "A control plane's name has 1 to 100 letters, digits, hyphens or underscores.",
    "invalid value for {property} (1 to 100 letters, digits, hyphens or underscores): {value}",
    _CREATE_CLUSTER,
    verbatim=False,
)
CLUSTER_IS_FREE = WorldRule(
    "eks-cluster-exists",
    "A control plane's name is unique in its region.",
    "Cluster already exists with name: {name}",
    thread(_MODULE, 1262, 1991),
)
CLUSTER_IS_THERE = WorldRule(
    "eks-cluster-there",
    "The control plane that a request names exists.",
    "No cluster found for name: {name}.",
    thread("eksctl-io/eksctl", 715),
)
ENDPOINT_ACCESS = WorldRule(
    "eks-endpoint-access",
    "A control plane has a public or a private endpoint, or both.",
    "Private and public endpoint access cannot be false",
    EKS_USER_GUIDE,
    verbatim=False,
)
MODE_STEPS = WorldRule(
    "eks-mode-steps",
    "The authentication mode goes from CONFIG_MAP to API_AND_CONFIG_MAP, and from there to API, and never back.",
    "Unsupported authentication mode update from {before} to {after}",
    Source("EKS: changing the authentication mode", f"pulumi/pulumi-eks #1493 and {_MODULE} #2881, GitHub"),
)
VERSION_STEPS = WorldRule(
    "eks-version-steps",
    "Kubernetes goes up one minor version at a time, and never back.",
    "Unsupported Kubernetes minor version update from {before} to {after}",
    Source("EKS: changing the Kubernetes version", f"{_MODULE} #2607 and rancher/rancher #28939, GitHub"),
)
DELETION_PROTECTION = WorldRule(
    "eks-deletion-protection",
    "A control plane with deletion protection is not deleted.",
    "Cluster {name} cannot be deleted because deletion protection is enabled",
    _DELETION_PROTECTION,
    verbatim=False,
)
HYPERPOD_ATTACHED = WorldRule(
    "eks-hyperpod-attached",
    "A control plane goes after the HyperPod cluster that it orchestrates.",
    "Cluster {name} is the orchestrator of HyperPod cluster {hyperpod}",
    ASSUMED,
    verbatim=False,
)
ENTRY_MODE = WorldRule(
    "access-entry-mode",
    "Access entries need the authentication mode API or API_AND_CONFIG_MAP.",
    "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.",
    thread(_MODULE, 3048),
)
ENTRY_PRINCIPAL = WorldRule(
    "access-entry-principal",
    "An access entry is of an IAM principal, and of no session of one.",
    "The principalArn parameter format is not valid",
    thread("aws-samples/appmod-blueprints", 319),
)
ENTRY_ONCE = WorldRule(
    "access-entry-once",
    "A principal has one access entry; the creator of a control plane has one already, unless it was told otherwise.",
    "The specified access entry resource is already in use on this cluster.",
    thread(_MODULE, 3293),
)
ENTRY_IS_THERE = WorldRule(
    "access-entry-there",
    "An access policy is given to a principal that has an access entry.",
    "The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'.",
    thread(_MODULE, 3024),
)
ACCESS_POLICY = WorldRule(
    "access-policy",
    "An access policy is one of EKS's own.",
    "The policyArn parameter format is not valid",
    _ASSOCIATE_POLICY,
    verbatim=False,
)
ADDON_ONCE = WorldRule(
    "addon-once",
    "A cluster has an add-on once.",
    "Addon already exists.",
    Source("EKS: an add-on that is there", "crossplane-contrib/provider-aws #1310 and aws/eks-hybrid #316, GitHub"),
)
ADDON_IS_THERE = WorldRule(
    "addon-there",
    "The add-on that is asked for exists.",
    "No addon: {addon} found in cluster: {cluster}",
    _DESCRIBE_ADDON,
    verbatim=False,
)
ADDON_VALUES = WorldRule(
    "addon-configuration-object",
    "An add-on's configuration values are a JSON object.",
    "ConfigurationValue provided in request is not supported: Json schema validation failed with error: [$: {kind} found, object expected]",
    thread("cookpad/terraform-aws-eks", 331),
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
