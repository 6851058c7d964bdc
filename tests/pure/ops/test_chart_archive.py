"""A packed chart depends on its files alone, holds what it depends on, and is written whole or not at all."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.ops.chart_archive import ChartError, Subchart, _stored_gzip, packed, read_tar, unwrapped, verified, write_archive
from tests.pure.ops.chart_repository import subchart, tgz, under

BLOCK = 0xFFFF


def as_bytes(files: dict[str, str]) -> dict[str, bytes]:
    return {path: content.encode() for path, content in files.items()}


def chart(*dependencies: str, **held: dict[str, str]) -> dict[str, bytes]:
    """A chart with these lines under `dependencies:` and these subcharts by folder."""
    text = "apiVersion: v2\nname: parent\nversion: 1.2.3\n" + ("dependencies:\n" + "\n".join(dependencies) if dependencies else "")
    files = {"Chart.yaml": text}
    for folder, files_of in held.items():
        files |= under(f"charts/{folder}", files_of)
    return as_bytes(files)


paths = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}\.yaml", fullmatch=True)


@given(st.dictionaries(paths, st.binary(max_size=200), max_size=8))
def test_what_is_packed_is_what_is_read_back(files: dict[str, bytes]) -> None:
    whole = {**chart(), **files}
    assert unwrapped(read_tar(packed(whole))) == whole


@given(st.dictionaries(paths, st.binary(max_size=50), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_reach_the_archive(files: dict[str, bytes], random: Random) -> None:
    whole = list({**chart(), **files}.items())
    shuffled = random.sample(whole, len(whole))
    assert packed(dict(shuffled)) == packed(dict(whole))


def test_an_archive_carries_no_time_no_owner_and_one_mode() -> None:
    content = packed(chart())
    assert content[4:8] == b"\0\0\0\0"  # RFC 1952: the time of the original file
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        seen = {(member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode) for member in archive}
    assert seen == {(0, 0, 0, "", "", 0o644)}


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 7])
def test_the_stored_gzip_is_one_that_gzip_reads(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    if size:
        assert gzip.decompress(_stored_gzip(data)) == data
    assert len(_stored_gzip(data)) == 18 + size + 5 * -(-size // BLOCK)  # RFC 1952 and 1951: 18 bytes around, 5 a block


def test_a_chart_that_holds_what_it_names_is_accepted() -> None:
    content = packed(
        chart(
            '  - {name: one, version: "1.0.0", repository: "oci://somewhere"}',
            '  - {name: two, version: "v2.0.0", repository: ""}',
            '  - {name: three, version: "~3.1", repository: ""}',
            one=subchart("one", "v1.0.0"),
            second=subchart("two", "2.0.0"),
            three=subchart("three", "3.1.4"),
        )
    )
    subcharts = (Subchart("one", "v1.0.0", "oci://somewhere"), Subchart("two", "2.0.0", ""), Subchart("three", "3.1.4", ""))
    assert verified(content) == ("parent", "1.2.3", subcharts)


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({}, "depends on one 1.0.0 and holds none of that name"),
        ({"one": subchart("one", "1.0.1")}, "depends on one 1.0.0 and holds one 1.0.1"),
        ({"one": subchart("other", "1.0.0")}, "depends on one 1.0.0 and holds none of that name"),
    ],
)
def test_a_chart_without_what_it_names_is_refused(held: dict[str, dict[str, str]], told: str) -> None:
    with pytest.raises(ChartError, match=told):
        verified(packed(chart('  - {name: one, version: "1.0.0"}', **held)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: [", "not YAML"),
        ("name: parent", "no name and version"),
        ("- a list", "no name and version"),
        ("name: a\nversion: 1.0.0\ndependencies: [{name: b}]", "a dependency without name and version"),
        ("name: a\nversion: 1.0.0\ndependencies: [b]", "a dependency without name and version"),
    ],
)
def test_a_chart_yaml_that_says_too_little_is_refused(text: str, told: str) -> None:
    with pytest.raises(ChartError, match=told):
        verified(tgz({"Chart.yaml": text}, "chart"))


def test_files_that_are_no_chart_archive_are_refused() -> None:
    with pytest.raises(ChartError, match="not a chart archive"):
        verified(b"<html>not found</html>")
    with pytest.raises(ChartError, match=r"no Chart\.yaml"):
        verified(tgz({"values.yaml": ""}, "chart"))
    whole = packed(chart())
    with pytest.raises(ChartError, match="not a chart archive"):
        verified(whole[: len(whole) // 2])


@pytest.mark.parametrize("name", ["../outside", "chart/../../outside", "/etc/passwd"])
def test_an_archive_that_leaves_its_folder_is_refused(name: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(ChartError, match="leaves its folder"):
        read_tar(buffer.getvalue())


def test_a_link_within_the_archive_is_followed_and_one_out_of_it_refused() -> None:
    def linked(target: str) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            real = tarfile.TarInfo("chart/real.yaml")
            real.size = 4
            archive.addfile(real, io.BytesIO(b"true"))
            link = tarfile.TarInfo("chart/link.yaml")
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        return buffer.getvalue()

    assert read_tar(linked("real.yaml")) == {"chart/real.yaml": b"true", "chart/link.yaml": b"true"}
    with pytest.raises(ChartError):
        read_tar(linked("/etc/hostname"))


def test_an_archive_is_replaced_only_on_demand(tmp_path: Path) -> None:
    target = tmp_path / "charts" / "chart.tgz"
    assert write_archive(target, b"one", force=False) is True
    assert write_archive(target, b"one", force=False) is False
    with pytest.raises(ChartError, match="other content: --force"):
        write_archive(target, b"two", force=False)
    assert target.read_bytes() == b"one"
    assert write_archive(target, b"two", force=True) is True
    assert target.read_bytes() == b"two"
    assert [path.name for path in target.parent.iterdir()] == ["chart.tgz"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ChartError, match="No space left on device"):
        write_archive(tmp_path / "chart.tgz", b"content", force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("a file where a folder should be")
    with pytest.raises(ChartError, match="cannot write"):
        write_archive(tmp_path / "charts" / "chart.tgz", b"content", force=False)
