"""A place that cannot be written is told of before the work begins: exit code 2, one line with the path and the way out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpd_infra.cli._arguments import UsageError
from dpd_infra.cli._output_paths import File, Folder, Replaced, refuse_unwritable
from dpd_infra.cli.advise import main
from tests.pure.cli.conftest import MANIFEST, STACK, Dpd, Run
from tests.pure.estate.test_import_plan import TERRAFORM

PLAIN = ("--model", "Llama-3.3-70B-Instruct", "--instance-type", "ml.p5.48xlarge", "--max-model-len", "32768")
LOAD = ("--rate", "2.5", "--input-tokens", "6000", "--output-tokens", "400", "--requests", "50", "--no-library")


def is_worked(*_arguments: object, **_keywords: object) -> None:
    raise AssertionError("the work began")


def project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: p\nruntime: python\n", encoding="utf-8")
    (folder / "Pulumi.dev.yaml").write_text(STACK, encoding="utf-8")
    (folder / "__main__.py").touch()
    return folder


@pytest.fixture
def call(dpd: Dpd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    """`call("advise --plot", path)`: the command with everything but its output's path right, and its work a failure of the test."""
    monkeypatch.setattr("dpd_infra.cli.advise.advise", is_worked)
    monkeypatch.setattr("dpd_infra.cli.rehearse.rehearse", is_worked)
    monkeypatch.setattr("dpd_infra.cli.import_state.plan_import", is_worked)
    monkeypatch.setattr("dpd_infra.cli.import_state.describe", is_worked)
    monkeypatch.setattr("dpd_infra.cli.import_state.clients", is_worked)
    project(tmp_path / "p")
    calls = {
        "advise --plot": ("advise", *PLAIN, *LOAD, "--plot"),
        "rehearse --html": ("rehearse", "dev", "--project", "p", "--html"),
        "rehearse --keep": ("rehearse", "dev", "--project", "p", "--keep"),
        "import-state --out": ("import-state", "my-cluster", "--out"),
    }
    return lambda name, path, *more: dpd(*calls[name], path, *more)


FILES = ("advise --plot", "rehearse --html")
FOLDERS = ("rehearse --keep", "import-state --out")
PROC = pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which nobody can make a file")


@pytest.mark.parametrize(
    ("name", "path", "problem"),
    [
        *(
            (name, "none/below/x", "there is no folder none/below; make it (mkdir -p none/below), or name a file elsewhere")
            for name in FILES
        ),
        *((name, "a b/x", "there is no folder a b; make it (mkdir -p 'a b'), or name a file elsewhere") for name in FILES),
        *((name, "p", "it is a folder; name a file in it") for name in FILES),
        *((name, "p/Pulumi.yaml/x", "p/Pulumi.yaml is a file, and no folder; name a file elsewhere") for name in FILES),
        *((name, "p/Pulumi.yaml", "it is a file, and no folder; name another folder") for name in FOLDERS),
        *((name, "p/Pulumi.yaml/x", "p/Pulumi.yaml is a file, and no folder; name another folder") for name in FOLDERS),
        *((name, "x" * 300, "file name too long; make it writable, or name another file") for name in FILES),
        *((name, "x" * 300, "file name too long; make it writable, or name another folder") for name in FOLDERS),
        *(pytest.param(name, "/proc/x", "it cannot be written: ", marks=PROC) for name in (*FILES, *FOLDERS)),
    ],
)
def test_a_place_that_cannot_be_written_is_told_of_first(name: str, path: str, problem: str, call: Callable[..., Run]) -> None:
    run = call(name, path)
    said = run.err
    assert run.code == 2
    assert said.startswith(f"dpd: {name.split()[1]} {path}: ")
    assert problem in said.replace(str(Path.cwd()) + "/", "")
    assert said.count("\n") == 1
    assert sorted(entry.name for entry in Path().iterdir()) == ["p"]
    assert sorted(entry.name for entry in Path("p").iterdir()) == ["Pulumi.dev.yaml", "Pulumi.yaml", "__main__.py"]


def test_json_says_it_as_json(call: Callable[..., Run]) -> None:
    for name in (*FILES, "rehearse --keep"):
        run = call(name, "p/Pulumi.yaml/x", "--json")
        assert run.code == 2
        assert "p/Pulumi.yaml is a file, and no folder" in json.loads(run.out)["error"].replace(str(Path.cwd()) + "/", "")


def test_every_place_is_told_of_at_once(call: Callable[..., Run]) -> None:
    Path("p/.dpd").touch()
    Path("kept/report.json").mkdir(parents=True)
    said = call("rehearse --html", "none/x.html", "--keep", "kept").err
    assert "the folder of rehearsals" in said
    assert ".dpd is a file, and no folder; move it away" in said
    assert "--html none/x.html: there is no folder none" in said
    assert "--keep kept: report.json in it is a folder" in said
    assert said.count("\n") == 1


def test_one_place_cannot_be_file_and_folder(call: Callable[..., Run]) -> None:
    assert "--html out: it is the folder of --keep" in call("rehearse --html", "out", "--keep", "out").err


def tried(*places: File | Folder | Replaced) -> str:
    """What is said of places, or nothing; what there is stays as it is either way."""

    def there() -> list[tuple[str, int, bytes]]:
        found = [(path, path.lstat()) for path in sorted(Path().rglob("*"))]
        return [(str(path), how.st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path, how in found]

    before = there()
    try:
        refuse_unwritable(*places)
    except UsageError as error:
        return str(error)
    finally:
        # A trial in a folder is seen in the folder's own time alone.
        assert [(path, held) for path, _, held in there()] == [(path, held) for path, _, held in before]
        assert [(path, time) for path, time, _ in there() if Path(path).is_file()] == [
            (path, time) for path, time, _ in before if Path(path).is_file()
        ]
    return ""


def test_what_can_be_written_passes_and_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.svg").write_text("old", encoding="utf-8")
    Path("folder").mkdir()
    Path("folder/report.html").write_text("old", encoding="utf-8")
    Path("link.svg").symlink_to("folder/new.svg")
    os.mkfifo("pipe")
    assert not tried(File("--plot", Path("new.svg")), File("--plot", Path("there.svg")), File("--plot", Path("link.svg")))
    # Nobody reads from it: opened, it would wait for ever.
    assert not tried(File("--plot", Path("pipe")))
    assert not tried(File("--plot", Path("/dev/null")))
    assert not tried(Folder("--keep", Path("folder"), ["report.html", "report.json"]), Folder("--out", Path("new/below"), ["a"]))
    assert not tried(File("--html", Path("new/page.html")), Folder("--keep", Path("new"), ["report.html"]))
    assert not tried(Replaced("--fix", Path("there.svg")))


def test_a_link_is_what_it_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("astray").symlink_to(tmp_path / "none" / "x")
    Path("circle").symlink_to("circle")
    assert f"--plot astray: there is no folder {tmp_path / 'none'}" in tried(File("--plot", Path("astray")))
    assert "--plot circle: it cannot be written: too many levels of symbolic links" in tried(File("--plot", Path("circle")))


NOBODY = 65534


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of a user whom permissions hold back: root writes everywhere, and is another one for so long."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        if root:
            os.chown(folder, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            with monkeypatch.context() as patch:
                patch.chdir(folder)
                yield
        finally:
            if root:
                os.seteuid(0)


@pytest.mark.usefixtures("own_folder")
def test_permissions_are_those_of_the_file_system() -> None:
    Path("read.svg").touch(mode=0o400)
    Path("closed").mkdir(mode=0o500)
    for place in (File("--plot", Path("read.svg")), File("--plot", Path("closed/x")), Folder("--keep", Path("closed"))):
        assert "permission denied; make it writable" in tried(place)
    assert "permission denied; make its folder writable" in tried(Replaced("--fix", Path("closed/x")))


def test_fixes_are_written_into_all_files_or_none(dpd: Dpd, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "4096"')
    Path("a.yaml").write_text(text, encoding="utf-8")
    Path("closed").mkdir()
    Path("closed/b.yaml").write_text(text, encoding="utf-8")
    opened = os.open

    def refusing(path: Path, *more: int) -> int:
        if Path(path).resolve().parent.name == "closed":
            raise PermissionError(13, "Permission denied")
        return opened(path, *more)

    monkeypatch.setattr("dpd_infra.cli._output_paths.os.open", refusing)
    run = dpd("check", "--fix", "a.yaml", "closed/b.yaml")
    assert run.code == 2
    assert run.err == "dpd: --fix closed/b.yaml: it cannot be written: permission denied; make its folder writable\n"
    assert Path("a.yaml").read_text(encoding="utf-8") == text


def test_a_chart_is_fetched_where_it_can_be_put(dpd: Dpd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dpd_infra.cli.fetch_chart.fetch_chart", is_worked)
    (project(tmp_path / "p") / "charts").touch()
    run = dpd("fetch-chart", "p/Pulumi.dev.yaml")
    assert run.code == 2
    assert run.err == f"dpd: the chart's folder {tmp_path}/p/charts: it is a file, and no folder; move it away\n"


def test_files_that_are_there_already_are_told_of_before_aws_is_asked(call: Callable[..., Run]) -> None:
    Path("Pulumi.prod.yaml").touch()
    run = call("import-state --out", ".", "--stack", "prod")
    assert run.code == 1
    assert run.err == "dpd: Pulumi.prod.yaml: there already; write elsewhere with --out, or over it with --force\n"
    assert "a stack's own name" in call("import-state --out", ".", "--stack", "acme/p/prod").err


def test_what_was_found_is_shown_where_writing_it_fails_after_all(dpd: Dpd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_arguments: object, **_keywords: object) -> None:
        raise OSError(28, "No space left on device", "x.svg")

    state = tmp_path / "terraform.tfstate"
    state.write_text(json.dumps(TERRAFORM), encoding="utf-8")
    monkeypatch.setattr(Path, "write_text", full)
    run = dpd("advise", *PLAIN, *LOAD, "--plot", "x.svg")
    assert run.code == 1
    assert run.out.startswith("Llama-3.3-70B-Instruct: ")
    assert run.err == "dpd: x.svg cannot be written: no space left on device\n"
    run = dpd("import-state", "--terraform", str(state), "--out", "new")
    assert (run.code, run.err) == (1, "dpd: x.svg cannot be written: no space left on device\n")


def test_a_plot_is_there_although_the_reader_of_the_report_went_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def gone(*_arguments: object, **_keywords: object) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr("builtins.print", gone)
        with pytest.raises(BrokenPipeError):
            main([*PLAIN, *LOAD, "--plot", "x.svg"])
    assert Path("x.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_plot_that_cannot_be_drawn_is_told_of(dpd: Dpd) -> None:
    run = dpd("advise", "--model", "Qwen/Qwen3-32B-FP8", "--instance-type", "ml.p5.48xlarge", *LOAD, "--plot", "x.svg")
    assert run.code == 1
    assert run.out.startswith("Qwen/Qwen3-32B-FP8: measure first")
    assert run.err.startswith("dpd: x.svg is not written: no time model for block-scaled fp8 weights")


def test_of_several_endpoints_each_plot_is_tried(dpd: Dpd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpd_infra.cli.advise.advise", is_worked)
    Path("t-qwen-72b-chat.svg").mkdir()
    prod = Path(__file__).resolve().parents[3] / "stacks" / "Pulumi.prod.yaml"
    run = dpd("advise", str(prod), *LOAD, "--plot", "t.svg")
    assert (run.code, run.err) == (2, "dpd: --plot t-qwen-72b-chat.svg: it is a folder; name a file in it\n")
