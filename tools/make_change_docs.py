"""Derive what changing each field of a stack file does, and write dpd_infra/catalog/changes.json and docs/changes.md.

    python tools/make_change_docs.py [FIELD…]

For each field two stacks that differ in it alone (change_samples.py) run under the recording monitor. Which inputs differ is then seen;
what a difference does is what the providers publish: the schema of pulumi-aws, `replace_on_changes` of the aws-native SDK, and what
pulumi-kubernetes calls forced-new. What hangs on a replaced resource's outputs counts as changed, as in a preview. The rules on a change
say what is refused. With fields named, only those are derived and printed, and nothing is written.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import tempfile
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import pulumi  # noqa: E402 - run as a script, the repository is not on the path before
import pulumi_kubernetes as kubernetes  # noqa: E402
from change_samples import BASES, SAMPLES, Sample, base_of, placed, put, sample_at  # noqa: E402

import dpd_infra as dpd  # noqa: E402
from dpd_infra.catalog.changes import FACTS, FieldChange, Outcome, field_changes  # noqa: E402
from dpd_infra.plan.project import Project, use_project  # noqa: E402
from dpd_infra.rehearsal import SimulatedAccount  # noqa: E402
from dpd_infra.rehearsal.aws import AwsProvider  # noqa: E402
from dpd_infra.rehearsal.aws_native import AwsNativeProvider  # noqa: E402
from dpd_infra.rehearsal.diff import compare  # noqa: E402
from dpd_infra.rehearsal.kubernetes import KubernetesProvider  # noqa: E402
from dpd_infra.rehearsal.simulation import Call  # noqa: E402
from dpd_infra.rehearsal.world.replacements import published  # noqa: E402
from dpd_infra.rules.check import check_upgrade, errors  # noqa: E402
from dpd_infra.rules.registry import find_rule  # noqa: E402
from dpd_infra.rules.wide_subjects import UpgradeSubject  # noqa: E402
from dpd_infra.spec.finding import Severity  # noqa: E402
from dpd_infra.spec.yaml_writing import write_yaml  # noqa: E402
from dpd_infra.stack import LoadedStack, StackSpec, load_file  # noqa: E402
from dpd_infra.testing.answers import Answers  # noqa: E402
from dpd_infra.testing.estate import existing_invokes  # noqa: E402
from dpd_infra.testing.program import run_program  # noqa: E402
from dpd_infra.testing.recording import Recorded, Recording  # noqa: E402

PAGE = ROOT / "docs" / "changes.md"
_OPTIONS = ("protect", "timeouts", "ignore_changes", "delete_before_replace", "retain_on_delete", "replace_on_changes")
_GRAVITY = ("replace", "delete", "create", "update", "options")


def fields() -> dict[str, Any]:
    """Every field of a stack file: path and pydantic field. What mirrors a shape of the custom resource's own is one field."""
    return dict(_walk(StackSpec, ""))


def _walk(model: type[BaseModel], at: str) -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        path = f"{at}.{info.alias or name}" if at else str(info.alias or name)
        inner = [found for found in _models(info.annotation) if "inference_endpoint_config" not in found[1].__module__]
        if not inner:
            yield path, info
        for suffix, part in inner:
            yield from _walk(part, path + suffix)


def _models(annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "", annotation
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _models(argument)
    elif origin is typing.Annotated:
        yield from _models(arguments[0])
    elif origin is dict:
        yield from ((f".*{suffix}", model) for suffix, model in _models(arguments[1]))
    elif origin in (tuple, list):
        yield from ((f"[]{suffix}", model) for suffix, model in _models(arguments[0]))


def sample_of(path: str, info: Any) -> Sample:
    """The field's sample, with a value drawn from its type where it names none. Raises `SystemExit` where none can be drawn."""
    sample = sample_at(path)
    if sample.new is not None:
        return sample
    default = getattr(info.default, "value", info.default)
    old = _standing(path, sample) if sample.old is None else sample.old
    value = default if old is None else old
    if isinstance(value, bool):
        new: Any = not value
    elif isinstance(info.annotation, type) and issubclass(info.annotation, Enum):
        new = next(member.value for member in info.annotation if member.value != value)
    elif isinstance(value, int):
        new = value + 1
    elif bool in _scalars(info.annotation):
        new = False
    elif int in _scalars(info.annotation):
        new = 1
    else:
        raise SystemExit(f"{path} has no sample: write one in tools/change_samples.py")
    return replace(sample, new=new)


def _scalars(annotation: Any) -> set[Any]:
    arguments = typing.get_args(annotation)
    return set().union(*map(_scalars, arguments)) if arguments else {annotation}


def _standing(path: str, sample: Sample) -> Any:
    value: Any = _config(path, sample, changed=False)
    first, *rest = placed(path)
    for step in [f"dpd-infra:{first}", *rest]:
        if isinstance(value, Mapping) and step not in value:
            return None
        value = value[step]
    return value


def _config(path: str, sample: Sample, *, changed: bool) -> dict[str, Any]:
    config = copy.deepcopy(BASES[sample.base or base_of(path)])
    for place, value in sample.around.items():
        put(config, list(place.split(".")), value)
    steps = placed(path)
    if changed:
        put(config, steps, sample.new)
    elif sample.old is not None:
        put(config, steps, sample.old)
    return config


def stacks_of(path: str, info: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration before and after the field's change."""
    sample = sample_of(path, info)
    old, new = _config(path, sample, changed=False), _config(path, sample, changed=True)
    for place, value in sample.beside.items():
        put(new, list(place.split(".")), value)
    return old, new


def program_of(spec: StackSpec) -> Any:
    """A program that makes everything of a stack."""

    def program() -> None:
        settings = spec.platform
        tokens = {key: f"the secret behind {key}" for key in _token_keys(spec)}
        if settings is not None:
            operator: Any = dpd.Platform("inference", settings, aws_settings=spec.aws, hugging_face_tokens=tokens).operator
        else:
            facts = spec.operator
            if facts is None:
                raise SystemExit("a stack without a platform says for which operator it is")
            provider = kubernetes.Provider("cluster", kubeconfig=pulumi.Output.secret("{}"), cluster_identifier="1")
            operator = dpd.OperatorHandle(facts, facts.addon_version, provider, "theirs", spec.aws.region, (provider,))
        for name, endpoint in spec.endpoints.items():
            source = endpoint.model.hugging_face
            key = source.token.config_key if source is not None and source.token is not None else None
            dpd.Endpoint(name, endpoint, operator=operator, hugging_face_token=tokens.get(key or ""))

    return program


def _token_keys(spec: StackSpec) -> set[str]:
    store = spec.platform.model_store if spec.platform else None
    found = [model.token for model in store.models.values()] if store else []
    found += [endpoint.model.hugging_face.token for endpoint in spec.endpoints.values() if endpoint.model.hugging_face]
    return {token.config_key for token in found if token is not None and token.config_key}


def _deployer(spec: StackSpec) -> dict[str, Any]:
    """Who deploys, where the stack assumes a role."""
    role = spec.aws.assume_role
    return {} if role is None else {"aws:iam/getSessionContext:getSessionContext": {"issuerArn": role.role_arn}}


class Deriver:
    """Runs stacks and compares them; a stack that was run is not run again."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._ran: dict[str, tuple[LoadedStack, Recording]] = {}
        account = SimulatedAccount()
        self._account = account
        self._providers = {kind.package: kind(account) for kind in (AwsProvider, AwsNativeProvider, KubernetesProvider)}

    def change(self, path: str, info: Any) -> FieldChange:
        """What changing a field does. Raises `SystemExit` for a sample that is refused by itself or changes nothing of the file."""
        try:
            old, new = (self._run(path, config) for config in stacks_of(path, info))
        except (ValueError, pulumi.RunError):
            # The program refuses it with the reason.
            return FieldChange(path, Outcome.REFUSED, {}, ())
        if old[0].spec == new[0].spec:
            raise SystemExit(f"{path}: the sample changes nothing")
        found = check_upgrade(UpgradeSubject(old[0].subject, new[0].subject))
        gravest = sorted(found, key=lambda item: (item.severity is not Severity.ERROR, item.rule))
        rules = tuple(dict.fromkeys(finding.rule for finding in gravest))
        resources = self._resources(old[1], new[1])
        if errors(found):
            return FieldChange(path, Outcome.REFUSED, resources, rules)
        ops = set(resources.values())
        outcome = Outcome.REPLACE if "replace" in ops else Outcome.UPDATE if ops - {"options"} else Outcome.NOTHING
        return FieldChange(path, outcome, resources, rules)

    def _run(self, path: str, config: Mapping[str, Any]) -> tuple[LoadedStack, Recording]:
        text = write_yaml({"config": config})
        if text in self._ran:
            return self._ran[text]
        file = Path(self._folder.name) / "Pulumi.sample.yaml"
        file.write_text(text, encoding="utf-8")
        loaded = load_file(file)
        if loaded.spec is None:
            raise SystemExit(f"{path}: the sample is refused: {[finding.what for finding in errors(loaded.findings)]}")
        region = str(config["aws:region"])
        settings = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items() if key.startswith("aws:")}
        with use_project(Project(root=ROOT, chart_required=False)):
            invokes = {**existing_invokes(config, Answers(region=region)), **_deployer(loaded.spec)}
            recording = run_program(program_of(loaded.spec), config=settings, invokes=invokes)
        self._ran[text] = loaded, recording
        return self._ran[text]

    def _resources(self, old: Recording, new: Recording) -> dict[str, str]:
        ops: dict[str, str] = {}
        replaced: set[str] = set()
        known = {resource.urn: resource for resource in old.custom}
        for resource in new.custom:
            before = known.get(resource.urn)
            op = self._op(before, resource, replaced)
            if op == "replace":
                replaced.add(resource.urn)
            ops[resource.urn] = op
        gone = {resource.urn: "delete" for resource in old.custom if resource.urn not in new}
        by_kind: dict[str, str] = {}
        for urn, op in {**gone, **ops}.items():
            resource = new[urn] if urn in new else old[urn]
            kind = _kind(resource)
            there = by_kind.get(kind)
            if {op, there} == {"create", "delete"}:
                # One under another name takes the place of one that goes.
                by_kind[kind] = "replace"
            elif op and (there is None or _GRAVITY.index(op) < _GRAVITY.index(there)):
                by_kind[kind] = op
        return dict(sorted(by_kind.items()))

    def _op(self, before: Recorded | None, after: Recorded, replaced: set[str]) -> str:
        if before is None:
            return "create"
        if after.type.startswith("pulumi:providers:"):
            if before.inputs == after.inputs:
                return ""
            # Only another cluster makes Kubernetes resources anew (pulumi-kubernetes, clusterIdentifier); AWS's are told of by the rules.
            return "replace" if before.inputs.get("clusterIdentifier") != after.inputs.get("clusterIdentifier") else "update"
        # The engine replaces what changes over to another explicit provider.
        if after.provider in replaced or (before.provider and before.provider != after.provider):
            return "replace"
        # What goes with another resource comes again with it.
        if after.deleted_with in replaced:
            return "replace"
        provider = self._providers[after.type.partition(":")[0]]
        kind = provider.type_for(after.type)
        old_inputs, new_inputs = dict(before.inputs), dict(after.inputs)
        for ignored in after.ignore_changes:
            _copy_over(old_inputs, new_inputs, ignored.split("."))
        for key, urns in after.property_dependencies.items():
            # What comes from a replaced resource is not known before it is made.
            if any(urn in replaced for urn in urns) and key in new_inputs:
                new_inputs[key] = _Anew(new_inputs[key])
        call = Call(self._account, {}, after.type, after.urn, _known(new_inputs))
        forced = (*kind.replace_on, *published(after.type), *kind.extra_replaces(call, _known(old_inputs)))
        difference = compare(_plain(old_inputs), _plain(new_inputs), replace_on=_roots(forced, new_inputs), unordered=kind.unordered)
        asked = any(_at(before.inputs, path) != _at(after.inputs, path) for path in after.replace_on_changes)
        if difference.replaces or asked:
            return "replace"
        if difference.changes:
            return "update"
        return "options" if any(getattr(before, name) != getattr(after, name) for name in _OPTIONS) else ""


def _at(inputs: Mapping[str, Any], path: str) -> Any:
    """The value at a property path as Pulumi writes it, `a.b["c/d"]`; None where nothing is."""
    value: Any = inputs
    for quoted, plain in re.findall(r'\["([^"]+)"\]|([^.\["\]]+)', path):
        value = value.get(quoted or plain) if isinstance(value, Mapping) else None
    return value


class _Anew:
    """A value that comes from a resource that is replaced."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: f"anew {value.value}" if isinstance(value, _Anew) else value for key, value in inputs.items()}


def _known(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.value if isinstance(value, _Anew) else value for key, value in inputs.items()}


def _roots(forced: tuple[str, ...], inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The forcing paths; of an input that is made anew as a whole the input itself, where a part of it forces."""
    anew = {key for key, value in inputs.items() if isinstance(value, _Anew)}
    return (*forced, *(path.split(".")[0] for path in forced if path.split(".")[0] in anew))


def _copy_over(old: dict[str, Any], new: dict[str, Any], steps: list[str]) -> None:
    first, *rest = steps
    if rest:
        if isinstance(old.get(first), dict) and isinstance(new.get(first), dict):
            new[first] = dict(new[first])
            _copy_over(old[first], new[first], rest)
    elif first in old and first in new:
        new[first] = old[first]


def _kind(resource: Recorded) -> str:
    """The resource's kind as a person says it: `sagemaker Cluster`, `iam Role`, `InferenceEndpointConfig`."""
    package, module, kind = resource.type.split(":")
    if package == "pulumi":
        return f"{kind} provider"
    return kind if package == "kubernetes" else f"{module.split('/')[0]} {kind}"


def derive(names: list[str] | None = None) -> dict[str, FieldChange]:
    """The change of every field, or of those that are named."""
    deriver = Deriver()
    known = fields()
    if unused := sorted(set(SAMPLES) - set(known)):
        raise SystemExit(f"samples of fields that are no more: {', '.join(unused)}")
    return {name: deriver.change(name, known[name]) for name in (names or known)}


def facts_text(changes: Mapping[str, FieldChange]) -> str:
    """The facts as they are kept: one line a field."""
    lines = []
    for name, change in changes.items():
        entry: dict[str, Any] = {"outcome": str(change.outcome)}
        if change.resources:
            entry["resources"] = dict(change.resources)
        if change.rules:
            entry["rules"] = list(change.rules)
        lines.append(f"  {json.dumps(name)}: {json.dumps(entry)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


_HEAD = Path(__file__).with_name("changes_head.md")


def page(changes: Mapping[str, FieldChange]) -> str:
    """docs/changes.md."""
    lines: list[str] = []
    section = ""
    for name, change in changes.items():
        first = name.split(".")[0]
        if first != section:
            section = first
            title = "aws:" if first == "aws" else f"dpd-infra:{first}"
            lines += ["", f"## `{title}`", "| field | outcome | resources | rules |", "|---|---|---|---|"]
        outcome = f"**{change.outcome}**" if change.outcome in (Outcome.REFUSED, Outcome.REPLACE) else str(change.outcome)
        rules = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in change.rules)
        lines.append(f"| `{name.partition('.')[2]}` | {outcome} | {said(change)} | {rules} |")
    return _HEAD.read_text(encoding="utf-8") + "\n".join(lines).lstrip("\n") + "\n"


def said(change: FieldChange) -> str:
    """The resources of a change by what happens to them."""
    groups: dict[str, list[str]] = {}
    for kind, op in change.resources.items():
        groups.setdefault(op, []).append(kind)
    parts = ((op, ", ".join(groups[op])) for op in _GRAVITY if op in groups)
    return "; ".join(f"({kinds})" if op == "options" else f"{op} {kinds}" for op, kinds in parts)


def main() -> int:
    """Derive, write, and say how many fields there are."""
    if names := sys.argv[1:]:
        for change in derive(names).values():
            print(change.field, change.outcome, said(change), *change.rules)
        return 0
    changes = derive()
    for change in changes.values():
        for rule in change.rules:
            find_rule(rule)
    FACTS.write_text(facts_text(changes), encoding="utf-8")
    field_changes.cache_clear()
    PAGE.write_text(page(changes), encoding="utf-8")
    print(f"{len(changes)} fields")
    return 0


if __name__ == "__main__":
    sys.exit(main())
