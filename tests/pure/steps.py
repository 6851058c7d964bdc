"""Counting what code does instead of timing it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


def steps(module: ModuleType, call: Callable[[], Any]) -> int:
    """How many lines of a module run in a call, those of its comprehensions each time."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        del argument
        if frame.f_code.co_filename != module.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def assert_linear(work: Callable[[int], int], few: int = 40) -> None:
    """Fail where twice as many take more than twice the work, with a little for sorting."""
    counts = [work(few * times) for times in (1, 2, 4)]
    assert counts[0] > 0
    assert counts[2] - counts[1] <= 2.4 * (counts[1] - counts[0]), counts
