"""Copy one model of the Hugging Face hub into a bucket, file by file, unless it is there already: what a staging job runs.

It stands alone: the job has this file, Python, huggingface_hub and boto3, and nothing of this library. Environment variables say what
to do: MODEL_ID, REVISION (a commit), BUCKET, PREFIX and INCLUDE (shell patterns, one a line); HF_TOKEN for gated models. The marker
object, written last, holds the list of files: where it is there for the same revision, nothing is done.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARKER = ".staged.json"
"""Beside the model's files: written when all of them are there."""


def wanted(files: list[str], patterns: list[str]) -> list[str]:
    """The files to copy, sorted: those that a pattern matches by their whole path or their name."""
    return sorted(
        file
        for file in files
        if any(fnmatch.fnmatchcase(file, pattern) or fnmatch.fnmatchcase(file.rsplit("/", 1)[-1], pattern) for pattern in patterns)
    )


def is_staged(store: Any, bucket: str, prefix: str, revision: str) -> bool:
    """Whether the marker says that this revision is there."""
    key = f"{prefix}/{MARKER}"
    # A listing first: without the right to list all of a bucket, S3 answers for a missing object as for a forbidden one.
    if not store.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("KeyCount", 0):
        return False
    return json.loads(store.get_object(Bucket=bucket, Key=key)["Body"].read()).get("revision") == revision


def _say(line: str) -> None:
    """One line into the pod's log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def copy(hub: Any, store: Any, environment: Mapping[str, str]) -> int:
    """Copy what is wanted; the answer is the number of files copied, 0 where all was there. Raises `SystemExit` where nothing matches."""
    model, revision = environment["MODEL_ID"], environment["REVISION"]
    bucket, prefix = environment["BUCKET"], environment["PREFIX"]
    if is_staged(store, bucket, prefix, revision):
        _say(f"s3://{bucket}/{prefix} holds {model} at {revision} already")
        return 0
    token = environment.get("HF_TOKEN") or None
    files = wanted(hub.list_repo_files(model, revision=revision, token=token), environment["INCLUDE"].splitlines())
    if not files:
        raise SystemExit(f"{model} at {revision} has no file that matches {environment['INCLUDE'].split()}")
    for number, file in enumerate(files, start=1):
        # One file at a time, and gone again: a whole 70B model would not fit the pod's disk.
        with tempfile.TemporaryDirectory() as folder:
            path = hub.hf_hub_download(model, file, revision=revision, token=token, local_dir=folder)
            store.upload_file(path, bucket, f"{prefix}/{file}")
            _say(f"{number}/{len(files)} {file} {Path(path).stat().st_size:,} bytes")
    marker = json.dumps({"model": model, "revision": revision, "files": files})
    store.put_object(Bucket=bucket, Key=f"{prefix}/{MARKER}", Body=marker.encode(), ContentType="application/json")
    return len(files)


if __name__ == "__main__":
    import boto3
    import huggingface_hub  # pyright: ignore[reportMissingImports]

    copy(huggingface_hub, boto3.client("s3"), os.environ)
    sys.exit(0)
