"""`dpd advise`: a verdict for each endpoint, as text, as JSON and with a plot."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from dpd_infra.cli.advise import main

PROD = Path(__file__).resolve().parents[3] / "stacks" / "Pulumi.prod.yaml"
PLAIN = ["--model", "Llama-3.3-70B-Instruct", "--instance-type", "ml.p5.48xlarge", "--max-model-len", "32768"]
CHAT = ["--rate", "2.5", "--input-tokens", "6000", "--variation", "0.4", "--output-tokens", "400", "--requests", "300"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_verdict_comes_first_and_both_ways_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *PLAIN, *CHAT)
    assert code == 0
    assert out.startswith("Llama-3.3-70B-Instruct: disaggregate\n")
    assert "On the same 16 GPUs" in out
    assert "TTFT gets worse: " in out
    assert "no gain in throughput" in out
    assert "Routing threshold: " in out
    assert "Routing strategy: prefixaware" in out
    assert "PD buffer: 819 chunks" in out
    assert "Simulated, 270 requests" in out


def test_a_no_is_a_verdict_and_not_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *PLAIN, *CHAT, "--offline", "--no-streaming")
    assert code == 0
    assert out.startswith("Llama-3.3-70B-Instruct: do not disaggregate\n  x a batch job")


def test_every_endpoint_of_a_stack_file_is_judged_with_its_own_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(PROD), *CHAT, "--json")
    found = json.loads(out)["endpoints"]
    assert code == 0
    assert set(found) == {"llama-70b-documents", "qwen-72b-chat"}
    assert found["llama-70b-documents"]["strategy"]["recommended"] == "roundrobin"
    assert found["qwen-72b-chat"]["verdict"]["counterfactual"]["colocated"]["gpus"] == 16


def test_nodes_on_the_command_line_win(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(PROD), "--endpoint", "qwen-72b-chat", *CHAT, "--nodes", "1")
    assert "do not disaggregate\n  x one node is not enough" in out


def test_the_plot_is_written_one_file_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, str(PROD), *CHAT, "--plot", str(tmp_path / "t.svg"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t-llama-70b-documents.svg", "t-qwen-72b-chat.svg"]
    for path in tmp_path.iterdir():
        assert ET.parse(path).getroot().tag.endswith("svg")


def test_the_same_seed_gives_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (run(capsys, *PLAIN, *CHAT, "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


def test_without_the_library_one_line_says_how_to_get_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpd_infra.plan.advice.second_opinion.find_spec", lambda _name: None)
    _, out, _ = run(capsys, *PLAIN, *CHAT)
    assert out.splitlines()[-1].startswith("For a second opinion of the times: pip install 'dpd-infra[models]'")
    assert "dpd-infra[models]" not in run(capsys, *PLAIN, *CHAT, "--no-library")[1]


def test_no_simulation_where_none_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *PLAIN, *CHAT[:-1], "0")
    assert "No simulation: not asked for" in out


def test_what_is_not_modelled_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--model", "Qwen/Qwen3-32B-FP8", "--instance-type", "ml.p5.48xlarge", *CHAT)
    assert out.startswith("Qwen/Qwen3-32B-FP8: measure first")
    assert "Not modelled: no time model for block-scaled fp8 weights" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (PLAIN, 2, "a load is needed"),
        ([*PLAIN, *CHAT, "--requests", "-1"], 2, "argument --requests"),
        ([*PLAIN, *CHAT[2:]], 2, "--rate or --concurrency"),
        (
            ["--model", "Llama-3.3-70B", "--instance-type", "ml.p5.48xlarge", "--max-model-len", "100", *CHAT],
            1,
            "too long for max-model-len",
        ),
    ],
)
def test_a_call_that_is_wrong_says_so_in_one_line(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
