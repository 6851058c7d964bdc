"""`dpd plan`: what `pulumi up` would make, offline and without the engine."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import pathlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpd_infra.cli._arguments import Parser, UsageError
from dpd_infra.cli._output import FAILED, WRONG_USAGE, existing_file, fail, print_json, print_report, refuse
from dpd_infra.cli._plan_run import NoPlanError, Planned, planned
from dpd_infra.plan.drawings import to_dot, to_mermaid
from dpd_infra.plan.labels import label
from dpd_infra.plan.order import unordered
from dpd_infra.plan.outlook import outlook
from dpd_infra.plan.tree import ResourceTree
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.yaml_source import YamlProblem, load_document
from dpd_infra.stack import load_file

if TYPE_CHECKING:
    from dpd_infra.testing.recording import Recorded

SUMMARY = """Show what `pulumi up` would make.

Runs FILE's program offline and without the engine: resources, subnets, groups, IAM roles, endpoints."""

_ACCOUNT = re.compile(r"\d{12}")


def main(arguments: Sequence[str]) -> int:
    """Run `dpd plan`; the exit code: 1 where the stack or its program has errors, 2 for wrong usage."""
    collecting = gc.isenabled()
    # Four fifths of the time are imports, whose objects all stay.
    gc.disable()
    try:
        return _plan(arguments)
    finally:
        if collecting:
            gc.enable()


def _plan(arguments: Sequence[str]) -> int:
    as_json = "--json" in arguments
    try:
        given = _given(arguments)
    except UsageError as error:
        fail(str(error), as_json=as_json, code=WRONG_USAGE)
    path = existing_file(pathlib.Path(given.file), as_json=as_json)
    loaded = load_file(path)
    if loaded.spec is None:
        refuse(loaded.findings, loaded.documents, as_json=as_json)
    answers = _answers(given.answers, as_json=as_json) if given.answers else {}
    try:
        made = planned(path, loaded.spec, given.account, answers)
    except NoPlanError as error:
        fail(str(error), as_json=as_json, code=FAILED)
    if given.json:
        print_json(_as_data(made))
    elif given.mermaid:
        print(to_mermaid(made.tree, label), end="")
    elif given.dot:
        print(to_dot(made.tree, label, f"{made.project} {made.stack}"), end="")
    else:
        from dpd_infra.cli._plan_display import show

        told = [finding for finding in loaded.findings if finding.severity is Severity.WARNING]
        if told:
            print_report(told, loaded.documents)
        show(made, policies=given.policies)
    return 0


def _given(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("dpd plan", SUMMARY)
    parser.add_argument("file", metavar="FILE", help="a stack file, Pulumi.<stack>.yaml")
    parser.add_argument("--json", action="store_true", help="print JSON, every input and every policy in it")
    parser.add_argument("--mermaid", action="store_true", help="print the graph as a Mermaid flowchart")
    parser.add_argument("--dot", action="store_true", help="print the graph as Graphviz DOT")
    parser.add_argument("--policies", action="store_true", help="show every action and resource of the IAM policies")
    parser.add_argument("--account", metavar="ID", help="the AWS account id; without it one stands in")
    parser.add_argument("--answers", metavar="YAML", help="what the program's own data sources answer: results by token")
    given = parser.parse_args(list(arguments))
    if sum((given.json, given.mermaid, given.dot)) > 1:
        raise UsageError("--json, --mermaid and --dot exclude each other")
    if given.account is not None and not _ACCOUNT.fullmatch(given.account):
        raise UsageError(f"--account {given.account}: an AWS account id has 12 digits")
    return given


def _answers(file: str, *, as_json: bool) -> dict[str, Any]:
    """What data sources answer, by token; a file that is something else is wrong usage."""
    path = existing_file(pathlib.Path(file), as_json=as_json)
    try:
        data = load_document(path.read_bytes(), file).data
    except YamlProblem as problem:
        fail(f"--answers {file}: {problem}", as_json=as_json, code=WRONG_USAGE)
    if not isinstance(data, dict) or not all(isinstance(result, dict) for result in data.values()):
        fail(
            f"--answers {file}: must be a mapping of tokens to results, `aws:ec2/getVpc:getVpc: {{id: vpc-1}}`",
            as_json=as_json,
            code=WRONG_USAGE,
        )
    return data


def _as_data(made: Planned) -> dict[str, Any]:
    from dpd_infra.testing.snapshot import plain_data

    recording, tree = made.recording, made.tree
    view = outlook(tree.resources)
    return {
        "ok": True,
        "project": made.project,
        "stack": made.stack,
        "program": made.program,
        "region": made.answers.region,
        "standIns": stand_ins(made),
        "counts": {
            "resources": len(tree.drawn()),
            "components": len(recording.components),
            "protected": sum(bool(resource.protect) for resource in recording.custom),
        },
        "tree": [_node(tree, root) for root in tree.roots],
        "resources": [_resource(recording[resource.urn]) for resource in tree.resources],
        "subnets": [{**dataclasses.asdict(subnet), "room": subnet.room} for subnet in view.subnets],
        "groups": [_camel(dataclasses.asdict(group)) for group in view.groups],
        "roles": [_camel(dataclasses.asdict(role)) for role in view.roles],
        "policies": [dataclasses.asdict(policy) for policy in view.policies],
        "endpoints": [
            _camel(dataclasses.asdict(endpoint)) | {"roles": [_camel(dataclasses.asdict(role)) for role in endpoint.roles]}
            for endpoint in view.endpoints
        ],
        "openOrders": [
            {"first": pair.first.urn, "then": pair.then.urn, "why": pair.why, "source": str(pair.source)}
            for pair in unordered(tree.resources)
        ],
        "outputs": plain_data(recording.exports, recording.secret_exports),
    }


def stand_ins(made: Planned) -> dict[str, str]:
    """What in the plan is not what AWS will say."""
    answers = made.answers
    return {
        "accountId": answers.account_id,
        "deployer": answers.deployer_role_arn,
        "oidcIssuer": answers.issuer,
        "ids": "<name.id> is an id that AWS makes up for the resource of that name",
    }


def _node(tree: ResourceTree, resource: Any) -> dict[str, Any]:
    children = [_node(tree, child) for child in tree.children(resource)]
    return {"type": resource.type, "name": resource.name, "urn": resource.urn, **({"children": children} if children else {})}


def _resource(resource: Recorded) -> dict[str, Any]:
    from dpd_infra.testing.snapshot import plain_data

    return {
        "type": resource.type,
        "name": resource.name,
        "urn": resource.urn,
        "custom": resource.custom,
        "parent": resource.parent or None,
        "provider": resource.provider or None,
        "protect": bool(resource.protect),
        "dependsOn": list(resource.dependencies),
        "timeouts": dict(resource.timeouts),
        "inputs": plain_data(resource.inputs, resource.secrets),
    }


def _camel(data: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"_(.)", lambda match: match.group(1).upper(), key): value for key, value in data.items()}
