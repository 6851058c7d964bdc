"""Every message of a spec's validators has a fix that says what to write, keep or remove."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpd_infra.spec
from dpd_infra.spec.shape_fixes import fix_of

FOLDER = Path(dpd_infra.spec.__file__).parent


def texts(node: ast.expr) -> list[str]:
    """What an expression of text can come to, `x` for each value in it."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in values)]
        case ast.BinOp(left=left, right=right):
            return [first + second for first in texts(left) for second in texts(right)]
        case ast.IfExp(body=body, orelse=orelse):
            return [*texts(body), *texts(orelse)]
        case _:
            return []


def messages() -> Iterator[str]:
    """The message of every `ValueError` that a model's validator raises, and the functions that validators call in the models' modules."""
    for path in sorted(FOLDER.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if "validator" not in path.read_text(encoding="utf-8").lower():
            continue
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            raised = [call.args[0] for node in ast.walk(function) if isinstance(node, ast.Raise) and (call := _value_error(node.exc))]
            named = {
                node.targets[0].id: node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
            assigned = [
                node.value
                for node in ast.walk(function)
                if raised and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "message"
            ]
            for argument in [*assigned, *(arg for arg in raised if not (isinstance(arg, ast.Name) and arg.id in named))]:
                yield from texts(argument)


def _value_error(raised: ast.expr | None) -> ast.Call | None:
    return raised if isinstance(raised, ast.Call) and isinstance(raised.func, ast.Name) and raised.func.id == "ValueError" else None


MESSAGES = sorted(set(messages()))


def test_messages_are_found() -> None:
    assert len(MESSAGES) > 20


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_has_a_fix(message: str) -> None:
    assert fix_of(message), f"{message!r}: end it with what to do (`; write …`), or give it a fix in dpd_infra/spec/shape_fixes.py"
