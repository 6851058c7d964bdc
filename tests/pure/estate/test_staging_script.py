"""The script of a staging job, run here against a stand-in of the hub and S3's own client: what is copied, once, and what ends it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.render.staging import job_name, staging_script
from dpd_infra.render.staging.copy_model import MARKER, copy, is_staged, wanted
from dpd_infra.spec.model_store import StoredModel

REVISION = "6f6073b423013f6a7d4d9f39144961bfbfbc386b"
FILES = ["README.md", "config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "original/consolidated.pth"]
ENVIRONMENT = {
    "MODEL_ID": "meta-llama/Llama",
    "REVISION": REVISION,
    "BUCKET": "models",
    "PREFIX": "llama",
    "INCLUDE": "*.json\n*.safetensors",
}


class Hub:
    """The two functions of huggingface_hub that the script calls."""

    def __init__(self, files: list[str]) -> None:
        self.files = files
        self.tokens: set[str | None] = set()
        self.on_disk: list[int] = []

    def list_repo_files(self, repo_id: str, *, revision: str, token: str | None) -> list[str]:
        assert (repo_id, revision) == ("meta-llama/Llama", REVISION)
        self.tokens.add(token)
        return self.files

    def hf_hub_download(self, repo_id: str, filename: str, *, revision: str, token: str | None, local_dir: str) -> str:
        assert (repo_id, revision) == ("meta-llama/Llama", REVISION)
        self.tokens.add(token)
        path = Path(local_dir) / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filename)
        self.on_disk.append(len(list(Path(local_dir).rglob("*.*"))))
        return str(path)


@pytest.fixture
def s3() -> Iterator[tuple[Any, Stubber]]:
    client = boto3.client("s3", region_name="us-east-2", aws_access_key_id="x", aws_secret_access_key="x")
    stub = Stubber(client)
    with stub:
        yield client, stub
        stub.assert_no_pending_responses()


def not_there(stub: Stubber) -> None:
    stub.add_response("list_objects_v2", {"KeyCount": 0}, {"Bucket": "models", "Prefix": f"llama/{MARKER}", "MaxKeys": 1})


def there(stub: Stubber, revision: str) -> None:
    stub.add_response("list_objects_v2", {"KeyCount": 1}, {"Bucket": "models", "Prefix": f"llama/{MARKER}", "MaxKeys": 1})
    body = json.dumps({"revision": revision}).encode()
    stub.add_response("get_object", {"Body": StreamingBody(io.BytesIO(body), len(body))}, {"Bucket": "models", "Key": f"llama/{MARKER}"})


def test_every_wanted_file_is_copied_one_at_a_time_and_the_marker_last(s3: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch) -> None:
    client, stub = s3
    uploaded: list[tuple[str, str]] = []
    monkeypatch.setattr(client, "upload_file", lambda path, bucket, key: uploaded.append((Path(path).read_text(), f"{bucket}/{key}")))
    not_there(stub)
    copied = ["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    marker = json.dumps({"model": "meta-llama/Llama", "revision": REVISION, "files": copied}).encode()
    expected = {"Bucket": "models", "Key": f"llama/{MARKER}", "Body": marker, "ContentType": "application/json"}
    stub.add_response("put_object", {}, expected)
    hub = Hub(FILES)
    assert copy(hub, client, {**ENVIRONMENT, "HF_TOKEN": "hf_xxx"}) == 3
    assert uploaded == [(name, f"models/llama/{name}") for name in copied]
    assert hub.tokens == {"hf_xxx"}
    assert hub.on_disk == [1, 1, 1]


def test_a_revision_that_is_there_is_not_copied_again(s3: tuple[Any, Stubber]) -> None:
    client, stub = s3
    there(stub, REVISION)
    assert copy(Hub(FILES), client, ENVIRONMENT) == 0


def test_another_revision_is_copied_anew(s3: tuple[Any, Stubber]) -> None:
    client, stub = s3
    there(stub, REVISION[::-1])
    assert is_staged(client, "models", "llama", REVISION) is False


def test_nothing_that_matches_ends_the_job_with_the_patterns(s3: tuple[Any, Stubber]) -> None:
    client, stub = s3
    not_there(stub)
    with pytest.raises(SystemExit, match=r"no file that matches .*\*\.gguf"):
        copy(Hub(FILES), client, {**ENVIRONMENT, "INCLUDE": "*.gguf"})


def test_a_copy_that_breaks_off_leaves_no_marker(s3: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch) -> None:
    client, stub = s3

    def refuse(*where: str) -> None:
        raise OSError(where[-1])

    monkeypatch.setattr(client, "upload_file", refuse)
    not_there(stub)
    with pytest.raises(OSError, match="config"):
        copy(Hub(FILES), client, ENVIRONMENT)


def test_the_script_needs_nothing_of_this_library() -> None:
    assert "dpd_infra" not in staging_script()
    compile(staging_script(), "copy_model.py", "exec")


@given(st.lists(st.sampled_from(FILES), unique=True), st.sampled_from(["*", "*.json", "model-*", "original/*"]))
def test_files_are_taken_by_name_or_path_sorted_and_never_made_up(files: list[str], pattern: str) -> None:
    taken = wanted(files, [pattern])
    assert taken == sorted(taken)
    assert set(taken) <= set(files)
    assert set(wanted(files, ["*"])) == set(files)


@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True), st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
)
def test_a_jobs_name_is_a_dns_label_and_follows_what_is_copied(store: str, name: str) -> None:
    model = StoredModel(model_id="a/b", revision=REVISION)
    made = job_name(store, name, model)
    assert len(made) <= 63
    assert made == made.lower().strip("-")
    assert made != job_name(store, name, model.model_copy(update={"prefix": "elsewhere"}))
