"""What registering many endpoints costs, against the same raw CustomResources, before the same monitor.

    python bench/endpoints.py [--rounds 7] [--counts 1 10 100 1000]

The other side registers `kubernetes.apiextensions.CustomResource` with the plain manifest, the same options and the same dependencies, and
nothing else: that both send the engine the same is checked first. Both take turns in one run, as an update and as a preview, in which ours
also tells the sizes of each endpoint; times are processor seconds. What is measured is the program; reading and checking the stack file
comes before it and is told beside. The exit code is 1 where a ratio is over 1.25, or where an endpoint among 1,000 costs more than 1.5
times one among 100. The latter is measured without Python's cyclic garbage collector, whose work sets in step by step as the memory of any
program grows.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes

import dpd_infra as dpd
from dpd_infra.spec.yaml_writing import write_yaml
from dpd_infra.stack import load_file
from dpd_infra.testing import Recorded, Recording, run_program

LIMIT = 1.25
GROWTH = 1.5
REGION = "us-east-2"
ENDPOINT = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
    "instanceType": "ml.p5.48xlarge",
}
Program = Callable[[], None]


def read(count: int, folder: Path) -> tuple[dpd.StackSpec, float]:
    """A stack of so many endpoints, and the seconds that reading and checking it took."""
    file = folder / f"Pulumi.n{count}.yaml"
    endpoints = {f"llama-{number}": ENDPOINT for number in range(count)}
    operator = {"addonVersion": "v1.4.0-eksbuild.1"}
    file.write_text(write_yaml({"config": {"aws:region": REGION, "dpd-infra:operator": operator, "dpd-infra:endpoints": endpoints}}))
    gc.collect()
    begin = time.process_time()
    loaded = load_file(file)
    seconds = time.process_time() - begin
    if loaded.spec is None:
        raise SystemExit(f"the stack is refused: {loaded.findings[0].what}")
    return loaded.spec, seconds


def _provider() -> kubernetes.Provider:
    return kubernetes.Provider("cluster", kubeconfig="{}", cluster_identifier="1")


def ours(spec: dpd.StackSpec) -> Program:
    """The program of a person who uses the library."""

    def program() -> None:
        provider, facts = _provider(), spec.operator
        if facts is None:
            raise SystemExit("the stack says nothing of its operator")
        operator = dpd.OperatorHandle(facts, facts.addon_version, provider, "theirs", REGION, (provider,))
        for name, endpoint in spec.endpoints.items():
            dpd.Endpoint(name, endpoint, operator=operator)

    return program


def raw(recording: Recording) -> Program:
    """The same resources from plain data."""
    made = [resource for resource in recording if resource.type.endswith(":InferenceEndpointConfig")]

    def program() -> None:
        provider = _provider()
        for resource in made:
            _custom(resource, provider)

    return program


def _custom(resource: Recorded, provider: kubernetes.Provider) -> None:
    inputs = resource.inputs
    kubernetes.apiextensions.CustomResource(
        resource.name,
        api_version=inputs["apiVersion"],
        kind=inputs["kind"],
        metadata=inputs["metadata"],
        spec=inputs["spec"],
        opts=pulumi.ResourceOptions(
            provider=provider,
            depends_on=[provider],
            custom_timeouts=pulumi.CustomTimeouts(**dict(resource.timeouts)),
            replace_on_changes=list(resource.replace_on_changes),
        ),
    )


def differences(one: Recording, other: Recording) -> list[str]:
    """What two recordings do not have in common of what the engine is sent."""
    parts = ("type", "name", "inputs", "parent", "provider", "timeouts", "dependencies", "replace_on_changes")
    found = sorted({r.urn for r in one} ^ {r.urn for r in other})
    return found + [
        f"{mine!r} {part}" for mine in one if mine.urn in other for part in parts if getattr(mine, part) != getattr(other[mine.urn], part)
    ]


def main() -> int:
    """Measure and print. 1 where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rounds",
        type=int,
        default=7,
        help="how often each program runs (default 7); those of less than 100 endpoints four times as often",
    )
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 10, 100, 1000], help="how many endpoints")
    options = parser.parse_args()
    status, each = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        read(1, Path(folder))
        for count in options.counts:
            spec, reading = read(count, Path(folder))
            recording = run_program(ours(spec))
            programs = {"ours": ours(spec), "raw": raw(recording)}
            if found := differences(recording, run_program(programs["raw"])):
                print("the raw custom resources are not the same:", *found[:10], sep="\n  ")
                return 1
            alone = measured({"ours": programs["ours"]}, options.rounds, collector=False)["ours"]
            each[count] = alone / count
            print(f"{count:5} endpoints: {each[count] * 1000:.2f} ms each without the collector; file read in {reading * 1000:.0f} ms")
            for preview in (False, True):
                best = measured(programs, options.rounds * (4 if count < 100 else 1), preview=preview)
                ratio = best["ours"] / best["raw"]
                print(
                    f"      {'preview' if preview else 'up':8} ours {best['ours'] * 1000:.0f} ms, raw {best['raw'] * 1000:.0f} ms, "
                    f"ratio {ratio:.3f} (limit {LIMIT:.2f})"
                )
                status |= ratio > LIMIT
    if 100 in each and 1000 in each:
        growth = each[1000] / each[100]
        print(f"an endpoint among 1,000 costs {growth:.2f} times one among 100 (limit {GROWTH})")
        status |= growth > GROWTH
    return int(status)


def measured(programs: dict[str, Program], rounds: int, *, collector: bool = True, preview: bool = False) -> dict[str, float]:
    """Processor seconds of each program, the mean of the faster half; they take turns after one round that is thrown away."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name in list(programs)[:: 1 if number % 2 else -1]:
            gc.collect()
            if not collector:
                gc.disable()
            begin = time.process_time()
            run_program(programs[name], preview=preview)
            if number:
                seconds[name].append(time.process_time() - begin)
            gc.enable()
    return {name: statistics.mean(sorted(found)[: max(1, rounds // 2)]) for name, found in seconds.items()}


if __name__ == "__main__":
    sys.exit(main())
