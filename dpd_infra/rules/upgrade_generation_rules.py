"""Rules on endpoints that are made anew because a field of theirs is fixed: by choice, with room for it, and knowing what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, DESIGN_NOTE, DPD_GUIDE, KUBERNETES_DOCS
from dpd_infra.plan.endpoint_names import generation_name
from dpd_infra.rules.demand import demands
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.wide_subjects import UpgradeSubject, both_endpoints, is_made_anew, keeps_sagemaker_name
from dpd_infra.spec.endpoint.change import ChangeMode
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import text

_NUMBERS = (
    ("generation", ChangeMode.BLUE_GREEN, "its name carries the number: a new endpoint is made and the old one deleted"),
    ("recreations", ChangeMode.RECREATE, "it is deleted and made anew"),
)


@rule(
    "DPD611",
    "An endpoint is made anew by choice, and one way only",
    severity=Severity.ERROR,
    why="generation and recreations make an endpoint anew wherever they change: a number that goes down, or one that goes up without its "
    "mode, deletes an endpoint that serves.",
    sources=(DESIGN_NOTE,),
)
def made_anew_by_choice(change: UpgradeSubject) -> Iterator[Violation]:
    """A generation or a number of recreations that goes down, or goes up without the mode it belongs to."""
    for before, after in both_endpoints(change):
        if before.spec is None or after.spec is None:
            continue
        for key, mode, effect in _NUMBERS:
            was, will = int(getattr(before.spec.change, key)), int(getattr(after.spec.change, key))
            if was == will or (will > was and after.spec.change.mode is mode):
                continue
            fix = f"keep {was}, or raise it together with change.mode: {mode}" if will > was else f"keep {was}: numbers only go up"
            yield Violation(
                (*after.rendered.context.path, "change", key),
                f"endpoint {after.name}: {key} goes from {was} to {will} under change.mode {after.spec.change.mode}: {effect}",
                fix,
                value=will,
            )


@rule(
    "DPD612",
    "There are nodes for both generations",
    severity=Severity.ERROR,
    why="Blue/green makes the new endpoint before the old one is deleted: without free nodes the new pods stay Pending until the "
    "deployment times out. Maxima of autoscaling count.",
    sources=(DPD_GUIDE, KUBERNETES_DOCS),
)
def room_for_both(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`change.mode: blueGreen` while the groups have no free nodes for the endpoint's pods a second time."""
    stack, spec = endpoint.stack, endpoint.spec
    if stack is None or spec is None or spec.change.mode is not ChangeMode.BLUE_GREEN:
        return
    short = set[str]()
    for pool, second in stack.asked.over(demands(endpoint)):
        first, both = stack.asked.room(pool), stack.asked.room(pool, *second)
        # What does not fit once is said by another rule.
        if first is None or both is None or not first.fits or both.fits or short & pool.names:
            continue
        short |= pool.names
        names = " or ".join(pool)
        more = f"raise the count of {names} to {both.needed} in all" if both.needed is not None else f"raise the count of {names}"
        yield Violation(
            (*endpoint.rendered.context.path, "change", "mode"),
            f"with a second {endpoint.name} beside the first, {' and '.join(pool)} {'has' if len(pool) == 1 else 'have'} {both.told()}",
            f"{more} and update; then change the endpoint. Or write change.mode: recreate, with an outage",
            value=str(spec.change.mode),
            related=(stack.at("instanceGroups"),),
        )


@rule(
    "DPD613",
    "What making an endpoint anew costs",
    severity=Severity.WARNING,
    why="A recreated endpoint serves nobody from the deletion of the old one until the pods of the new one have loaded the model. Under "
    "blue/green the old one goes at the end of the same update: who still calls its name is refused from then on.",
    sources=(DPD_GUIDE, CRD_3_2, DESIGN_NOTE),
)
def cost_of_making_anew(change: UpgradeSubject) -> Iterator[Violation]:
    """An endpoint that this update makes anew: its outage, or its new names."""
    for before, after in both_endpoints(change):
        if before.spec is None or after.spec is None:
            continue
        path, old, new = (*after.rendered.context.path, "change"), before.spec.change, after.spec.change
        if new.recreations > old.recreations:
            times = after.spec.timeouts
            yield Violation(
                (*path, "recreations"),
                f"endpoint {after.name} is deleted and made anew: an outage of as long as both take, at most {times.delete_minutes} and "
                f"{times.deploy_minutes} minutes",
                "do it while nobody needs it, or write change.mode: blueGreen where there are nodes for both",
                value=new.recreations,
            )
        if new.generation > old.generation:
            names = [f"{before.rendered.name} becomes {after.rendered.name}"]
            if sagemaker := text(after.get("spec", "endpointName")):
                names.append(f"its SageMaker endpoint {before.get('spec', 'endpointName') or 'none'} becomes {sagemaker}")
            seen = after.stack is not None and after.stack.groups
            unseen = "" if seen else "; its groups are not in this file: see that nodes are free for both"
            yield Violation(
                (*path, "generation"),
                f"{', '.join(names)}; the old one is deleted at the end of the update{unseen}",
                "have callers take the name from the stack's outputs, or tell them the new one first",
                value=new.generation,
            )


@rule(
    "DPD614",
    "Each generation has a SageMaker endpoint of its own",
    severity=Severity.ERROR,
    why="A SageMaker endpoint's name is one of a kind in account and region: a name from `overrides` is the same for both generations, and "
    "the new one cannot be made beside the old one.",
    sources=(DPD_GUIDE, CRD_3_2),
)
def generations_have_names(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`change.mode: blueGreen`, a generation of 2 or more, and an endpointName without its number."""
    spec = endpoint.spec
    if spec is None or spec.change.mode is not ChangeMode.BLUE_GREEN or spec.change.generation == 1:
        return
    name = text(endpoint.get("spec", "endpointName"))
    suffix = generation_name("-", spec.change.generation)[1:]
    if name and not name.endswith(suffix):
        yield Violation(
            endpoint.at("spec", "endpointName"), f"{name} does not end in {suffix}", "write it as endpointName, not under overrides", name
        )


@rule(
    "DPD615",
    "An endpoint does not move to another namespace under its SageMaker name",
    severity=Severity.ERROR,
    why="A resource in another namespace is a new one, made before the old one is deleted, and SageMaker has one endpoint of a name: the "
    "new one cannot create its own while the old one is there.",
    sources=(KUBERNETES_DOCS, DPD_GUIDE),
)
def namespace_stays(change: UpgradeSubject) -> Iterator[Violation]:
    """Another namespace with the same endpointName, unless the endpoint is deleted first."""
    for before, after in both_endpoints(change):
        was, will = before.get("metadata", "namespace"), after.get("metadata", "namespace")
        if was != will and keeps_sagemaker_name(before, after) and not is_made_anew(before, after):
            number = after.spec.change.recreations + 1 if after.spec is not None else 1
            yield Violation(
                after.at("metadata", "namespace"),
                f"endpoint {after.name} moves from namespace {was} to {will} and keeps the SageMaker endpoint "
                f"{after.get('spec', 'endpointName')}",
                f"keep {was}; or have it deleted first, with an outage: change: {{mode: recreate, recreations: {number}}}; or give it "
                "another endpointName",
                value=will,
            )
