"""Teams: namespaces with quota and members, and the policies of who may invoke their endpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.plan.access import principal_label
from dpd_infra.plan.iam import invoke_policy, to_json
from dpd_infra.render.team import DEFAULT_REQUEST, access_group, endpoint_rules, hard_limits, needs_default_requests, subject
from dpd_infra.spec.teams import InvokeSpec, QuotaSpec, TeamRight, TeamSpec

RBAC = "rbac.authorization.k8s.io"
"""The API group of roles and bindings, and of the users and groups in them."""


class Teams(Component):
    """All teams of a platform. An IAM principal that is in several has one access entry, as EKS allows no second."""

    token = tokens.TEAMS

    namespaces: Mapping[str, str]
    """The namespace of each team."""
    invoke_policy_arns: Mapping[str, pulumi.Output[str]]
    """The policy that allows invoking a team's endpoints, by team; only of teams that have one."""
    resources: tuple[pulumi.Resource, ...]
    """What must stand before an endpoint is made in a team's namespace: the namespace and its quota."""

    def __init__(
        self,
        name: str,
        teams: Mapping[str, TeamSpec],
        *,
        account: Account,
        control_plane: ControlPlaneHandle,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Needs no nodes: the namespaces are there as soon as the Kubernetes API is."""
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        super().__init__(name, {"teams": sorted(teams)}, opts)
        self._at, self._account, self._control_plane = name, account, control_plane

        self.namespaces = {team: spec.namespace or team for team, spec in sorted(teams.items())}
        made: list[pulumi.Resource] = []
        for team, spec in sorted(teams.items()):
            made += self._namespace(team, spec)
            self._members(team, spec, tuple(made))
        self._access_entries(teams)
        policies = {team: self._invoke(team, spec.invoke) for team, spec in sorted(teams.items()) if spec.invoke is not None}
        self.invoke_policy_arns = {team: policy.arn for team, policy in policies.items()}
        self.resources = tuple(made)
        self.register_outputs({"namespaces": dict(self.namespaces), "invokePolicyArns": dict(self.invoke_policy_arns)})

    def _in_cluster(self, depends_on: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        cluster = self._control_plane
        return self._child(provider=cluster.kubernetes_provider, depends_on=(*cluster.resources, *depends_on))

    def _namespace(self, team: str, spec: TeamSpec) -> list[pulumi.Resource]:
        """The namespace, unless it is there, and its quota."""
        namespace, made = self.namespaces[team], []
        if not spec.existing_namespace:
            labels = {"app.kubernetes.io/managed-by": "dpd-infra", "dpd-infra/team": team, **spec.labels}
            made.append(
                kubernetes.core.v1.Namespace(
                    f"{self._at}-{team}-namespace", metadata={"name": namespace, "labels": labels}, opts=self._in_cluster()
                )
            )
        if spec.quota is not None and hard_limits(spec.quota):
            made += self._quota(team, spec.quota, tuple(made))
        return made

    def _quota(self, team: str, quota: QuotaSpec, after: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
        namespace = self.namespaces[team]
        made: list[pulumi.Resource] = []
        if needs_default_requests(quota):
            made.append(
                kubernetes.core.v1.LimitRange(
                    f"{self._at}-{team}-requests",
                    metadata={"name": f"{team}-requests", "namespace": namespace},
                    spec={"limits": [{"type": "Container", "default_request": DEFAULT_REQUEST}]},
                    opts=self._in_cluster(after),
                )
            )
        made.append(
            kubernetes.core.v1.ResourceQuota(
                f"{self._at}-{team}-quota",
                metadata={"name": f"{team}-quota", "namespace": namespace},
                spec={"hard": hard_limits(quota)},
                opts=self._in_cluster((*after, *made)),
            )
        )
        return made

    def _members(self, team: str, spec: TeamSpec, after: Sequence[pulumi.Resource]) -> None:
        """For each right that a member has: a role over endpoints, and two bindings of all its members."""
        namespace = self.namespaces[team]
        for right in TeamRight:
            subjects = [
                subject(member, access_group(team, right) if member.principal_arn else None)
                for _, member in sorted(spec.members.items())
                if member.right is right
            ]
            subjects = [one for index, one in enumerate(subjects) if one not in subjects[:index]]
            if not subjects:
                continue
            at = f"{self._at}-{team}-{right}"
            role = kubernetes.rbac.v1.Role(
                f"{at}-endpoints",
                metadata={"name": f"endpoints-{right}", "namespace": namespace},
                rules=[kubernetes.rbac.v1.PolicyRuleArgs(**rule) for rule in endpoint_rules(right)],
                opts=self._in_cluster(after),
            )
            for suffix, kind, named, needs in (
                ("", "ClusterRole", str(right), ()),
                ("-of-endpoints", "Role", f"endpoints-{right}", (role,)),
            ):
                kubernetes.rbac.v1.RoleBinding(
                    f"{at}{suffix}-members",
                    metadata={"name": f"{team}-{right}{suffix}", "namespace": namespace},
                    role_ref={"api_group": RBAC, "kind": kind, "name": named},
                    subjects=[kubernetes.rbac.v1.SubjectArgs(api_group=RBAC, **one) for one in subjects],
                    opts=self._in_cluster((*after, *needs)),
                )

    def _access_entries(self, teams: Mapping[str, TeamSpec]) -> None:
        groups: defaultdict[str, set[str]] = defaultdict(set)
        for team, spec in teams.items():
            for member in spec.members.values():
                if member.principal_arn is not None:
                    groups[member.principal_arn].add(access_group(team, member.right))
        for principal, names in sorted(groups.items()):
            label = principal_label(principal)
            aws.eks.AccessEntry(
                f"{self._at}-{label}",
                cluster_name=self._control_plane.name,
                principal_arn=principal,
                kubernetes_groups=sorted(names),
                tags=aws_tags(self._account, label),
                opts=self._child(depends_on=self._control_plane.resources),
            )

    def _invoke(self, team: str, spec: InvokeSpec) -> aws.iam.Policy:
        account = self._account
        document = invoke_policy(
            region=account.region, account_id=account.account_id, endpoint_names=spec.endpoints, partition=account.partition
        )
        policy = aws.iam.Policy(
            f"{self._at}-{team}-invoke",
            name=account.naming.role(f"{team}-invoke"),
            description=f"Invoke the SageMaker endpoints of team {team}.",
            policy=to_json(document),
            tags=aws_tags(account, f"{team}-invoke"),
            opts=self._child(),
        )
        for role in sorted(set(spec.roles)):
            aws.iam.RolePolicyAttachment(f"{self._at}-{team}-invoke-{role}", role=role, policy_arn=policy.arn, opts=self._child())
        return policy
