"""What `dpd check` costs: against the `jsonschema` library, ten manifests against a thousand, a whole process against pydantic's import.

    python bench/check_manifests.py

The manifests are the published example under a thousand names. `jsonschema` validates the same documents against the raw CRD, which is
less: no unknown field, no rule and no place is looked at. Ends with 1 where a promise is not kept. Times are processor time, the best of
several runs, so that other work on the machine changes little; both sides collect garbage as rarely as `dpd` does.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dpd_infra.checking import check_bytes  # noqa: E402
from dpd_infra.cli import collect_rarely  # noqa: E402
from dpd_infra.rules.check import check_endpoint  # noqa: E402
from dpd_infra.rules.manifest_file import manifest_subject  # noqa: E402
from dpd_infra.spec.yaml_writing import write_yaml  # noqa: E402
from tests.pure.endpoint.test_published_example import PUBLISHED  # noqa: E402

CRD = ROOT / "tests" / "data" / "inferenceendpointconfigs-operator-3.2.yaml.gz"
MANY, FEW = 1000, 10
MOST_OF_IMPORT = 5
"""A whole `dpd check` may take so many times what `import pydantic` takes."""


def manifests(count: int) -> list[dict[str, Any]]:
    """The published example under many names."""
    return [{**PUBLISHED, "metadata": {"name": f"e{number}", "namespace": "default"}} for number in range(count)]


def crd_schema() -> dict[str, Any]:
    """The raw schema of v1."""
    text = re.sub(r"\{\{.*?\}\}", "placeholder", gzip.decompress(CRD.read_bytes()).decode())
    versions = yaml.load(text, Loader=yaml.CSafeLoader)["spec"]["versions"]
    return next(version["schema"]["openAPIV3Schema"] for version in versions if version["name"] == "v1")


def best(*actions: Callable[[], Any], runs: int = 7) -> list[float]:
    """The least processor time of several runs of each action, seconds. They take turns, so that a busy moment meets all of them."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(runs):
        for kept, action in zip(times, actions, strict=True):
            before = time.process_time()
            action()
            kept.append(time.process_time() - before)
    return [min(kept) for kept in times]


def whole_process(arguments: list[str], runs: int) -> float:
    """The least processor time of a process, its start included, seconds."""
    times = []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(arguments, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # The first one may have had to compile.
    return min(times[1:])


def main() -> None:
    """Measure, print, and say what was promised and not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="processes of each kind")
    arguments = parser.parse_args()
    broken = []

    collect_rarely()
    documents = manifests(MANY)
    validator = Draft202012Validator(crd_schema())
    theirs, ours = (
        seconds / MANY
        for seconds in best(
            lambda: [list(validator.iter_errors(document)) for document in documents],
            lambda: [check_endpoint(manifest_subject(document)) for document in documents],
        )
    )
    print(f"{MANY} documents, each:   jsonschema {theirs * 1e3:.2f} ms   schema and all rules {ours * 1e3:.2f} ms")
    if ours > theirs:
        broken.append("a document costs more than with jsonschema")

    texts = {count: "---\n".join(map(write_yaml, manifests(count))).encode() for count in (FEW, MANY)}
    theirs_text, *own = best(
        lambda: [list(validator.iter_errors(document)) for document in yaml.load_all(texts[MANY], Loader=yaml.CSafeLoader)],
        *(partial(check_bytes, text, "many.yaml", None) for text in texts.values()),
    )
    theirs_each = theirs_text / MANY
    costs = {count: seconds / count for count, seconds in zip(texts, own, strict=True)}
    print(f"{MANY} in a file, each:   C YAML and jsonschema {theirs_each * 1e3:.2f} ms   dpd check {costs[MANY] * 1e3:.2f} ms")
    if costs[MANY] > theirs_each:
        broken.append("a manifest in a file costs more than with C YAML and jsonschema")
    print(f"linear:                {FEW}: {costs[FEW] * 1e3:.2f} ms each   {MANY}: {costs[MANY] * 1e3:.2f} ms each")
    if costs[MANY] > 1.5 * costs[FEW]:
        broken.append("a thousand cost more each than ten")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "endpoint.yaml")
        path.write_text(write_yaml(PUBLISHED))
        base = whole_process([sys.executable, "-c", "import pydantic"], arguments.runs)
        for name, file in (("a manifest", path), ("a stack file", ROOT / "stacks" / "Pulumi.dev.yaml")):
            cost = whole_process([sys.executable, "-m", "dpd_infra", "check", str(file)], arguments.runs)
            print(f"dpd check of {name}: {cost * 1e3:.0f} ms, {cost / base:.1f} times import pydantic ({base * 1e3:.0f} ms)")
            if cost > MOST_OF_IMPORT * base:
                broken.append(f"dpd check of {name} takes more than {MOST_OF_IMPORT} times import pydantic")
    if broken:
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
