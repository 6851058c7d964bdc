"""The test kit keeps every registration with its options, answers as an engine does, and says what is wrong in words that help."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from dpd_infra.testing import (
    UNKNOWN,
    Answers,
    PlatformMocks,
    Recording,
    assert_manifest,
    assert_snapshot,
    run_program,
    run_project,
    secret,
)
from tests.conftest import ROOT

DEV = ROOT / "stacks" / "Pulumi.dev.yaml"
TEST_TYPE = "test:index:Thing"


class Shelf(pulumi.ComponentResource):
    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("test:index:Shelf", name, None, opts)
        self.thing = thing(f"{name}-thing", opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({"thing": self.thing.id, "token": pulumi.Output.secret("s3cret")})


def thing(name: str, opts: pulumi.ResourceOptions | None = None, **inputs: Any) -> pulumi.CustomResource:
    return pulumi.CustomResource(TEST_TYPE, name, inputs, opts)


# What is kept


def test_every_option_of_a_registration_is_kept(preview: bool) -> None:
    def program() -> None:
        provider = aws.Provider("mine", region="us-west-2")
        first = thing("first")
        shelf = Shelf("shelf", pulumi.ResourceOptions(providers=[provider]))
        thing(
            "second",
            pulumi.ResourceOptions(
                parent=shelf,
                protect=True,
                depends_on=[first],
                custom_timeouts=pulumi.CustomTimeouts(create="5m", delete="1h"),
                ignore_changes=["size"],
                replace_on_changes=["color"],
                delete_before_replace=True,
                retain_on_delete=True,
                deleted_with=first,
                additional_secret_outputs=["password"],
                import_="thing-123",
                version="1.2.3",
                aliases=[pulumi.Alias(name="old"), "urn:pulumi:prod::other::test:index:Thing::whole"],
            ),
            size=first.id,
        )
        aws.sns.Topic("alerts", opts=pulumi.ResourceOptions(parent=shelf))

    recording = run_program(program, preview=preview, project="shop", stack="dev")
    second, first, shelf = recording.named("second"), recording.named("first"), recording.named("shelf")
    assert second.parent == shelf.urn == "urn:pulumi:dev::shop::test:index:Shelf::shelf"
    assert second.urn == "urn:pulumi:dev::shop::test:index:Shelf$test:index:Thing::second"
    assert (second.protect, second.delete_before_replace, second.retain_on_delete) == (True, True, True)
    assert second.dependencies == (first.urn,)
    assert second.property_dependencies == {"size": (first.urn,)}
    assert second.timeouts == {"create": "5m", "delete": "1h"}
    assert second.ignore_changes == ("size",)
    assert second.replace_on_changes == ("color",)
    assert second.deleted_with == first.urn
    assert second.additional_secret_outputs == ("password",)
    assert second.import_id == "thing-123"
    assert second.version == "1.2.3"
    assert second.aliases == (
        "urn:pulumi:dev::shop::test:index:Shelf$test:index:Thing::old",
        "urn:pulumi:prod::other::test:index:Thing::whole",
    )
    assert first.protect is None
    assert not first.aliases
    assert shelf.providers == {"aws": recording.one("pulumi:providers:aws").urn}
    assert recording.one("Topic").provider == recording.one("pulumi:providers:aws").urn
    assert (shelf.custom, second.custom) == (False, True)


def test_an_alias_says_where_a_resource_was_before() -> None:
    def program() -> None:
        shelf = Shelf("shelf")
        thing("moved", pulumi.ResourceOptions(parent=shelf, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]))
        thing("typed", pulumi.ResourceOptions(aliases=[pulumi.Alias(type_="old:index:Thing", stack="before", project="shop")]))

    recording = run_program(program, project="shop", stack="dev")
    assert recording.named("moved").aliases == ("urn:pulumi:dev::shop::test:index:Thing::moved",)
    assert recording.named("typed").aliases == ("urn:pulumi:before::shop::old:index:Thing::typed",)


def test_hooks_are_kept_by_event() -> None:
    def program() -> None:
        hook = pulumi.ResourceHook("look", lambda _: None)
        thing("watched", pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(after_create=[hook])))

    assert run_program(program).named("watched").hooks == {"afterCreate": ("look",)}


def test_a_urn_that_comes_twice_is_refused_in_the_engines_words() -> None:
    def program() -> None:
        thing("same")
        thing("same")

    recording = run_program(program, expect=Exception)
    assert "Duplicate resource URN 'urn:pulumi:test::project::test:index:Thing::same'" in str(recording.error)
    assert len(recording.of_type(TEST_TYPE)) == 1


def test_one_name_under_two_components_is_no_duplicate() -> None:
    def program() -> None:
        for name in ("a", "b"):
            parent = pulumi.ComponentResource(f"test:index:{name.upper()}", name)
            thing("same", pulumi.ResourceOptions(parent=parent))

    assert len(run_program(program).of_type(TEST_TYPE)) == 2


def test_secrets_are_unwrapped_and_named() -> None:
    def program() -> None:
        thing("vault", password=pulumi.Output.secret("p4ss"), deep={"list": ["plain", pulumi.Output.secret({"key": 1})]})
        pulumi.export("token", pulumi.Output.secret("t0ken"))
        pulumi.export("plain", 1)
        Shelf("shelf")

    recording = run_program(program)
    vault = recording.named("vault")
    assert vault.inputs == {"password": "p4ss", "deep": {"list": ["plain", {"key": 1}]}}
    assert vault.secrets == {"password", "deep.list[1]"}
    assert recording.exports == {"token": "t0ken", "plain": 1}
    assert recording.secret_exports == {"token"}
    shelf = recording.named("shelf").urn
    assert recording.component_outputs[shelf]["token"] == "s3cret"
    assert recording.secret_component_outputs[shelf] == {"token"}


def test_assets_and_resources_among_the_inputs_are_plain_data() -> None:
    def program() -> None:
        first = thing("first")
        thing("second", file=pulumi.StringAsset("hello"), other=first)

    recording = run_program(program)
    inputs = recording.named("second").inputs
    assert inputs["file"]["text"] == "hello"
    assert inputs["other"] == recording.named("first").urn


def test_what_a_program_logs_is_kept() -> None:
    recording = run_program(lambda: pulumi.log.warn("mind the gap"))
    assert recording.warnings() == ["mind the gap"]


# How it answers


def test_a_preview_does_not_know_what_an_update_knows() -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")
        thing("user", vpc=vpc.id, arn=vpc.arn, cidr=vpc.cidr_block)
        pulumi.export("vpc", vpc.id)

    before, after = (run_program(program, preview=mode) for mode in (True, False))
    assert before.named("user").inputs["vpc"] is UNKNOWN
    assert before.named("user").inputs["arn"] is UNKNOWN
    assert before.named("user").inputs["cidr"] == "10.0.0.0/16"
    assert before.exports["vpc"] is UNKNOWN
    assert after.named("user").inputs["vpc"] == after.exports["vpc"] == "net-id"
    assert after.named("user").inputs["arn"].startswith("arn:aws:ec2:us-east-2:111122223333:vpc/")


def test_the_region_of_the_answers_is_the_configurations() -> None:
    def program() -> None:
        pulumi.export("region", aws.get_region().region)
        pulumi.export("arn", aws.sns.Topic("alerts").arn)

    exports = run_program(program, config={"aws:region": "eu-west-1"}, answers=None).exports
    assert exports["region"] == "eu-west-1"
    assert exports["arn"].startswith("arn:aws:sns:eu-west-1:111122223333:")
    other = run_program(program, answers=Answers(account_id="999988887777", region="us-west-2")).exports
    assert other["arn"].startswith("arn:aws:sns:us-west-2:999988887777:")


def test_a_data_source_answers_what_the_test_says(preview: bool) -> None:
    token = "aws:ec2/getVpc:getVpc"

    def program() -> None:
        pulumi.export("vpc", aws.ec2.get_vpc(tags={"Name": "main"}).id)

    recording = run_program(program, preview=preview, invokes={token: {"id": "vpc-1"}})
    assert recording.exports == {"vpc": "vpc-1"}
    assert recording.invokes == [(token, {"tags": {"Name": "main"}})]
    by_arguments = run_program(program, preview=preview, invokes={token: lambda asked: {"id": f"vpc-{asked['tags']['Name']}"}})
    assert by_arguments.exports == {"vpc": "vpc-main"}


def test_a_data_source_that_nobody_answered_says_how_to() -> None:
    recording = run_program(lambda: aws.ec2.get_vpc(id="vpc-1"), expect=Exception)
    assert 'invokes={"aws:ec2/getVpc:getVpc"' in str(recording.error)


def test_outputs_that_the_test_names_reach_the_program_secrets_among_them() -> None:
    def program() -> None:
        database = pulumi.CustomResource("test:index:Database", "db", {"host": None, "password": None})
        pulumi.export("host", getattr(database, "host"))  # noqa: B009 - set by the SDK
        pulumi.export("password", getattr(database, "password"))  # noqa: B009

    recording = run_program(
        program, outputs=lambda type_, name, _: {"host": f"{name}.internal", "password": secret("p4ss")} if "Database" in type_ else {}
    )
    assert recording.exports == {"host": "db.internal", "password": "p4ss"}
    assert recording.secret_exports == {"password"}


def test_another_stack_exports_what_the_test_says(preview: bool) -> None:
    def program() -> None:
        other = pulumi.StackReference("network", stack_name="acme/network/prod")
        pulumi.export("vpc", other.require_output("vpcId"))
        pulumi.export("key", other.get_output("key"))

    stacks = {"acme/network/prod": {"vpcId": "vpc-1", "key": secret("k3y")}}
    recording = run_program(program, preview=preview, stacks=stacks)
    assert recording.exports == {"vpc": "vpc-1", "key": "k3y"}
    assert recording.secret_exports == {"key"}
    assert recording.named("network").read


def test_a_stack_that_nobody_described_says_how_to(preview: bool) -> None:
    def program() -> None:
        pulumi.export("all", pulumi.StackReference("acme/network/prod").outputs)

    unsaid = run_program(program, preview=preview, expect=Exception, stacks={"acme/other/prod": {}})
    assert "acme/network/prod" in str(unsaid.error)
    assert "stacks has acme/other/prod" in str(unsaid.error)


def test_configuration_and_its_secrets_reach_the_program() -> None:
    def program() -> None:
        config = pulumi.Config("shop")
        pulumi.export("size", config.require_int("size"))
        pulumi.export("key", config.require_secret("key"))

    recording = run_program(program, config={"shop:size": "3", "shop:key": "k3y"}, secret_keys=["shop:key"])
    assert recording.exports == {"size": 3, "key": "k3y"}
    assert recording.secret_exports == {"key"}


# How it runs


def test_an_asynchronous_program_and_pulumi_run_work_as_they_do_on_an_engine() -> None:
    async def program() -> None:
        await asyncio.sleep(0)
        thing("late")

        async def more() -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"made": thing("later").urn}

        pulumi.run(more)

    recording = run_program(program)
    assert [resource.name for resource in recording] == ["late", "later"]
    assert recording.exports == {"made": recording.named("later").urn}


def test_it_runs_inside_a_running_event_loop_too() -> None:
    async def test() -> Recording:
        return run_program(lambda: thing("inner"))

    assert len(asyncio.run(test())) == 1


def test_a_run_leaves_no_trace_in_the_test_that_made_it() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        before = os.environ.copy(), Path.cwd(), list(sys.path)
        run_program(lambda: thing("one"), config={"shop:size": "3"}, project="shop")
        run_project("dev", ROOT)
        assert asyncio.get_event_loop() is loop
        assert not loop.is_closed()
        assert (os.environ.copy(), Path.cwd(), list(sys.path)) == before
        assert pulumi.Config("shop").get("size") is None
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_an_error_of_the_program_is_the_tests_own() -> None:
    def program() -> None:
        thing("one")
        raise LookupError("no such shop")

    with pytest.raises(LookupError, match="no such shop"):
        run_program(program)
    recording = run_program(program, expect=LookupError)
    assert isinstance(recording.error, LookupError)
    assert recording.named("one")
    with pytest.raises(AssertionError, match="LookupError was expected and not raised"):
        run_program(lambda: thing("one"), expect=LookupError)


def test_an_error_in_a_callback_on_an_output_is_not_lost() -> None:
    def refuse(_: str) -> str:
        raise ValueError("not this one")

    def program() -> None:
        thing("user", value=thing("source").id.apply(refuse))

    with pytest.raises(ValueError, match="not this one"):
        run_program(program)


# What it says


def test_questions_that_have_no_one_answer_say_what_there_is() -> None:
    def program() -> None:
        aws.ec2.Vpc("main-vpc", cidr_block="10.0.0.0/16")
        aws.sns.Topic("a")
        aws.sns.Topic("b")

    recording = run_program(program)
    with pytest.raises(AssertionError, match="near it are main-vpc"):
        recording.named("main-vcp")
    with pytest.raises(AssertionError, match=r"2 resources are of type Topic: a, b"):
        recording.one("Topic")
    with pytest.raises(AssertionError, match=r"no Topic is named 'c'.*there are a, b"):
        recording.one("Topic", "c")
    with pytest.raises(AssertionError, match=r"no resource is of type Bucket.*Topic x2, Vpc"):
        recording.one("Bucket")
    with pytest.raises(KeyError, match="nothing was registered as urn"):
        recording["urn:pulumi:test::project::x:y:Z::none"]
    assert recording.one("Topic", "b") is recording.named("b")
    assert recording.of_type("Bucket") == []


def test_a_path_of_dependencies_goes_through_components_and_providers() -> None:
    def program() -> None:
        first = thing("first")
        middle = thing("middle", value=first.id)
        last = thing("last", pulumi.ResourceOptions(depends_on=[middle]))
        thing("apart")
        thing("child", pulumi.ResourceOptions(parent=last))

    recording = run_program(program)
    path = recording.depends_path(recording.named("child"), recording.named("first"))
    assert path is not None
    assert [resource.name for resource in path] == ["child", "last", "middle", "first"]
    assert recording.depends_path(recording.named("first"), recording.named("child")) is None
    assert recording.depends_path(recording.named("apart"), recording.named("first")) is None


# Projects


def test_a_project_runs_with_its_own_program_and_its_stack_file(preview: bool) -> None:
    recording = run_project("dev", ROOT / "stacks", preview=preview)
    assert recording.one("aws-native:sagemaker:Cluster").inputs["clusterName"] == "inference-dev"
    assert recording.one("InferenceEndpointConfig").inputs["metadata"]["name"] == "llama-70b"
    assert recording.exports["zone"] == "us-east-2a"
    assert recording.resources[0].urn.startswith("urn:pulumi:dev::dpd-infra::")


def test_encrypted_values_stand_in_or_are_said(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\nconfig:\n  size: 2\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config:\n  shop:key: {secure: AAABAx}\n  shop:sizes: [1, 2]\n")
    (tmp_path / "__main__.py").write_text(
        "import pulumi\nc = pulumi.Config()\npulumi.export('key', c.require_secret('key'))\n"
        "pulumi.export('all', [c.require_int('size'), *c.require_object('sizes')])\n"
    )
    recording = run_project("dev", tmp_path)
    assert recording.exports == {"key": "test-stand-in", "all": [2, 1, 2]}
    assert recording.secret_exports == {"key"}
    assert run_project("dev", tmp_path, secrets={"shop:key": "k3y"}, config={"shop:size": "9"}).exports == {"key": "k3y", "all": [9, 1, 2]}


def test_a_stack_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no stack 'staging': there is no Pulumi.staging.yaml"):
        run_project("staging", ROOT / "stacks")
    with pytest.raises(FileNotFoundError, match=r"no Pulumi.yaml"):
        run_project("dev", tmp_path)


# Manifests


def test_the_shipped_stacks_manifests_hold() -> None:
    for stack in ("dev", "prod"):
        assert_manifest(run_project(stack, ROOT))


def test_a_recorded_manifest_may_be_looked_at_alone() -> None:
    resource = run_project("dev", ROOT).one("InferenceEndpointConfig")
    assert_manifest(resource, operator="v1.4.0-eksbuild.1")
    with pytest.raises(AssertionError, match=r"with operator add-on v1.2.0-eksbuild.1[\s\S]*v1.3.0-eksbuild.1"):
        assert_manifest(resource, operator="v1.2.0-eksbuild.1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"replicas": "two"}, r"replicas[\s\S]*must be an integer"),
        ({"replica": 2}, r"replica is not a field here[\s\S]*replicas"),
        ({"endpointName": "under_score"}, r"endpointName[\s\S]*must match"),
    ],
)
def test_what_the_api_server_would_refuse_fails_with_its_place(change: dict[str, Any], said: str) -> None:
    document = dict(run_project("dev", ROOT).one("InferenceEndpointConfig").inputs)
    document["metadata"] = {"name": "llama", "namespace": "default"}
    document["spec"] = {**document["spec"], **change}
    with pytest.raises(AssertionError, match=said):
        assert_manifest(document, operator="v1.3.0-eksbuild.1")


def test_a_recording_without_an_endpoint_and_an_unknown_manifest_are_told_apart() -> None:
    with pytest.raises(AssertionError, match="makes no InferenceEndpointConfig"):
        assert_manifest(run_program(lambda: thing("one")))

    def program() -> None:
        spec = {"modelName": thing("one").id}
        pulumi.CustomResource(
            "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig", "late", {"metadata": {"name": "late"}, "spec": spec}
        )

    with pytest.raises(AssertionError, match=r"not known in a preview, in spec.modelName"):
        assert_manifest(run_program(program, preview=True))


# Snapshots


def test_a_snapshot_fails_for_what_changed_and_is_written_on_request(tmp_path: Path) -> None:
    file = tmp_path / "snapshots" / "shop.json"

    def program(size: int, *, protect: bool | None = None) -> Recording:
        return run_program(lambda: thing("one", pulumi.ResourceOptions(protect=protect), size=size, key=pulumi.Output.secret("k3y")))

    with pytest.raises(AssertionError, match=r"no snapshot .*shop.json yet"):
        assert_snapshot(program(1), file, update=False)
    assert_snapshot(program(1), file, update=True)
    assert "k3y" not in file.read_text()
    assert_snapshot(program(1), file, update=False)
    with pytest.raises(AssertionError, match=r'\+ +"size": 2'):
        assert_snapshot(program(2), file, update=False)
    with pytest.raises(AssertionError, match=r'\+ +"protect": true'):
        assert_snapshot(program(1, protect=True), file, update=False)


def test_two_runs_of_one_program_have_one_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    assert_snapshot(run_project("dev", ROOT), file, update=True)
    assert_snapshot(run_project("dev", ROOT), file, update=False)


# Pulumi's own mocks and pytest


def test_the_answers_serve_pulumis_own_mocks_too() -> None:
    """In a process of its own: `set_mocks` stays in force where it is called."""
    program = """
import pulumi
import pulumi_aws as aws
from dpd_infra.testing import PlatformMocks

pulumi.runtime.set_mocks(PlatformMocks(), preview=False)

@pulumi.runtime.test
def test():
    bucket = aws.s3.Bucket("logs", bucket="my-logs")
    component = pulumi.ComponentResource("test:index:Shelf", "shelf")
    def check(found):
        assert found == ["arn:aws:s3:::my-logs", "my-logs"], found
        print(aws.get_caller_identity().account_id)
    return pulumi.Output.all(bucket.arn, bucket.id).apply(check)

test()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "111122223333\n", done.stderr


def test_a_mock_without_an_answer_says_how_to_give_one() -> None:
    asked = pulumi.runtime.MockCallArgs("aws:ec2/getVpc:getVpc", {}, "")
    with pytest.raises(AssertionError, match="no answer for the data source aws:ec2/getVpc:getVpc: subclass PlatformMocks"):
        PlatformMocks().call(asked)


def pytest_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_plugin_is_there_without_an_import_and_loads_no_pulumi(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\n\ndef test_no_pulumi_yet(request):\n"
        "    assert request.config.pluginmanager.has_plugin('dpd_infra')\n"
        "    assert [name for name in sys.modules if name.partition('.')[0] in ('pulumi', 'pulumi_aws', 'grpc', 'pydantic')] == []\n"
    )
    done = pytest_run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_fixtures_run_a_test_as_a_preview_and_as_an_update(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {shop:size: 3}\n")
    (tmp_path / "__main__.py").write_text("import pulumi\npulumi.export('size', pulumi.Config().require_int('size'))\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        "import os\nimport pulumi\n\n\n"
        "def test_program(dpd_run):\n    assert dpd_run(lambda: pulumi.export('a', 1)).exports == {'a': 1}\n\n\n"
        "def test_project(dpd_project, dpd_preview):\n"
        "    recording = dpd_project('dev')\n    assert recording.preview is dpd_preview\n    assert recording.exports == {'size': 3}\n\n\n"
        "def test_snapshot(dpd_project, dpd_snapshot):\n    dpd_snapshot(dpd_project('dev'), 'dev')\n\n\n"
        "def test_hermetic(dpd_hermetic):\n    assert 'AWS_PROFILE' not in os.environ\n"
    )
    missing = pytest_run(tmp_path)
    assert missing.returncode == 1
    assert "--dpd-update-snapshots" in missing.stdout
    assert "2 failed, 5 passed" in missing.stdout
    assert "7 passed" in pytest_run(tmp_path, "--dpd-update-snapshots").stdout
    assert "7 passed" in pytest_run(tmp_path).stdout
