"""Where commands write to: every place is tried before the work begins, so that none is done for nothing."""

from __future__ import annotations

import errno
import os
import pathlib
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpd_infra.cli._arguments import UsageError


@dataclass(frozen=True)
class File:
    """A file that is to be written, over one that is there; its folder has to be there."""

    what: str
    """What names it: `--plot`."""
    path: pathlib.Path


@dataclass(frozen=True)
class Folder:
    """A folder that files are written into; where it is not there it is made, with those above it."""

    what: str
    path: pathlib.Path
    names: Sequence[str] = ()
    """The files in it."""
    named: bool = True
    """Whether the user named it, and can name another."""


@dataclass(frozen=True)
class Replaced:
    """A file that another one takes the place of: its folder is written into."""

    what: str
    path: pathlib.Path


def refuse_unwritable(*places: File | Folder | Replaced) -> None:
    """Raise `UsageError` with every place that cannot be written. What is there stays as it is, and nothing new is left."""
    made = {_real(place.path): place for place in places if isinstance(place, Folder)}
    problems = [f"{place.what} {place.path}: {problem}" for place in places for problem in _problems(place, made)]
    if problems:
        raise UsageError("; ".join(problems))


def need_writable(*places: File | Folder | Replaced, as_json: bool = False) -> None:
    """End the command with exit code 2 and every place that cannot be written."""
    from dpd_infra.cli._output import WRONG_USAGE, fail

    try:
        refuse_unwritable(*places)
    except UsageError as error:
        fail(str(error), as_json=as_json, code=WRONG_USAGE)


def unwritten(error: OSError) -> str:
    """What is said of a place that cannot be written, after its name."""
    return f"cannot be written: {(error.strerror or str(error)).lower()}"


def _problems(place: File | Folder | Replaced, made: dict[pathlib.Path, Folder]) -> Iterator[str]:
    target = _real(place.path)
    try:
        if isinstance(place, Folder):
            yield from _folder_problems(place, target)
        elif isinstance(place, Replaced):
            _try_in(target.parent)
        elif (folder := made.get(target)) is not None:
            yield f"it is the folder of {folder.what}; name a file in it, or another file"
        else:
            yield from _file_problems(place.path, target, made)
    except OSError as error:
        yield f"it {unwritten(error)}; {_way_out(place)}"


def _folder_problems(place: Folder, target: pathlib.Path) -> Iterator[str]:
    other = "name another folder" if place.named else "move it away"
    there = next(path for path in (target, *target.parents) if _is_there(path))
    if not there.is_dir():
        yield f"{'it' if there == target else there} is a file, and no folder; {other}"
        return
    _try_in(there)
    for name in place.names if there == target else ():
        if (target / name).is_dir():
            yield f"{name} in it is a folder, and a file of that name goes there; {other}"
        else:
            _try_file(target / name)


def _file_problems(path: pathlib.Path, target: pathlib.Path, made: dict[pathlib.Path, Folder]) -> Iterator[str]:
    if target.is_dir():
        yield "it is a folder; name a file in it"
        return
    there = next(above for above in target.parents if _is_there(above))
    if not there.is_dir():
        yield f"{there} is a file, and no folder; name a file elsewhere"
    elif there == target.parent:
        _try_file(target)
    elif target.parent not in made:
        # A folder that is made for another option is tried there.
        shown = target.parent if path.is_symlink() else path.parent
        yield f"there is no folder {shown}; make it (mkdir -p {shlex.quote(str(shown))}), or name a file elsewhere"


def _try_file(target: pathlib.Path) -> None:
    """Raise `OSError` where a file cannot be written, without changing it."""
    if not _is_there(target):
        _try_in(target.parent)
    elif stat.S_ISREG(target.stat().st_mode):
        os.close(os.open(target, os.O_WRONLY | os.O_APPEND))
    elif not os.access(target, os.W_OK):
        # Opening a pipe would wait for its reader.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _try_in(folder: pathlib.Path) -> None:
    """Raise `OSError` where no file can be made in a folder. Made it is: what may be done is not all that a file system asks."""
    trial = folder / f".dpd-trial-{os.getpid()}"
    os.close(os.open(trial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    trial.unlink()


def _is_there(path: pathlib.Path) -> bool:
    """As `Path.exists`, which hides that a path cannot be looked at."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _real(path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(os.path.realpath(path))


def _way_out(place: File | Folder | Replaced) -> str:
    if isinstance(place, Replaced):
        return "make its folder writable"
    if isinstance(place, Folder):
        return f"make it writable{', or name another folder' if place.named else ''}"
    return "make it writable, or name another file"
