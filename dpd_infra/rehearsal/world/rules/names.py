"""What IAM, KMS, S3 and CloudWatch enforce of names: each is unique, has its form, and what it refers to exists."""

from __future__ import annotations

from dpd_infra.catalog.sources import IAM_QUOTAS, S3_ERRORS, Source, thread
from dpd_infra.rehearsal.world.rule import WorldRule

_IAM_API = Source("IAM GetOpenIDConnectProvider", "IAM API reference: NoSuchEntity")
_S3_NAMES = Source("S3 bucket naming rules", "S3 user guide, bucketnamingrules")

ROLE_NAME = WorldRule(
    "iam-role-name",
    "A role's name has 1 to 64 letters, digits or +=,.@-_.",
    "invalid value for {property} (1 to 64 letters, digits or +=,.@-_): {value}",
    IAM_QUOTAS,
    verbatim=False,
)
ROLE_IS_FREE = WorldRule(
    "iam-role-exists",
    "A role's name is unique in its account.",
    "Role with name {name} already exists.",
    thread("aws-ia/terraform-aws-control_tower_account_factory", 529),
)
ROLE_IS_THERE = WorldRule(
    "iam-role-there",
    "The role that a policy is put on exists.",
    "The role with name {name} cannot be found.",
    thread("prowler-cloud/prowler", 2872),
)
POLICY_IS_FREE = WorldRule(
    "iam-policy-exists",
    "A managed policy's name is unique in its account.",
    "A policy called {name} already exists. Duplicate names are not allowed.",
    thread("Altinity/terraform-aws-eks-clickhouse", 7),
)
POLICY_IS_THERE = WorldRule(
    "iam-policy-there",
    "The managed policy that is attached exists.",
    "Policy {arn} does not exist or is not attachable.",
    thread("pulumi/pulumi", 7419),
)
OIDC_IS_FREE = WorldRule(
    "iam-oidc-provider-exists",
    "An account has one OIDC provider for an issuer.",
    "Provider with url https://{host} already exists.",
    thread("DrFaust92/terraform-kubernetes-ebs-csi-driver", 107),
)
OIDC_IS_THERE = WorldRule(
    "iam-oidc-provider-there",
    "The OIDC provider that is asked for exists.",
    "OpenIDConnect Provider not found for arn {arn}",
    _IAM_API,
    verbatim=False,
)
ALIAS_IS_FREE = WorldRule(
    "kms-alias-exists",
    "An alias is one of a key in its region.",
    "An alias with the name {arn} already exists",
    thread("cloudbees-oss/terraform-aws-cloudbees-ci-eks-addon", 66),
)
KEY_IS_THERE = WorldRule(
    "kms-key-there",
    "The key that an alias is given to exists.",
    "Key '{arn}' does not exist",
    thread("hashicorp/terraform-provider-aws", 1896),
)
LOG_GROUP_IS_FREE = WorldRule(
    "log-group-exists",
    "A log group's name is unique in its region; EKS makes one itself where nobody made it before.",
    "The specified log group already exists",
    thread("terraform-aws-modules/terraform-aws-eks", 411, 2486),
)
BUCKET_NAME = WorldRule(
    "bucket-name",
    "A bucket's name has 3 to 63 lower-case letters, digits, dots or hyphens.",
    "invalid value for {property} (3 to 63 lower-case letters, digits, dots or hyphens): {value}",
    _S3_NAMES,
    verbatim=False,
)
BUCKET_IS_FREE = WorldRule(
    "bucket-exists",
    "A bucket's name is taken once.",
    "Your previous request to create the named bucket succeeded and you already own it.",
    thread("scality/Arsenal", 2276),
)
BUCKET_IS_THERE = WorldRule(
    "bucket-there",
    "The bucket that a setting or an object belongs to exists.",
    "The specified bucket does not exist",
    S3_ERRORS,
)
OBJECT_IS_THERE = WorldRule(
    "object-there",
    "An object that is read exists, and so does its bucket.",
    "Not Found",
    S3_ERRORS,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
