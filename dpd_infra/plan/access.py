"""Who gets into the Kubernetes API: one EKS access entry a principal, and on it one access policy a right.

Entries are told apart by their principal, never by who named it: whoever deploys may also stand in the grants, two grants may name one
principal, and a grant may be renamed, without a second entry for a principal (EKS refuses it) or a moment without access.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpd_infra.spec.control_plane import AccessGrant
from dpd_infra.spec.vocabulary import AccessPolicy

POLICY_NAMES = {
    AccessPolicy.CLUSTER_ADMIN: "AmazonEKSClusterAdminPolicy",
    AccessPolicy.ADMIN: "AmazonEKSAdminPolicy",
    AccessPolicy.EDIT: "AmazonEKSEditPolicy",
    AccessPolicy.VIEW: "AmazonEKSViewPolicy",
}
"""The EKS access policies by what they allow (EKS user guide, access policy permissions)."""


@dataclass(frozen=True, slots=True)
class RightPlan:
    """One access policy of a principal."""

    policy: AccessPolicy
    namespaces: tuple[str, ...]
    """Sorted; empty: the whole cluster."""

    def arn(self, partition: str = "aws") -> str:
        """The access policy's ARN."""
        return f"arn:{partition}:eks::aws:cluster-access-policy/{POLICY_NAMES[self.policy]}"


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """One access entry."""

    name: str
    """A stable suffix for the resource's name: the end of the principal's ARN and a hash of all of it."""
    principal_arn: str
    rights: tuple[RightPlan, ...]


def plan_access(grants: Mapping[str, AccessGrant], deployer_arn: str | None) -> tuple[EntryPlan, ...]:
    """The entries of all grants and of whoever deploys, who becomes cluster admin; `deployer_arn` None: the grants alone.

    A policy that one principal gets twice holds where either does: in the whole cluster, or in the namespaces of both.
    """
    all_grants = list(grants.values())
    if deployer_arn is not None:
        all_grants.append(AccessGrant.model_construct(principal_arn=deployer_arn, policy=AccessPolicy.CLUSTER_ADMIN, namespaces=()))
    by_principal: dict[str, dict[AccessPolicy, list[tuple[str, ...]]]] = {}
    for grant in all_grants:
        by_principal.setdefault(grant.principal_arn, {}).setdefault(grant.policy, []).append(grant.namespaces)
    return tuple(
        EntryPlan(
            principal_label(principal),
            principal,
            tuple(RightPlan(policy, _union(scopes)) for policy, scopes in sorted(rights.items())),
        )
        for principal, rights in sorted(by_principal.items())
    )


def _union(scopes: list[tuple[str, ...]]) -> tuple[str, ...]:
    return () if any(not scope for scope in scopes) else tuple(sorted({name for scope in scopes for name in scope}))


def principal_label(principal: str) -> str:
    """A stable suffix for the resource name of a principal's access entry: the end of its ARN and a hash of all of it."""
    import hashlib  # noqa: PLC0415 - OpenSSL is loaded where access is planned

    return f"access-{principal.rsplit('/', 1)[-1].lower()}-{hashlib.sha256(principal.encode()).hexdigest()[:8]}"
