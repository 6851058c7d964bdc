"""Every resource of a stack failed in turn, on as many processes as the machine has."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.drill import scratch
from dpd_infra.rehearsal.faults import FaultDrill, Trial
from dpd_infra.rehearsal.runner import Rehearsal
from dpd_infra.rehearsal.world import World

OnTrial = Callable[[int, int, Trial], None]
"""Called with how many are done, how many there are, and the last one."""

_EACH = 10
"""Resources that are worth a process of their own: each brings the stack up once for itself."""
_MOST = 8


def fail_each(rehearsal: Rehearsal, *, choose: Callable[[Iterable[str]], list[str]] = list, on_trial: OnTrial | None = None) -> list[Trial]:
    """Fail the create of each chosen resource (all, unless told otherwise) in this process, each followed by another `up`.

    Raises `ValueError` with the report where the stack does not come up without a fault.
    """
    done: list[Trial] = []
    with rehearsal.session() as session, scratch(session, empty=True) as stack:
        drill = FaultDrill.begin(stack)
        urns = choose(drill.urns)
        for trial in drill.trials(urns):
            done.append(trial)
            if on_trial is not None:
                on_trial(len({item.urn for item in done}), len(urns), trial)
    return done


def fail_each_quickly(rehearsal: Rehearsal, count: int, *, world: World | None = None, on_trial: OnTrial | None = None) -> list[Trial]:
    """The same for all of about `count` resources, on several processes, each with a share of them and a copy of the state."""
    workers = max(1, min(os.cpu_count() or 1, _MOST, count // _EACH))
    if workers == 1:
        return fail_each(rehearsal, on_trial=on_trial)
    context = multiprocessing.get_context("spawn")
    state_dir = rehearsal.folder
    found: list[Trial] = []
    with context.Manager() as manager, ProcessPoolExecutor(workers, mp_context=context) as pool:
        told: Queue[tuple[int, Trial]] = manager.Queue()
        shares = [
            pool.submit(_share, rehearsal.project_dir, rehearsal.stack, state_dir, world, index, workers, told) for index in range(workers)
        ]
        while True:
            over = all(share.done() for share in shares)
            try:
                total, trial = told.get(timeout=0.2)
            except Empty:
                if over:
                    break
                continue
            found.append(trial)
            if on_trial is not None:
                on_trial(len({item.urn for item in found}), total, trial)
        for share in as_completed(shares):
            share.result()
    return found


def _share(
    project_dir: Path, stack: str, state_dir: Path, world: World | None, index: int, workers: int, told: Queue[tuple[int, Trial]]
) -> None:
    """One process's part: every so manyth resource."""
    with TemporaryDirectory(prefix="dpd-rehearsal-") as folder:
        copy = Path(folder) / "state"
        if state_dir.exists():
            shutil.copytree(state_dir, copy)
        account = SimulatedAccount(copy / "account.json", world=world)
        total = 0

        def mine(urns: Iterable[str]) -> list[str]:
            nonlocal total
            every = sorted(urns)
            total = len(every)
            return every[index::workers]

        rehearsal = Rehearsal(project_dir, stack, state_dir=copy, account=account)
        fail_each(rehearsal, choose=mine, on_trial=lambda _done, _total, trial: told.put((total, trial)))
