"""How long a suite of ten tests takes with the test kit, against the same ten tests with bare `pulumi.runtime.set_mocks`.

    python bench/test_kit.py [--rounds 7]

Both suites test `examples/own_tests`: every test runs the whole program once and looks at it. Two ratios are printed, and the exit code
is 1 where one of them is 2 or more: of whole pytest processes (imports included), which run in turns, and of the tests' own time inside
one process, again in turns. Times are processor seconds, which other work on the machine stretches little; ratios are of medians.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 2.0

CHECKS = """
def test_the_cluster_has_its_name():
    assert one(run(), "aws-native:sagemaker:Cluster")["clusterName"] == "chat"


def test_each_role_has_a_pool_of_its_own():
    groups = one(run(), "aws-native:sagemaker:Cluster")["instanceGroups"]
    assert {group["instanceGroupName"]: int(group["instanceCount"]) for group in groups} == {"decode": 1, "prefill": 2, "system": 2}


def test_prefill_has_more_replicas_than_decode():
    roles = one(run(), ENDPOINT)["spec"]["pdSpec"]
    assert roles["prefillSpec"]["replicas"] > roles["decodingSpec"]["replicas"]


def test_short_prompts_are_not_disaggregated():
    assert one(run(), ENDPOINT)["spec"]["pdSpec"]["routingThreshold"] == 4096


def test_the_endpoint_waits_for_the_operators_word():
    assert "pulumi.com/waitFor" in one(run(), ENDPOINT)["metadata"]["annotations"]


def test_everything_is_in_the_stacks_region():
    assert one(run(), "pulumi:providers:aws")["region"] == "us-east-2"


def test_the_applications_vpc_is_peered():
    assert one(run(), "aws:ec2/vpcPeeringConnection:VpcPeeringConnection")["peerVpcId"] == "vpc-0fedcba9876543210"


def test_what_we_add_carries_our_tags():
    assert one(run(), "aws:ec2/vpcPeeringConnection:VpcPeeringConnection")["tags"]["team"] == "chat"


def test_there_is_one_way_out():
    assert one(run(), "aws:ec2/natGateway:NatGateway")["subnetId"]


def test_kubernetes_secrets_are_encrypted():
    assert one(run(), "aws:eks/cluster:Cluster")["encryptionConfig"]["resources"] == ["secrets"]
"""

KIT = """
from pathlib import Path

from dpd_infra.testing import run_project

ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"


def run():
    return run_project("dev", Path(__file__).parent)


def one(recording, type_):
    return recording.one(type_).inputs
"""

BARE = """
import json
import logging
import os
import runpy
from pathlib import Path

import pulumi
import yaml
from pulumi.runtime.sync_await import _sync_await

from dpd_infra.plan.project import Project, use_project

ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"
PROJECT = Path(__file__).parent.parent
ACCOUNT = "111122223333"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/session"
RESULTS = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": ACCOUNT, "arn": SESSION, "id": ACCOUNT, "userId": "AROA"},
    "aws:iam/getSessionContext:getSessionContext": {
        "arn": SESSION, "id": SESSION, "issuerArn": f"arn:aws:iam::{ACCOUNT}:role/deployer", "sessionName": "session"
    },
    "aws:index/getPartition:getPartition": {"partition": "aws", "dnsSuffix": "amazonaws.com", "id": "aws"},
    "aws:s3/getObject:getObject": {"bucket": "lifecycle", "key": "instance-groups.json", "body": "", "id": "lifecycle"},
}


QUIET = logging.Logger("quiet", logging.CRITICAL)


class Mocks(pulumi.runtime.Mocks):
    def __init__(self):
        self.made = []

    def new_resource(self, args):
        self.made.append((args.typ, args.name, args.inputs))
        name = args.inputs.get("name", args.name)
        state = dict(args.inputs)
        if args.typ.startswith("aws:"):
            _, module, kind = args.typ.split(":")
            state["arn"] = f"arn:aws:{module.split('/')[0]}:us-east-2:{ACCOUNT}:{kind.lower()}/{name}"
        if args.typ == "aws:iam/role:Role":
            state |= {"arn": f"arn:aws:iam::{ACCOUNT}:role/{name}", "name": name}
        if args.typ == "aws:s3/bucket:Bucket":
            state |= {"arn": f"arn:aws:s3:::{args.inputs['bucket']}", "bucket": args.inputs["bucket"]}
        if args.typ == "aws:ec2/eip:Eip":
            state |= {"allocationId": "eipalloc-1", "publicIp": "198.51.100.1"}
        if args.typ == "aws:kms/key:Key":
            state |= {"keyId": name}
        if args.typ == "aws:eks/addon:Addon":
            state |= {"addonVersion": args.inputs.get("addonVersion") or "v9.9.9-eksbuild.1"}
        if args.typ == "aws:eks/cluster:Cluster":
            state |= {
                "endpoint": "https://chat.eks.amazonaws.com",
                "certificateAuthority": {"data": "Q0E="},
                "identities": [{"oidcs": [{"issuer": "https://oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"}]}],
                "vpcConfig": {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-1", "vpcId": "vpc-1"},
            }
        if args.typ == "aws-native:sagemaker:Cluster":
            state |= {"clusterArn": f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:cluster/chat", "clusterStatus": "InService"}
        if args.typ == "kubernetes:helm.sh/v3:Release":
            state |= {"status": {"status": "deployed", "name": name}}
        return f"{name}-id", state

    def call(self, args):
        return RESULTS[args.token]


def program():
    runpy.run_path(str(PROJECT / "__main__.py"), run_name="__main__")


def run():
    mocks = Mocks()
    config = yaml.safe_load((PROJECT / "Pulumi.dev.yaml").read_text())["config"]
    pulumi.runtime.settings.reset_options()
    pulumi.runtime.set_mocks(mocks, project="own-tests", stack="dev", preview=False, logger=QUIET)
    pulumi.runtime.set_all_config({key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()})
    before = Path.cwd()
    os.chdir(PROJECT)
    try:
        with use_project(Project(root=PROJECT, chart_required=False)):
            _sync_await(pulumi.runtime.stack.run_pulumi_func(program))
    finally:
        os.chdir(before)
    return mocks.made


def one(made, type_):
    found = [inputs for made_type, _, inputs in made if made_type == type_]
    assert len(found) == 1, found
    return found[0]
"""


def main() -> int:
    """Measure and print. 1 where a ratio is at the limit or over it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each suite runs (default 7)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        suites = written(Path(folder))
        whole = compare({name: lambda path=path: pytest_seconds(path) for name, path in suites.items()}, rounds)
        modules = {name: load(path, name) for name, path in suites.items()}
        warm = compare({name: lambda module=module: own_seconds(module) for name, module in modules.items()}, rounds)
    return max(report("ten tests, whole pytest process", whole), report("ten tests, imports done", warm))


def written(folder: Path) -> dict[str, Path]:
    """Both suites, in a copy of the project that they test."""
    project = Path(shutil.copytree(ROOT / "examples" / "own_tests", folder / "project"))
    shutil.rmtree(project / "tests")
    suites = {name: project / name / "test_suite.py" for name in ("kit", "bare")}
    for name, head in (("kit", KIT), ("bare", BARE)):
        suites[name].parent.mkdir()
        suites[name].write_text(head + CHECKS, encoding="utf-8")
    return suites


def compare(measures: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds by name, measured in turns after one round that is thrown away."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name in measures if number % 2 else reversed(measures):
            seconds = measures[name]()
            if number:
                found[name].append(seconds)
    return found


def pytest_seconds(path: Path) -> float:
    """The processor seconds of one pytest process; raises where a test fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(path.parent), str(path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False)
    if "10 passed" not in done.stdout:
        raise SystemExit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def load(path: Path, name: str) -> ModuleType:
    """A suite as a module of this process."""
    spec = importlib.util.spec_from_file_location(f"{name}_suite", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def own_seconds(module: ModuleType) -> float:
    """The processor seconds of a suite's ten tests."""
    tests = [test for name, test in vars(module).items() if name.startswith("test_")]
    gc.collect()
    begin = time.process_time()
    for test in tests:
        test()
    return time.process_time() - begin


def report(what: str, seconds: dict[str, list[float]]) -> int:
    """Print one line; 1 where the kit takes twice as long or longer."""
    kit, bare = (statistics.median(seconds[name]) for name in ("kit", "bare"))
    print(f"{what}: kit {kit:.2f} s, bare set_mocks {bare:.2f} s, ratio {kit / bare:.2f} (limit {LIMIT:.2f})")
    return int(kit / bare >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
