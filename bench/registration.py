"""What registering our components costs, against the same resources written by hand, before the same monitor.

    python bench/registration.py [--stack prod] [--rounds 30] [--print]

The program by hand is generated from a recording of ours: every resource by its SDK class with its plain inputs, the outputs of others
where ours takes them, the same parent, providers and options, and each component a class of its own (`--print` shows it). That both
register the same, field by field, is checked first. They run in turns; times are processor seconds, and the ratio is that of the means
of the faster halves, because other work on the machine only ever adds. The exit code is 1 where it is over 1.10. A second ratio, for
information: by hand without components, every resource a child of the stack.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dpd_infra as dpd
from dpd_infra.plan.project import Project, use_project
from dpd_infra.testing import Answers, Recorded, Recording, run_program

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.10
IMPORTS = "import json\n\nimport pulumi\nimport pulumi_aws\nimport pulumi_aws_native\nimport pulumi_kubernetes"

Paths = dict[str, str]
"""From a value to the expression that gives it."""


def ours(stack: str) -> tuple[Callable[[], None], str]:
    """The program of a shipped stack, its file read beforehand, and the stack's region."""
    spec = dpd.StackSpec.from_file(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    if spec.platform is None:
        raise SystemExit(f"{stack} has no platform")
    settings = spec.platform

    def program() -> None:
        with use_project(Project(root=ROOT, chart_required=False)):
            platform = dpd.Platform("inference", settings, aws_settings=spec.aws)
            for name, endpoint in spec.endpoints.items():
                dpd.Endpoint(name, endpoint, operator=platform.operator)

    return program, spec.aws.region


class ByHand:
    """The source of a program that registers what a recording holds."""

    def __init__(self, recording: Recording, *, components: bool) -> None:
        self._recording = recording
        self._components = components
        self._answers = Answers(region=str(recording.of_type("pulumi:providers:aws")[0].inputs["region"]))
        self._names: dict[str, str] = {}
        self._paths: dict[str, Paths] = {}

    def source(self) -> str:
        """Python source of a function `program()`; a component is a class whose constructor makes its children, as one writes it."""
        lines: list[str] = []
        asked = [data_source(token, arguments) for token, arguments in self._recording.invokes]
        body: list[str] = []
        for number, resource in enumerate(self._recording.resources):
            name = self._names[resource.urn] = f"r{number}"
            self._paths[resource.urn] = self._paths_of(resource, name)
        for resource in self._recording.resources:
            if resource.custom and (not self._components or not resource.parent):
                body += self._statement(resource)
            elif self._components and not resource.custom and not resource.parent:
                lines += self._component(resource)
                body += self._statement(resource)
        # The data sources go through the stack's provider and come before what needs them, as ours do.
        providers = [line for line in body if "= pulumi_aws.Provider(" in line or "= pulumi_aws_native.Provider(" in line]
        aws = self._names[self._recording.of_type("pulumi:providers:aws")[0].urn]
        body = [
            *providers,
            *(f"{call[:-1]}, opts=pulumi.InvokeOptions(provider={aws}))".replace("(, ", "(") for call in asked),
            *(line for line in body if line not in providers),
        ]
        names = ", ".join(self._names.values())
        return "\n".join([*lines, "def program():", f"    global {names}", *(f"    {line}" for line in body)]) + "\n"

    def _component(self, component: Recorded) -> list[str]:
        """The class of a component, and before it those of the components in it."""
        children = self._recording.children(component)
        before = [line for child in children if not child.custom for line in self._component(child)]
        made = [resource.urn for resource in self._recording.resources if resource.urn in self._below(component)]
        values = self._recording.component_outputs.get(component.urn, {})
        outputs = self._outputs(values, made)
        body = [
            f"super().__init__({component.type!r}, {component.name!r}, {component.inputs!r}, opts)",
            f"{self._names[component.urn]} = self",
            *(line for child in children for line in self._statement(child)),
            f"self.register_outputs({outputs})",
        ]
        names = ", ".join(self._names.values())
        head = [f"class Component_{self._names[component.urn]}(pulumi.ComponentResource):", "    def __init__(self, opts):"]
        return [*before, *head, f"        global {names}", *(f"        {line}" for line in body)]

    def _outputs(self, values: dict[str, Any], urns: list[str]) -> str:
        """A component's outputs; where all of it is one resource, plain ones wait for it as ours do."""
        custom = [urn for urn in urns if self._recording[urn].custom]
        if len(custom) != 1:
            return self._expression(values, urns, set())
        ready = f"{self._names[custom[0]]}.urn.apply"
        return "{" + ", ".join(f"{key!r}: {ready}(lambda _: {value!r})" for key, value in values.items()) + "}"

    def _below(self, component: Recorded) -> set[str]:
        """The URNs of everything in a component."""
        found = {component.urn}
        for resource in self._recording.resources:
            if resource.parent in found:
                found.add(resource.urn)
        return found

    def _statement(self, resource: Recorded) -> list[str]:
        name = self._names[resource.urn]
        if not resource.custom:
            return [f"Component_{name}({self._options(resource)})"]
        # What a resource is the parent of comes after it.
        own = [line for child in self._recording.children(resource) for line in self._statement(child)] if self._components else []
        return [f"{name} = {self._call(resource)}", *own]

    def _call(self, resource: Recorded) -> str:
        options = self._options(resource)
        arguments = [f"{snake(key)}={self._value(resource, key, value)}" for key, value in sorted(resource.inputs.items())]
        if resource.kind == "InferenceEndpointConfig":
            arguments = [argument for argument in arguments if not argument.startswith(("api_version=", "kind="))]
            arguments += [f"api_version={resource.inputs['apiVersion']!r}", f"kind={resource.inputs['kind']!r}"]
        return f"{sdk_class(resource)}({resource.name!r}, {', '.join([*arguments, f'opts={options}'])})"

    def _options(self, resource: Recorded) -> str:
        options: dict[str, str] = {}
        explicit = set(resource.dependencies) - {urn for urns in resource.property_dependencies.values() for urn in urns}
        waits = [self._names[urn] for urn in sorted(explicit) if urn in self._names]
        if waits:
            options["depends_on"] = f"[{', '.join(waits)}]"
        parent = self._recording[resource.parent] if resource.parent else None
        if self._components and parent is not None:
            options["parent"] = self._names[parent.urn]
        if self._components and resource.providers:
            given = [urn for package, urn in resource.providers.items() if parent is None or parent.providers.get(package) != urn]
            if given:
                options["providers"] = f"[{', '.join(self._names[urn] for urn in given)}]"
        inherited = parent is not None and self._components and resource.provider in parent.providers.values()
        if resource.custom and resource.provider and not inherited:
            options["provider"] = self._names[resource.provider]
        if resource.protect is not None:
            options["protect"] = repr(resource.protect)
        if resource.timeouts:
            options["custom_timeouts"] = f"pulumi.CustomTimeouts(**{dict(resource.timeouts)!r})"
        if resource.ignore_changes:
            options["ignore_changes"] = repr(list(resource.ignore_changes))
        if resource.delete_before_replace is not None:
            options["delete_before_replace"] = repr(resource.delete_before_replace)
        # The SDK of aws-native itself says those of its own.
        if resource.replace_on_changes and not resource.type.startswith("aws-native:"):
            options["replace_on_changes"] = repr(list(resource.replace_on_changes))
        # The SDK itself adds those of providers.
        if resource.additional_secret_outputs and not resource.type.startswith("pulumi:providers:"):
            options["additional_secret_outputs"] = repr(list(resource.additional_secret_outputs))
        if resource.deleted_with:
            options["deleted_with"] = self._names[resource.deleted_with]
        return f"pulumi.ResourceOptions({', '.join(f'{key}={value}' for key, value in options.items())})"

    def _value(self, resource: Recorded, key: str, value: Any) -> str:
        """An input as an expression: the outputs of the resources it comes from where they are recognized, and all of them at least."""
        value = provider_json(resource, key, value)
        known = [urn for urn in resource.property_dependencies.get(key, ()) if urn in self._names]
        if not known:
            return repr(value)
        used: set[str] = set()
        expression = self._expression(value, known, used)
        missing = [urn for urn in known if urn not in used]
        if missing:
            sources = ", ".join(f"{self._names[urn]}.{'urn' if not self._recording[urn].custom else 'id'}" for urn in known)
            return f"pulumi.Output.all({sources}).apply(lambda _: {literal(value)})"
        return expression

    def _expression(self, value: Any, urns: list[str], used: set[str]) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self._expression(part, urns, used)}" for key, part in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self._expression(part, urns, used) for part in value) + "]"
        if isinstance(value, str):
            for urn in sorted(urns, key=lambda urn: urn in used):
                if value in self._paths[urn]:
                    used.add(urn)
                    return self._paths[urn][value]
        return repr(value)

    def _paths_of(self, resource: Recorded, name: str) -> Paths:
        if not resource.custom:
            return {}
        identity, outputs = self._answers.resource(resource.type, resource.name, resource.inputs)
        known = {**resource.inputs, **outputs}
        paths = {value: f"{name}.{snake(key)}" for key, value in known.items() if isinstance(value, str)}
        return {**paths, identity: f"{name}.id"}


def data_source(token: str, arguments: Mapping[str, Any]) -> str:
    """The SDK's function as a call: `pulumi_aws.iam.get_session_context(arn=...)`."""
    package, module, name = token.split(":")
    place = f"pulumi_{package.replace('-', '_')}.{module.split('/')[0]}".removesuffix(".index")
    return f"{place}.{snake(name)}({', '.join(f'{snake(key)}={value!r}' for key, value in arguments.items())})"


def literal(value: Any) -> str:
    """A value as an expression; JSON text is written as one does by hand, as data, where that gives the same text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            data = json.loads(value)
        except ValueError:
            return repr(value)
        styles: tuple[dict[str, Any], ...] = ({}, {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}, {"sort_keys": True})
        for options in styles:
            if json.dumps(data, **options) == value:
                return f"json.dumps({data!r}, **{options!r})"
    return repr(value)


def sdk_class(resource: Recorded) -> str:
    """The SDK's class as an expression: `pulumi_aws.ec2.Vpc`."""
    package, module, kind = resource.type.split(":")
    if package == "pulumi":
        return f"pulumi_{kind.replace('-', '_')}.Provider"
    if resource.kind == "InferenceEndpointConfig":
        return "pulumi_kubernetes.apiextensions.CustomResource"
    if package == "kubernetes":
        module = module.replace("helm.sh", "helm").replace(".authorization.k8s.io", "")
    return f"pulumi_{package.replace('-', '_')}.{module.split('/')[0] if package == 'aws' else module.replace('/', '.')}.{kind}"


def provider_json(resource: Recorded, key: str, value: Any) -> Any:
    """What a provider's constructor takes: the SDK hands lists, objects and flags of providers on as JSON text."""
    if (
        resource.type.startswith("pulumi:providers:")
        and isinstance(value, str)
        and (value[:1] in "[{" or value in ("true", "false"))
        and key != "kubeconfig"
    ):
        return snake_keys(json.loads(value))
    return value


def snake_keys(value: Any) -> Any:
    """Nested keys as the SDK's typed dictionaries have them."""
    if isinstance(value, dict):
        return {snake(key): snake_keys(part) for key, part in value.items()}
    return [snake_keys(part) for part in value] if isinstance(value, list) else value


def snake(name: str) -> str:
    """`cidrBlock` as `cidr_block`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def imported(source: str, folder: Path, name: str) -> Callable[[], None]:
    """The function that a source defines, from a file as programs are: the SDK looks every frame's file up."""
    file = folder / f"{name}.py"
    file.write_text(f"{IMPORTS}\n\n{source}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def same(one: Recording, other: Recording) -> list[str]:
    """In what two recordings differ."""
    found = [f"only ours: {urn}" for urn in sorted({r.urn for r in one} - {r.urn for r in other})]
    found += [f"only by hand: {urn}" for urn in sorted({r.urn for r in other} - {r.urn for r in one})]
    for resource in one:
        if resource.urn not in other:
            continue
        twin = other[resource.urn]
        for field, value in vars(replace(resource)).items():
            if vars(twin)[field] != value:
                found.append(f"{resource!r} {field}: {value!r} and {vars(twin)[field]!r}")
    return found


def measured(programs: Mapping[str, Callable[[], None]], config: Mapping[str, str], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each program, run in turns after one round that is thrown away."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name in list(programs)[:: 1 if number % 2 else -1]:
            gc.collect()
            begin = time.process_time()
            run_program(programs[name], config=config)
            if number:
                seconds[name].append(time.process_time() - begin)
    return seconds


def compare(stack: str, rounds: int) -> int:
    """Measure one stack and print. 1 where the ratio is over the limit, or the two programs are not the same."""
    program, region = ours(stack)
    config = {"aws:region": region}
    recording = run_program(program, config=config)
    with tempfile.TemporaryDirectory() as folder:
        by_hand = imported(ByHand(recording, components=True).source(), Path(folder), f"by_hand_{stack}")
        flat = imported(ByHand(recording, components=False).source(), Path(folder), f"flat_{stack}")
        if differences := same(recording, run_program(by_hand, config=config)):
            print("the program by hand registers something else:", *differences[:20], sep="\n  ")
            return 1
        seconds = measured({"ours": program, "by hand": by_hand, "flat": flat}, config, rounds)
    best = {name: statistics.mean(sorted(found)[: max(1, rounds // 2)]) for name, found in seconds.items()}
    ratio, flat_ratio = best["ours"] / best["by hand"], best["ours"] / best["flat"]
    print(
        f"{stack}: {len(recording)} resources; ours {best['ours'] * 1000:.0f} ms, by hand {best['by hand'] * 1000:.0f} ms, "
        f"ratio {ratio:.3f} (limit {LIMIT:.2f}); without the {len(recording.components)} components, for information: {flat_ratio:.3f}"
    )
    return int(ratio > LIMIT)


def main() -> int:
    """Measure and print. 1 where a ratio is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", action="append", help="a stack of stacks/ (default: prod and dev)")
    parser.add_argument("--rounds", type=int, default=30, help="how often each program runs (default 30)")
    parser.add_argument("--print", action="store_true", help="print the program by hand and stop")
    options = parser.parse_args()
    stacks = options.stack or ["prod", "dev"]
    if options.print:
        program, region = ours(stacks[0])
        print(ByHand(run_program(program, config={"aws:region": region}), components=True).source())
        return 0
    return max(compare(stack, options.rounds) for stack in stacks)


if __name__ == "__main__":
    sys.exit(main())
