"""Whose it is what a request finds taken: the stacks of a project are rehearsed in one account, kept from one rehearsal to the next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dpd_infra.rehearsal.urn import project_of, stack_of
from dpd_infra.rehearsal.world.rule import Said

if TYPE_CHECKING:
    from dpd_infra.rehearsal.account import Resource, SimulatedAccount

HELD = (
    r"; stack (\S+)(?: of project \S+)?(?:, rehearsed before and kept in [^\n]*?,)? has it"
    r"(?: in this simulated account| by its exported state)?: "
)
"""How a refusal says whose it is, with the stack's name."""
EXPORTED = " has it by its exported state: "
"""How it says that no rehearsal of this project made it."""
OTHERS = "work-of-others"
"""Where, below the state folder, stacks lie whose exported state a rehearsal was given, by project and stack."""

_OF_THE_COMMAND = (".dpd", "rehearsal")
"""The folder that `dpd rehearse` keeps its state in."""


def whose(said: Said, holder: Resource | None, asker: str, account: SimulatedAccount) -> Said:
    """A refusal of what is taken, with the stack that has it and the way out, where that is another stack than the asker's.

    `asker` is a URN. What the asker's own stack, a world file or a service made is somebody's whom the program's author knows.
    """
    if holder is None or not holder.urn.startswith("urn:") or not asker.startswith("urn:"):
        return said
    stack, project = stack_of(holder.urn), project_of(holder.urn)
    if (stack, project) == (stack_of(asker), project_of(asker)):
        return said
    folder = account.path.parent if account.path is not None else None
    named = f"stack {stack}" + (f" of project {project}" if project != project_of(asker) else "")
    if folder is not None and (folder / OTHERS / project / stack).is_dir():
        return said.within(f"{said}; {named}{EXPORTED}choose another one here")
    if folder is None:
        return said.within(f"{said}; {named} has it in this simulated account: choose another one here, or destroy that stack first")
    return said.within(f"{said}; {named}, rehearsed before and kept in {folder}, has it: {_way_out(stack, stack_of(asker), folder)}")


def _way_out(stack: str, own: str, folder: Path) -> str:
    if folder.parts[-2:] != _OF_THE_COMMAND:
        return "choose another one here, destroy the rehearsal of that stack first, or reset the rehearsals"
    destroy, reset = (f"`dpd rehearse {shlex.quote(name)} --{word}`" for name, word in ((stack, "destroy"), (own, "reset")))
    return f"choose another one here, take that stack down first with {destroy}, or forget all rehearsals of the project with {reset}"
