"""What a person may ask for a team: a namespace of its own, how much it may take, who works in it, and who may invoke its endpoints."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.control_plane import IamPrincipalArn

NamespaceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""A Kubernetes namespace: a DNS label (RFC 1123)."""

RoleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+=,.@-]{1,64}$")]
"""The name of an IAM role, without its path (IAM CreateRole)."""

SageMakerEndpointName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$")]
"""The name of a SageMaker endpoint (InferenceEndpointConfig CRD, endpointName)."""

Amount = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$")]
"""A Kubernetes quantity, `96`, `500m`, `1Ti`."""


class TeamRight(StrEnum):
    """What a member may do in the namespace: the cluster roles that Kubernetes brings, and the same over endpoints."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


class TeamMember(Spec):
    """Somebody who works in a team's namespace, named in exactly one way."""

    right: TeamRight = TeamRight.EDIT
    """What the member may do."""
    group: str | None = Field(default=None, min_length=1)
    """A Kubernetes group: of an access entry made elsewhere, or of an OIDC identity provider."""
    user: str | None = Field(default=None, min_length=1)
    """A Kubernetes user."""
    principal_arn: IamPrincipalArn | None = None
    """An IAM role or user; it gets an access entry of its own, so it must not have one already."""

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        given = [name for name in (self.group, self.user, self.principal_arn) if name is not None]
        if len(given) != 1:
            message = "name a member by exactly one of group, user and principalArn"
            raise ValueError(message)
        if any(name is not None and name.startswith("system:") for name in (self.group, self.user)):
            message = "names that begin with system: are Kubernetes's own"
            raise ValueError(message)
        return self


class QuotaSpec(Spec):
    """How much the pods of a namespace may request together. What is not named is not limited."""

    gpus: StrictInt | None = Field(default=None, ge=0)
    """GPUs."""
    cpu: Amount | None = None
    """CPUs."""
    memory: Amount | None = None
    """Memory."""
    pods: StrictInt | None = Field(default=None, ge=0)
    """Pods."""
    endpoints: StrictInt | None = Field(default=None, ge=0)
    """InferenceEndpointConfigs."""
    hard: dict[str, Amount] = Field(default_factory=dict)
    """Further entries of the ResourceQuota, as Kubernetes names them."""


class InvokeSpec(Spec):
    """Who may invoke SageMaker endpoints: a policy that allows these endpoints, attached to these roles."""

    endpoints: tuple[SageMakerEndpointName, ...] = Field(min_length=1)
    """The names of the SageMaker endpoints."""
    roles: tuple[RoleName, ...] = ()
    """IAM roles that get the policy. None: the policy is made and attached to nobody."""


class TeamSpec(Spec):
    """One team."""

    namespace: NamespaceName | None = None
    """The namespace. None: the team's name. Under task governance it is `hyperpod-ns-<team>`, and made by it."""
    existing_namespace: StrictBool = False
    """The namespace is there already (task governance made it): it gets quota and members, and is not made."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the namespace."""
    quota: QuotaSpec | None = None
    """How much it may take. None: no limit."""
    members: dict[str, TeamMember] = Field(default_factory=dict)
    """Who works there, by a name of your choice."""
    invoke: InvokeSpec | None = None
    """Who may invoke its endpoints. None: no policy is made."""

    @model_validator(mode="after")
    def _labels_of_our_own(self) -> Self:
        if self.existing_namespace and self.labels:
            message = "existingNamespace leaves the namespace as it is: its labels are its maker's"
            raise ValueError(message)
        return self
