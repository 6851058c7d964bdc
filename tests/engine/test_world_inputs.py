"""What simulated services take: requests of botocore's model, policies of IAM's grammar; and replacements as they are published."""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ParamValidationError
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from dpd_infra.rehearsal.known_types import is_type_of
from dpd_infra.rehearsal.world.api_shapes import request_problem
from dpd_infra.rehearsal.world.policies import policy_problem
from dpd_infra.rehearsal.world.replacements import FACTS, published, sdk_replacements
from tests.conftest import ROOT
from tools.make_replacement_facts import main, replacing

ROLE = "arn:aws:iam::123456789012:role/node"
GOOD: dict[str, Any] = {
    "clusterName": "inference",
    "orchestrator": {"eks": {"clusterArn": "arn:aws:eks:us-east-2:123456789012:cluster/inference"}},
    "vpcConfig": {"subnets": ["subnet-0a"], "securityGroupIds": ["sg-0a"]},
    "nodeRecovery": "Automatic",
    "nodeProvisioningMode": "Continuous",
    "tieredStorageConfig": {"mode": "Enable", "instanceMemoryAllocationPercentage": 20},
    "tags": [{"key": "team", "value": "inference é/1 +a@b"}],
    "instanceGroups": [
        {
            "instanceGroupName": "prefill",
            "instanceType": "ml.p5.48xlarge",
            "instanceCount": 1,
            "currentCount": 1,
            "executionRole": ROLE,
            "threadsPerCore": 2,
            "lifeCycleConfig": {"sourceS3Uri": "s3://sagemaker-a/scripts/", "onCreate": "on_create.sh"},
            "instanceStorageConfigs": [{"ebsVolumeConfig": {"volumeSizeInGb": 500}}],
            "kubernetesConfig": {"labels": {"role": "prefill"}, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
            "onStartDeepHealthChecks": ["InstanceStress"],
        }
    ],
}


def changed(*path: Any, value: Any) -> dict[str, Any]:
    request = copy.deepcopy(GOOD)
    place: Any = request
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return request


def test_a_good_request_is_taken() -> None:
    assert request_problem("CreateCluster", GOOD) is None
    update = {key: value for key, value in GOOD.items() if key not in ("orchestrator", "vpcConfig", "tags")}
    assert request_problem("UpdateCluster", update) is None


GROUP = ("instanceGroups", 0)
BAD = [
    (("clusterName",), "a_b", "regular expression pattern"),
    (("clusterName",), "a" * 64, "length less than or equal to 63"),
    (("vpcConfig", "subnets"), [], "length greater than or equal to 1"),
    (("vpcConfig", "subnets"), ["subnet-0a"] * 17, "length less than or equal to 16"),
    (("vpcConfig", "securityGroupIds"), ["sg-0a"] * 6, "length less than or equal to 5"),
    (("nodeRecovery",), "Always", "enum value set: [Automatic, None]"),
    (("tieredStorageConfig", "instanceMemoryAllocationPercentage"), 101, "value less than or equal to 100"),
    (("orchestrator", "eks", "clusterArn"), None, "'orchestrator.eks.clusterArn' failed to satisfy constraint: Member must not be null"),
    ((*GROUP, "instanceCount"), -1, "value greater than or equal to 0"),
    ((*GROUP, "instanceCount"), 6759, "value less than or equal to 6758"),
    ((*GROUP, "instanceCount"), "1", "of type integer"),
    ((*GROUP, "instanceCount"), True, "of type integer"),
    ((*GROUP, "instanceType"), "p5.48xlarge", "enum value set"),
    ((*GROUP, "executionRole"), "arn:aws:iam::12:role/nodes-of-ours", "regular expression pattern"),
    ((*GROUP, "executionRole"), None, "Member must not be null"),
    ((*GROUP, "threadsPerCore"), 3, "value less than or equal to 2"),
    ((*GROUP, "instanceStorageConfigs", 0, "ebsVolumeConfig", "volumeSizeInGb"), 16385, "value less than or equal to 16384"),
    ((*GROUP, "kubernetesConfig", "taints", 0, "effect"), "Never", "enum value set: [NoSchedule, PreferNoSchedule, NoExecute]"),
    ((*GROUP, "onStartDeepHealthChecks"), ["All"], "enum value set"),
    ((*GROUP, "instanceTypes"), ["ml.p5.48xlarge"], "Member must be one of"),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD, ids=[f"{case[0][-1]}: {str(case[1])[:12]}" for case in BAD])
def test_each_kind_of_bad_value_is_said_with_its_place(path: tuple[Any, ...], value: Any, words: str) -> None:
    problem = request_problem("CreateCluster", changed(*path, value=value))
    assert problem is not None
    assert problem.startswith("1 validation error detected: Value")
    assert words in problem


def test_every_problem_of_a_request_is_said_at_once() -> None:
    request = changed("clusterName", value="a_b")
    request["instanceGroups"][0]["threadsPerCore"] = 3
    problem = request_problem("CreateCluster", request)
    assert problem is not None
    assert problem.startswith("2 validation errors detected")


def test_what_cannot_be_updated_is_no_member_of_an_update() -> None:
    problem = request_problem("UpdateCluster", {"clusterName": "inference", "vpcConfig": GOOD["vpcConfig"]})
    assert problem is not None
    assert "'vpcConfig'" in problem


def capital(value: Any, shape: Any) -> Any:
    """A request with the API's own member names, as botocore wants it."""
    if shape.type_name == "structure" and isinstance(value, dict):
        members = {name.lower(): name for name in shape.members}
        known = {members[key.lower()]: (key, item) for key, item in value.items() if key.lower() in members}
        return {name: capital(item, shape.members[name]) for name, (_, item) in known.items()}
    if isinstance(value, list) and shape.type_name == "list":
        return [capital(item, shape.member) for item in value]
    return value


@pytest.mark.parametrize(("path", "value", "words"), BAD, ids=[f"{case[0][-1]}: {str(case[1])[:12]}" for case in BAD])
def test_botocores_own_validator_finds_nothing_that_is_not_found_here(path: tuple[Any, ...], value: Any, words: str) -> None:
    """It checks types, required members and lower bounds alone: whatever it refuses is refused here."""
    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
    shape = model.shape_for("CreateClusterRequest")
    for request in (GOOD, changed(*path, value=value)):
        report = ParamValidator().validate(capital(request, shape), shape)
        if report.has_errors():
            assert request_problem("CreateCluster", request) is not None, (words, ParamValidationError(report=report.generate_report()))


def test_the_model_is_read_when_a_cluster_is_made_and_not_before() -> None:
    code = "import sys, dpd_infra.rehearsal.server; assert not any(name.startswith('botocore') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# IAM documents


def policy(**changes: Any) -> str:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::models/*", **changes}
    return json.dumps({"Version": "2012-10-17", "Statement": [{key: value for key, value in statement.items() if value is not None}]})


def trusting(**changes: Any) -> str:
    return policy(**{"Resource": None, "Action": "sts:AssumeRole", "Principal": {"Service": "sagemaker.amazonaws.com"}, **changes})


REFUSED = [
    ("{", False, "Syntax errors in policy."),
    ('{"Version": "2012-10-17"}', False, "Syntax errors in policy."),
    ('{"Version": "2012-10-17", "Statement": []}', False, "Syntax errors in policy."),
    (policy().replace("2012-10-17", "2013-10-17"), False, "Syntax errors in policy."),
    (policy(Extra="a"), False, "Syntax errors in policy."),
    (policy(Effect="allow"), False, "Syntax errors in policy."),
    (policy(Effect=None), False, "Missing required field Effect"),
    (policy(NotAction="s3:PutObject"), False, "Syntax errors in policy."),
    (policy(Action=None), False, "Policy statement must contain actions."),
    (policy(Action="GetObject"), False, "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."),
    (policy(Action="s3:Get:Object"), False, "Actions/Condition can contain only one colon."),
    (policy(Action="s_3:GetObject"), False, "Vendor s_3 is not valid"),
    (policy(Resource=None), False, "Policy statement must contain resources."),
    (policy(Resource="models/*"), False, 'Resource models/* must be in ARN format or "*".'),
    (policy(Resource=5), False, "Syntax errors in policy."),
    (policy(Principal={"AWS": "*"}), False, "Policy document should not specify a principal."),
    (policy(Sid="not alpha"), False, "Statement IDs (SID) must be alpha-numeric."),
    (policy(Condition={"StringSame": {"aws:a": "b"}}), False, "Syntax errors in policy."),
    (policy(Condition={"StringEquals": {"a": "b"}}), False, "Actions/Conditions must be prefaced by a vendor"),
    (policy(Condition={"StringEquals": "a"}), False, "Syntax errors in policy."),
    ('{"Version": "2012-10-17", "Version": "2012-10-17", "Statement": []}', False, "Syntax errors in policy."),
    (trusting(Principal=None), True, "Missing required field Principal"),
    (trusting(Resource="*"), True, "Has prohibited field Resource"),
    (trusting(Principal={"Service": "sagemaker"}), True, 'Invalid principal in policy: "SERVICE":"sagemaker"'),
    (trusting(Principal={"AWS": "admin"}), True, 'Invalid principal in policy: "AWS":"admin"'),
    (trusting(Principal={"Federated": "oidc"}), True, 'Invalid principal in policy: "FEDERATED":"oidc"'),
    (trusting(Principal={"Everyone": "*"}), True, "Syntax errors in policy."),
]


@pytest.mark.parametrize(("text", "trust", "words"), REFUSED)
def test_a_policy_that_breaks_the_grammar_is_refused_in_iams_words(text: str, trust: bool, words: str) -> None:
    problem = policy_problem(text, trust=trust)
    assert problem is not None
    assert problem.startswith(words)


def test_statements_with_one_id_are_refused() -> None:
    twice = json.loads(policy(Sid="a"))
    twice["Statement"] *= 2
    assert policy_problem(json.dumps(twice)) == "Statement IDs (SID) in a single policy must be unique."


TAKEN = [
    (policy(), False),
    (policy(Action=["s3:Get*", "kms:Decrypt"], Resource="*"), False),
    (policy(Action="*", Resource="*"), False),
    (policy(Action=None, NotAction="iam:*"), False),
    (policy(Resource=None, NotResource="arn:aws:s3:::secret"), False),
    (policy(Resource="arn:aws-us-gov:s3:::models"), False),
    (policy(Condition={"ForAllValues:StringLikeIfExists": {"aws:TagKeys": ["a", "b"]}, "Bool": {"aws:SecureTransport": "true"}}), False),
    (policy(Condition={"Null": {"aws:TokenIssueTime": True}, "NumericLessThan": {"s3:max-keys": 10}}), False),
    (policy(Sid="Models1"), False),
    # What a linter warns of and IAM takes.
    (policy(Action="s3:NoSuchAction"), False),
    (trusting(), True),
    (trusting(Principal={"AWS": ["123456789012", "arn:aws:iam::123456789012:root"]}), True),
    (trusting(Principal={"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-2.amazonaws.com/id/A"}), True),
    (trusting(Principal="*"), True),
]


@pytest.mark.parametrize(("text", "trust"), TAKEN)
def test_a_policy_that_iam_takes_is_taken(text: str, trust: bool) -> None:
    assert policy_problem(text, trust=trust) is None


MALFORMED = frozenset({"MALFORMED", "MALFORMED_JSON", "INVALID_ARN", "INVALID_SID", "UNKNOWN_OPERATOR"})


def issues(text: str) -> set[str]:
    """What parliament says of a policy; what it falls over is malformed too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parliament imports pkg_resources
        import parliament
    try:
        return {finding.issue for finding in parliament.analyze_policy_string(text).findings}
    except Exception:  # noqa: BLE001 - its parser has no errors of its own
        return {"MALFORMED"}


def test_parliament_agrees_on_what_is_malformed() -> None:
    refused = [issues(text) for text, trust, _ in REFUSED if not trust]
    assert len([found for found in refused if found & MALFORMED]) >= 12, "most of what is refused is malformed to the linter as well"
    for text, trust in TAKEN:
        assert trust or not issues(text) & {"MALFORMED", "MALFORMED_JSON"}, text


# Replacements


def test_the_hyperpod_cluster_is_replaced_by_what_the_sdk_says() -> None:
    assert set(sdk_replacements("pulumi_aws_native", "aws-native:sagemaker:Cluster")) == {"clusterName", "orchestrator.eks", "vpcConfig"}


@pytest.mark.parametrize(
    ("token", "attribute"),
    [
        ("aws-native:ecr:Repository", "repositoryName"),
        ("aws-native:sagemaker:DataQualityJobDefinition", "endpointName"),
        ("aws-native:eks:Addon", "addonName"),
    ],
)
def test_every_cloud_control_type_is_read_from_the_sdk(token: str, attribute: str) -> None:
    assert attribute in sdk_replacements("pulumi_aws_native", token) or f"{attribute[:-4]}*" in sdk_replacements("pulumi_aws_native", token)


def test_a_type_without_a_file_has_no_replacements() -> None:
    assert sdk_replacements("pulumi_aws_native", "aws-native:sagemaker:Nothing") == ()
    assert sdk_replacements("no_such_package", "aws-native:sagemaker:Cluster") == ()


FACT_TYPES: dict[str, Any] = json.loads(FACTS.read_text(encoding="utf-8"))["types"]


@pytest.mark.parametrize("token", sorted(FACT_TYPES))
def test_every_published_path_is_an_input_of_the_installed_sdk(token: str) -> None:
    assert is_type_of("pulumi_aws", token)
    _, module, name = token.split(":")
    spec = importlib.util.find_spec("pulumi_aws")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / module.split("/")[0]
    tree = next(
        node
        for file in sorted(folder.glob("*.py"))
        if file.stem.replace("_", "").removesuffix("_") == name.lower()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name in (f"{name}Args", f"{name}InitArgs")
    )
    inputs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for path in published(token):
        assert path.split(".")[0] in inputs, (token, path)
    assert FACT_TYPES[token]["read"], "each list says where it was read"


def test_every_simulated_aws_type_has_its_published_list() -> None:
    from dpd_infra.rehearsal.aws import _TYPES

    assert {kind.token for kind in _TYPES} <= set(FACT_TYPES)
    assert not any(kind.replace_on for kind in _TYPES), "no opinion of our own"


def made_in(*folders: str) -> dict[str, str]:
    """Every type of pulumi-aws that the code of these folders makes, with the place where it does."""
    found: dict[str, str] = {}
    for file in sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        for module, name in re.findall(r"\baws\.(\w+)\.([A-Z]\w*)\(", file.read_text(encoding="utf-8")):
            token = f"aws:{module}/{name[0].lower()}{name[1:]}:{name}"
            if is_type_of("pulumi_aws", token):
                found[token] = str(file.relative_to(ROOT))
    return found


def test_every_type_that_the_library_the_stacks_and_the_examples_make_has_its_published_list() -> None:
    made = made_in("dpd_infra/components", "stacks", "examples")
    assert len(made) > 25
    assert {token: place for token, place in made.items() if token not in FACT_TYPES} == {}


def test_every_type_in_the_recorded_graphs_has_its_published_list() -> None:
    """Stacks and examples as they were registered, whatever the code that did it looks like."""
    texts = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests" / "engine" / "snapshots").iterdir())]
    made = {token for text in texts for token in re.findall(r"\baws:[a-zA-Z0-9]+/[A-Za-z0-9]+:[A-Za-z0-9]+", text)}
    assert len(made) > 25
    assert made - set(FACT_TYPES) == set()


SCHEMA = {
    "version": "7.51.1",
    "resources": {
        "aws:eks/cluster:Cluster": {
            "inputProperties": {
                "name": {"type": "string", "willReplaceOnChanges": True},
                "version": {"type": "string"},
                "accessConfig": {"$ref": "#/types/aws:eks/ClusterAccessConfig:ClusterAccessConfig"},
                "groups": {"type": "array", "items": {"$ref": "#/types/aws:eks/Group:Group"}},
            }
        }
    },
    "types": {
        "aws:eks/ClusterAccessConfig:ClusterAccessConfig": {
            "properties": {"authenticationMode": {"type": "string"}, "bootstrap": {"type": "boolean", "willReplaceOnChanges": True}}
        },
        "aws:eks/Group:Group": {"properties": {"id": {"type": "string", "willReplaceOnChanges": True}}},
    },
}


def test_the_script_reads_a_published_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert replacing(SCHEMA, "aws:eks/cluster:Cluster") == ["accessConfig.bootstrap", "groups.id", "name"]
    facts, schema = tmp_path / "facts.json", tmp_path / "schema.json"
    facts.write_text(json.dumps({"types": {"aws:eks/cluster:Cluster": {"replaces": ["name"], "read": "before"}}}), encoding="utf-8")
    schema.write_text(json.dumps(SCHEMA), encoding="utf-8")
    monkeypatch.setattr("tools.make_replacement_facts.FACTS", facts)
    assert main([str(schema), "--check"]) == 1
    assert "aws:eks/cluster:Cluster: ['name'] here" in capsys.readouterr().out
    assert main([str(schema)]) == 0
    assert main([str(schema), "--check"]) == 0
    assert json.loads(facts.read_text(encoding="utf-8"))["types"]["aws:eks/cluster:Cluster"]["read"] == "pulumi-aws 7.51.1, schema"
