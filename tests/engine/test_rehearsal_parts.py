"""The parts of the simulation that need no engine: wire format, comparison, wait annotation, display, and the account's file."""

from __future__ import annotations

import asyncio
import io
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pulumi
import pytest
from google.protobuf import empty_pb2, json_format
from hypothesis import given
from hypothesis import strategies as st
from pulumi.automation.events import EngineEvent
from pulumi.runtime.proto import language_pb2
from rich.console import Console

from dpd_infra.plan.project import Project
from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.account import AccountDamaged, Resource
from dpd_infra.rehearsal.channel import own_channel
from dpd_infra.rehearsal.checkpoint import Checkpoint, StateDamaged
from dpd_infra.rehearsal.diff import Change, compare
from dpd_infra.rehearsal.engine import Diagnostic, Outcome
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.host import LanguageHost
from dpd_infra.rehearsal.program import ProgramRun
from dpd_infra.rehearsal.progress import ProgressDisplay
from dpd_infra.rehearsal.runner import failure_message
from dpd_infra.rehearsal.waiting import parse, timeout_of
from dpd_infra.rehearsal.wire import UNKNOWN, Secret, conceal, decode, encode, overlay, reveal
from dpd_infra.rehearsal.workspace import ProjectFiles, ProjectNotFound
from dpd_infra.spec.stack_file import find_stack_file

KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12) | st.just(UNKNOWN)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4) | inner.map(Secret), max_leaves=12
)
PLAIN = st.recursive(st.booleans() | st.integers() | st.text(max_size=6), lambda inner: st.lists(inner, max_size=4), max_leaves=8)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_encoded_comes_back_the_same(values: dict[str, Any]) -> None:
    assert decode(encode(values)) == values


def test_the_wire_uses_pulumis_signatures() -> None:
    # Pulumi's own documents: the secret signature, and the text of an unknown value (sdk resource/properties).
    plain = json_format.MessageToDict(encode({"a": Secret("s"), "b": UNKNOWN}))
    assert plain == {
        "a": {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "s"},
        "b": "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    }


@given(VALUES.filter(lambda value: value is not None))
def test_concealing_leaves_no_secret_and_revealing_leaves_no_wrapper(value: Any) -> None:
    hidden = Secret({"inside": [value, "correct-horse"]})
    assert "correct-horse" not in str(conceal([hidden]))
    assert reveal([hidden]) == [{"inside": [reveal(value), "correct-horse"]}]
    assert "Secret(" not in repr(reveal([hidden]))
    assert conceal(hidden) == conceal(Secret(hidden.value)), "the same secret conceals to the same text"


def test_an_overlay_adds_beside_what_is_there_and_keeps_a_secret_secret() -> None:
    assert overlay({"a": {"x": 1}, "b": 2}, {"a": {"y": 3}}) == {"a": {"x": 1, "y": 3}, "b": 2}
    assert overlay({"a": Secret({"x": 1})}, {"a": {"y": 3}}) == {"a": Secret({"x": 1, "y": 3})}


@given(st.dictionaries(st.sampled_from("abcd"), PLAIN, max_size=4))
def test_a_value_never_differs_from_itself(value: dict[str, Any]) -> None:
    assert not compare(value, value, replace_on=("a",), unordered=("b",)).changes


def test_a_difference_names_each_path_and_what_forces_a_replacement() -> None:
    old = {"vpc": {"ids": ["a", "b"], "public": True}, "tags": {"k8s.io/x": "1"}, "gone": 1}
    new = {"vpc": {"ids": ["a", "c", "d"], "public": True}, "tags": {"k8s.io/x": "2"}, "later": UNKNOWN}
    found = compare(old, new, replace_on=("vpc",))
    assert found.changes == {
        "gone": Change.DELETE,
        "later": Change.ADD,
        'tags["k8s.io/x"]': Change.UPDATE,
        "vpc.ids[1]": Change.UPDATE,
        "vpc.ids[2]": Change.ADD,
    }
    assert found.replaces == {"vpc.ids[1]", "vpc.ids[2]"}
    assert found.top_level == ["gone", "later", "tags", "vpc"]


@given(st.lists(st.dictionaries(st.sampled_from("xy"), st.integers(0, 3), max_size=2), max_size=5), st.randoms())
def test_an_unordered_array_differs_by_content_only(items: list[dict[str, int]], random: Any) -> None:
    shuffled = random.sample(items, len(items))
    assert not compare({"a": items}, {"a": shuffled}, unordered=("a",)).changes
    assert compare({"a": items}, {"a": [*shuffled, {"x": 9}]}, unordered=("a",)).changes


@pytest.mark.parametrize(
    ("annotation", "status", "holds"),
    [
        ("jsonpath={.status.state}=DeploymentComplete", {"state": "DeploymentComplete"}, True),
        ("jsonpath={.status.state}=DeploymentComplete", {"state": "DeploymentFailed"}, False),
        ("jsonpath={.status.state}", {"state": "anything"}, True),
        ("jsonpath={.status.state}", {}, False),
        ("jsonpath={$.status.conditions[0].message}=ready", {"conditions": [{"message": "ready"}]}, True),
        ("jsonpath={.status['state']}=x", {"state": "x"}, True),
        ("jsonpath={.status[?(@=='a'||@=='b')]}", {"state": "b", "observedGeneration": 1}, True),
        ("jsonpath={.status[?(@=='a'||@=='b')]}", {"state": "c", "conditions": [{"type": "a"}]}, False),
        ("jsonpath={.status[?(@=='a')]}", {}, False),
        ("condition=Available", {"conditions": [{"type": "Available", "status": "True"}]}, True),
        ("condition=Available=False", {"conditions": [{"type": "Available", "status": "True"}]}, False),
        ('["condition=Available", "jsonpath={.status.n}=2"]', {"conditions": [{"type": "Available", "status": "True"}], "n": 2}, True),
        ('["condition=Available", "jsonpath={.status.n}=2"]', {"conditions": [{"type": "Available", "status": "True"}], "n": 3}, False),
    ],
)
def test_a_wait_holds_when_every_expression_does(annotation: str, status: dict[str, Any], holds: bool) -> None:
    assert all(wait.holds({"status": status}) for wait in parse(annotation)) is holds


@pytest.mark.parametrize("annotation", ["status=Ready", "jsonpath=.status.state", "jsonpath={.status[?(@.x)]}"])
def test_a_wait_that_the_provider_could_not_read_is_refused(annotation: str) -> None:
    with pytest.raises(SimulatedError):
        parse(annotation)


def test_the_resource_option_wins_over_the_annotation_and_ten_minutes_are_the_default() -> None:
    noted = {"metadata": {"annotations": {"pulumi.com/timeoutSeconds": "30"}}}
    assert [timeout_of(noted, 90), timeout_of(noted, 0), timeout_of({}, 0)] == [90, 30, 600]


def test_the_account_is_remembered_and_ids_are_never_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    account = SimulatedAccount(path)
    first = account.hex("vpc", "urn")
    account.add(Resource("aws:ec2/vpc:Vpc", first, {}, {"cidrBlock": "10.0.0.0/16"}, region="us-east-2"))
    again = SimulatedAccount(path)
    assert [vars(item) for item in again] == [vars(item) for item in account]
    assert again.hex("vpc", "urn") != first
    assert [item.name for item in tmp_path.iterdir()] == ["account.json"]
    with pytest.raises(SimulatedError, match="already exists"):
        again.add(Resource("aws:ec2/vpc:Vpc", first, {}, {}, region="us-east-2"))


def step(kind: str, op: str, name: str) -> EngineEvent:
    metadata = {"op": op, "urn": f"urn:pulumi:dev::p::aws:ec2/vpc:Vpc::{name}", "type": "aws:ec2/vpc:Vpc", "provider": ""}
    return EngineEvent.from_json({"sequence": 1, "timestamp": 1, kind: {"metadata": metadata}})


def test_without_a_terminal_each_finished_change_is_one_line() -> None:
    text = io.StringIO()
    with ProgressDisplay(Console(file=text, width=200)) as display:
        for op, name in (("create", "a"), ("same", "b"), ("replace", "c"), ("create-replacement", "c")):
            display(step("resourcePreEvent", op, name))
            display(step("resOutputsEvent", op, name))
        display(step("resOpFailedEvent", "create", "d"))
    lines = text.getvalue().splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["+ created a", "± replaced c"]
    assert display.summary == "1 created, 1 replaced, 1 unchanged"


def test_on_a_terminal_the_display_shows_counts_and_what_is_worked_on() -> None:
    text = io.StringIO()
    display = ProgressDisplay(Console(file=text, width=120, force_terminal=True, color_system=None), title="prod")
    display(step("resourcePreEvent", "create", "done"))
    display(step("resOutputsEvent", "create", "done"))
    for index in range(8):
        display(step("resourcePreEvent", "create", f"busy-{index}"))
    with display:
        pass
    shown = text.getvalue()
    assert "prod" in shown
    assert "+ 1 created" in shown
    assert "busy-7 (aws:ec2/vpc:Vpc)" in shown
    assert "and 2 more" in shown


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"no Pulumi\.yaml in"),
        ({"Pulumi.yaml": "runtime: python"}, "has no name"),
        ({"Pulumi.yaml": "name: [x"}, "cannot be read"),
        ({"Pulumi.yaml": "- x"}, "is not a mapping"),
        ({"Pulumi.yaml": "name: x"}, "stacks with a file: none"),
        ({"Pulumi.yaml": "name: x", "Pulumi.a.yaml": ""}, "stacks with a file: a"),
    ],
)
def test_what_is_wrong_with_a_projects_files_is_one_line(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ProjectNotFound, match=message) as caught:
        ProjectFiles.read(tmp_path, "dev")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["dev", "acme/dev", "acme/shop/dev", "organization/shop/dev"])
def test_a_stack_is_one_however_it_is_named(tmp_path: Path, name: str) -> None:
    # pulumi 3.272, pkg/backend/diy: a backend of files has one organization, and takes a stack's name alone.
    (tmp_path / "Pulumi.yaml").write_text("name: shop", encoding="utf-8")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {a: 1}", encoding="utf-8")
    found = ProjectFiles.read(tmp_path, name)
    assert (found.stack, found.stack_file.name) == ("dev", "Pulumi.dev.yaml")
    assert find_stack_file(tmp_path, name) == tmp_path / "Pulumi.dev.yaml"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme/other/dev", r"acme/other/dev is a stack of project other, and .*Pulumi\.yaml is that of project shop"),
        ("../dev", r"there is no .*; stacks with a file: dev"),
        ("acme/shop/test/dev", r"there is no .*|is a stack of"),
    ],
)
def test_a_name_that_is_no_stack_of_the_project_is_one_line(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop", encoding="utf-8")
    (tmp_path / "Pulumi.dev.yaml").write_text("", encoding="utf-8")
    with pytest.raises(ProjectNotFound, match=message) as caught:
        ProjectFiles.read(tmp_path, name)
    assert "\n" not in str(caught.value)


def test_an_engine_that_went_before_the_program_did_is_no_cause() -> None:
    gone = "an unhandled error occurred: Resource monitor has terminated, shutting down"
    outcome = Outcome("up", error="error: waiting for EKS Add-On (test:coredns) create: DEGRADED")
    outcome.diagnostics.append(Diagnostic("error", gone, ""))
    assert failure_message(outcome) == "error: waiting for EKS Add-On (test:coredns) create: DEGRADED"


def test_where_the_engine_tells_nothing_the_lost_connection_is_the_cause() -> None:
    outcome = Outcome("up", error="error: run bailed", broken_off="the engine stopped answering before the program ended: refused")
    assert "refused" in failure_message(outcome)
    outcome.diagnostics.append(Diagnostic("error", "operation error: quota", "urn:pulumi:dev::shop::aws:ec2/vpc:Vpc::vpc"))
    assert "refused" not in failure_message(outcome)


def _engine_on(port: int) -> tuple[grpc.Server, int]:
    method = grpc.unary_unary_rpc_method_handler(
        lambda _request, _context: empty_pb2.Empty(), empty_pb2.Empty.FromString, empty_pb2.Empty.SerializeToString
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Engine", {"Ask": method}),))
    taken = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, taken


def _ask(channel: grpc.Channel) -> None:
    channel.unary_unary("/test.Engine/Ask", empty_pb2.Empty.SerializeToString, empty_pb2.Empty.FromString)(empty_pb2.Empty(), timeout=5)


def test_an_engine_on_the_port_of_one_that_is_gone_is_reached() -> None:
    first, port = _engine_on(0)
    with own_channel(f"127.0.0.1:{port}") as earlier:
        _ask(earlier)
        first.stop(0).wait()
        with pytest.raises(grpc.RpcError):
            _ask(earlier)
        second, _ = _engine_on(port)
        with own_channel(f"127.0.0.1:{port}") as later:
            _ask(later)
        second.stop(0).wait()


class _Agreeable(grpc.GenericRpcHandler):
    """An engine that takes everything: no bytes are an empty message of any type."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:  # noqa: ARG002 - gRPC's name
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")


@pytest.mark.parametrize("gone", [True, False], ids=["the engine is gone", "the engine is there"])
def test_a_call_that_fails_in_the_programs_own_line_is_the_programs_only_while_the_engine_answers(gone: bool) -> None:
    engine = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    engine.add_generic_rpc_handlers((_Agreeable(),))
    port = engine.add_insecure_port("127.0.0.1:0")
    engine.start()
    service, of_the_program = _engine_on(0)
    service.stop(0).wait()

    def program() -> None:
        if gone:
            engine.stop(0).wait()
        with own_channel(f"127.0.0.1:{of_the_program}") as channel:
            _ask(channel)

    run = ProgramRun(program, Project())
    address = f"127.0.0.1:{port}"
    response = LanguageHost(run).Run(
        language_pb2.RunRequest(monitor_address=address, args=[address], project="shop", stack="dev", parallel=4),
        None,  # pyright: ignore[reportArgumentType] - a host looks at no context
    )
    engine.stop(0).wait()
    if gone:
        assert (run.failure, response.bail) == (None, True)
        assert "the engine stopped answering before the program ended" in (run.broken_off or "")
    else:
        assert run.broken_off is None
        assert "failed to connect" in (run.failure or "")
        assert response.error == run.failure


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 1}',
        '{"serial": null, "resources": []}',
        '{"serial": 1, "resources": 1}',
        '{"serial": 1, "resources": [[]]}',
        '{"serial": 1, "resources": [{"type": "t"}]}',
        '{"serial": 1, "resources": [{"type": "t", "id": "i", "inputs": [], "outputs": {}}]}',
        '{"serial": 1, "resources": [{"type": [], "id": "i", "inputs": {}, "outputs": {}}]}',
    ],
)
def test_a_damaged_account_is_one_report_with_its_file_and_the_way_out(tmp_path: Path, text: str) -> None:
    file = tmp_path / "account.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AccountDamaged) as raised:
        SimulatedAccount(file)
    assert str(file) in str(raised.value)
    assert "`dpd rehearse --reset`" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert file.read_text(encoding="utf-8") == text


BROKEN_STATES = [
    "{",
    "[]",
    "null",
    '{"checkpoint": 3}',
    '{"checkpoint": {"latest": [1]}}',
    '{"checkpoint": {"latest": {"resources": [1]}}}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", BROKEN_STATES, ids=range(len(BROKEN_STATES)))
def test_a_damaged_state_is_one_report_and_gives_way_to_the_one_before_it(tmp_path: Path, text: str) -> None:
    state = Checkpoint(tmp_path / "dev.json")
    state.write(text)
    for ask in (lambda: state.resources, lambda: state.pending, lambda: state.without(())):
        with pytest.raises(StateDamaged) as raised:
            ask()
        assert str(state.file) in str(raised.value)
        assert "`dpd rehearse --reset`" in str(raised.value)
        assert "\n" not in str(raised.value)
    state.backup.write_text('{"checkpoint": {"latest": {"resources": [{"urn": "urn:pulumi:dev::shop::a:b:C::x"}]}}}', encoding="utf-8")
    assert state.restore()
    assert [item["urn"] for item in state.resources] == ["urn:pulumi:dev::shop::a:b:C::x"]


@pytest.mark.parametrize("error", [KeyboardInterrupt("stop"), asyncio.CancelledError("stop"), GeneratorExit("stop"), BaseException("stop")])
def test_whatever_a_program_raises_is_its_failure(error: BaseException) -> None:
    def program() -> None:
        raise error

    # What is not caught ends the thread that the engine waits for, and the rehearsal never.
    run = ProgramRun(program, Project())
    with pytest.raises(pulumi.RunError, match="stop"):
        run()
    assert (run.failure or "").startswith(f"{type(error).__name__}: stop (test_rehearsal_parts.py, line ")
