"""Holding a program's graph against the order that it must be made in.

A test that only runs a program, and a rehearsal too, sees one order of many: what waits for nothing may come late by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from dpd_infra.plan.order import unordered
from dpd_infra.testing.recording import Recorded, Recording

Step = str | Recorded | Iterable[Recorded]
"""A resource: recorded, by its name, or by its type (every resource of it; at least one)."""


def assert_order(recording: Recording, *steps: Step) -> None:
    """Fail unless each step waits for the one before it, by dependencies, inputs, provider or parent, directly or through others.

    `assert_order(recording, "NatGateway", "nodes", recording.of_type("InferenceEndpointConfig"))`. Of a step with several resources every
    one waits for every one of the step before. A component stands for itself and all that is in it: whoever waits for it, waits for its
    last resource.

    Raises `AssertionError` with every pair that has no order, and for a step that nothing in the recording is; `ValueError` for fewer than
    two steps.
    """
    if len(steps) < 2:
        raise ValueError("an order has two steps or more: assert_order(recording, first, then)")
    found = [_resources(recording, step) for step in steps]
    missing = [
        f"{then!r} may be made before {first!r}"
        for firsts, thens in pairwise(found)
        for then in thens
        for first in firsts
        if recording.depends_path(then, first) is None
    ]
    if missing:
        raise AssertionError("\n".join([*missing, "nothing that it waits for leads there: add depends_on, or an input that comes from it"]))


def assert_platform_order(recording: Recording, *, allow: Iterable[str] = ()) -> None:
    """Fail where the program leaves an order open that an inference platform needs, whether it is made of our components or by hand.

    Held against are the orders of HyperPod's and EKS's own guides: what nodes need before they start, policies before what takes the role,
    nodes before add-ons that run on them, add-ons before the operator, the operator before endpoints, namespaces and access before what is
    made in a cluster. Only resources of the recording are looked at.

    Args:
        recording: A run of the program. A program that makes nothing of a platform fails nothing.
        allow: Names of resources that may come whenever they do.

    Raises `AssertionError` with every pair, why it needs an order, where that is said, and what to add.
    """
    allowed = set(allow)
    found = [pair for pair in unordered(recording.resources) if pair.first.name not in allowed and pair.then.name not in allowed]
    if found:
        raise AssertionError("the program leaves open what is made first:\n\n" + "\n\n".join(map(str, found)))


def _resources(recording: Recording, step: Step) -> list[Recorded]:
    if isinstance(step, Recorded):
        return _with_children(recording, step)
    if isinstance(step, str):
        of_type = recording.of_type(step)
        return [each for root in (of_type or [recording.named(step)]) for each in _with_children(recording, root)]
    listed = [each for root in step for each in _with_children(recording, root)]
    if not listed:
        raise AssertionError(f"a step is an empty list; {recording!r}")
    return listed


def _with_children(recording: Recording, root: Recorded) -> list[Recorded]:
    """A resource; of a component what providers manage in it."""
    if root.custom:
        return [root]
    inside = [each for child in recording.children(root) for each in _with_children(recording, child)]
    return [each for each in inside if not each.type.startswith("pulumi:providers:")] or [root]
