"""Secrets are refused wherever they stand, and no report shows one; what only looks like one is let through."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.checking import check_file
from dpd_infra.rules.report import as_data, report
from dpd_infra.rules.secret_text import has_known_secret, looks_random, masked
from dpd_infra.stack import load_file
from tests.pure.rules.kit import Edit, endpoint, env, more, put, raw, stack

# In pieces, so that no scanner takes this file for a leak.
HUB = "hf_" + "kQdXyZbRtLmNpWvJ"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfi" + "CYEXAMPLEKEY"
OPENAI = "sk-" + "proj-4f9aQ7Lm2x"
RANDOM = "b5T9Qw2LkZx8Rj1" + "VnC4mPs7DfGh3Ye6U"
SCALING = "spec|pdSpec|autoScalingSpec|prefillAutoScaling"

SECRETS: dict[str, tuple[Edit, str]] = {
    "a Hugging Face token in a variable": (env("HF_TOKEN", HUB), HUB),
    "a token under a harmless name": (env("SETTING", HUB), HUB),
    "a password by its name alone": (env("REDIS_PASSWORD", "correct horse"), "correct horse"),
    "an AWS key": (env("AWS_ACCESS_KEY_ID", AWS), AWS),
    "an AWS secret key": (env("S3_CREDENTIAL_TEXT", AWS_SECRET), AWS_SECRET),
    "something random": (env("SETTING", RANDOM), RANDOM),
    "a server's key among the flags": (more("--api-key", "my own key"), "my own key"),
    "a server's key in one entry with its flag": (more("--api-key my-own-key"), "my-own-key"),
    "a server's key behind an equals sign in one entry with another flag": (more("--port 8000 --api_key=my-own-key"), "my-own-key"),
    "a server's key behind a long dash": (more("\u2014api-key=my-own-key"), "my-own-key"),
    "a server's key that a shell does not hand on": (
        lambda document: document["spec"]["worker"].update(command=["bash", "-c", "vllm serve m"], args=["--api-key=my-own-key"]),
        "my-own-key",
    ),
    "a flag with an equals sign": (more(f"--hf-token={HUB}"), HUB),
    "a token in any flag": (more("--chat-template-kwargs", json.dumps({"k": OPENAI})), OPENAI),
    "a password in redis's address": (
        put("spec|kvCacheSpec|l2CacheSpec", {"l2CacheBackend": "redis", "l2CacheLocalUrl": "redis://user:hunter2@cache:6379"}),
        "hunter2",
    ),
    "a header of a trigger": (
        put(SCALING, {"maxReplicaCount": 1, "prometheusTrigger": {"customHeaders": f"Authorization=Bearer {OPENAI}"}}),
        OPENAI,
    ),
    "a token in the query of a model's address": (
        put("spec|modelSourceConfig|modelLocation", "https://hub.example.com/llama?token=correct-horse"),
        "correct-horse",
    ),
    "a token behind a long address": (
        put("spec|modelSourceConfig|modelLocation", f"https://hub.example.com/{'a' * 40}?v=1&X-Amz-Signature=correct-horse"),
        "correct",
    ),
    "a key in the query of any address": (env("REGISTRY", "https://hub.example.com/v1?api_key=correct-horse"), "correct-horse"),
    "an annotation": (put("metadata|annotations", {"note": f"use {HUB}"}), HUB),
    "a variable of an init container": (
        put("spec|kubernetes|initContainers", [{"name": "get", "env": [{"name": "API_KEY", "value": "correct horse"}]}]),
        "correct horse",
    ),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_an_error_and_is_never_shown(name: str) -> None:
    edit, secret = SECRETS[name]
    found = raw(edit).findings
    assert [finding for finding in found if finding.rule == "DPD430"]
    for finding in found:
        if finding.rule == "DPD430":
            assert finding.secret
            assert finding.value is None
        assert secret not in finding.what
        assert secret not in finding.fix
        assert secret not in str(finding.value)
        assert secret not in str(finding.patch)


@pytest.mark.parametrize(
    "entry",
    [
        '--hf-overrides {"api_key": "correct-horse", "x": 1}',
        '--hf-overrides {"x": 1, "hub-token":"correct-horse"}',
        "--hf-overrides {'password': 'correct-horse battery'}",
        '--kv-transfer-config \'{"a": {"secret": "correct-horse"}}\'',
        "--hf-overrides {api_key: correct-horse}",
    ],
)
def test_a_plain_word_that_json_calls_a_secret_is_not_shown(entry: str, tmp_path: Path) -> None:
    manifest = raw(more(entry))
    assert "DPD018" in {finding.rule for finding in manifest.findings}
    for finding in manifest.findings:
        assert "correct-horse" not in f"{finding.what} {finding.fix} {finding.value} {finding.patch}"
    path = tmp_path / "endpoint.yaml"
    path.write_text(yaml.safe_dump(manifest.data, sort_keys=False, width=10_000), encoding="utf-8")
    checked = check_file(path)
    assert checked.document is not None
    said = report(checked.findings, {str(path): checked.document})
    assert entry.partition(" ")[0] in said
    assert "correct-horse" not in said


PLAIN: dict[str, Edit] = {
    "an address with a query": env("REGISTRY", "https://hub.example.com/v1?partition_key=correct-horse&version=20260101"),
    "a reference in a query": env("REGISTRY", "https://hub.example.com/v1?token=$(HUB_TOKEN)"),
    "a tokenizer's own tokens": more("--hf-overrides", '{"eos_token": "<|end_of_text|>"}'),
    "a number": env("MAX_TOKEN", "16384"),
    "a switch": env("USE_TOKEN", "true"),
    "a file": env("HF_TOKEN_PATH_KEY", "/var/run/token"),
    "a reference": env("API_KEY", "$(FROM_ELSEWHERE)"),
    "nothing": env("API_KEY", ""),
    "a model's name": env("MODEL_NAME", "RedHatAI/Meta-Llama-3.1-405B-Instruct-FP8-dynamic"),
    "a commit": env("REVISION", "9f496a6364759553f73ff534434a057ef4bdc004"),
    "a digest": put("spec|worker|image", "lmcache/vllm-openai@sha256:9f496a6364759553f73ff534434a057ef4bdc0049f496a6364759553f73ff534"),
    "an address": put("spec|kvCacheSpec|l2CacheSpec", {"l2CacheBackend": "redis", "l2CacheLocalUrl": "redis://cache.default.svc:6379"}),
    "a tokenizer": more("--tokenizer", "meta-llama/Llama-3.3-70B-Instruct", "--max-num-batched-tokens", "8192"),
    "a switch that takes no value": more("--hf-token"),
    "a Secret": lambda document: document["spec"]["worker"]["environmentVariables"].append(
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_no_secret_is_let_through(name: str) -> None:
    assert [finding.what for finding in raw(PLAIN[name]).findings if finding.rule == "DPD430"] == []


@pytest.mark.parametrize(
    "worker",
    [
        {"environment": {"API_KEY": "correct horse battery", "NIXL_BACKEND": "UCX"}},
        {"environment": {"SETTING": HUB}},
        {"args": ["--api-key", "correct horse battery", "--max-num-seqs", "0"]},
        {"args": [f"--hf-token={HUB}"]},
    ],
)
def test_no_report_of_a_stack_file_shows_its_secret(worker: dict[str, object], tmp_path: Path) -> None:
    config = stack(endpoint("worker", worker)).data
    file = tmp_path / "Pulumi.dev.yaml"
    # All on one line: other findings stand on the secret's own line.
    file.write_text(yaml.safe_dump({"config": config}, default_flow_style=None, width=10_000), encoding="utf-8")
    loaded = load_file(file)
    shown = report(loaded.findings, loaded.documents) + json.dumps([as_data(finding) for finding in loaded.findings], default=str)
    assert "DPD430" in shown
    assert "correct horse battery" not in shown
    assert HUB not in shown


@given(st.text(max_size=40), st.text(max_size=40))
def test_what_is_masked_holds_no_secret_any_more(before: str, after: str) -> None:
    assert HUB not in masked(f"{before} {HUB} {after}")
    assert not has_known_secret(masked(f"{before} {AWS} {after}"))


@given(st.from_regex(re.compile(r"[a-z0-9]+([-_./:][a-z0-9]+){0,6}"), fullmatch=True))
def test_a_name_in_small_letters_is_never_taken_for_random(name: str) -> None:
    assert not looks_random(name)
