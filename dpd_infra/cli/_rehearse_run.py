"""`dpd rehearse` at work: which rehearsal the options ask for, and where its report goes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from dpd_infra.cli._output import FAILED, WRONG_USAGE, existing_file, fail, print_json, refuse
from dpd_infra.cli._output_paths import unwritten
from dpd_infra.cli._rehearse_asked import KEPT_FILES, Asked
from dpd_infra.cli._rehearse_drills import fault, what_can_be_killed
from dpd_infra.spec.yaml_source import load_document

if TYPE_CHECKING:
    from dpd_infra.rehearsal import Rehearsal, RehearsalFailed
    from dpd_infra.rehearsal.engine import Outcome
    from dpd_infra.rehearsal.faults import Trial
    from dpd_infra.rehearsal.progress import ProgressDisplay
    from dpd_infra.rehearsal.report import Report
    from dpd_infra.rehearsal.world import World


def rehearse(asked: Asked) -> None:
    """Run the rehearsal and tell of it. Ends the command with exit code 1 where something failed."""
    from dpd_infra.rehearsal import ProjectNotFound, PulumiNotFound, RehearsalBusy, RehearsalFailed, SimulatedAccount
    from dpd_infra.rehearsal.from_state import StateRefused

    world, supposed = _world(asked)
    asked = replace(asked, root=asked.root.resolve())
    try:
        rehearsal = _rehearsal(asked)
        notes = (*supposed, *_begin(asked, rehearsal, world))
        rehearsal.account = SimulatedAccount(rehearsal.folder / "account.json", world=world)
        if asked.fail_each:
            report = _fail_each(asked, rehearsal, world)
        elif asked.kill_at is not None:
            report = _kill(asked, rehearsal)
        else:
            report = _operate(asked, rehearsal)
    except (PulumiNotFound, RehearsalBusy, ValueError) as error:
        fail(str(error), as_json=asked.as_json)
    except (ProjectNotFound, StateRefused) as error:
        fail(str(error), as_json=asked.as_json, code=WRONG_USAGE)
    except RehearsalFailed as error:
        # What was asked for could not even begin.
        fail(error.message, as_json=asked.as_json)
    _tell(asked, replace(report, notes=(*notes, *report.notes)), rehearsal)


def _world(asked: Asked) -> tuple[World, tuple[str, ...]]:
    """The world as its file says it, with what the stack counts on; what of that is supposed is told. Ends the command where it is not."""
    from dpd_infra.rehearsal.suppose import suppose
    from dpd_infra.rehearsal.world import World, WorldRefused

    if asked.world is not None:
        existing_file(asked.world, as_json=asked.as_json)
    try:
        world = World.read(asked.world) if asked.world is not None else World.default()
    except WorldRefused as refused:
        refuse(refused.findings, refused.documents, as_json=asked.as_json)
    found = suppose(world, asked.spec, str(asked.world or ""))
    if found.missing:
        file = str(asked.stack_file)
        document = load_document(asked.stack_file.read_bytes(), file)
        refuse([document.placed(finding) for finding in found.missing], {file: document}, as_json=asked.as_json)
    if not found.notes:
        return found.world, ()
    told = f"supposed to be there, because the stack file's `existing` names it: {', '.join(found.notes)}; `--world FILE` can say otherwise"
    return found.world, (told,)


def _rehearsal(asked: Asked) -> Rehearsal:
    from dpd_infra.rehearsal import Rehearsal

    return Rehearsal(asked.root, asked.stack, state_dir=asked.state_dir)


def _begin(asked: Asked, rehearsal: Rehearsal, world: World) -> tuple[str, ...]:
    """Forget what is to be forgotten, and begin with an exported state where there is one; answers what a reader should know of it."""
    from dpd_infra.rehearsal import SimulatedAccount
    from dpd_infra.rehearsal.other_stacks import ExportedStates
    from dpd_infra.rehearsal.workspace import ProjectFiles

    if not asked.exported:
        if asked.reset:
            rehearsal.reset()
        return ()
    files = ProjectFiles.read(asked.root, asked.stack)
    states = ExportedStates.read(asked.exported, files)
    rehearsal.reset()
    rehearsal.account = SimulatedAccount(rehearsal.folder / "account.json", world=world)
    with rehearsal.session() as session:
        states.put_into(session.engine, asked.stack_file.read_text(encoding="utf-8"))
    notes = []
    if states.own is None:
        notes.append(f"no state of {asked.stack} itself is among what --from names: it begins with nothing")
    if states.sealed:
        values = f"{states.sealed} encrypted value{'' if states.sealed == 1 else 's'}"
        named = " and ".join(str(path) for path in asked.exported)
        notes.append(f"{values} of {named} cannot be read here: a change of what they hold is not seen")
    return tuple(notes)


def _operate(asked: Asked, rehearsal: Rehearsal) -> Report:
    from dpd_infra.rehearsal import RehearsalFailed

    once = False
    if asked.fault is not None:
        name, _, word = asked.fault.rpartition(":")
        name, once = (name, True) if word == "once" and name else (asked.fault, False)
        fault(asked, rehearsal, name, times=1 if once else None)
    with _progress(asked, f"{asked.action} {asked.stack}") as rehearsal.on_event:
        try:
            result = getattr(rehearsal, asked.action)()
        except RehearsalFailed as error:
            report = _failed(asked, rehearsal, error)
            if not once:
                return report
            try:
                second = rehearsal.up() if asked.action == "up" else rehearsal.destroy()
            except RehearsalFailed as again:
                return _failed(asked, rehearsal, again)
            told = f"after the fault ({report.message}) the next {asked.action} went well"
            return _report(asked, ok=True, result=second, notes=(told,))
    notes = () if asked.fault is None else (f"nothing failed: this {asked.action} does nothing with {asked.fault}",)
    return _report(asked, ok=True, result=result, notes=notes)


def _failed(asked: Asked, rehearsal: Rehearsal, error: RehearsalFailed) -> Report:
    from dpd_infra.rehearsal.explanations import explain

    with rehearsal.session() as session:
        failed: Outcome | Any = error.result
        explanation = explain(error.message, failed, session.engine)
        broken = {item.rule: item for item in session.engine.account.refusals if item.rule and item.message in error.message}
    rules = [(item.rule, item.message, item.source) for item in broken.values()]
    report = _report(asked, ok=False, result=error.result, message=error.message, explanation=explanation, rules=rules)
    return replace(report, notes=_what_next(asked, report))


def _what_next(asked: Asked, report: Report) -> tuple[str, ...]:
    """What a failed operation left, and what the next one begins with."""
    if asked.action == "preview" or report.is_refused_beforehand:
        return ()
    names = [node.name for node in report.left]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    word = "not deleted" if asked.action == "destroy" else "not begun"
    listed = f"{len(names)} {word}: {', '.join(names[:_SHOWN])}{more}; " if names else ""
    if asked.exported:
        return (f"{listed}the next rehearsal begins with the exported state again",)
    again = f"`dpd rehearse {asked.stack}{' --destroy' if asked.action == 'destroy' else ''}`"
    return (f"{listed}what was done stays done: the next {again} is the next `{asked.action}`",)


_SHOWN = 5
"""Names in a sentence."""


def _fail_each(asked: Asked, rehearsal: Rehearsal, world: World) -> Report:
    from dpd_infra.rehearsal.fail_each import fail_each_quickly
    from dpd_infra.rehearsal.faults import can_fail

    count = sum(can_fail(step.type) for step in rehearsal.preview().resources)
    with _counting(asked) as on_trial:
        trials = fail_each_quickly(rehearsal, count, world=world, on_trial=on_trial)
    return _report(asked, ok=all(trial.ok for trial in trials), action="fail-each", trials=trials)


def _kill(asked: Asked, rehearsal: Rehearsal) -> Report:
    from dpd_infra.rehearsal.drill import scratch
    from dpd_infra.rehearsal.kill_drill import kill

    assert asked.kill_at is not None  # noqa: S101 - who calls has looked
    with rehearsal.session() as session, scratch(session, empty=False) as one, scratch(session, empty=False) as other:
        recovery = kill(one, other, asked.kill_at, asked.action)
    if recovery.too_late:
        fail(f"{recovery.misses}; {what_can_be_killed(asked, recovery)}", as_json=asked.as_json, code=WRONG_USAGE)
    return _report(asked, ok=recovery.ok, action="kill", recovery=recovery)


def _report(asked: Asked, *, ok: bool, action: str | None = None, **parts: Any) -> Report:
    from dpd_infra.rehearsal.report import Report
    from dpd_infra.rehearsal.workspace import ProjectFiles

    return Report(stack=asked.stack, project=ProjectFiles.read(asked.root, asked.stack).name, action=action or asked.action, ok=ok, **parts)


def _progress(asked: Asked, title: str) -> AbstractContextManager[ProgressDisplay | None]:
    from dpd_infra.rehearsal.progress import ProgressDisplay

    return nullcontext() if asked.as_json else ProgressDisplay(title=title)


def _counting(asked: Asked) -> AbstractContextManager[Callable[[int, int, Trial], None] | None]:
    from dpd_infra.rehearsal.progress import TrialDisplay

    return nullcontext() if asked.as_json else TrialDisplay(title=f"fail each of {asked.stack}")


def _tell(asked: Asked, report: Report, rehearsal: Rehearsal) -> None:
    from dpd_infra.cli._rehearse_display import result_data, show
    from dpd_infra.cli._rehearse_report import show_report
    from dpd_infra.rehearsal.report import timeline_data

    data: dict[str, Any] = {"ok": report.ok, "action": report.action, "stack": report.stack}
    if report.result is not None:
        data |= result_data(report.result, asked.spec)
    data |= report.as_data() | {"ok": report.ok, "action": report.action}
    with_time = report.timeline is not None and (asked.timeline or asked.keep is not None)
    if with_time and report.timeline is not None:
        data["timeline"] = timeline_data(report.timeline)
    # Written first, because the reader of a pipe may go away; and what was found is shown, whatever becomes of the files.
    problem = _write(asked, report, rehearsal, data)
    if asked.as_json:
        print_json(data)
    else:
        if report.result is not None and report.ok:
            show(report.result, asked.spec, asked.stack)
        show_report(report, timeline=asked.timeline, told=asked.told)
    if problem:
        fail(problem)
    for written in (asked.html, asked.keep):
        if written is not None and not asked.as_json:
            print(f"written: {written / 'report.html' if written is asked.keep else written}", file=sys.stderr)
    if not report.ok:
        raise typer.Exit(FAILED)


def _write(asked: Asked, report: Report, rehearsal: Rehearsal, data: dict[str, Any]) -> str:
    """Write the report where it is asked for; why that did not go, or nothing."""
    from dpd_infra.rehearsal.report_html import page

    try:
        if asked.keep is not None:
            page_file, data_file, *copied = (asked.keep / name for name in KEPT_FILES)
            asked.keep.mkdir(parents=True, exist_ok=True)
            page_file.write_text(page(report), encoding="utf-8")
            data_file.write_text(json.dumps(data, indent=2, ensure_ascii=False, default=str), encoding="utf-8")
            with rehearsal.session() as session:
                for target, file in zip(copied, (session.engine.checkpoint.file, rehearsal.folder / "account.json"), strict=True):
                    if file.exists():
                        shutil.copyfile(file, target)
        if asked.html is not None:
            # It may be meant for a folder in the other one.
            asked.html.write_text(page(report), encoding="utf-8")
    except OSError as error:
        return f"{error.filename} {unwritten(error)}"
    return ""
