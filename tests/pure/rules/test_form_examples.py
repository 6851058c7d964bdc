"""Every form that the CRD asks for in a spec has an example in the fix, and the example has that form."""

from __future__ import annotations

import re

import pytest

from dpd_infra.catalog.crd import crd_facts
from dpd_infra.rules.schema_rules import FORM_EXAMPLES
from tests.pure.rules.kit import put, raw

FORMS = sorted({fact.schema["pattern"] for fact in crd_facts().fields("spec") if "pattern" in fact.schema})


def test_every_form_of_the_crds_spec_has_an_example_and_there_are_no_others() -> None:
    assert sorted(FORM_EXAMPLES) == FORMS


@pytest.mark.parametrize("form", FORMS)
def test_an_example_has_the_form(form: str) -> None:
    for example in re.split(", | or ", FORM_EXAMPLES[form]):
        assert re.search(form, example), example


@pytest.mark.parametrize(
    ("path", "value", "fix"),
    [
        ("spec|dnsConfig", {"hostedZoneId": "z"}, "write text of that form, for example Z0123456789ABC"),
        ("metadata|name", "Not A Name", "write text of that form, for example llama-70b"),
        ("spec|endpointName", "a" * 64, "let it have 63 characters or fewer"),
        ("spec|replicas", {}, "write an integer"),
        ("spec|worker|args", "--port", "write a list"),
        ("spec|pdSpec|routingThreshold", -1, "write 0 or more"),
    ],
)
def test_a_refused_value_is_told_what_to_write(path: str, value: object, fix: str) -> None:
    assert fix in [finding.fix for finding in raw(put(path, value)).findings if finding.rule == "DPD701"]
