"""The kubeconfig of an EKS cluster: its token comes from `aws eks get-token`, with the same credentials as every provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpd_infra.spec.aws import AwsSettings

EXEC_API_VERSION = "client.authentication.k8s.io/v1beta1"
"""The version that `aws eks get-token` answers in (AWS CLI, `eks update-kubeconfig` writes it)."""


def kubeconfig(*, cluster_name: str, endpoint: str, certificate_authority: str, settings: AwsSettings) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context, all named after the cluster.

    `certificate_authority` is base64, as EKS gives it. It holds no secret: the token is made when it is needed, and the AWS CLI must be
    where `pulumi up` runs. Raises `ValueError` for a role that needs an external id.
    """
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster_name, "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority}}],
        "users": [{"name": cluster_name, "user": {"exec": token_command(cluster_name, settings)}}],
        "contexts": [{"name": cluster_name, "context": {"cluster": cluster_name, "user": cluster_name}}],
        "current-context": cluster_name,
    }


def token_command(cluster_name: str, settings: AwsSettings) -> dict[str, Any]:
    """The command that makes a token. Raises `ValueError` for a role that needs an external id: the command cannot send one."""
    arguments = ["eks", "get-token", "--cluster-name", cluster_name, "--region", settings.region, "--output", "json"]
    if settings.profile:
        arguments += ["--profile", settings.profile]
    if role := settings.assume_role:
        if role.external_id:
            raise ValueError(
                f"`aws eks get-token` cannot send the external id that {role.role_arn} needs: put role_arn, external_id and source_profile "
                "in an AWS profile and name it as aws:profile, without aws:assumeRoles"
            )
        arguments += ["--role-arn", role.role_arn]
    return {"apiVersion": EXEC_API_VERSION, "command": "aws", "args": arguments, "interactiveMode": "Never", "provideClusterInfo": False}
