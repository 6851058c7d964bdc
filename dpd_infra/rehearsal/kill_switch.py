"""Kill the engine in the middle of an operation, as a closed laptop or a lost runner does."""

from __future__ import annotations

import subprocess
import threading
from types import TracebackType
from typing import Self

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.journal import Operation


class Killed(Exception):
    """The engine was killed on purpose."""

    def __init__(self, operations: int) -> None:
        super().__init__(f"the engine was killed after {operations} operation{'' if operations == 1 else 's'}")


class KillSwitch:
    """Within the block, kill the armed process when the account has done `after` more changes.

    The account has done the last one, and the engine does not hear of it: the worst moment.
    """

    def __init__(self, account: SimulatedAccount, after: int) -> None:
        self.account = account
        self.after = after
        self.fired = False
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._journal = account.journal

    def __enter__(self) -> Self:
        self.account.journal = _Journal(self, self._journal)
        if not self.after:
            self._fire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.account.journal = list(self.account.journal)

    def arm(self, process: subprocess.Popen[str]) -> None:
        """Say which process is to be killed."""
        with self._lock:
            self._process = process
            if self.fired:
                process.kill()

    def _fire(self) -> None:
        with self._lock:
            self.fired = True
            if self._process is not None:
                self._process.kill()


class _Journal(list[Operation]):
    """A journal that counts."""

    def __init__(self, switch: KillSwitch, so_far: list[Operation]) -> None:
        super().__init__(so_far)
        self._switch = switch
        self._left = switch.after

    def append(self, item: Operation, /) -> None:
        super().append(item)
        self._left -= 1
        if self._left == 0:
            self._switch._fire()  # noqa: SLF001 - one device in two parts
