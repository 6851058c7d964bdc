"""`dpd size`: with a stack file, with a manifest, and without any file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.cli.advise import main as advise
from dpd_infra.cli.size import main
from dpd_infra.plan.sizing import quantity as quantity_module
from dpd_infra.plan.sizing.report import size_endpoint
from dpd_infra.plan.sizing.text import short_form
from dpd_infra.plan.sizing.workload import Lengths, Workload
from dpd_infra.sizing import Changes, NotSizedError, manifests, short_sizing, sized_endpoint
from dpd_infra.spec.yaml_source import YamlProblem

ROOT = Path(__file__).resolve().parents[3]
PROD = ROOT / "stacks" / "Pulumi.prod.yaml"
PLAIN = ["--model", "Llama-3.3-70B-Instruct", "--instance-type", "ml.p5.48xlarge", "--max-model-len", "16384"]
LOAD = ["--rate", "3", "--input-tokens", "4096", "--output-tokens", "256"]
MANIFEST = """
apiVersion: inference.sagemaker.aws.amazon.com/v1
kind: InferenceEndpointConfig
metadata: {name: llama}
spec:
  modelName: llama-70b
  instanceType: ml.p5.48xlarge
  invocationEndpoint: v1/completions
  modelSourceConfig: {modelSourceType: s3, modelLocation: Llama-3.3-70B-Instruct, s3Storage: {bucketName: b, region: us-east-2}}
  worker:
    image: lmcache/vllm-openai:v0.4.3
    args: [--tensor-parallel-size, "8", --max-model-len, 16k, --gpu-memory-utilization=0.7, --kv-cache-dtype, fp8]
    environmentVariables: [{name: PD_BUFFER_SIZE, value: "17179869184"}]
  pdSpec:
    prefillSpec: {replicas: 2, args: [--max-num-seqs, "8"]}
    decodingSpec: {replicas: 1, args: [--max-num-seqs, "64"]}
    routingThreshold: 2048
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def values(report: dict[str, Any]) -> dict[str, float]:
    return {each["name"]: each["value"] for section in report["sections"] for each in section["quantities"]}


def test_every_endpoint_of_a_stack_file_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(PROD))
    assert code == 0
    assert out.startswith(
        "llama-70b-documents: meta-llama/Llama-3.3-70B-Instruct on ml.p5en.48xlarge, TP 8, 3 prefill + 1 decode = 32 GPUs, 4 nodes"
    )
    assert "qwen-72b-chat: Qwen/Qwen2.5-72B-Instruct on ml.p5.48xlarge" in out
    assert out.count("kv_bytes_per_token") == 2


def test_one_endpoint_as_json_carries_formula_source_and_confidence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(PROD), "--endpoint", "qwen-72b-chat", "--json")
    data = json.loads(out)
    assert code == 0
    assert list(data["endpoints"]) == ["qwen-72b-chat"]
    first = data["endpoints"]["qwen-72b-chat"]["sections"][0]["quantities"][0]
    assert first["value"] == 40_960
    assert first["unit"] == "bytes"
    assert first["confidence"] == "exact"
    assert first["formula"].startswith("2 * L * ceil(H_kv / tensor_parallel_size)")
    assert first["sources"]


def test_without_a_file_a_model_and_an_instance_type_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *PLAIN, "--json")
    assert code == 0
    found = values(json.loads(out)["endpoints"]["Llama-3.3-70B-Instruct"])
    assert found["chunk_bytes"] == 10_485_760
    assert found["buffer_chunks"] == 819
    assert "prefill_seconds" not in found


def test_a_load_adds_times_rates_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *PLAIN, *LOAD, "--price", "ml.p5.48xlarge=60", "--json")
    found = values(json.loads(out)["endpoints"]["Llama-3.3-70B-Instruct"])
    assert found["cost_per_hour"] == 120
    assert found["cost_per_million_tokens"] == pytest.approx(120 / (3 * 256 * 3600) * 1e6)
    assert found["prefillers_per_decoder"] == pytest.approx(1.74, rel=0.05)


def test_explain_shows_the_working_of_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *PLAIN, *LOAD, "--explain")
    assert "kv_bytes_per_token = 2 * L * ceil(H_kv / tensor_parallel_size) * d * 2 bytes" in out
    assert "L = 80, H_kv = 8" in out
    assert "source: LMCache 0.4.3" in out
    assert "linear_seconds = hypot(weights" in out


def test_published_figures_stand_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *PLAIN)
    assert "published 22% to 66%; ours" in out


def test_what_a_manifest_says_is_what_is_sized(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(MANIFEST)
    (name, manifest, nodes, *_), *rest = manifests(path)
    assert (name, nodes, rest) == ("llama", None, [])
    sized = sized_endpoint(name, manifest)
    serving = sized.serving
    assert (serving.prefillers, serving.decoders, serving.max_model_len) == (2, 1, 16_000)
    assert (serving.prefill.max_num_seqs, serving.decode.max_num_seqs) == (8, 64)
    assert serving.decode.gpu_memory_utilization == 0.7
    assert serving.pd_buffer_bytes == 17_179_869_184
    assert serving.kv_format.value == "fp8"
    assert (sized.routing_threshold, sized.invocation_endpoint, sized.disaggregated) == (2048, "v1/completions", True)


def test_the_command_line_wins_over_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(MANIFEST)
    _, out, _ = run(capsys, str(path), "--prefillers", "3", "--instance-type", "ml.p5en.48xlarge", "--kv-cache-dtype", "bf16")
    assert "on ml.p5en.48xlarge, TP 8, 3 prefill + 1 decode" in out
    assert "40.00 KiB" in out


def test_an_endpoint_that_is_not_disaggregated_is_sized_as_if_it_were(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(MANIFEST.split("  pdSpec:", maxsplit=1)[0] + "  replicas: 4\n")
    _, manifest, *_ = next(iter(manifests(path)))
    sized = sized_endpoint("llama", manifest)
    assert not sized.disaggregated
    assert (sized.serving.prefillers, sized.serving.decoders) == (3, 1)


def test_nodes_are_counted_from_the_groups_of_the_stack_file() -> None:
    assert {name: nodes for name, _, nodes, *_ in manifests(PROD)} == {"llama-70b-documents": 6, "qwen-72b-chat": 3}


@pytest.mark.parametrize(
    ("option", "name", "value"), [("--pd-buffer-bytes", "pd_buffer_bytes", 10 * 1024**3), ("--gpu-memory-utilization", "", 0.83)]
)
def test_auto_is_worked_out(option: str, name: str, value: float, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *PLAIN, option, "auto", "--json")
    report = json.loads(out)["endpoints"]["Llama-3.3-70B-Instruct"]
    if name:
        assert values(report)[name] == value
    else:
        assert values(report)["engine_bytes"] == int(value * 80 * 1024**3)
    assert not any("does not fit" in problem for problem in report["problems"])


def test_a_config_json_stands_in_for_a_model_of_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(__file__).with_name("configs") / "meta-llama--Meta-Llama-3.1-70B.json"
    _, out, _ = run(capsys, "--config", str(config), "--model", "ours", "--instance-type", "ml.p5.48xlarge", "--json")
    assert values(json.loads(out)["endpoints"]["ours"])["kv_bytes_per_token"] == 40_960


def test_a_trace_gives_the_lengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("ContextTokens,GeneratedTokens\n4096,256\n4096,256\n")
    _, out, _ = run(capsys, *PLAIN, "--rate", "3", "--trace", str(trace), "--json")
    _, same, _ = run(capsys, *PLAIN, *LOAD, "--json")
    assert json.loads(out) == json.loads(same)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name a FILE, or --model and --instance-type"),
        (["nowhere.yaml"], 2, "no such file"),
        (["--model", "unknown", "--instance-type", "ml.p5.48xlarge"], 2, "the catalog does not know 'unknown'"),
        (["--model", "Llama-3.3-70B", "--instance-type", "ml.c5.4xlarge"], 2, "knows no GPUs of 'ml.c5.4xlarge'"),
        ([*PLAIN, "--rate", "3"], 2, "a load has prompts and answers"),
        ([*PLAIN, "--input-tokens", "100", "--output-tokens", "10"], 2, "--rate or --concurrency"),
        ([*PLAIN, "--rate", "1", "--concurrency", "1", "--input-tokens", "9", "--output-tokens", "9"], 2, "either requests_per_second or"),
        ([*PLAIN, "--input-tokens", "9", "--input-percentiles", "50:9"], 2, "exclude each other"),
        ([*PLAIN, "--rate", "1", "--input-percentiles", "fifty", "--output-tokens", "9"], 2, "write 50:2000,90:8000"),
        ([*PLAIN, "--price", "sixty"], 2, "write TYPE=USD"),
        ([*PLAIN, "--pd-buffer-bytes", "much"], 2, "neither a number nor auto"),
        ([*PLAIN, "--tensor-parallel-size", "3"], 1, "attention heads are not divisible by 3"),
        ([*PLAIN, "--no-such-option"], 2, "unrecognized arguments"),
        ([*PLAIN, "--prefillers", "0"], 2, "argument --prefillers: 0 is less than 1"),
        ([*PLAIN, "--gpu-memory-utilization", "0"], 2, "--gpu-memory-utilization 0: a number above 0, and at most 1"),
        ([*PLAIN, "--pd-buffer-bytes", "-1"], 2, "--pd-buffer-bytes -1: a number above 0"),
        ([*PLAIN, "--rate", "nan"], 2, "argument --rate"),
        ([*PLAIN, "--rate", "1", "--input-tokens", "inf", "--output-tokens", "9"], 2, "argument --input-tokens"),
        ([*PLAIN, "--rate", "1", "--input-tokens", "9", "--variation", "99", "--output-tokens", "9"], 2, "variation at most 10"),
        ([*PLAIN, "--rate", "1", "--input-percentiles", "50:nan", "--output-tokens", "9"], 2, "a length is finite"),
        ([*PLAIN, "--rate", "1", "--input-percentiles", "90:10,50:2000", "--output-tokens", "9"], 2, "a higher percentile"),
        ([*PLAIN, "--rate", "-5"], 2, "argument --rate: -5 is not above 0"),
        ([*PLAIN, "--rate", "0"], 2, "argument --rate: 0 is not above 0"),
        ([*PLAIN, "--rate", "1", "--input-tokens", "-9", "--output-tokens", "9"], 2, "argument --input-tokens: -9 is less than 1"),
        ([*PLAIN, "--concurrency", "0"], 2, "argument --concurrency: 0 is less than 1"),
        ([*PLAIN, "--shared-prefix-tokens", "-1"], 2, "argument --shared-prefix-tokens: -1 is less than 0"),
        ([*PLAIN, "--tensor-parallel-size", "0"], 2, "argument --tensor-parallel-size: 0 is less than 1"),
        ([*PLAIN, "--gpu-memory-utilization", "7"], 2, "at most 1"),
        ([*PLAIN, "--rate", "1", "--trace", "/dev/null"], 2, "the trace is empty"),
        ([*PLAIN, "--rate", "1", "--trace", "nowhere.csv"], 2, "nowhere.csv: no such file"),
        ([*PLAIN, "--prices", "nowhere.yaml"], 2, "nowhere.yaml: no such file"),
        (["--config", "nowhere.json", "--instance-type", "ml.p5.48xlarge"], 2, "nowhere.json: no such file"),
        ([str(PROD), "--endpoint", "other"], 2, "has no endpoint 'other'"),
    ],
)
def test_a_call_that_is_wrong_says_so_in_one_line(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert err.startswith("dpd: ")
    assert message in err
    assert err.count("\n") == 1
    found, out, err = run(capsys, *arguments, "--json")
    assert found == code
    assert message in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("Llama-3.3-70B-Instruct", "our-own"), "the catalog does not know this model"),
        (("ml.p5.48xlarge", "ml.other"), "give an instance type"),
    ],
)
def test_what_cannot_be_sized_says_what_is_missing(edit: tuple[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(MANIFEST.replace(*edit).replace("llama-70b", "own"))
    _, manifest, *_ = next(iter(manifests(path)))
    with pytest.raises(NotSizedError, match=message):
        sized_endpoint("llama", manifest)


@pytest.mark.parametrize("command", [main, advise])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Pulumi.dev.yaml", "config:\n  aws:region: us-east-2\n"),
        ("Pulumi.dev.yaml", "config:\n  dpd-infra:endpoints: {}\n"),
        ("web.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"),
    ],
)
def test_a_file_without_an_endpoint_is_a_wrong_call_of_both_commands(
    command: Callable[[list[str]], int], name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert command([str(path)]) == 2
    assert capsys.readouterr().err == f"dpd: {path} has no endpoint\n"


def test_a_stack_file_that_is_not_valid_points_to_dpd_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text("config:\n  aws:region: us-east-2\n  dpd-infra:endpoints:\n    a: {instanceType: ml.p5.48xlarge}\n")
    code, _, err = run(capsys, str(path))
    assert code == 1
    assert "endpoint a is not valid" in err
    assert "dpd check" in err


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text("a: [")
    with pytest.raises(YamlProblem):
        list(manifests(path))


def test_the_short_form_is_a_title_two_lines_and_what_does_not_fit() -> None:
    name, manifest, *_ = next(iter(manifests(PROD)))
    serving = sized_endpoint(name, manifest, Changes(pd_buffer_bytes=64 * 1024**3)).serving
    report = size_endpoint(serving)
    lines = short_form(name, serving).splitlines()
    assert lines[0].startswith("llama-70b-documents: ")
    assert "holds 51 prompts of 32,768 tokens" in lines[1]
    assert len(lines) == 3 + len(report.problems)
    assert any("does not fit" in line for line in lines)


def test_the_short_form_of_a_colocated_endpoint_has_no_buffer(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(MANIFEST.split("  pdSpec:", maxsplit=1)[0] + "  replicas: 1\n")
    name, manifest, *_ = next(iter(manifests(path)))
    short = short_sizing(name, manifest, Workload(Lengths.constant(4096), Lengths.constant(256), concurrency=8))
    assert "TP 8, 1 colocated = 8 GPUs, 1 node" in short.text
    assert "buffer" not in short.text
    assert "under its load: TTFT" in short.text
    assert (short.data["gpus"], short.data["nodes"], "pdBufferBytes" in short.data) == (8, 1, False)


def test_what_stands_behind_a_number_is_gathered_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    # A preview tells the short form of every endpoint: no formula's working is in it.
    looked_at: list[str] = []
    gathered = quantity_module._working
    monkeypatch.setattr(
        quantity_module, "_working", lambda function, *more: looked_at.append(function.__name__) or gathered(function, *more)
    )
    name, manifest, *_ = next(iter(manifests(PROD)))
    short = short_sizing(name, manifest)
    assert "KV pool" in short.text
    assert short.data["kvPoolTokens"] > 0
    assert looked_at == []
    size_endpoint(sized_endpoint(name, manifest).serving).to_dict()
    assert {"kv_pool_tokens", "activation_bytes"} <= set(looked_at)


def test_what_cannot_be_sized_is_one_line_of_the_short_form(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(MANIFEST.replace("Llama-3.3-70B-Instruct", "our-own").replace("llama-70b", "own"))
    name, manifest, *_ = next(iter(manifests(path)))
    short = short_sizing(name, manifest)
    assert short.text.startswith("llama: not sized, the catalog does not know this model")
    assert list(short.data) == ["notSized"]


@pytest.mark.parametrize("text", ["a: b: c\n", "\x00", "a: [", "- &a [*b]\n"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_file_that_is_no_yaml_is_one_line_with_its_place(
    text: str, form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(text)
    code, out, err = run(capsys, str(path), *form)
    said = json.loads(out)["error"] if form else err
    assert code == 1
    assert str(path) in said
    assert said.count("\n") <= 1
