"""`auto` in an endpoint's spec: one number everywhere, with what it was worked out from, and a finding where there is none."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpd_infra.cli.size import main
from dpd_infra.plan.sizing.report import size_endpoint
from dpd_infra.render.endpoint import RenderedManifest, endpoint_context, render_endpoint
from dpd_infra.render.provenance import OriginKind
from dpd_infra.rules.check import check_endpoint
from dpd_infra.rules.reading import ManifestReading
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.sizing import Changes, manifests, sized_endpoint
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.stack import load_file

GIB = 1024**3
DEV = Path(__file__).resolve().parents[3] / "stacks" / "Pulumi.dev.yaml"
LOAD = {"requestsPerSecond": 6, "inputTokens": {"mean": 6000, "variation": 0.2}, "outputTokens": 400}
ALL: dict[str, Any] = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models"}},
    "instanceType": "ml.p5.48xlarge",
    "cache": {"pdBufferBytes": "auto"},
    "worker": {"gpuMemoryUtilization": "auto"},
    "prefill": {"replicas": "auto", "maxNumSeqs": "auto"},
    "decode": {"replicas": "auto", "maxNumSeqs": "auto"},
    "load": LOAD,
}


def rendered(data: dict[str, Any]) -> RenderedManifest:
    return render_endpoint("llama", EndpointSpec.from_yaml_data(data), endpoint_context("llama", region="us-east-2", addon_version=""))


def reading(data: dict[str, Any]) -> ManifestReading:
    return ManifestReading(rendered(data).document)


def stack_file(folder: Path, entry: dict[str, Any], nodes: int = 3) -> Path:
    """The dev stack with another endpoint, and nodes enough for it."""
    data = yaml.safe_load(DEV.read_text(encoding="utf-8"))
    data["config"]["dpd-infra:platform"]["instanceGroups"]["gpu"]["count"] = nodes
    data["config"]["dpd-infra:endpoints"] = {"llama": entry}
    path = folder / "Pulumi.dev.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def test_each_number_is_the_one_that_the_formulas_give() -> None:
    found = reading(ALL)
    # sizing.md: 8 GiB hold 12 prompts of 16,384 tokens, so 15 GiB hold 24, and two prefillers may each have twelve in work. All 32 of the
    # guide's 16 take 20 GiB, and beside 0.75 of 80 there are 20 less 3.5 of reserve, 392 MiB of NCCL and 1 to spare: 15.1.
    assert found.pd_buffer_bytes == 15 * GIB
    assert (found.prefill.replicas, found.prefill.most_sequences) == (2, 12)
    # 80 GiB less 15 of buffer, and the same reserve, are 60.1 GiB: 0.75 of it.
    assert found.decode.args.number("gpu-memory-utilization") == 0.75
    assert found.decode.replicas == 1


def test_what_is_auto_and_what_it_comes_to_render_to_the_same_manifest() -> None:
    written = copy.deepcopy(ALL) | {
        "cache": {"pdBufferBytes": 15 * GIB},
        "worker": {"gpuMemoryUtilization": 0.75},
        "prefill": {"replicas": 2, "maxNumSeqs": 12},
    }
    written["decode"] = {"replicas": 1, "maxNumSeqs": reading(ALL).decode.most_sequences}
    assert rendered(written).document == rendered(ALL).document


def test_each_number_says_what_it_was_worked_out_from() -> None:
    manifest = rendered(ALL)
    replicas = manifest.provenance.of(("spec", "pdSpec", "prefillSpec", "replicas"))
    assert replicas is not None
    assert replicas.kind is OriginKind.DEFAULT
    assert replicas.source == "auto: the fewest that keep up with 6 requests a second of 6,000 tokens in and 400 out"
    assert replicas.setting[-2:] == ("prefill", "replicas")
    sources = {origin.source for origin in manifest.provenance.origins.values() if origin.source.startswith("auto: ")}
    assert len(sources) == 5  # both roles' replicas come from the one load


def test_overrides_and_flags_of_roles_count() -> None:
    fp8 = ALL | {"worker": {"gpuMemoryUtilization": "auto", "args": ["--kv-cache-dtype", "fp8"]}}
    # Half the bytes a token: all prompts of two prefillers find room.
    assert (reading(fp8).prefill.most_sequences, reading(fp8).pd_buffer_bytes) == (16, 10 * GIB)
    longer = ALL | {"overrides": {"spec": {"worker": {"environmentVariables": [{"name": "LMCACHE_CHUNK_SIZE", "value": "512"}]}}}}
    assert reading(longer).pd_buffer_bytes == 15 * GIB
    share = ALL | {"worker": {"gpuMemoryUtilization": "auto"}, "cache": {"pdBufferBytes": 16 * GIB}}
    assert reading(share).decode.args.number("gpu-memory-utilization") == 0.73


@pytest.mark.parametrize("share", ["auto", 0.75, 0.85])
@pytest.mark.parametrize("sequences", ["auto", None, 40])
@pytest.mark.parametrize(
    "prefill", [{"replicas": 1}, {"replicas": 3}, {"replicas": 1, "autoscaling": {"maxReplicaCount": 4}}, {"replicas": "auto"}]
)
@pytest.mark.parametrize("nodes", ["ml.p5.48xlarge", "ml.p5en.48xlarge"])
@pytest.mark.parametrize("length", [16_384, 131_072])
def test_nobody_is_told_anything_of_a_buffer_that_auto_chose(
    share: float | str, sequences: int | str | None, prefill: dict[str, Any], nodes: str, length: int
) -> None:
    entry = ALL | {
        "instanceType": nodes,
        "worker": {"gpuMemoryUtilization": share, "maxModelLen": length, "image": "our-registry/vllm:1.0"},
        "prefill": prefill | ({"maxNumSeqs": sequences} if sequences is not None else {}),
    }
    spec = EndpointSpec.from_yaml_data(entry)
    found = check_endpoint(EndpointSubject("llama", rendered(entry), spec))
    assert [finding for finding in found if "pdBufferBytes" in finding.path or "pdBufferBytes" in finding.fix] == []


def test_the_twin_has_the_pods_of_both_roles_and_no_buffer_to_leave_room_for() -> None:
    twin = reading(ALL | {"disaggregated": False})
    assert twin.decode.replicas == 3
    assert twin.decode.args.number("gpu-memory-utilization") == 0.9
    assert twin.pd_buffer_bytes is None


@pytest.mark.parametrize(
    ("change", "reason", "count"),
    [
        ({"load": None}, "the endpoint has no load", 2),
        ({"load": LOAD | {"requestsPerSecond": 6000}}, "64 prefill and 64 decode replicas do not keep up with 6000 requests a second", 2),
        ({"load": LOAD | {"inputTokens": 20_000}}, "every prompt of the load is too long for max-model-len 16,384", 2),
        ({"model": {"name": "our-own", "s3": {"bucket": "my-models"}}}, "the catalog does not know this model (our-own)", 6),
        ({"instanceType": "ml.g5.48xlarge"}, "the catalog knows no GPU memory of ml.g5.48xlarge", 6),
        ({"worker": {"gpuMemoryUtilization": "auto", "args": ["--quantization", "awq"]}}, "what the worker's flags make of weights", 6),
        ({"worker": {"gpuMemoryUtilization": "auto", "tensorParallelSize": 3}}, "cannot be split over 3 ranks", 6),
    ],
)
def test_what_cannot_be_worked_out_is_one_finding_a_place(change: dict[str, Any], reason: str, count: int, tmp_path: Path) -> None:
    entry = {key: value for key, value in (ALL | change).items() if value is not None}
    found = [finding for finding in load_file(stack_file(tmp_path, entry)).findings if finding.rule == "DPD210"]
    assert len(found) == count
    for finding in found:
        assert reason in finding.what
        assert finding.line
        assert finding.value == "auto"


def test_a_stack_with_auto_is_accepted_and_its_platform_counts_the_nodes(tmp_path: Path) -> None:
    assert load_file(stack_file(tmp_path, ALL, nodes=3)).spec is not None
    short = load_file(stack_file(tmp_path, ALL, nodes=2))
    assert short.spec is None
    assert any(("3" in finding.what and finding.rule.startswith("DPD3")) or finding.rule.startswith("DPD4") for finding in short.findings)


def test_size_sees_the_numbers_that_are_rendered(tmp_path: Path) -> None:
    (each,) = manifests(stack_file(tmp_path, ALL))
    sized = sized_endpoint(each.name, each.manifest, autos=each.autos, load=each.load)
    found = reading(ALL)
    assert sized.serving.pd_buffer_bytes == found.pd_buffer_bytes
    assert (sized.serving.prefillers, sized.serving.decoders) == (found.prefill.replicas, found.decode.replicas)
    assert (sized.serving.prefill.max_num_seqs, sized.serving.decode.max_num_seqs) == (12, found.decode.most_sequences)
    assert size_endpoint(sized.serving, sized.load).problems == ()


def test_what_is_open_is_worked_out_again_for_what_is_asked_instead(tmp_path: Path) -> None:
    (each,) = manifests(stack_file(tmp_path, ALL))
    larger = Changes(tensor_parallel_size=8, pd_buffer_bytes=16 * GIB)
    sized = sized_endpoint(each.name, each.manifest, larger, autos=each.autos, load=each.load)
    assert sized.serving.decode.gpu_memory_utilization == 0.73
    assert sized.serving.prefill.max_num_seqs == 12


def test_the_load_of_the_file_is_asked_about_and_the_command_line_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stack_file(tmp_path, ALL)
    assert main([str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["endpoints"]["llama"]
    assert any(section["title"].startswith("Times: prompt 6,000") for section in report["sections"])
    assert main([str(path), "--rate", "1", "--input-tokens", "2000", "--output-tokens", "100"]) == 0
    out = capsys.readouterr().out
    assert "Times: prompt 2,000" in out
    assert "1 prefill + 1 decode" in out


def test_auto_on_the_command_line_without_a_load_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--model",
        "Llama-3.3-70B-Instruct",
        "--instance-type",
        "ml.p5.48xlarge",
        "--max-model-len",
        "16384",
        "--prefillers",
        "auto",
    ]
    assert main(arguments) == 1
    assert "prefillers: auto cannot be worked out: the endpoint has no load" in capsys.readouterr().err
    load = ["--rate", "6", "--input-tokens", "6000", "--output-tokens", "400"]
    assert main([*arguments, *load]) == 1  # 32 sequences of one decoder are too few, however many prefillers there are
    assert "64 prefill and 1 decode replicas do not keep up" in capsys.readouterr().err
    assert main([*arguments, *load, "--decode-max-num-seqs", "auto"]) == 0
    assert "2 prefill + 1 decode" in capsys.readouterr().out


def test_a_stack_file_under_another_name_is_one_by_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "auto.yaml"
    path.write_bytes(stack_file(tmp_path, ALL).read_bytes())
    (each,) = manifests(path)
    assert (each.name, each.nodes, each.autos.prefillers) == ("llama", 3, True)
