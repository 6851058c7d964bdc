"""A stack's graph as text for drawing programs: Mermaid and Graphviz DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dpd_infra.plan.tree import Registration, ResourceTree

Label = Callable[[Registration], str]
"""A resource's second line; empty for none."""

_Written = Callable[[str, Registration], list[str]]
"""The lines of a resource, by its short name."""


def to_mermaid(tree: ResourceTree, label: Label) -> str:
    """A Mermaid flowchart: components are boxes around their resources, an arrow leads from what comes first to what waits for it."""
    names = _names(tree)

    def node(name: str, resource: Registration) -> list[str]:
        return [f'{name}["{_mermaid(_lines(resource, label), "<br/>")}"]']

    def box(name: str, resource: Registration) -> list[str]:
        return [f'subgraph {name}["{_mermaid([_title(resource)], "")}"]']

    lines = ["flowchart LR", *_nested(tree, names, node, box, "end")]
    lines += [f"  {names[first.urn]} --> {names[then.urn]}" for first, then in tree.edges()]
    return "\n".join(lines) + "\n"


def to_dot(tree: ResourceTree, label: Label, title: str) -> str:
    """A Graphviz digraph of the same: `dot -Tsvg`."""
    names = _names(tree)

    def node(name: str, resource: Registration) -> list[str]:
        return [f"{name} [label={_dot(_lines(resource, label))}];"]

    def box(name: str, resource: Registration) -> list[str]:
        return [f"subgraph cluster_{name} {{", f"  label={_dot([_title(resource)])};"]

    lines = [
        f"digraph {_dot([title])} {{",
        "  rankdir=LR;",
        "  compound=true;",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];',
        '  graph [fontname="Helvetica", fontsize=11];',
        *_nested(tree, names, node, box, "}"),
    ]
    lines += [f"  {names[first.urn]} -> {names[then.urn]};" for first, then in tree.edges()]
    return "\n".join([*lines, "}"]) + "\n"


def _nested(tree: ResourceTree, names: Mapping[str, str], node: _Written, box: _Written, end: str) -> Iterator[str]:
    """Every resource in the box of its component: what opens a node or a box, and the line that closes a box."""

    def draw(resource: Registration, depth: int) -> Iterator[str]:
        if resource.urn not in names:
            return
        space = "  " * depth
        written = node if resource.custom else box
        yield from (space + line for line in written(names[resource.urn], resource))
        for child in tree.children(resource):
            yield from draw(child, depth + (0 if resource.custom else 1))
        if not resource.custom:
            yield space + end

    for root in tree.roots:
        yield from draw(root, 1)


def _title(component: Registration) -> str:
    return f"{component.kind} {component.name}"


def _names(tree: ResourceTree) -> dict[str, str]:
    """Short names of everything that is drawn: the nodes, and the components with a node in them."""
    nodes = {resource.urn for resource in tree.drawn()}
    drawn = set(nodes)
    parents = {resource.urn: resource.parent for resource in tree.resources}
    for urn in nodes:
        step = parents[urn]
        while step and step not in drawn:
            drawn.add(step)
            step = parents.get(step, "")
    return {resource.urn: f"n{index}" for index, resource in enumerate(tree.resources) if resource.urn in drawn}


def _lines(resource: Registration, label: Label) -> list[str]:
    return [text for text in (resource.kind, resource.name, label(resource)) if text]


def _mermaid(lines: list[str], between: str) -> str:
    """Text in quotes: what Mermaid would read as markup is written as its entity code."""
    return between.join(
        "".join(sign if sign.isalnum() or sign in " -_./:,()=*{}$+@" else f"#{ord(sign)};" for sign in line) for line in lines
    )


def _dot(lines: list[str]) -> str:
    r"""A quoted string of DOT, its lines parted by `\n`."""
    return '"' + r"\n".join(line.replace("\\", r"\\").replace('"', r"\"").replace("\n", " ") for line in lines) + '"'
