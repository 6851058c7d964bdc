"""What people and jobs around a platform may do: invoke endpoints, and copy models into the store."""

from __future__ import annotations

from collections.abc import Iterable

from dpd_infra.catalog.sources import IAM_USER_GUIDE
from dpd_infra.plan.iam.document import Document, RolePlan, Scope, allow, inline, policy, same_account
from dpd_infra.plan.iam.trust import ServiceAccount, trust, web_identity

INVOKE_ACTIONS = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")
"""A whole answer, and a stream of tokens (service authorization reference, SageMaker)."""


def invoke_policy(*, region: str, account_id: str, endpoint_names: Iterable[str], partition: str = "aws") -> Document:
    """A policy that allows invoking these SageMaker endpoints and no other.

    SageMaker writes an endpoint's name in lower case in its ARN, and IAM compares ARNs by letter: a name with capitals is allowed in both
    spellings. Raises `ValueError` for no endpoint or a name with a wildcard.
    """
    names = sorted(set(endpoint_names))
    if wild := [name for name in names if set(name) & set("*?")]:
        raise ValueError(f"endpoints are named one by one, not by pattern: {', '.join(wild)}")
    scope = Scope(partition, region, account_id)
    spellings = sorted({spelling for name in names for spelling in (name, name.lower())})
    return policy(allow("InvokeEndpoints", INVOKE_ACTIONS, [scope.arn("sagemaker", f"endpoint/{name}") for name in spellings]))


def staging_role(*, provider_arn: str, issuer: str, account: ServiceAccount, bucket_arn: str, folders: Iterable[str]) -> RolePlan:
    """The role of the staging jobs: one service account, one bucket of this account, and in it the folders of its models.

    It may list them, write and read objects, and give up an upload it began; it deletes nothing. Raises `ValueError` for no folder.
    """
    wanted = sorted(set(folders))
    listing = {**same_account(), "StringLike": {"s3:prefix": [f"{folder}/*" for folder in wanted]}}
    objects = [f"{bucket_arn}/{folder}/*" for folder in wanted]
    return RolePlan(
        name_hint="model-staging",
        description="Role of the jobs that copy models into the model store.",
        trust=trust(web_identity(provider_arn, issuer, [account])),
        managed_policies=(),
        inline=inline(
            allow("ListFolders", ["s3:ListBucket"], [bucket_arn], listing),
            allow("CopyModels", ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], objects, same_account()),
        ),
        source=IAM_USER_GUIDE,
    )
