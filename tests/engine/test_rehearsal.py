"""The rehearsal of a project's own files on the real engine: what it makes, what it never touches, and how it tells a failure."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from dpd_infra.rehearsal import ProjectNotFound, PulumiNotFound, Rehearsal, RehearsalBusy, RehearsalFailed, SimulatedAccount, find_pulumi
from dpd_infra.rehearsal.account import Resource
from tests.engine.harness import pulumi_cli

PROGRAM = """
import pulumi
import pulumi_aws as aws
from settings import CIDR

config = pulumi.Config()
vpc = aws.ec2.Vpc("vpc", cidr_block=CIDR)
subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block=config.require("subnet"))
pulumi.export("vpcId", vpc.id)
model = config.require_secret_object("model")
pulumi.export("hidden", model.apply(lambda model: len(model["by-host"]["hub.example/x"])))
pulumi.export("name", model.apply(lambda model: model["sources"][0]["name"]))
pulumi.export("token", model.apply(lambda model: model["sources"][0]["token"]))
print("hello from the program")
"""


@pytest.fixture(autouse=True)
def _pulumi_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{pulumi_cli().parent}{os.pathsep}{os.environ['PATH']}")


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip(), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as a user has it: its own backend, a program in a folder, an encrypted value deep in its stack file."""
    root = tmp_path / "project"
    write(
        root,
        **{
            "Pulumi.yaml": """
                name: shop
                runtime: {name: python, options: {toolchain: uv, virtualenv: .venv}}
                main: stacks/
                stackConfigDir: stacks
                backend: {url: s3://the-users-own-state}
                config:
                  shop:subnet: {type: string, description: The subnet, default: 10.0.0.0/24}
                """,
            "stacks/Pulumi.dev.yaml": """
                secretsprovider: awskms://alias/the-users-own-key
                encryptedkey: AAAA
                config:
                  aws:region: us-east-2
                  shop:model:
                    sources:
                      - token: {secure: AAABAKeyTheRehearsalCannotRead}
                        name: hub
                    by-host: {"hub.example/x": {secure: AAABAKeyTheRehearsalCannotRead}}
                """,
            "stacks/__main__.py": PROGRAM,
            "stacks/settings.py": 'CIDR = "10.0.0.0/16"',
        },
    )
    return root


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".dpd" not in path.parts and "__pycache__" not in path.parts
    }


def test_a_second_rehearsal_changes_nothing_and_the_first_made_everything(project: Path) -> None:
    first = Rehearsal(project, "dev").up()
    # The stack, the VPC and the subnet.
    assert (first.created, first.changes) == (3, 3)
    assert str(first.outputs["vpcId"]).startswith("vpc-")
    assert {(step.type, step.name, step.op) for step in first.resources} == {
        ("pulumi:pulumi:Stack", "shop-dev", "create"),
        ("aws:ec2/vpc:Vpc", "vpc", "create"),
        ("aws:ec2/subnet:Subnet", "subnet", "create"),
    }
    second = Rehearsal(project, "dev").up()
    assert (second.changes, second.unchanged) == (0, 3)
    assert second.outputs == first.outputs


def test_an_edit_of_a_module_beside_the_program_is_seen_by_the_next_run(project: Path) -> None:
    Rehearsal(project, "dev").up()
    (project / "stacks" / "settings.py").write_text('CIDR = "10.0.0.0/17"', encoding="utf-8")
    result = Rehearsal(project, "dev").preview()
    assert result.replaced == 2, "a VPC cannot change its block, and the subnet lies in it"
    assert SimulatedAccount(project / ".dpd/rehearsal/account.json").first("aws:ec2/vpc:Vpc", cidrBlock="10.0.0.0/16"), (
        "a preview makes nothing"
    )


@pytest.mark.parametrize("file", ["__main__.py", "settings.py"])
def test_an_edit_of_the_same_length_in_the_same_second_is_seen(project: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python's bytecode cache knows a source by its size and the second of its last change.
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    now = int(time.time())
    program = project / "stacks" / file
    if file == "__main__.py":
        write(project, **{"stacks/__main__.py": PROTECTED.replace("protect=True", "protect=None")})
    os.utime(program, (now, now))
    Rehearsal(project, "dev").up()
    program.write_text(program.read_text(encoding="utf-8").replace("10.0.0.0/16", "10.8.0.0/16"), encoding="utf-8")
    os.utime(program, (now, now))
    assert Rehearsal(project, "dev").preview().replaced > 0


def test_destroy_leaves_nothing_behind_in_the_account(project: Path) -> None:
    Rehearsal(project, "dev").up()
    assert Rehearsal(project, "dev").destroy().deleted == 3
    assert len(SimulatedAccount(project / ".dpd/rehearsal/account.json")) == 0


PROTECTED = """
    import pulumi
    import pulumi_aws as aws

    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", opts=pulumi.ResourceOptions(protect=True))
    aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
"""


def test_what_is_protected_stops_a_destroy_before_anything_is_deleted(project: Path) -> None:
    # As the plain command does, whose preview comes first: the subnet alone could have been deleted.
    write(project, **{"stacks/__main__.py": PROTECTED})
    Rehearsal(project, "dev").up()
    with pytest.raises(RehearsalFailed, match="protect") as refused:
        Rehearsal(project, "dev").destroy()
    assert refused.value.result.changes == 0, "what the preview said is not what was done"
    assert Rehearsal(project, "dev").up().changes == 0


def test_what_is_protected_stops_an_up_before_anything_is_changed(project: Path) -> None:
    write(project, **{"stacks/__main__.py": PROTECTED})
    Rehearsal(project, "dev").up()
    write(project, **{"stacks/__main__.py": PROTECTED.replace("10.0.0", "10.1.0")})
    with pytest.raises(RehearsalFailed, match="protect") as refused:
        Rehearsal(project, "dev").up()
    assert refused.value.result.changes == 0
    write(project, **{"stacks/__main__.py": PROTECTED})
    assert Rehearsal(project, "dev").up().changes == 0


def test_the_users_files_stay_byte_for_byte_the_same(project: Path) -> None:
    before = tree(project)
    rehearsal = Rehearsal(project, "dev")
    rehearsal.preview()
    rehearsal.up()
    rehearsal.destroy()
    assert tree(project) == before


def test_an_encrypted_value_becomes_a_stand_in_that_stays_secret(project: Path) -> None:
    result = Rehearsal(project, "dev").up()
    assert result.outputs["token"] == "[secret]"
    assert result.secret_outputs == {"token", "hidden", "name"}
    for path in (project / ".dpd").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"rehearsal-stand-in" not in content or (path.name == "Pulumi.dev.yaml" and b"secure:" in content), path
            assert b"AAABAKeyTheRehearsalCannotRead" not in content
            assert b"the-users-own" not in content


def test_what_the_program_prints_is_kept_apart(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = Rehearsal(project, "dev").up()
    assert result.program_output == "hello from the program\n"
    assert capsys.readouterr().out == ""


def test_nothing_of_the_users_accounts_reaches_the_program_and_all_is_restored(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "PULUMI_ACCESS_TOKEN", "KUBECONFIG"):
        monkeypatch.setenv(name, "the users own")
    (project / "stacks" / "__main__.py").write_text(
        dedent("""
            import os, sys
            import pulumi
            pulumi.export("environment", sorted(f"{key}={value}" for key, value in os.environ.items()))
            pulumi.export("cwd", os.getcwd())
            pulumi.export("path", sys.path[0])
            pulumi.export("argv", sys.argv)
        """),
        encoding="utf-8",
    )
    before = (dict(os.environ), Path.cwd(), list(sys.path), list(sys.argv), sys.stdout)
    outputs = Rehearsal(project, "dev").up().outputs
    assert (dict(os.environ), Path.cwd(), list(sys.path), list(sys.argv), sys.stdout) == before
    assert not [line for line in outputs["environment"] if "the users own" in line]
    assert "AWS_EC2_METADATA_DISABLED=true" in outputs["environment"]
    # What Pulumi's Python host does with `main: stacks/`.
    assert outputs["cwd"] == outputs["path"] == str(project / "stacks")
    assert outputs["argv"] == [str(project / "stacks")]


def test_a_report_and_an_exit_are_shown_once_and_nothing_is_registered(project: Path) -> None:
    write(project / "stacks", **{"__main__.py": 'import sys\nprint("2 problems:\\n- a\\n- b", file=sys.stderr)\nsys.exit(1)\n'})
    with pytest.raises(RehearsalFailed) as caught:
        Rehearsal(project, "dev").up()
    assert str(caught.value) == "2 problems:\n- a\n- b"
    assert caught.value.result.changes <= 1, "at most the stack itself"


def test_an_exception_of_the_program_is_one_line_that_says_where(project: Path) -> None:
    write(project / "stacks", **{"__main__.py": "x = 1\nraise ValueError('no such zone')\n"})
    with pytest.raises(RehearsalFailed) as caught:
        Rehearsal(project, "dev").up()
    assert str(caught.value) == "ValueError: no such zone (__main__.py, line 2)"


def test_an_exception_inside_apply_has_no_traceback(project: Path) -> None:
    program = """
        import pulumi
        def boom(value):
            raise ValueError("bad output")
        pulumi.export("x", pulumi.Output.from_input(1).apply(boom))
    """
    write(project / "stacks", **{"__main__.py": program})
    with pytest.raises(RehearsalFailed) as caught:
        Rehearsal(project, "dev").up()
    assert "bad output" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_refusal_names_the_resource_and_what_aws_said(project: Path) -> None:
    write(project / "stacks", **{"settings.py": 'CIDR = "192.168.0.0/16"'})
    with pytest.raises(RehearsalFailed) as caught:
        Rehearsal(project, "dev").up()
    assert str(caught.value).startswith("subnet (aws:ec2/subnet:Subnet): ")
    assert "InvalidSubnet.Range: The CIDR '10.0.0.0/24' is invalid." in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.result.created == 2, "the stack and the VPC stand"


def test_a_type_that_the_package_does_not_have_is_named(project: Path) -> None:
    write(project / "stacks", **{"__main__.py": 'import pulumi\npulumi.CustomResource("aws:ec2/nope:Nope", "nope", {})\n'})
    with pytest.raises(RehearsalFailed, match=r"unrecognized resource type.*aws:ec2/nope:Nope"):
        Rehearsal(project, "dev").up()


def test_what_a_callback_of_the_program_raises_is_its_own_report(project: Path) -> None:
    late = 'pulumi.export("x", pulumi.Output.from_input(1).apply(lambda _: fail()))'
    raising = "def fail():\n    raise pulumi.RunError('set aws:region to us-east-2\\n  it is us-west-2')"
    write(project / "stacks", **{"__main__.py": f"import pulumi\n\n{raising}\n\n{late}\n"})
    with pytest.raises(RehearsalFailed) as caught:
        Rehearsal(project, "dev").preview()
    assert caught.value.message == "set aws:region to us-east-2\n  it is us-west-2"


def test_a_package_that_is_not_simulated_is_named_beside_those_that_are(project: Path) -> None:
    write(project / "stacks", **{"__main__.py": 'import pulumi\npulumi.CustomResource("gcp:storage/bucket:Bucket", "b", {})\n'})
    with pytest.raises(RehearsalFailed) as caught:
        Rehearsal(project, "dev").up()
    assert "gcp" in str(caught.value)
    assert "simulates these packages: aws, aws-native, kubernetes" in str(caught.value)


def test_a_function_that_is_not_simulated_is_named(project: Path) -> None:
    write(project / "stacks", **{"__main__.py": 'import pulumi_aws as aws\naws.ec2.get_ami(owners=["self"])\n'})
    with pytest.raises(RehearsalFailed, match="does not simulate the function aws:ec2/getAmi:getAmi"):
        Rehearsal(project, "dev").up()


def test_without_a_region_the_provider_says_which_key_is_missing(project: Path) -> None:
    text = (project / "stacks" / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    (project / "stacks" / "Pulumi.dev.yaml").write_text(text.replace("aws:region: us-east-2", "shop:x: y"), encoding="utf-8")
    with pytest.raises(RehearsalFailed, match='missing required configuration key "aws:region"'):
        Rehearsal(project, "dev").up()


def test_two_stacks_live_in_one_account_and_a_taken_name_is_refused(project: Path) -> None:
    dev = (project / "stacks" / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    write(project / "stacks", **{"Pulumi.prod.yaml": dev})
    write(project / "stacks", **{"__main__.py": 'import pulumi_aws as aws\naws.s3.Bucket("data", bucket="the-one-name")\n'})
    Rehearsal(project, "dev").up()
    with pytest.raises(RehearsalFailed, match="BucketAlreadyOwnedByYou"):
        Rehearsal(project, "prod").up()


def test_a_program_file_in_the_projects_folder_and_a_stack_name_with_a_slash(tmp_path: Path) -> None:
    program = 'import pulumi\npulumi.export("name", pulumi.get_stack())\n'
    write(
        tmp_path,
        **{"Pulumi.yaml": "name: small\nruntime: python\nmain: program.py\n", "program.py": program, "Pulumi.dev.yaml": "config: {}\n"},
    )
    assert Rehearsal(tmp_path, "dev").up().outputs == {"name": "dev"}


def test_a_missing_stack_file_says_which_stacks_there_are(project: Path) -> None:
    with pytest.raises(ProjectNotFound, match=r"no .*stacks/Pulumi\.staging\.yaml; stacks with a file: dev"):
        Rehearsal(project, "staging").up()
    with pytest.raises(ProjectNotFound, match=r"no Pulumi\.yaml in"):
        Rehearsal(project / "stacks", "dev").up()


def test_without_the_cli_one_line_says_how_to_get_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(PulumiNotFound) as caught:
        Rehearsal(project, "dev").up()
    assert "\n" not in str(caught.value)
    assert "make tools" in str(caught.value)
    built = project / ".tools" / "bin" / "pulumi"
    built.parent.mkdir(parents=True)
    built.symlink_to("/bin/true")
    assert find_pulumi(project) == built


def test_a_second_rehearsal_in_the_same_folder_does_not_start(project: Path) -> None:
    rehearsal = Rehearsal(project, "dev")
    with rehearsal._locked(), pytest.raises(RehearsalBusy):
        Rehearsal(project, "dev").up()


def test_a_killed_run_is_picked_up_where_the_engine_left_it(project: Path) -> None:
    Rehearsal(project, "dev").up()
    state = project / ".dpd" / "rehearsal"
    # What a run leaves that was killed between the service's answer and the engine's note of it.
    account = SimulatedAccount(state / "account.json")
    urn = "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::data"
    account.add(Resource("aws:s3/bucket:Bucket", "shop-data", {}, {"bucket": "shop-data"}, urn=urn))
    (state / "running").touch()
    lock = state / "backend" / ".pulumi" / "locks" / "organization" / "shop" / "dev" / "left.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text('{"pid": 1, "username": "x", "hostname": "x"}', encoding="utf-8")
    program = (project / "stacks" / "__main__.py").read_text(encoding="utf-8")
    write(project / "stacks", **{"__main__.py": f'{program}\naws.s3.Bucket("data", bucket="shop-data")\n'})
    result = Rehearsal(project, "dev").up()
    assert (result.created, result.unchanged) == (1, 3)
    assert not (state / "running").exists()


def test_a_half_written_checkpoint_gives_way_to_its_backup(project: Path) -> None:
    Rehearsal(project, "dev").up()
    Rehearsal(project, "dev").up()
    state = project / ".dpd" / "rehearsal"
    (state / "running").touch()
    (state / "backend" / ".pulumi" / "stacks" / "shop" / "dev.json").write_text('{"version": 3, "checkp', encoding="utf-8")
    assert Rehearsal(project, "dev").up().unchanged == 3


def test_reset_forgets_the_account_and_the_state(project: Path) -> None:
    rehearsal = Rehearsal(project, "dev")
    rehearsal.up()
    rehearsal.reset()
    assert Rehearsal(project, "dev").up().created == 3


def test_events_arrive_while_the_engine_runs(project: Path) -> None:
    seen: list[str] = []

    def note(event: object) -> None:
        metadata = getattr(event, "res_outputs_event", None)
        if metadata is not None:
            seen.append(metadata.metadata.urn.rsplit("::", 1)[-1])

    Rehearsal(project, "dev", on_event=note).up()
    assert {"vpc", "subnet"} <= set(seen)
