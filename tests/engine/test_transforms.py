"""A program's own transforms pass over every resource of the library: tags of the house, names of one's own, protection."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.runtime import register_resource_transform

from tests.engine.conftest import MakeProject
from tests.engine.test_platform import config, program


def test_a_transform_passes_over_every_resource_and_the_second_up_changes_nothing(engine: MakeProject) -> None:
    def label(given: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if not given.type_.startswith("aws:ec2/vpc:"):
            return pulumi.ResourceTransformResult(props=given.props, opts=given.opts)
        properties: dict[str, Any] = dict(given.props)
        properties["tags"] = {**properties["tags"], "cost-center": "research"}
        return pulumi.ResourceTransformResult(props=properties, opts=given.opts)

    def transformed() -> None:
        register_resource_transform(label)
        program()

    project = engine(transformed, config=config())
    project.up()
    [vpc] = project.account.all("aws:ec2/vpc:Vpc")
    assert vpc.outputs["tags"]["cost-center"] == "research"
    assert project.up().changes == 0
