"""The plain `pulumi` commands on a copy of a project, with the providers served by this process."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from dpd_infra.rehearsal import SimulatedAccount
from tests.engine.harness import cli_project

FILES = {
    "Pulumi.yaml": """
        name: plain
        runtime: {name: python, options: {toolchain: uv, virtualenv: .venv}}
        main: stacks/
        stackConfigDir: stacks
        """,
    "stacks/Pulumi.dev.yaml": """
        config:
          aws:region: us-east-2
          plain:cidr: 10.0.0.0/16
        """,
    "stacks/__main__.py": """
        import os
        import pulumi
        import pulumi_aws as aws
        from shared import subnet
        vpc = aws.ec2.Vpc("vpc", cidr_block=pulumi.Config().require("cidr"))
        subnet(vpc)
        pulumi.export("folder", os.path.basename(os.getcwd()))
        """,
    "stacks/shared.py": """
        import pulumi_aws as aws
        def subnet(vpc):
            return aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.1.0/24")
        """,
}


def test_preview_up_and_destroy_run_a_project_as_it_stands(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name, text in FILES.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip(), encoding="utf-8")
    account = SimulatedAccount()
    with cli_project(source, tmp_path, account) as project:
        assert project.pulumi("stack", "init", "dev").status == 0
        preview = project.pulumi("preview", "--stack", "dev")
        assert preview.status == 0, preview.output
        assert "+ 3 to create" in preview.output
        assert len(account) == 0
        up = project.pulumi("up", "--yes", "--skip-preview", "--stack", "dev")
        assert up.status == 0, up.output
        assert "+ 3 created" in up.output
        assert project.json("stack", "output", "--json", "--stack", "dev") == {"folder": "stacks"}
        again = project.pulumi("up", "--yes", "--skip-preview", "--stack", "dev", "--expect-no-changes")
        assert again.status == 0, again.output
        assert "3 unchanged" in again.output
        gone = project.pulumi("destroy", "--yes", "--skip-preview", "--stack", "dev")
        assert gone.status == 0, gone.output
    assert len(account) == 0
