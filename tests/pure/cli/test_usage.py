"""A call that is wrong ends with exit code 2 and one line, or one document of JSON, whichever command it is."""

from __future__ import annotations

import json

import pytest

from dpd_infra.cli import _WITHOUT_TYPER, COMMANDS
from tests.pure.cli.conftest import Dpd

OWN = sorted(_WITHOUT_TYPER)
"""Commands that read their own arguments."""
WRONG = {
    "check": ["--explain", "--from"],
    "plan": ["--account", "--answers"],
    "size": ["--model", "--rate"],
    "advise": ["--plot", "--seed"],
}
"""Options that take a value, of each."""


@pytest.mark.parametrize("command", OWN)
@pytest.mark.parametrize("kind", ["an option that is none", "the beginning of an option", "no value"])
def test_a_wrong_call_is_told_in_one_line(command: str, kind: str, dpd: Dpd) -> None:
    option = WRONG[command][0]
    # As argparse says it, whose documentation has both sentences.
    arguments, said = {
        "an option that is none": (["x", "--nonsense"], "unrecognized arguments: --nonsense"),
        "the beginning of an option": (["x", f"{option[:-1]}=y"], f"unrecognized arguments: {option[:-1]}=y"),
        "no value": (["x", option], f"argument {option}: expected one argument"),
    }[kind]
    run = dpd(command, *arguments)
    assert (run.code, run.out) == (2, "")
    assert run.err == f"dpd: {said}; see dpd {command} --help\n"
    as_json = dpd(command, "--json", *arguments)
    assert (as_json.code, as_json.err) == (2, "")
    assert json.loads(as_json.out) == {"ok": False, "error": f"{said}; see dpd {command} --help"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_a_wrong_call_with_two(command: str, dpd: Dpd) -> None:
    assert dpd(command, "--nonsense").code == 2


@pytest.mark.parametrize("command", OWN)
def test_help_has_its_paragraphs_and_the_width_of_the_terminal(command: str, dpd: Dpd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = dpd(command, "--help")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = dpd(command, "--help")
    assert wide.code == narrow.code == 0
    usage = [run.out.split("\n\n")[0].splitlines() for run in (wide, narrow)]
    assert max(map(len, usage[1])) < 60
    assert len(usage[0]) < len(usage[1])
    assert "\n\n" in narrow.out.partition("\n\n")[2].partition("positional arguments")[0].rstrip()
