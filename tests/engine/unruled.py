"""Refusals in source code that have no rule of the world: a text, or a variable that holds one, where a rule's message belongs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

ERRORS = ("SimulatedError", "AwsError", "KubernetesError", "InitError")
_TEXTS = (ast.JoinedStr, ast.BinOp)


def unruled(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each refusal whose message is a text of its own; what makes errors or findings by its annotation counts too."""
    tree = ast.parse(source)
    helpers = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns).strip("'\"") in ERRORS
    }
    for function in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
        texts = {
            target.id
            for node in _own(function)
            if isinstance(node, ast.Assign) and _is_text(node.value, set())
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in _own(function):
            for message in _messages(node, function, helpers):
                if _is_text(message, texts):
                    yield message.lineno, ast.unparse(message)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own(child)


def _messages(node: ast.AST, function: ast.AST, helpers: set[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        named = [keyword.value for keyword in node.keywords if keyword.arg == "message"]
        if name in ERRORS or name in helpers or name in {"refused", "violation", "_refused", "_limit", "existing"}:
            # The message is what is neither a service, an operation nor a code: the last that is given by position, or by its name.
            last = node.args[-1] if node.args and name != "existing" else None
            if isinstance(last, ast.Constant) and isinstance(last.value, int) and len(node.args) > 1:
                last = node.args[-2]
            last = last.elts[0] if isinstance(last, ast.List) and last.elts else last
            yield from [*([last] if isinstance(last, ast.expr) and not named else []), *named]
    if (
        isinstance(node, ast.Return)
        and isinstance(function, ast.FunctionDef)
        and function.name == "check"
        and isinstance(node.value, ast.Dict)
    ):
        yield from node.value.values


def _is_text(node: ast.expr, texts: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in texts
    return isinstance(node, _TEXTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
