"""`dpd size`: what the numbers of an endpoint are, each with its formula and source."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from dpd_infra.cli._arguments import WRONG_USAGE, UsageError
from dpd_infra.cli._load_options import endpoints, parser, prices, unreadable, workload
from dpd_infra.plan.sizing.report import size_endpoint
from dpd_infra.plan.sizing.text import report_text
from dpd_infra.sizing import SizedEndpoint
from dpd_infra.spec.yaml_source import YamlProblem

SUMMARY = "Size endpoints.\n\nKV cache, PD buffer, GPU memory; with a load also times, rates and cost."


def main(arguments: Sequence[str]) -> int:
    """Run `dpd size`; the exit code: 1 where an endpoint cannot be sized, 2 for wrong usage."""
    options = parser("dpd size", SUMMARY)
    options.add_argument("--explain", action="store_true", help="show formula, values and source of every number")
    as_json = "--json" in arguments
    try:
        given = options.parse_args(list(arguments))
        load, known = workload(given), prices(given)
        reports = [(each, size_endpoint(each.serving, each.load, known)) for each in endpoints(given, load)]
    except UsageError as error:
        return _fail(str(error), WRONG_USAGE, as_json=as_json)
    except YamlProblem as error:
        return _fail(unreadable(error, arguments), 1, as_json=as_json)
    except (ValueError, OSError) as error:
        return _fail(str(error), 1, as_json=as_json)
    if given.json:
        print(
            json.dumps({"ok": True, "endpoints": {each.name: report.to_dict() for each, report in reports}}, indent=2, ensure_ascii=False)
        )
    else:
        print("\n\n".join(report_text(_title(each), report, explain=given.explain) for each, report in reports))
    return 0


def _title(endpoint: SizedEndpoint) -> str:
    return endpoint.name if endpoint.disaggregated else f"{endpoint.name} (colocated; sized as if it were disaggregated)"


def _fail(message: str, code: int, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"ok": False, "error": message}, ensure_ascii=False))
    else:
        print(f"dpd: {message}", file=sys.stderr)
    return code
