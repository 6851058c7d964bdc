"""Rules on teams and the model store: namespaces that are free, quotas that endpoints fit, and names that lead somewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dpd_infra.catalog.operator_releases import NAMESPACE
from dpd_infra.catalog.sources import CRD_3_2, DESIGN_NOTE, EKS_USER_GUIDE, KUBERNETES_DOCS
from dpd_infra.rules.demand import demands
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.spec.finding import Severity

OWN_NAMESPACES = frozenset(
    {"default", "kube-system", "kube-public", "kube-node-lease", "aws-hyperpod", "cert-manager", "mount-s3", NAMESPACE}
)
"""Namespaces that Kubernetes, HyperPod, the add-ons or the operator have for themselves."""


def _namespaces(stack: StackSubject) -> dict[str, str]:
    """The namespace of each team."""
    return {name: team.namespace or name for name, team in stack.platform.teams.items()} if stack.platform else {}


@rule(
    "DPD570",
    "Every team has a namespace of its own",
    severity=Severity.ERROR,
    why="Quota and members belong to a namespace: two teams in one would share them, and a namespace of Kubernetes, HyperPod or the "
    "operator is not to be a team's.",
    sources=(KUBERNETES_DOCS,),
)
def namespaces_are_apart(stack: StackSubject) -> Iterator[Violation]:
    """A namespace of two teams, or one that has another use."""
    owners: dict[str, str] = {}
    for team, namespace in _namespaces(stack).items():
        place = stack.at("teams", team)
        if namespace in OWN_NAMESPACES or namespace.startswith("kube-"):
            yield Violation(place, f"the namespace {namespace} has another use", "give the team a namespace of its own", value=namespace)
        elif namespace in owners:
            yield Violation(
                place,
                f"the namespace {namespace} is team {owners[namespace]}'s already",
                "give the team a namespace of its own",
                value=namespace,
            )
        owners.setdefault(namespace, team)


@rule(
    "DPD571",
    "An endpoint's namespace is there",
    severity=Severity.WARNING,
    why="The operator makes no namespaces: in one that nobody made the endpoint is refused.",
    sources=(KUBERNETES_DOCS,),
)
def endpoint_namespace_is_made(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A namespace that is neither `default` nor a team's."""
    stack = endpoint.stack
    namespace = endpoint.get("metadata", "namespace") or "default"
    if stack is None or stack.platform is None or namespace == "default" or namespace in _namespaces(stack).values():
        return
    yield Violation(
        endpoint.at("metadata", "namespace"),
        f"no team has the namespace {namespace}",
        f"add a team for it, teams: {{{namespace}: {{}}}}, or see that it is made elsewhere before this stack",
        value=namespace,
        related=(stack.at("teams"),),
    )


@rule(
    "DPD572",
    "The endpoints of a team fit its quota",
    severity=Severity.ERROR,
    why="A pod over the quota is refused and never made: its Deployment waits until the operator gives up. Maxima of autoscaling count.",
    sources=(KUBERNETES_DOCS,),
)
def endpoints_fit_quota(stack: StackSubject) -> Iterator[Violation]:
    """More GPUs, or more endpoints, than the quota has."""
    gpus: defaultdict[str, int] = defaultdict(int)
    endpoints: defaultdict[str, int] = defaultdict(int)
    for endpoint in stack.endpoints.values():
        namespace = str(endpoint.get("metadata", "namespace") or "default")
        endpoints[namespace] += 1
        gpus[namespace] += sum(demand.pods * demand.gpus for demand in demands(endpoint))
    for team, namespace in _namespaces(stack).items():
        quota = stack.platform.teams[team].quota if stack.platform else None
        if quota is None:
            continue
        for key, limit, asked in (("gpus", quota.gpus, gpus[namespace]), ("endpoints", quota.endpoints, endpoints[namespace])):
            if limit is not None and asked > limit:
                what = f"the endpoints in {namespace} ask for {asked} GPUs" if key == "gpus" else f"{namespace} has {asked} endpoints"
                yield Violation(
                    stack.at("teams", team, "quota", key),
                    f"{what}, the quota is {limit}",
                    f"raise it to {asked}, or lower what they ask for",
                    value=limit,
                )


@rule(
    "DPD573",
    "A member's principal has no other access entry",
    severity=Severity.ERROR,
    why="EKS takes one access entry a principal and refuses a second.",
    sources=(EKS_USER_GUIDE,),
)
def one_entry_a_principal(stack: StackSubject) -> Iterator[Violation]:
    """A principal of a team that controlPlane.access names too."""
    if stack.platform is None or stack.control_plane is None:
        return
    granted = {grant.principal_arn: name for name, grant in stack.control_plane.access.items()}
    for team, spec in stack.platform.teams.items():
        for member, who in spec.members.items():
            if who.principal_arn in granted:
                yield Violation(
                    stack.at("teams", team, "members", member, "principalArn"),
                    f"controlPlane.access.{granted[who.principal_arn]} names the same principal",
                    "remove one of the two: a grant there can be limited to namespaces",
                    value=who.principal_arn,
                    related=(stack.at("controlPlane", "access"),),
                )


@rule(
    "DPD574",
    "Who may invoke is allowed endpoints that exist",
    severity=Severity.WARNING,
    why="A policy for a name that no endpoint has allows nothing, and takes effect for whoever uses that name later.",
    sources=(CRD_3_2, DESIGN_NOTE),
)
def invoked_endpoints_exist(stack: StackSubject) -> Iterator[Violation]:
    """A SageMaker endpoint name that no endpoint of the stack has."""
    if stack.platform is None or not stack.endpoints:
        return
    names = {str(endpoint.get("spec", "endpointName")) for endpoint in stack.endpoints.values() if endpoint.get("spec", "endpointName")}
    for team, spec in stack.platform.teams.items():
        for index, name in enumerate(spec.invoke.endpoints if spec.invoke else ()):
            if name not in names:
                yield Violation(
                    stack.at("teams", team, "invoke", "endpoints", index),
                    f"no endpoint of this stack is named {name} in SageMaker",
                    f"its SageMaker endpoints are {', '.join(sorted(names)) or 'none'}",
                    value=name,
                    related=(("config", "dpd-infra:endpoints"),),
                )


@rule(
    "DPD580",
    "An endpoint reads a folder that is filled",
    severity=Severity.WARNING,
    why="A folder of the model store that nothing is copied into is empty: the server finds no model and restarts.",
    sources=(DESIGN_NOTE,),
)
def store_folder_is_filled(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A folder of the model store that none of its models goes into."""
    stack = endpoint.stack
    store = stack.platform.model_store if stack is not None and stack.platform is not None else None
    if store is None or store.bucket is None or not store.models:
        return
    folder = str(endpoint.get("spec", "modelSourceConfig", "modelLocation") or "").strip("/")
    folders = [model.folder.strip("/") for model in store.models.values()]
    if endpoint.get("spec", "modelSourceConfig", "s3Storage", "bucketName") == store.bucket and folder not in folders:
        yield Violation(
            endpoint.at("spec", "modelSourceConfig", "modelLocation"),
            f"nothing is copied into {folder or 'the root'} of {store.bucket}",
            f"its folders are {', '.join(folders)}",
            value=folder,
        )
