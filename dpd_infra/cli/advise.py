"""`dpd advise`: whether to disaggregate an endpoint under a load, and how."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence

from dpd_infra.cli._arguments import WRONG_USAGE, UsageError, above_zero, none_or_more, one_or_more
from dpd_infra.cli._load_options import endpoints, needed, parser, prices, unreadable, workload
from dpd_infra.cli._output_paths import File, refuse_unwritable, unwritten
from dpd_infra.plan.advice.advise import Advice, Question, advise
from dpd_infra.plan.advice.counterfactual import Targets
from dpd_infra.plan.advice.plot import plot_svg
from dpd_infra.plan.advice.second_opinion import is_installed
from dpd_infra.plan.advice.text import advice_text
from dpd_infra.spec.yaml_source import YamlProblem

SUMMARY = "Say whether to disaggregate.\n\nUnder a load, with the same GPUs colocated beside it; threshold, strategy, buffer, simulation."


def main(arguments: Sequence[str]) -> int:
    """Run `dpd advise`; the exit code: 1 where an endpoint has no advice or no plot, 2 for wrong usage. The verdict is no exit code."""
    options = parser("dpd advise", SUMMARY)
    options.add_argument("--nodes", type=one_or_more, metavar="N", help="nodes there are, in place of those of FILE")
    options.add_argument("--ttft-target", type=above_zero, metavar="SECONDS", help="what counts as served")
    options.add_argument("--tpot-target", type=above_zero, metavar="SECONDS", help="what counts as served")
    options.add_argument("--sessions", action="store_true", help="requests of a conversation carry a session id")
    options.add_argument("--requests", type=none_or_more, default=2000, metavar="N", help="requests to simulate, 0 for none (2000)")
    options.add_argument("--seed", type=int, default=0, metavar="N", help="of the simulation (0)")
    options.add_argument("--no-library", action="store_true", help="do not ask AIConfigurator where it is installed (ten seconds)")
    options.add_argument("--plot", metavar="FILE.svg", help="write the plot over thresholds")
    as_json = "--json" in arguments
    try:
        given = options.parse_args(list(arguments))
        plot = pathlib.Path(given.plot) if given.plot is not None else None
        if plot is not None:
            refuse_unwritable(File("--plot", plot))
        load = workload(given)
        asked = list(endpoints(given, load))
        plots = _plots(plot, [each.name for each in asked])
        refuse_unwritable(*(File("--plot", path) for path in plots.values()))
        if not given.no_library and is_installed() and sys.stderr.isatty():
            print("asking AIConfigurator too: about ten seconds an endpoint (--no-library leaves it out)", file=sys.stderr)
        targets, known = Targets(given.ttft_target, given.tpot_target), prices(given)
        found = {
            each.name: advise(
                Question(
                    each.serving,
                    needed(each),
                    routing_threshold=each.routing_threshold,
                    invocation_endpoint=each.invocation_endpoint,
                    nodes_available=given.nodes or each.nodes,
                    targets=targets,
                    sessions=given.sessions,
                    prices=known,
                    simulated_requests=given.requests,
                    seed=given.seed,
                    ask_library=not given.no_library,
                )
            )
            for each in asked
        }
    except UsageError as error:
        return _fail(str(error), WRONG_USAGE, as_json=as_json)
    except YamlProblem as error:
        return _fail(unreadable(error, arguments), 1, as_json=as_json)
    except (ValueError, OSError) as error:
        return _fail(str(error), 1, as_json=as_json)
    # Written first, because the reader of a pipe may go away; and what was found is shown, whatever becomes of the files.
    missing = list(_write_plots(plots, found))
    if given.json:
        data = {"ok": True, "endpoints": {name: advice.to_dict() for name, advice in found.items()}}
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(advice_text(name, advice) for name, advice in found.items()))
    return _fail("; ".join(missing), 1, as_json=False) if missing else 0


def _plots(path: pathlib.Path | None, names: Sequence[str]) -> dict[str, pathlib.Path]:
    """One file an endpoint: of several, each has the endpoint's name in its own."""
    if path is None:
        return {}
    return {name: path if len(names) == 1 else path.with_name(f"{path.stem}-{name}{path.suffix}") for name in names}


def _write_plots(plots: Mapping[str, pathlib.Path], found: Mapping[str, Advice]) -> Iterator[str]:
    """Write what can be drawn; which plots are not there, and why."""
    for name, path in plots.items():
        threshold = found[name].threshold
        if threshold is None:
            yield f"{path} is not written: {found[name].verdict.not_modelled}"
            continue
        try:
            path.write_text(plot_svg(threshold, f"{name}: request time, TTFT and TPOT by routing threshold"), encoding="utf-8")
        except OSError as error:
            yield f"{path} {unwritten(error)}"


def _fail(message: str, code: int, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"ok": False, "error": message}, ensure_ascii=False))
    else:
        print(f"dpd: {message}", file=sys.stderr)
    return code
