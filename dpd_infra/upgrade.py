"""What stands between two stack files, or between two versions of the operator."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dpd_infra.catalog.changes import FieldChange, change_of
from dpd_infra.checking import CheckedFile, operator_named, unopened
from dpd_infra.rules.check import check_upgrade
from dpd_infra.rules.subject import StackSubject
from dpd_infra.rules.wide_subjects import UpgradeSubject
from dpd_infra.spec.finding import Finding, Path
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.spec.yaml_source import SourceText
from dpd_infra.stack import LoadedStack, load_file


@dataclass(frozen=True, slots=True)
class ChangedField:
    """One place in which two stack files differ, and what an `up` makes of it."""

    path: Path
    """In the stack: `("platform", "instanceGroups", "gpu", "count")`."""
    before: Any
    """None where nothing stood there."""
    after: Any
    """None where nothing stands there."""
    effect: FieldChange | None
    """None for a whole entry that is new or gone: a group, an endpoint, a team."""


def changed_fields(old: str, new: str, operator: OperatorFacts | None = None) -> list[ChangedField]:
    """The places in which two stack files differ, defaults included, in the order of the file; none where either has errors of its own.

    Two operator versions have no fields.
    """
    if not os.path.lexists(old) or not os.path.lexists(new):
        return []
    loaded = [load_file(pathlib.Path(name), operator=facts) for name, facts in ((old, None), (new, operator))]
    specs = [stack.spec for stack in loaded]
    if any(spec is None for spec in specs):
        return []
    before, after = (spec.model_dump(mode="json", by_alias=True) for spec in specs if spec is not None)
    return list(_differences(before, after, ()))


def _differences(before: Any, after: Any, path: Path) -> Iterator[ChangedField]:
    if before == after:
        return
    effect = change_of(path)
    is_section = isinstance(before, dict) and isinstance(after, dict)
    if is_section and (effect is None or not _is_whole(effect, path)):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key), after.get(key), (*path, key))
    elif effect is None and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, (*path, index))
    else:
        yield ChangedField(path, before, after, effect)


def _is_whole(effect: FieldChange, path: Path) -> bool:
    """Whether a place is a field itself, not a part of one."""
    return len(effect.field.replace("[]", ".[]").split(".")) == len(path)


def compare(old: str, new: str, operator: OperatorFacts | None = None) -> CheckedFile:
    """Compare two stack files by path, or two operators by add-on version or release.

    For files the findings are the new one's own and those on the way to it, with places in the new one; what makes the old one unreadable
    is among them. Raises `ValueError` for what is neither: a manifest, one file and a version.
    """
    are_files = [os.path.lexists(name) for name in (old, new)]
    if not any(are_files):
        return _versions(old, new)
    if not all(are_files):
        missing = new if are_files[0] else old
        raise ValueError(f"no such file: {missing}; --from compares two stack files or two operator versions")
    checked = CheckedFile(new, pathlib.Path(new), is_stack=True)
    before, after = _load(old, None, checked), _load(new, operator, checked)
    if before is None or after is None:
        return checked
    checked.endpoints += after.subject.endpoints
    checked.findings += after.findings
    document = after.documents.get(new)
    if document is None:
        return checked
    checked.text = SourceText(document.text)
    checked.findings += [document.placed(finding) for finding in check_upgrade(UpgradeSubject(before.subject, after.subject))]
    return checked


def _load(name: str, operator: OperatorFacts | None, checked: CheckedFile) -> LoadedStack | None:
    """A stack; None with a finding where its file cannot be read."""
    try:
        loaded = load_file(pathlib.Path(name), operator=operator)
    except OSError as error:
        checked.findings.append(unopened(name, error))
        return None
    if not loaded.documents:
        checked.findings += loaded.findings
        return None
    if not loaded.is_ours:
        raise ValueError(f"{name} is no stack file of dpd-infra: --from compares two stack files or two operator versions")
    return loaded


def _versions(old: str, new: str) -> CheckedFile:
    before, after = (StackSubject(operator=operator_named(version)) for version in (old, new))
    findings: list[Finding] = check_upgrade(UpgradeSubject(before, after))
    return CheckedFile(f"operator {old} to {new}", None, [replace(finding, path=()) for finding in findings])
