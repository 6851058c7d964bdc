"""The world file: what it may say, one report for a bad one, and an account that persists while the world is what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.world import World, WorldRefused
from dpd_infra.rehearsal.world.file import Existing, Quotas
from tests.docs import Snippet, snippets
from tests.engine.world_kit import Direct

GOOD = """\
quotas:
  clusterInstances: {ml.p5.48xlarge: 4}
  vpcs: 5
capacity:
  us-east-2a: {ml.p5.48xlarge: 2}
existing:
  buckets: [my-models]
  roles: [admin]
  vpcs:
    - id: vpc-0a
      cidr: 10.0.0.0/16
      subnets:
        - {id: subnet-0a, zone: us-east-2a, cidr: 10.0.0.0/20, addressesInUse: 100}
        - {id: subnet-0b, zone: us-east-2b, cidr: 10.0.16.0/20, wayOut: none}
      securityGroups: [{id: sg-0a}, {id: sg-0b, openToItself: false}]
  eksClusters: [{name: shared-eks, vpc: vpc-0a, dependenciesChart: true}]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "world.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_bounds_capacity_and_quotas(tmp_path: Path) -> None:
    world = World.read(write(tmp_path, GOOD))
    assert world.quotas.cluster_instances == {"ml.p5.48xlarge": 4}
    assert world.capacity_of("us-east-2a", "ml.p5.48xlarge") == 2
    assert world.capacity_of("us-east-2b", "ml.p5.48xlarge") == 0, "a type that a zone names is to be had there alone"
    assert world.capacity_of("us-east-2b", "ml.p5en.48xlarge") is None, "a type that no zone names has room"


def test_an_empty_file_and_none_have_room(tmp_path: Path) -> None:
    for world in (World.read(write(tmp_path, "")), World.read(write(tmp_path, "# nothing\n")), World.default()):
        assert world == World.default()
        assert world.quotas.vpcs is None
        assert world.capacity_of("us-east-2a", "ml.p5.48xlarge") is None


BAD = """\
quotas:
  clusterInstances: {ml.p5.48xlarge: "four"}
  vpc: 5
capacity:
  us-east-2: {ml.p5.48xlarge: 2}
  us-east-2a: {ml.p5.48xlarge: -1}
existing:
  vpcs: [{id: vpc-0a}]
  eksClusters: [{name: eks, vpc: vpc-0b}]
"""


def test_every_mistake_of_a_file_is_reported_at_once_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, BAD)
    with pytest.raises(WorldRefused) as caught:
        World.read(path)
    report = str(caught.value)
    places = {(finding.line, finding.what) for finding in caught.value.findings}
    assert {line for line, _ in places} >= {2, 3, 5, 6, 8}
    for words in ("must be a whole number, found 'four'", "unknown key 'vpc'", "did you mean 'vpcs'?", "must be 0 or more, found -1"):
        assert words in report
    assert f"{path}:3:3" in report
    assert report.endswith("errors")
    assert "Traceback" not in report


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "a world file is a mapping"),
        ("quotas: {", "not YAML"),
        ("quotas:\n\tvpcs: 1", "a tab where YAML wants spaces"),
        ("quotas: {vpcs: 1, vpcs: 2}", "vpcs"),
        ("existing: {eksClusters: [{name: eks, vpc: vpc-0b}]}", "EKS cluster eks stands in vpc-0b, which is not among vpcs"),
    ],
)
def test_other_bad_files_have_one_report_too(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(WorldRefused, match="error DPD000") as caught:
        World.read(write(tmp_path, text))
    assert words in str(caught.value)


CONTRARY = """\
existing:
  region: mars
  buckets: [my-models, my-models, ""]
  operatorVersion: banana
  vpcs:
    - id: vpc-0a
      cidr: 10.0.0.0/99
    - id: vpc-0b
      cidr: 10.0.0.1/16
      subnets: [{id: "", zone: us-east-2a, cidr: 300.0.0.0/18}]
"""

IMPOSSIBLE = """\
existing:
  buckets: [my-models, my-models]
  roles: [admin, deployer, admin]
  vpcs:
    - id: vpc-0a
      cidr: 10.0.0.0/16
      subnets:
        - {id: subnet-0a, zone: us-east-2a, cidr: 10.0.0.0/18}
        - {id: subnet-0b, zone: us-east-2b, cidr: 10.0.32.0/20}
        - {id: subnet-0a, zone: us-east-2b, cidr: 10.0.64.0/28, addressesInUse: 12}
      securityGroups: [{id: sg-0a}]
    - id: vpc-0a
      cidr: 10.0.0.0/16
      subnets: [{id: subnet-0c, zone: us-east-2a, cidr: 10.0.0.0/18, addressesInUse: 16379}]
      securityGroups: [{id: sg-0a}]
      routeTables: [{id: rtb-0a}, {id: rtb-0a}]
  eksClusters: [{name: eks, vpc: vpc-0a}, {name: eks, vpc: vpc-0a}]
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [(CONTRARY, [2, 3, 4, 7, 9, 10, 10]), (IMPOSSIBLE, [2, 3, 9, 10, 10, 12, 15, 16, 17])],
    ids=["no such thing", "not both"],
)
def test_what_cannot_be_is_reported_at_once_with_its_place(text: str, lines: list[int], tmp_path: Path) -> None:
    # AWS: 16 addresses of a /28, of which 5 are its own; 16,384 of a /18 (subnet sizing guide).
    path = write(tmp_path, text)
    with pytest.raises(WorldRefused) as caught:
        World.read(path)
    assert sorted(finding.line for finding in caught.value.findings) == lines, str(caught.value)


def test_a_file_that_is_not_there_or_is_binary_is_a_report(tmp_path: Path) -> None:
    with pytest.raises(WorldRefused, match="No such file or directory"):
        World.read(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\x00\xfe\x00quotas")
    with pytest.raises(WorldRefused):
        World.read(tmp_path / "binary.yaml")
    with pytest.raises(WorldRefused, match="cannot be read"):
        World.read(tmp_path)


def test_what_the_file_names_exists_and_is_taken(tmp_path: Path) -> None:
    account = SimulatedAccount(world=World.read(write(tmp_path, GOOD)))
    direct = Direct(account)
    with pytest.raises(SimulatedError, match="BucketAlreadyOwnedByYou"):
        direct.create(base.BUCKET, "models", {"bucket": "my-models"})
    with pytest.raises(SimulatedError, match="Role with name admin already exists"):
        direct.create(base.ROLE, "admin", {"name": "admin", "assumeRolePolicy": "{}"})
    assert direct.providers["aws"].invokes["aws:eks/getCluster:getCluster"](account, {"region": "us-east-2"}, {"name": "shared-eks"})[
        "version"
    ]
    subnet = direct.providers["aws"].invokes["aws:ec2/getSubnet:getSubnet"](account, {"region": "us-east-2"}, {"id": "subnet-0a"})
    # 4096 - 5 that AWS keeps - 100 of others - 1 of the control plane.
    assert subnet["availableIpAddressCount"] == 3990
    found = account.find(base.SUBNET, "subnet-0a", region="us-east-2")
    assert found is not None
    with pytest.raises(SimulatedError, match="DependencyViolation"):
        direct.delete(found)


def test_the_account_persists_and_the_world_is_what_it_is_now(tmp_path: Path) -> None:
    state, file = tmp_path / "account.json", write(tmp_path, GOOD)
    first = SimulatedAccount(state, world=World.read(file))
    made = Direct(first).create(base.BUCKET, "own", {"bucket": "own-bucket"})
    data = yaml.safe_load(GOOD)
    data["existing"] = {"buckets": ["other-models"]}
    second = SimulatedAccount(state, world=World.read(write(tmp_path, yaml.safe_dump(data))))
    assert second.find(base.BUCKET, made.id) is not None, "what a program made stays"
    assert second.find(base.BUCKET, "other-models") is not None
    assert second.find(base.BUCKET, "my-models") is None, "what the file no longer names is gone"
    assert not second.all(base.CLUSTER)
    third = SimulatedAccount(state)
    assert [item.id for item in third.all(base.BUCKET)] == ["own-bucket"], "without a file the world is the default one"


WORLDS = [snippet for snippet in snippets("yaml") if snippet.text.startswith(("quotas:", "capacity:", "existing:"))]


@pytest.mark.parametrize("snippet", WORLDS, ids=str)
def test_a_world_in_the_documents_is_one(snippet: Snippet, tmp_path: Path) -> None:
    SimulatedAccount(world=World.read(write(tmp_path, snippet.text)))


def test_the_documents_name_every_key_of_a_world() -> None:
    text = "".join(snippet.text for snippet in WORLDS)
    fields = [field for model in (World, Quotas, Existing) for field in model.model_fields.values()]
    assert not [field.alias for field in fields if f"{field.alias}:" not in text]
