"""YAML with positions, read as Pulumi or as kubectl reads it: every value knows its place, and hostile input ends in one clear report.

Both readers are Go programs (yaml.v3, and Kubernetes' fork of yaml.v2): a key stands once, `<<` merges, numbers are Go's. Text is limited
in size, and each document in depth and in what its anchors expand to, so that reading takes bounded time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, NoReturn

import yaml

from dpd_infra.spec.finding import Finding, Path
from dpd_infra.spec.yaml_builder import Builder, Place, YamlProblem

MAX_BYTES = 16 * 1024 * 1024
"""Larger files are refused: a stack file is some kilobytes, and the API server takes no object over 3 MiB."""

MAX_DOCUMENTS = 20_000
"""What one file may hold."""

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


class Dialect(Enum):
    """Whose reading of an unquoted word is followed."""

    PULUMI = "pulumi"
    """yaml.v3: only `true` and `false` are booleans; `yes`, `no`, `on`, `off`, `y` and `n` are text."""
    KUBERNETES = "kubernetes"
    """sigs.k8s.io/yaml, which kubectl uses: all of those are booleans, and a key that is one becomes `true` or `false`."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text, 1-based."""

    line: int
    column: int


class SourceText:
    """A file's text, decoded, and its lines."""

    def __init__(self, text: str, encoding: str = "utf-8") -> None:
        self.text = text
        self.encoding = encoding

    @cached_property
    def lines(self) -> list[str]:
        """The lines as YAML counts them, without their ends."""
        return _LINE_BREAK.split(self.text)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: plain data and where each part of it stands."""

    data: Any
    source: SourceText = field(repr=False)
    file: str = ""
    index: int = 0
    """Which document of its file, from 0."""
    root: Place = field(default=Place(0, 0, None, 0, 0), repr=False)

    @property
    def text(self) -> str:
        """The whole file's text."""
        return self.source.text

    def locate(self, path: Path) -> Position:
        """Where a key or an item stands, or where its nearest ancestor does."""
        place, _ = self._walk(path)
        return Position(place.line + 1, place.column + 1)

    def placed(self, finding: Finding) -> Finding:
        """A finding with its place in this file: where its path stands, or the nearest to it that does."""
        position = self.locate(finding.path)
        return replace(finding, file=self.file, line=position.line, column=position.column)

    def span(self, path: Path) -> tuple[int, int] | None:
        """Where the value of a key or an item begins and ends in the text, characters; None where it does not stand there by itself."""
        place, whole = self._walk(path)
        return (place.start, place.end) if whole and place.start >= 0 else None

    def source_line(self, line: int) -> str:
        """The text of a line, 1-based, without its end; empty where there is none."""
        lines = self.source.lines
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _walk(self, path: Path) -> tuple[Place, bool]:
        place = self.root
        for step in path:
            parts = place.parts
            if isinstance(parts, dict) and step in parts:
                place = parts[str(step)]
            elif isinstance(parts, list) and isinstance(step, int) and 0 <= step < len(parts):
                place = parts[step]
            else:
                return place, False
        return place, True


def load_document(text: str | bytes | SourceText, file: str = "", dialect: Dialect = Dialect.PULUMI) -> Document:
    """Read a text that holds one document. An empty text is a document whose data is None.

    Raises `YamlProblem` for anything that is not one readable YAML document.
    """
    source = text if isinstance(text, SourceText) else decode(text, file)
    found: Document | None = None
    for document in load_documents(source, file, dialect):
        if document.index > 0:
            raise YamlProblem("more than one document where one is expected", line=document.root.line + 1, fix="keep one stack in a file")
        found = document
    return found or Document(None, source, file)


def load_documents(text: str | bytes | SourceText, file: str = "", dialect: Dialect = Dialect.PULUMI) -> Iterator[Document]:
    """Read every document of a text, in order, each only when it is asked for. Raises `YamlProblem` at the first that cannot be read."""
    source = text if isinstance(text, SourceText) else decode(text, file)
    try:
        yield from _read(source, file, dialect)
    except YamlProblem as problem:
        problem.file = file
        raise


def _read(source: SourceText, file: str, dialect: Dialect) -> Iterator[Document]:
    try:
        parser = _BASE(source.text)
    except yaml.YAMLError as error:
        _refuse(error, source)
    except UnicodeError as error:
        raise YamlProblem("not text: half of a surrogate pair stands in it", fix="save the file as UTF-8") from error
    try:
        builder = Builder(parser, kubernetes=dialect is Dialect.KUBERNETES)
        for index, (data, root) in enumerate(builder.documents(MAX_DOCUMENTS)):
            yield Document(data, source, file, index, root)
    except yaml.YAMLError as error:
        _refuse(error, source)
    except YamlProblem as problem:
        if template := _template(source, problem.line):
            raise template from problem
        raise
    finally:
        parser.dispose()


def decode(text: str | bytes, file: str = "") -> SourceText:
    """The text of a file. Raises `YamlProblem` for one that is too large, in an encoding that YAML readers do not take, or binary."""
    try:
        return _decoded(text)
    except YamlProblem as problem:
        problem.file = file
        raise


def _decoded(text: str | bytes) -> SourceText:
    if len(text) > MAX_BYTES:
        raise YamlProblem(f"larger than {MAX_BYTES // 1024**2} MiB", fix="split it, or name the files you mean")
    encoding = "utf-8"
    if isinstance(text, bytes):
        if text.startswith(_UTF32):
            raise YamlProblem("UTF-32 text", fix="save the file as UTF-8")
        raw = text
        if raw[:2] in _UTF16:
            encoding, raw = _UTF16[raw[:2]], raw[2:]
        elif raw.startswith(b"\xef\xbb\xbf"):
            encoding, raw = "utf-8-sig", raw[3:]
        codec = encoding.removesuffix("-sig")
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError as error:
            before = raw[: error.start].decode(codec, errors="replace")
            what = f"not {codec[:6].rstrip('-').upper()} text: byte {error.start + len(text) - len(raw)} cannot be decoded"
            raise YamlProblem(what, **_position(before, len(before)), fix="save the file as UTF-8") from error
    if (at := text.find("\x00")) >= 0:
        fix = (
            "save the file as UTF-8: this looks like UTF-16"
            if text[1:2] == "\x00" or at == 0
            else "remove it: the file is binary or damaged"
        )
        raise YamlProblem("a NUL character", **_position(text, at), fix=fix)
    return SourceText(text, encoding)


def _position(text: str, at: int) -> dict[str, int]:
    """Line and column of a character, from 1."""
    return {"line": text.count("\n", 0, at) + 1, "column": at - text.rfind("\n", 0, at)}


def _refuse(error: yaml.YAMLError, source: SourceText) -> NoReturn:
    """A parser's error as a `YamlProblem`, in words about the file."""
    if isinstance(error, yaml.reader.ReaderError):
        character = error.character if isinstance(error.character, str) else chr(error.character)
        at = source.text.find(character)
        what = f"a control character, U+{ord(character):04X}"
        raise YamlProblem(what, **_position(source.text, max(at, 0)), fix="remove it") from error
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "context", None) or str(error).splitlines()[0]
    if mark is None:
        raise YamlProblem(f"not YAML: {problem}") from error
    line, column = mark.line + 1, mark.column + 1
    if template := _template(source, line):
        raise template from error
    text = source.lines[mark.line] if mark.line < len(source.lines) else ""
    if text[mark.column : mark.column + 1] == "\t" or re.match(r" *\t", text):
        raise YamlProblem("a tab where YAML wants spaces", line=line, column=column, fix="indent with spaces") from error
    fix = _FIXES.get(problem, "")
    raise YamlProblem(f"not YAML: {problem}", line=line, column=column, fix=fix) from error


def _template(source: SourceText, line: int) -> YamlProblem | None:
    """Said instead of a problem whose line, or the one above it, holds an unrendered Helm template."""
    for number in (line, line - 1):
        if 0 < number <= len(source.lines) and (at := source.lines[number - 1].find("{{")) >= 0:
            fix = "render it first: helm template … | dpd check -"
            return YamlProblem("not YAML but a template", line=number, column=at + 1, fix=fix)
    return None


_FIXES = {
    "mapping values are not allowed in this context": "put a value with a colon in it in quotes, or mend the indentation",
    "did not find expected key": "mend the indentation, or close what was opened above",
    "could not find expected ':'": "write `key: value`, or close the quote that was opened above",
    "found unexpected end of stream": "close the quote or bracket that was opened above",
    "did not find expected ',' or ']'": "close the list, or put a comma between its items",
    "did not find expected ',' or '}'": "close the mapping, or put a comma between its entries",
}


__all__ = ["Dialect", "Document", "Place", "Position", "SourceText", "YamlProblem", "decode", "load_document", "load_documents"]
