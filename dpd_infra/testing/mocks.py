"""Mocks for `pulumi.runtime.set_mocks`: the kit's answers for tests that are written in Pulumi's own way."""

from __future__ import annotations

from typing import Any

from pulumi.runtime.mocks import MockCallArgs, MockResourceArgs, Mocks

from dpd_infra.testing.answers import Answers


class PlatformMocks(Mocks):
    """What AWS and Kubernetes would answer, for `pulumi.runtime.set_mocks(PlatformMocks())` and `@pulumi.runtime.test`.

    Options of resources are not seen this way, and URNs that come twice are let through: `run_program` shows both.
    """

    def __init__(self, answers: Answers | None = None) -> None:
        self.answers = answers or Answers()

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        """The id and the state of a resource: its inputs and what AWS or Kubernetes adds."""
        if args.custom is False:
            return "", dict(args.inputs)
        identity, outputs = self.answers.resource(args.typ, args.name, args.inputs)
        return args.resource_id or identity, {**args.inputs, **outputs}

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The result of a data source. Raises `AssertionError` for one that the kit has no answer for."""
        result = self.answers.invoke(args.token, args.args)
        if result is None:
            raise AssertionError(f"no answer for the data source {args.token}: subclass PlatformMocks and answer it in `call`")
        return result, []
