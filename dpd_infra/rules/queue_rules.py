"""Rules on task governance: what Kueue reads, what its queues cover, and how it treats two roles."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import (
    KUEUE_DOCS,
    TASK_GOVERNANCE_GUIDE,
    thread,
)
from dpd_infra.render.endpoint import KUEUE_PRIORITY_LABEL, KUEUE_QUEUE_LABEL
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.spec.finding import Patch, Path, Severity
from dpd_infra.spec.values import entries, mapping, text


@rule(
    "DPD032",
    "Kueue admits the roles one by one",
    severity=Severity.ADVICE,
    why="A queue may admit, suspend or preempt the pods of one role without the other's, and half of a disaggregated endpoint serves "
    "nothing; that HyperPod admits both together is documented nowhere.",
    sources=(TASK_GOVERNANCE_GUIDE, KUEUE_DOCS),
    since="3.2",
)
def queue_and_roles(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Kueue's queue label on an endpoint with a pdSpec."""
    path = ("metadata", "labels", KUEUE_QUEUE_LABEL)
    if endpoint.reading.disaggregated and endpoint.get(*path) is not None:
        what = f"the queue {endpoint.get(*path)} admits prefill and decode apart"
        yield Violation(
            endpoint.at(*path), what, "give it a priority class that nothing preempts, and a quota for both roles", endpoint.get(*path)
        )


@rule(
    "DPD431",
    "Kueue reads labels",
    severity=Severity.ERROR,
    why="Kueue takes queue and priority from labels: as an annotation they are ignored, and the endpoint runs outside of its quota.",
    sources=(KUEUE_DOCS, TASK_GOVERNANCE_GUIDE, thread("awslabs/ml-container-creator")),
)
def kueue_labels(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`kueue.x-k8s.io/queue-name` or `…/priority-class` among the annotations and not among the labels."""
    annotations, labels = mapping(endpoint.get("metadata", "annotations")), mapping(endpoint.get("metadata", "labels"))
    for key in (KUEUE_QUEUE_LABEL, KUEUE_PRIORITY_LABEL):
        if key in annotations and key not in labels:
            value = annotations[key]
            # The label is what counts; the annotation beside it does nothing.
            short: Path = ("labels", key) if endpoint.spec is not None else ("metadata", "labels", key)
            patch = Patch((*endpoint.rendered.context.path, *short), value)
            what = f"{key} is an annotation"
            yield Violation(endpoint.at("metadata", "annotations", key), what, f"move it to labels: {{{key}: {value}}}", value, patch)


@rule(
    "DPD447",
    "The queue covers what pods ask for",
    severity=Severity.ERROR,
    why="Kueue admits a workload only where its ClusterQueue has a quota for every resource: one that it does not list is unavailable, "
    "and pods wait for ever.",
    sources=(KUEUE_DOCS, thread("redhat-appstudio/infra-deployments", 14074)),
)
def queue_covers_resources(stack: StackSubject) -> Iterator[Violation]:
    """A resource of a pod that the ClusterQueue behind its queue label does not cover, where the queues stand in the same file."""
    for endpoint in stack.endpoints.values():
        queue = text(endpoint.get("metadata", "labels", KUEUE_QUEUE_LABEL))
        covered = _covered(stack.companions, queue, text(endpoint.get("metadata", "namespace")) or "default") if queue else None
        if covered is not None:
            yield from _uncovered(endpoint, queue, covered)


def _uncovered(endpoint: EndpointSubject, queue: str, covered: frozenset[str]) -> Iterator[Violation]:
    told: set[str] = set()
    for server in endpoint.reading.servers:
        for part in ("requests", "limits"):
            for name in mapping(server.resources.get(part)):
                if name not in covered and name not in told:
                    told.add(name)
                    what = f"{server.name} asks for {name}; the queue {queue} covers {', '.join(sorted(covered))}"
                    fix = f"add {name} to coveredResources and to the flavors' quotas of the ClusterQueue"
                    yield Violation(endpoint.at(*server.resources_path, part, name), what, fix, name)


def _covered(companions: tuple[object, ...], queue: str, namespace: str) -> frozenset[str] | None:
    """What the ClusterQueue behind a LocalQueue covers; of the only ClusterQueue where the LocalQueue is not at hand. None: not known."""
    local, cluster = {}, {}
    for other in companions:
        document = mapping(other)
        metadata, spec = mapping(document.get("metadata")), mapping(document.get("spec"))
        if document.get("kind") == "LocalQueue" and (text(metadata.get("namespace")) or "default") == namespace:
            local[text(metadata.get("name"))] = text(spec.get("clusterQueue"))
        elif document.get("kind") == "ClusterQueue":
            groups = entries(spec.get("resourceGroups"))
            cluster[text(metadata.get("name"))] = frozenset(
                name for group in groups for name in entries(mapping(group).get("coveredResources")) if isinstance(name, str)
            )
    if queue in local:
        return cluster.get(local[queue])
    return next(iter(cluster.values())) if len(cluster) == 1 and not local else None
