"""What `dpd check` loads: a check runs on every save, and pays for nothing that it does not use."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dpd_infra.rules import check as checking
from dpd_infra.rules.check import check_endpoint
from dpd_infra.rules.manifest_file import manifest_subject
from dpd_infra.rules.registry import all_rules
from dpd_infra.spec.base import Spec, documentation
from dpd_infra.spec.endpoint import EndpointSpec
from tests.pure.cli.conftest import MANIFEST, STACK
from tests.pure.crd.documents import documents

NEVER = ["pulumi", "pulumi_aws", "pulumi_kubernetes", "boto3", "botocore", "grpc", "typer", "rich", "ruamel.yaml", "jsonschema"]


def loaded(arguments: list[str]) -> set[str]:
    code = (
        "import json, sys\nfrom dpd_infra.cli import main\nsys.argv = ['dpd', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


@pytest.mark.parametrize(
    ("name", "text", "never"),
    [
        ("endpoint.yaml", MANIFEST, [*NEVER, "pydantic"]),
        ("Pulumi.dev.yaml", STACK, NEVER),
    ],
)
def test_a_check_loads_only_what_it_uses(tmp_path: Path, name: str, text: str, never: list[str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    modules = loaded(["check", str(path)])
    assert "dpd_infra.rules.check" in modules
    assert sorted(modules & set(never)) == []


SOME = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


@SOME
@given(documents())
def test_the_rules_that_a_raw_manifest_does_without_would_say_nothing_of_it(document: dict[str, Any]) -> None:
    subject = manifest_subject(copy.deepcopy(document))
    found = check_endpoint(subject)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "manifest_rules", all_rules)
        assert check_endpoint(manifest_subject(copy.deepcopy(document))) == found


def test_the_words_of_every_field_are_found_when_they_are_asked_for() -> None:
    def models(model: type[Spec]) -> list[type[Spec]]:
        return [model, *(inner for kind in model.__subclasses__() for inner in models(kind))]

    assert documentation(EndpointSpec)["instance_types"] == "Several types in order of preference (operator 2.3)."
    undocumented = {
        f"{model.__module__}.{model.__name__}.{name}"
        for model in models(Spec)
        if model.__module__.startswith("dpd_infra.spec")
        for name in model.model_fields
        if not documentation(model).get(name)
    }
    assert undocumented == set()
