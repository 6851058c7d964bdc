"""The plain `pulumi` commands on this very tree, as a user with Pulumi and credentials runs them; only the providers are simulated."""

from __future__ import annotations

from pathlib import Path

import yaml

from dpd_infra.spec.dependencies import DEFAULT_CHART_REVISION
from tests.engine.harness import REPOSITORY, CliProject, cli_project

CHART = Path("charts") / f"hyperpod-dependencies-{DEFAULT_CHART_REVISION}.tgz"


def pack_stand_in(project: CliProject) -> None:
    """An empty file where `dpd fetch-chart` puts the chart: the simulated provider does not open it."""
    (project.folder / CHART).parent.mkdir(exist_ok=True)
    (project.folder / CHART).write_bytes(b"")


def test_preview_up_and_a_second_preview(tmp_path: Path) -> None:
    with cli_project(REPOSITORY, tmp_path) as project:
        pack_stand_in(project)
        assert project.pulumi("stack", "init", "dev").status == 0

        preview = project.pulumi("preview", "-s", "dev")
        assert preview.status == 0, preview.output
        assert "dpd:index:Platform" in preview.output
        assert not list(project.account)

        up = project.pulumi("up", "-s", "dev", "--yes")
        assert up.status == 0, up.output
        outputs = project.json("stack", "output", "-s", "dev", "--json")
        assert outputs["endpoints"]["llama-70b"]["decodeDeployment"] == "decode-llama-70b"
        assert outputs["hyperPodClusterArn"].startswith("arn:aws:sagemaker:us-east-2:")

        again = project.pulumi("preview", "-s", "dev", "--expect-no-changes")
        assert again.status == 0, again.output


def test_without_the_chart_one_line_names_the_command_that_packs_it(tmp_path: Path) -> None:
    with cli_project(REPOSITORY, tmp_path) as project:
        project.pulumi("stack", "init", "dev")
        preview = project.pulumi("preview", "-s", "dev")
        assert preview.status != 0
        assert "dpd fetch-chart" in preview.output
        assert "dpd:index:Platform" not in preview.output
        assert "Traceback" not in preview.output


def test_a_bad_stack_file_is_one_report_with_places_in_the_users_file(tmp_path: Path) -> None:
    with cli_project(REPOSITORY, tmp_path) as project:
        file = project.folder / "stacks" / "Pulumi.dev.yaml"
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        data["config"]["dpd-infra:platform"]["controlPlane"] = {"version": "1.29"}
        data["config"]["dpd-infra:endpoints"]["llama-70b"]["routing"]["threshold"] = -5
        file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        project.pulumi("stack", "init", "dev")
        preview = project.pulumi("preview", "-s", "dev")
        assert preview.status != 0
        for part in ("DPD501", "DPD502", "1.29", "threshold", "-5", "Pulumi.dev.yaml:", "fix:"):
            assert part in preview.output
        assert "Traceback" not in preview.output
        assert not list(project.account)
