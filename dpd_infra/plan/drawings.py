"""A stack's graph as text for drawing programs: Mermaid and Graphviz DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpd_infra.plan.tree import Registration, ResourceTree

Label = Callable[[Registration], str]
"""A resource's second line; empty for none."""


def to_mermaid(tree: ResourceTree, label: Label) -> str:
    """A Mermaid flowchart: components are boxes around their resources, an arrow leads from what comes first to what waits for it."""
    names = _names(tree)
    lines = ["flowchart LR"]

    def draw(resource: Registration, depth: int) -> Iterator[str]:
        space = "  " * depth
        if resource.custom:
            yield f'{space}{names[resource.urn]}["{_mermaid(_lines(resource, label), "<br/>")}"]'
        else:
            yield f'{space}subgraph {names[resource.urn]}["{_mermaid([f"{resource.kind} {resource.name}"], "")}"]'
        for child in tree.children(resource):
            if child.urn in names:
                yield from draw(child, depth + (0 if resource.custom else 1))
        if not resource.custom:
            yield f"{space}end"

    for root in tree.roots:
        if root.urn in names:
            lines += draw(root, 1)
    lines += [f"  {names[first.urn]} --> {names[then.urn]}" for first, then in tree.edges()]
    return "\n".join(lines) + "\n"


def to_dot(tree: ResourceTree, label: Label, title: str) -> str:
    """A Graphviz digraph of the same: `dot -Tsvg`."""
    names = _names(tree)
    lines = [
        f"digraph {_dot([title])} {{",
        "  rankdir=LR;",
        "  compound=true;",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];',
        '  graph [fontname="Helvetica", fontsize=11];',
    ]

    def draw(resource: Registration, depth: int) -> Iterator[str]:
        space = "  " * depth
        if resource.custom:
            yield f"{space}{names[resource.urn]} [label={_dot(_lines(resource, label))}];"
        else:
            yield f"{space}subgraph cluster_{names[resource.urn]} {{"
            yield f"{space}  label={_dot([f'{resource.kind} {resource.name}'])};"
        for child in tree.children(resource):
            if child.urn in names:
                yield from draw(child, depth + (0 if resource.custom else 1))
        if not resource.custom:
            yield f"{space}}}"

    for root in tree.roots:
        if root.urn in names:
            lines += draw(root, 1)
    lines += [f"  {names[first.urn]} -> {names[then.urn]};" for first, then in tree.edges()]
    return "\n".join([*lines, "}"]) + "\n"


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
