"""What the Kubernetes API server, its scheduler, Helm and the Kubernetes provider enforce of any object."""

from __future__ import annotations

from dpd_infra.catalog.sources import CRD_3_2, DPD_GUIDE, Source, thread
from dpd_infra.rehearsal.world.rule import WorldRule

_PROVIDER = "pulumi-kubernetes provider"

CREDENTIALS = WorldRule(
    "kubernetes-credentials",
    "Whoever calls the API server of an EKS cluster has an access entry there.",
    "configured Kubernetes cluster is unreachable: unable to load schema information from the API server: the server has asked for the "
    "client to provide credentials ({principal} has no access entry on {cluster})",
    thread("pulumi/pulumi-eks", 296, 669),
)
PERMISSION = WorldRule(
    "kubernetes-permission",
    "Whoever changes an object has a policy that allows it, in its namespace or everywhere.",
    '{kind} is forbidden: User "{principal}" cannot {verb} resource "{kind}" in API group "{group}" in the namespace "{namespace}"',
    thread("terraform-aws-modules/terraform-aws-eks", 2946, 3016),
)
NO_API_SERVER = WorldRule(
    "kubernetes-no-server",
    "A kubeconfig names the server of a cluster that exists.",
    "configured Kubernetes cluster is unreachable: no EKS cluster answers at {server}",
    Source(_PROVIDER, "pulumi/pulumi-kubernetes, provider/pkg/provider/provider.go: clusterUnreachable"),
    verbatim=False,
)
KUBECONFIG = WorldRule(
    "kubeconfig",
    "A kubeconfig is a YAML or JSON mapping, or a file that holds one.",
    "failed to parse kubeconfig data in `kubernetes:config:kubeconfig`",
    Source(_PROVIDER, "pulumi/pulumi-kubernetes, provider/pkg/provider/provider.go: Configure"),
    verbatim=False,
)
NAME_IS_FREE = WorldRule(
    "kubernetes-name",
    "An object's name is unique among those of its kind in its namespace.",
    'resource {key} was not successfully created by the Kubernetes API server: {kind} "{name}" already exists',
    Source("Kubernetes API server", "apimachinery, api/errors: NewAlreadyExists, in the words of pulumi-kubernetes"),
)
NAMESPACE = WorldRule(
    "kubernetes-namespace",
    "An object's namespace exists before it.",
    'resource {key} was not successfully created by the Kubernetes API server: namespaces "{namespace}" not found',
    thread("pulumi/pulumi-kubernetes", 1493, 1632),
)
RELEASE_NAMESPACE = WorldRule(
    "helm-namespace",
    "A Helm release's namespace exists before it, unless the release makes it.",
    'namespaces "{namespace}" not found',
    thread("pulumi/pulumi-kubernetes", 142),
)
RELEASE_NAME = WorldRule(
    "helm-name",
    "A Helm release's name is unique in its namespace.",
    "cannot re-use a name that is still in use",
    Source("Helm", "helm/helm, pkg/action/install.go"),
)
RELEASE_READY = WorldRule(
    "helm-wait",
    "A Helm release that waits for its pods needs nodes for them.",
    'Helm release "{key}" was created, but failed to initialize completely. Use Helm CLI to investigate: context deadline exceeded',
    Source(_PROVIDER, "pulumi/pulumi-kubernetes, provider/pkg/provider/helm_release.go"),
)
WAIT_PREFIX = WorldRule(
    "wait-for-prefix",
    "An expression of pulumi.com/waitFor begins with `jsonpath=` or `condition=`.",
    'expected a "jsonpath=" or "condition=" prefix, got "{text}"',
    Source(_PROVIDER, "pulumi/pulumi-kubernetes, provider/pkg/metadata/overrides.go"),
)
WAIT_PATH = WorldRule(
    "wait-for-path",
    "A path of pulumi.com/waitFor is a JSONPath (RFC 9535).",
    "invalid JSONPath in pulumi.com/waitFor: {expression}",
    Source(_PROVIDER, "pulumi/pulumi-kubernetes, provider/pkg/jsonpath, since 4.24"),
    verbatim=False,
)
READY = WorldRule(
    "kubernetes-ready",
    "An object with pulumi.com/waitFor is ready when all its expressions hold, and fails at its timeout.",
    'the Kubernetes API server reported that "{key}" failed to fully initialize or become live: timed out after {seconds} s waiting for '
    "{missing}",
    Source(_PROVIDER, "pulumi/pulumi-kubernetes, provider/pkg/await and its tests"),
)
POD_FITS = WorldRule(
    "pod-fits",
    "A pod runs on a node that has the labels it selects and the GPUs it asks for.",
    "{pod} pod is Pending: 0/{nodes} nodes are available: {cause} ({gpus} GPUs on {wanted}){missing}",
    Source("Kubernetes scheduler", "NVIDIA/k8s-device-plugin #33, #283, #430, GitHub"),
)
MODEL_LOADED = WorldRule(
    "endpoint-model-loaded",
    "An endpoint is ready when its pods have loaded the model.",
    "pods are loading the model ({timeout} of {seconds} s)",
    DPD_GUIDE,
    verbatim=False,
)
DEPLOYMENT_FAILED = WorldRule(
    "endpoint-deployment",
    "What the operator cannot deploy ends in the state DeploymentFailed, with the reason in its conditions.",
    "{reason}",
    CRD_3_2,
)
RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
