"""An endpoint's generation is in the names that have to differ, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.render.endpoint import endpoint_context, render_endpoint
from dpd_infra.rules.check import check_endpoint
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.endpoint import EndpointSpec

SHORT: dict[str, Any] = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
    "instanceType": "ml.p5.48xlarge",
}


def document(name: str = "llama", **more: Any) -> dict[str, Any]:
    context = endpoint_context(name, region="us-east-2", addon_version="v1.4.0-eksbuild.1")
    return render_endpoint(name, EndpointSpec.model_validate(SHORT | more), context).document


@given(st.integers(2, 9999), st.sampled_from(["refuse", "blueGreen", "recreate"]), st.sampled_from([None, "", "mine"]))
def test_from_the_second_generation_on_both_names_carry_it_whatever_the_mode(number: int, mode: str, endpoint_name: str | None) -> None:
    first, later = (
        document(change={"mode": mode, "generation": generation}, **({} if endpoint_name is None else {"endpointName": endpoint_name}))
        for generation in (1, number)
    )
    assert (first["metadata"]["name"], first["spec"]["endpointName"]) == ("llama", "llama" if endpoint_name is None else endpoint_name)
    assert later["metadata"]["name"] == f"llama-g{number}"
    named = "llama" if endpoint_name is None else endpoint_name
    assert later["spec"]["endpointName"] == (f"{named}-g{number}" if named else "")
    later["metadata"]["name"], later["spec"]["endpointName"] = first["metadata"]["name"], first["spec"]["endpointName"]
    assert later == first


@given(st.integers(0, 9999), st.sampled_from(["refuse", "recreate"]))
def test_recreations_and_the_mode_change_nothing_of_the_manifest(number: int, mode: str) -> None:
    assert document(change={"mode": mode, "recreations": number}) == document()


@pytest.mark.parametrize(("length", "is_refused"), [(36, False), (37, True)])
def test_the_46_characters_hold_with_the_number(length: int, *, is_refused: bool) -> None:
    # 46 for name and namespace (63 less `-routing-service` and a hyphen): 36 and `-g2`, and the seven of `default`.
    name = "a" * length
    spec = EndpointSpec.model_validate(SHORT | {"change": {"generation": 2}})
    context = endpoint_context(name, region="us-east-2", addon_version="v1.4.0-eksbuild.1")
    found = check_endpoint(EndpointSubject(name, render_endpoint(name, spec, context), spec))
    assert ("DPD004" in {finding.rule for finding in found}) is is_refused
