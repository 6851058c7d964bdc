"""The tree holds every resource once below its parent, and the graph is the least that says what waits for what."""

from __future__ import annotations

import itertools
import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.drawings import to_dot, to_mermaid
from dpd_infra.plan.tree import ResourceTree
from tests.pure.plan_command.registrations import Made, programs


def reachable(edges: set[tuple[str, str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for first, then in edges:
            if first == here and then not in found:
                found.add(then)
                waiting.append(then)
    return found


def all_pairs(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(start, end) for start, _ in edges for end in reachable(edges, start)}


@given(programs())
def test_the_tree_holds_every_resource_once_and_below_its_parent(made: list[Made]) -> None:
    tree = ResourceTree(made)
    walked = list(tree.walk())
    assert sorted(resource.urn for _, resource in walked) == sorted(resource.urn for resource in made)
    place: dict[int, str] = {}
    for depth, resource in walked:
        assert resource.parent == (place[depth - 1] if depth else "")
        place[depth] = resource.urn


@given(programs())
def test_the_graph_says_all_that_waits_and_not_one_arrow_more(made: list[Made]) -> None:
    tree = ResourceTree(made)
    custom = {resource.urn for resource in made if resource.custom}
    direct = {
        (first, resource.urn)
        for resource in made
        for first in itertools.chain(resource.dependencies, *resource.property_dependencies.values())
        if resource.urn in custom and first in custom
    }
    edges = {(first.urn, then.urn) for first, then in tree.edges()}
    assert len(edges) == len(tree.edges())
    assert all_pairs(edges) == all_pairs(direct)
    for edge in edges:
        assert edge[1] not in reachable(edges - {edge}, edge[0]), "an arrow that follows from others"


@given(programs(), st.randoms())
def test_the_order_of_arrival_changes_nothing(made: list[Made], random: Random) -> None:
    shuffled = list(made)
    random.shuffle(shuffled)
    one, other = ResourceTree(made), ResourceTree(shuffled)
    assert one.resources == other.resources
    assert one.edges() == other.edges()
    assert to_dot(one, words, "") == to_dot(other, words, "")


def test_what_comes_first_stands_first_and_a_box_stands_where_its_last_resource_does() -> None:
    boxes = {name: Made("test:index:Box", name, custom=False) for name in ("alpha", "beta")}
    ground = Made("test:index:Thing", "z-ground", parent=boxes["beta"].urn)
    upper = Made("test:index:Thing", "a-upper", parent=boxes["alpha"].urn, dependencies=(ground.urn,))
    top = Made("test:index:Thing", "a-top", parent=boxes["alpha"].urn, dependencies=(upper.urn,))
    tree = ResourceTree([*boxes.values(), top, upper, ground])
    assert [resource.name for resource in tree.resources] == ["beta", "z-ground", "alpha", "a-upper", "a-top"]


def test_a_long_chain_is_drawn() -> None:
    made: list[Made] = []
    for index in range(3000):
        made.append(Made("test:index:Thing", f"t{index}", dependencies=(made[-1].urn,) if made else ()))
    assert len(ResourceTree(made).edges()) == 2999


def test_what_is_in_an_unknown_parent_is_a_root() -> None:
    made = Made("test:index:Thing", "orphan", parent="urn:pulumi:dev::shop::test:index:Gone::gone")
    assert ResourceTree([made]).roots == (made,)


def test_providers_are_in_the_tree_and_not_in_the_graph() -> None:
    provider = Made("pulumi:providers:aws", "mine")
    thing = Made("test:index:Thing", "one", dependencies=(provider.urn,))
    tree = ResourceTree([provider, thing])
    assert [resource for _, resource in tree.walk()] == [provider, thing]
    assert tree.drawn() == (thing,)
    assert tree.edges() == []


def words(resource: object) -> str:
    return f'"{getattr(resource, "name", "")}" [x] <b>'


@given(programs())
def test_mermaid_names_every_node_once_and_closes_every_box(made: list[Made]) -> None:
    tree = ResourceTree(made)
    lines = to_mermaid(tree, words).splitlines()
    assert lines[0] == "flowchart LR"
    nodes, boxes, arrows, ends = [], [], [], 0
    for line in lines[1:]:
        text = line.strip()
        # Nothing of a name gets out of its quotes: what is left has one form each.
        if match := re.fullmatch(r'(n\d+)\["[^"\[\]<>]*(?:<br/>[^"\[\]<>]*)*"\]', text):
            nodes.append(match[1])
        elif match := re.fullmatch(r'subgraph (n\d+)\["[^"\[\]<>]*"\]', text):
            boxes.append(match[1])
        elif match := re.fullmatch(r"(n\d+) --> (n\d+)", text):
            arrows.append((match[1], match[2]))
        else:
            assert text == "end", text
            ends += 1
    assert len(nodes) == len(set(nodes)) == len(tree.drawn())
    assert len(boxes) == len(set(boxes)) == ends
    assert len(arrows) == len(tree.edges())
    assert {name for arrow in arrows for name in arrow} <= set(nodes)


_DOT_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*|\d+|->|[{}\[\]=;,]|\s+')


@given(programs())
def test_dot_is_well_formed_whatever_the_names_are(made: list[Made]) -> None:
    tree = ResourceTree(made)
    text = to_dot(tree, words, 'a "title"\\')
    tokens = [match[0] for match in _DOT_TOKEN.finditer(text)]
    assert "".join(tokens) == text, "something that DOT does not know stands outside of quotes"
    depth = 0
    for token in tokens:
        depth += {"{": 1, "}": -1}.get(token, 0)
        assert depth >= 0
    assert depth == 0
    assert tokens.count("->") == len(tree.edges())
    assert len(re.findall(r"^ *n\d+ \[label=", text, re.MULTILINE)) == len(tree.drawn())


def test_a_component_without_resources_is_not_drawn() -> None:
    box = Made("test:index:Box", "empty", custom=False)
    full = Made("test:index:Box", "full", custom=False)
    thing = Made("test:index:Thing", "one", parent=full.urn)
    drawn = to_mermaid(ResourceTree([box, full, thing]), lambda _: "")
    assert "full" in drawn
    assert "empty" not in drawn
