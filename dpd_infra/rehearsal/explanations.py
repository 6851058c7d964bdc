"""What a failure means and the way out of it, by what the engine, AWS or Kubernetes says: the same as in docs/troubleshooting.md."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dpd_infra.catalog.sources import CLI_TROUBLESHOOTING, Source
from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.engine import Engine, Outcome
from dpd_infra.rehearsal.holders import EXPORTED, HELD
from dpd_infra.rehearsal.state_graph import StateGraph
from dpd_infra.rehearsal.urn import name_of, type_of

PAGE = "docs/troubleshooting.md"

_NATIVE = Source("pulumi-aws-native", "1.84, provider.go: a failed create without an identifier leaves nothing in the state")
_KUBERNETES = Source("pulumi-kubernetes", "4.34, await.go and the provider's deleteUnreachable; issues 950, 1418, 2033, 2675")
_LEFTOVERS = Source(
    "leftovers of controllers", "eks-blueprints-addons issue 462, eks-blueprints issue 353, pulumi-eks issues 382, 640, 779"
)
_STACK_REFERENCE = Source("Pulumi engine", "3.272, what it says of a reference that its backend does not have")
_ACCOUNT = Source("rehearsal", "the simulated account of a project, docs/rehearse.md")
_ENGINE = Source("Pulumi engine", "3.272, pkg/resource/deploy; pulumi issue 5377")


@dataclass(frozen=True)
class Explanation:
    """One failure in plain words."""

    symptom: str
    """A short name, which the page has as a heading."""
    cause: str
    way_out: tuple[str, ...]
    """Steps in their order; what begins with `$ ` is a command."""
    source: Source

    @property
    def anchor(self) -> str:
        """Where the page tells more."""
        return f"{PAGE}#{re.sub(r'[^a-z0-9 -]', '', self.symptom.lower()).replace(' ', '-')}"


_CONTROL_PLANE = "`controlPlane: {protect: false, deletionProtection: false}`"
_CLUSTER = "`cluster: {protect: false}`"
_MODEL_STORE = "`modelStore: {protect: false}`"
_IF_YOU_MEAN_IT = "If you mean it, step 1: in the stack file, "
_IN_PYTHON = "A program that makes the pieces itself says the same in their specs."

PROTECTED = Explanation(
    "A destroy is refused because something is protected",
    "EKS, its key, the HyperPod cluster and a model store's bucket are protected where the stack makes them: an operation that would "
    "delete them stops before anything is touched.",
    (
        "If you did not mean to delete them, undo the edit; do not follow the hint to `pulumi state unprotect`.",
        (
            f"{_IF_YOU_MEAN_IT}for each of these that the stack makes itself: {_CONTROL_PLANE}, {_CLUSTER}, {_MODEL_STORE}; nothing for "
            f"what stands under `existing`, which is not deleted either. {_IN_PYTHON}"
        ),
        "$ pulumi up",
        "Step 2:",
        "$ pulumi destroy",
    ),
    _ENGINE,
)
FINALIZER = Explanation(
    "A custom resource does not go",
    (
        "Its finalizer is taken away by the inference operator alone, and the operator is gone or does not run: the "
        "deletion waits until its timeout."
    ),
    (
        (
            "Bring the operator back: `pulumi up` without removing it, or, in a destroy that began, install the add-on by "
            "hand; then destroy again."
        ),
        (
            "If the operator cannot come back, look for what it would have taken down (load balancer, SageMaker endpoint), "
            "then take the finalizer away:"
        ),
        '$ kubectl patch inferenceendpointconfig NAME -n NAMESPACE --type merge -p \'{"metadata":{"finalizers":null}}\'',
        "$ pulumi destroy",
    ),
    CLI_TROUBLESHOOTING,
)
LEFTOVER = Explanation(
    "The network does not go because something is left in it",
    (
        "A controller or a service made it and no program knows it: load balancers, network interfaces and security groups of the load "
        "balancer controller, of the operator, of EKS or of GuardDuty. They go with the object they were made for, if that goes while the "
        "controller runs."
    ),
    (
        "See what is left:",
        (
            "$ aws ec2 describe-network-interfaces --filters Name=vpc-id,Values=VPC --query "
            "'NetworkInterfaces[].[NetworkInterfaceId,Description]'"
        ),
        "$ aws elbv2 describe-load-balancers --query \"LoadBalancers[?VpcId=='VPC'].LoadBalancerArn\"",
        "$ aws ec2 describe-security-groups --filters Name=vpc-id,Values=VPC --query 'SecurityGroups[].[GroupId,GroupName]'",
        "Delete load balancers first, then the interfaces they free, then the security groups; GuardDuty's endpoint last. Then:",
        "$ pulumi destroy",
    ),
    _LEFTOVERS,
)
DEAD_CLUSTER = Explanation(
    "The Kubernetes API does not answer",
    (
        "The EKS cluster was deleted behind Pulumi's back, or its endpoint cannot be reached from here. What lived in "
        "it cannot be read or deleted."
    ),
    (
        "If the cluster is there: check the network, `publicAccessCidrs` and `aws eks get-token`, and run the command again.",
        "If it is gone, a destroy drops what lived in it from the state on its way:",
        "$ PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy",
        (
            "A Helm release that is not `deletedWith` the cluster (one of your own; the dependencies chart on a `pulumi_eks.Cluster`) "
            "ignores that while it is deleted, and not while it is read; before the destroy:"
        ),
        "$ PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh",
        "What its controllers had made stays in the network, and is told of when that is to go.",
    ),
    _KUBERNETES,
)
BUCKET = Explanation(
    "A bucket does not go because it is not empty",
    (
        "S3 deletes no bucket that holds objects. The buckets that only the library and the operator write to are emptied; a model store "
        "keeps its models, whoever put them there."
    ),
    (
        "If the models may go:",
        "$ aws s3 rm s3://BUCKET --recursive",
        "$ pulumi destroy",
        "If they stay, take the bucket with what hangs on it from the state, and go on:",
        "$ pulumi state delete 'URN-OF-THE-BUCKET' --target-dependents",
        "$ pulumi destroy",
    ),
    Source("S3 DeleteBucket", "Amazon S3 API reference, errors: BucketNotEmpty"),
)
EXISTS = Explanation(
    "It already exists",
    "Somebody made it that Pulumi's state does not know: another program, a person, or a create whose answer never "
    "arrived. A HyperPod cluster "
    "whose create failed without an identifier is made all the same.",
    (),
    _NATIVE,
)
TAKEN = Explanation(
    "Another rehearsed stack has it",
    "All stacks of a project are rehearsed in one account, which is kept from one rehearsal to the next, and a stack that was rehearsed "
    "before has the name, or the place in a network, that this one asks for.",
    (
        "Where both are to be deployed, choose another one for this stack: AWS would refuse the second one too.",
        "Where the other one is only left of its rehearsal, take it down:",
        "$ dpd rehearse STACK --destroy",
        "Or forget all rehearsals of the project:",
        "$ dpd rehearse NAME --reset",
    ),
    _ACCOUNT,
)
PENDING = Explanation(
    "The engine was interrupted",
    "It was killed while operations were under way: the state marks them as pending, and only the account knows whether they happened.",
    (),
    _ENGINE,
)
ADDON_FAILED = Explanation(
    "An add-on is CREATE_FAILED",
    "EKS made the add-on and its pods did not get ready: a driver, cert-manager or pod slots are missing, or "
    "Kueue's webhook has no ready pod. "
    "In that state it cannot be updated.",
    (
        "Mend what the message names; then take the failed add-on away and keep what it installed:",
        "$ aws eks delete-addon --cluster-name CLUSTER --addon-name ADDON --preserve",
        "$ pulumi refresh",
        "$ pulumi up",
    ),
    CLI_TROUBLESHOOTING,
)

OTHER_STACK = Explanation(
    "Another stack is not known",
    "The program refers to a stack that is not there: it was not deployed yet, or, in a rehearsal, its state was not given.",
    (
        "Give the rehearsal what that stack exports, beside your own stack's state where it has one:",
        "$ pulumi stack export --stack STACK --file other.json",
        "$ dpd rehearse NAME --from other.json --from own.json",
        "In a deployment: deploy that stack first; its name is `organization/project/stack`.",
    ),
    _STACK_REFERENCE,
)

EXPLANATIONS = (PROTECTED, FINALIZER, LEFTOVER, DEAD_CLUSTER, BUCKET, EXISTS, TAKEN, PENDING, ADDON_FAILED, OTHER_STACK)
"""Everything the page must have."""

_SIGNS: tuple[tuple[str, Explanation], ...] = (
    (r"marked for protection|cannot be deleted because it is protected|is protected|DeletionProtection|deletion protection", PROTECTED),
    (r"unknown stack", OTHER_STACK),
    (r"unreachable|connection refused|no such host", DEAD_CLUSTER),
    (r"BucketNotEmpty", BUCKET),
    (r"DependencyViolation|has a dependent object|mapped public address|is not empty", LEFTOVER),
    (HELD, TAKEN),
    (r"CREATE_FAILED", ADDON_FAILED),
    (r"already exists|AlreadyExists|ResourceInUseException|EntityAlreadyExists|BucketAlreadyOwnedByYou", EXISTS),
)


def explain(message: str, outcome: Outcome | None = None, engine: Engine | None = None) -> Explanation | None:
    """What a failed operation means; None for what needs no more words. With the outcome and the engine its commands are exact."""
    failed = [step.urn for step in outcome.failed] if outcome is not None else []
    if outcome is not None and outcome.action == "destroy":
        custom = [urn for urn in failed if _is_custom_resource(urn)]
        if custom and re.search(r"timed out|finalizer|deadline", message):
            return FINALIZER
    for pattern, explanation in _SIGNS:
        if re.search(pattern, message):
            if explanation is EXISTS and engine is not None:
                return _with_import(explanation, failed, engine)
            if explanation is PROTECTED and engine is not None:
                return _with_what_is_protected(engine)
            if explanation in {OTHER_STACK, TAKEN}:
                return _with_stack(explanation, message, engine)
            return explanation
    return FINALIZER if "finalizer" in message else None


def _is_custom_resource(urn: str) -> bool:
    group = type_of(urn).removeprefix("kubernetes:").partition("/")[0]
    return type_of(urn).startswith("kubernetes:") and "." in group and not group.endswith(".k8s.io") and group != "helm.sh"


def _with_what_is_protected(engine: Engine) -> Explanation:
    """The way out with the keys for what the stack has; all of them where nothing is known of it."""
    graph = StateGraph.of(engine.checkpoint.resources)
    guarded = [node for node in graph if node.protect or node.inputs.get("deletionProtection") is True]
    keys = dict.fromkeys(_PROTECT_KEYS.get(node.component, "") for node in guarded)
    own = [node.name for node in guarded if node.component not in _PROTECT_KEYS]
    steps = [f"{_IF_YOU_MEAN_IT}{' and '.join(filter(None, keys))}. {_IN_PYTHON}"] if any(keys) else []
    steps += [f"If you mean it{', too' if steps else ''}: in your program, `protect=False` for {', '.join(own)}."] if own else []
    if not steps:
        return PROTECTED
    first, _, *rest = PROTECTED.way_out
    return replace(PROTECTED, way_out=(first, *steps, *rest))


_PROTECT_KEYS = {"ControlPlane": _CONTROL_PLANE, "HyperPodCluster": _CLUSTER, "ModelStore": _MODEL_STORE}
"""What lets go of a component, as the stack file says it."""


def _with_stack(explanation: Explanation, message: str, engine: Engine | None) -> Explanation:
    found = re.search(rf'unknown stack "([^"]+)"|{HELD}', message)
    named = {"STACK": shlex.quote(found[1] or found[2])} if found else {}
    named |= {"NAME": shlex.quote(engine.stack)} if engine else {}
    steps = (re.sub(r"\bSTACK\b|\bNAME\b", lambda word: named.get(word[0], word[0]), step) for step in explanation.way_out)
    # What is deployed no rehearsal takes down.
    kept = tuple(steps)[: 1 if explanation is TAKEN and EXPORTED in message else None]
    return replace(explanation, way_out=kept)


def _with_import(explanation: Explanation, failed: Iterable[str], engine: Engine) -> Explanation:
    steps: list[str] = []
    for urn in failed:
        steps.append(f"If {urn.rsplit('::', 1)[-1]} is yours, take it over, and go on:")
        steps.append(f"$ pulumi {shlex.join(import_words(urn, engine))}")
        if type_of(urn) == base.HYPERPOD_CLUSTER:
            steps.append("Its ARN: `aws sagemaker describe-cluster --cluster-name NAME --query ClusterArn`")
    steps.append("$ pulumi up")
    steps.append("If it is not yours, give your own another name.")
    return Explanation(explanation.symptom, explanation.cause, tuple(steps), explanation.source)


def identifier(urn: str, account: SimulatedAccount) -> str:
    """The id of what exists under a resource's URN in the account; a word in capitals where nobody knows it."""
    found = [item.id for item in account if item.urn == urn]
    return found[0] if len(found) == 1 else "ID"


def import_words(urn: str, engine: Engine) -> list[str]:
    """`pulumi import` of one resource, to stand where the program has it."""
    parent, provider = place_of(urn, engine)
    words = ["import", type_of(urn), name_of(urn), identifier(urn, engine.account)]
    if parent:
        words += ["--parent", f"parent={parent}"]
    if provider:
        words += ["--provider", f"provider={provider}"]
    return [*words, "--generate-code=false"]


def place_of(urn: str, engine: Engine) -> tuple[str, str]:
    """The URNs of a resource's parent and provider, from what else is in the state; empty where the stack is the parent."""
    resources = engine.checkpoint.resources
    head, types, name = urn.rsplit("::", 2)
    parents = types.rpartition("$")[0]
    # A parent's name is how its child's name begins.
    found = [item["urn"] for item in resources if item["urn"].startswith(f"{head}::{parents}::") and name.startswith(name_of(item["urn"]))]
    package = type_of(urn).partition(":")[0]
    providers = [
        item["urn"]
        for item in resources
        if item["type"] == f"pulumi:providers:{package}" and not name_of(item["urn"]).startswith("default")
    ]
    return (found[0] if parents and found else ""), (providers[0] if providers else "")
