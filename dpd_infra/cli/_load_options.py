"""The options of `dpd size` and `dpd advise`: what is served, on what, and under which load."""

from __future__ import annotations

import argparse
import pathlib
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from dpd_infra.catalog.instance_types import INSTANCE_TYPES, InstanceType, instance_type
from dpd_infra.catalog.models import KvFormat, ModelShape, find_model, model_names
from dpd_infra.catalog.prices import DEFAULT_PRICES, MOST_PER_HOUR, PriceList
from dpd_infra.catalog.sources import Source
from dpd_infra.cli._arguments import Parser, UsageError, above_zero, length, none_or_more, number, one_or_more, spread
from dpd_infra.plan.sizing.auto import Autos
from dpd_infra.plan.sizing.workload import ArrivalProcess, Lengths, Workload
from dpd_infra.sizing import Changes, NotSizedError, SizedEndpoint, manifests, plain_serving, sized_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dpd_infra.spec.yaml_source import YamlProblem

AUTO = "auto"


def count_or_auto(text: str) -> int | str:
    """A count of 1 or more for argparse, or `auto`."""
    return AUTO if text == AUTO else one_or_more(text)


def parser(prog: str, summary: str) -> Parser:
    """The options that both commands share."""
    made = Parser(prog, summary)
    made.add_argument("file", nargs="?", metavar="FILE", help="a stack file or a manifest; without it --model and --instance-type")
    made.add_argument("--endpoint", metavar="NAME", help="only this endpoint of FILE")
    made.add_argument("--json", action="store_true", help="print JSON")
    _add_serving(made.add_argument_group("what is served, in place of what FILE says"))
    _add_load(made.add_argument_group("the load"))
    cost = made.add_argument_group("prices, USD an hour of one node; none is known by default")
    cost.add_argument("--prices", metavar="FILE", help="a price list: date, source, perHour")
    cost.add_argument("--price", action="append", default=[], metavar="TYPE=USD", help="the price of one instance type")
    return made


def _add_serving(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--model", metavar="NAME", help="a model of the catalog, or anything together with --config")
    group.add_argument("--config", metavar="FILE", help="the model's Hugging Face config.json")
    group.add_argument("--instance-type", metavar="TYPE", help="ml.p5.48xlarge, …")
    group.add_argument("--tensor-parallel-size", type=one_or_more, metavar="N")
    group.add_argument("--max-model-len", type=one_or_more, metavar="TOKENS")
    group.add_argument("--gpu-memory-utilization", metavar="SHARE|auto", help="of both roles")
    group.add_argument("--pd-buffer-bytes", metavar="BYTES|auto", help="PD_BUFFER_SIZE")
    group.add_argument("--prefillers", type=count_or_auto, metavar="N|auto")
    group.add_argument("--decoders", type=count_or_auto, metavar="N|auto")
    group.add_argument("--prefill-max-num-seqs", type=count_or_auto, metavar="N|auto")
    group.add_argument("--decode-max-num-seqs", type=count_or_auto, metavar="N|auto")
    group.add_argument("--max-num-batched-tokens", type=one_or_more, metavar="TOKENS")
    group.add_argument("--kv-cache-dtype", choices=[each.value for each in KvFormat])


def _add_load(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rate", type=above_zero, metavar="N", help="requests a second")
    group.add_argument("--concurrency", type=one_or_more, metavar="N", help="users who each wait for their answer")
    group.add_argument("--input-tokens", type=length, metavar="MEAN", help="mean prompt")
    group.add_argument("--output-tokens", type=length, metavar="MEAN", help="mean answer")
    group.add_argument("--variation", type=spread, default=0.0, metavar="CV", help="standard deviation over mean of prompts (log-normal)")
    group.add_argument("--input-percentiles", metavar="50:2000,90:8000", help="prompts by percentiles")
    group.add_argument("--output-percentiles", metavar="50:200,90:800", help="answers by percentiles")
    group.add_argument("--trace", metavar="FILE", help="lengths of real requests: JSON lines, CSV or one number a line")
    group.add_argument("--arrivals", choices=[each.value for each in ArrivalProcess], default=ArrivalProcess.POISSON.value)
    group.add_argument("--shared-prefix-tokens", type=none_or_more, default=0, metavar="TOKENS", help="tokens that all prompts begin with")
    group.add_argument("--offline", action="store_true", help="a batch job: only throughput counts")
    group.add_argument("--no-streaming", action="store_true", help="answers are read when they are complete")
    group.add_argument("--ttft-first", action="store_true", help="the first token matters more than the flow after it")


def endpoints(given: argparse.Namespace, load: Workload | None) -> Iterator[SizedEndpoint]:
    """The endpoints that are asked about, each with the load that is given or, without one, its own.

    Raises `UsageError` for options that do not fit, `NotSizedError` and ValueError for an endpoint that cannot be sized.
    """
    changes = _changes(given)
    if given.file is None:
        if changes.model is None or changes.instance is None:
            raise UsageError("name a FILE, or --model and --instance-type")
        yield SizedEndpoint(given.model or changes.model.name, plain_serving(changes, load), disaggregated=True, load=load)
        return
    path, found = pathlib.Path(given.file), 0
    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    for each in manifests(path):
        if given.endpoint is None or each.name == given.endpoint:
            found += 1
            yield sized_endpoint(each.name, each.manifest, changes, nodes=each.nodes, autos=each.autos, load=load or each.load)
    if not found:
        raise UsageError(f"{path} has no endpoint {given.endpoint!r}" if given.endpoint else f"{path} has no endpoint")


def needed(endpoint: SizedEndpoint) -> Workload:
    """The load of an endpoint. Raises `UsageError` where there is none."""
    if endpoint.load is None:
        raise UsageError(
            f"{endpoint.name}: a load is needed: --rate or --concurrency with --input-tokens and --output-tokens, percentiles or --trace; "
            "or `load` of the endpoint in a stack file"
        )
    return endpoint.load


def workload(given: argparse.Namespace) -> Workload | None:
    """The load that is asked about; None where none is given. Raises `UsageError` for half a load, and for one that cannot be."""
    with _wrong_usage():
        return _workload(given)


def _workload(given: argparse.Namespace) -> Workload | None:
    prompts = _lengths(given.input_tokens, given.input_percentiles, given.variation, "input")
    answers = _lengths(given.output_tokens, given.output_percentiles, 0.0, "output")
    if given.trace is not None:
        from dpd_infra.plan.sizing.trace import read_trace

        trace = read_trace(pathlib.Path(given.trace))
        prompts, answers = trace.input, trace.output or answers
    amount = given.rate is not None or given.concurrency is not None
    if prompts is None and answers is None and not amount:
        return None
    if prompts is None or answers is None:
        raise UsageError("a load has prompts and answers: --input-tokens and --output-tokens, percentiles, or --trace")
    if not amount:
        raise UsageError("a load has --rate or --concurrency")
    return Workload(
        prompts,
        answers,
        requests_per_second=given.rate,
        concurrency=given.concurrency,
        arrivals=ArrivalProcess(given.arrivals),
        streaming=not given.no_streaming,
        offline=given.offline,
        ttft_first=given.ttft_first,
        shared_prefix_tokens=given.shared_prefix_tokens,
    )


def prices(given: argparse.Namespace) -> PriceList:
    """The prices that are given, by file and by option. Raises `UsageError` for what is no price."""
    with _wrong_usage():
        found = PriceList.from_file(pathlib.Path(given.prices)) if given.prices else DEFAULT_PRICES
    said: dict[str, float] = {}
    for entry in given.price:
        name, _, price = entry.partition("=")
        try:
            said[name] = number(price)
        except ValueError as error:
            raise UsageError(f"--price {entry}: write TYPE=USD, such as ml.p5.48xlarge=60") from error
        if not 0 < said[name] <= MOST_PER_HOUR:
            raise UsageError(f"--price {entry}: a price is above 0, and at most {MOST_PER_HOUR:,}")
    if not said:
        return found
    if given.prices:
        return PriceList(found.date, found.source, found.per_hour | said)
    return PriceList("today", Source("given on the command line", "--price"), said)


def unreadable(problem: YamlProblem, arguments: Sequence[str]) -> str:
    """What is wrong with a file that is no YAML, in one line with its place."""
    file = problem.file or next((text for text in arguments if not text.startswith("-")), "FILE")
    return f"{file}:{problem.line}: {problem.what}" if problem.line else f"{file}: {problem.what}"


def _changes(given: argparse.Namespace) -> Changes:
    share, buffer = given.gpu_memory_utilization, given.pd_buffer_bytes

    def count(said: int | str | None) -> int | None:
        return said if isinstance(said, int) else None

    return Changes(
        model=_model(given),
        instance=_instance(given.instance_type),
        tensor_parallel_size=given.tensor_parallel_size,
        max_model_len=given.max_model_len,
        gpu_memory_utilization=_number(share, "--gpu-memory-utilization", most=1) if share not in (None, AUTO) else None,
        pd_buffer_bytes=int(_number(buffer, "--pd-buffer-bytes")) if buffer not in (None, AUTO) else None,
        prefillers=count(given.prefillers),
        decoders=count(given.decoders),
        prefill_max_num_seqs=count(given.prefill_max_num_seqs),
        decode_max_num_seqs=count(given.decode_max_num_seqs),
        max_num_batched_tokens=given.max_num_batched_tokens,
        kv_format=KvFormat(given.kv_cache_dtype) if given.kv_cache_dtype else None,
        autos=Autos(
            pd_buffer=buffer == AUTO,
            gpu_memory_utilization=share == AUTO,
            prefill_max_num_seqs=given.prefill_max_num_seqs == AUTO,
            decode_max_num_seqs=given.decode_max_num_seqs == AUTO,
            prefillers=given.prefillers == AUTO,
            decoders=given.decoders == AUTO,
        ),
    )


def _model(given: argparse.Namespace) -> ModelShape | None:
    if given.config is not None:
        from dpd_infra.plan.sizing.model_config import read_model_config

        with _wrong_usage():
            return read_model_config(pathlib.Path(given.config), given.model or "")
    if given.model is None:
        return None
    found = find_model(given.model)
    if found is None:
        raise UsageError(f"the catalog does not know {given.model!r}; give its --config config.json, or one of {', '.join(model_names())}")
    return found


def _instance(name: str | None) -> InstanceType | None:
    if name is None:
        return None
    found = instance_type(name)
    if found is None or found.gpu is None:
        known = ", ".join(kind.name for kind in INSTANCE_TYPES.values() if kind.gpu)
        raise UsageError(f"the catalog knows no GPUs of {name!r}; it knows {known}")
    return found


@contextmanager
def _wrong_usage() -> Iterator[None]:
    """What an option says, or the file that it names holds, is the call's mistake."""
    try:
        yield
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"{error.filename}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise UsageError(str(error)) from error


def _lengths(mean: float | None, percentiles: str | None, variation: float, which: str) -> Lengths | None:
    if mean is not None and percentiles is not None:
        raise UsageError(f"--{which}-tokens and --{which}-percentiles exclude each other")
    if percentiles is not None:
        try:
            pairs = {float(key): float(value) for key, _, value in (entry.partition(":") for entry in percentiles.split(","))}
        except ValueError as error:
            raise UsageError(f"--{which}-percentiles {percentiles}: write 50:2000,90:8000") from error
        return Lengths.of_percentiles(pairs)
    return Lengths.of_mean(mean, variation) if mean is not None else None


def _number(text: str, option: str, most: float = inf) -> float:
    try:
        value = number(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: neither a number nor {AUTO}") from error
    if not 0 < value <= most:
        raise UsageError(f"{option} {text}: a number above 0{f', and at most {most}' if most < inf else ''}, or {AUTO}")
    return value


__all__ = ["NotSizedError", "Parser", "UsageError", "endpoints", "needed", "parser", "prices", "unreadable", "workload"]
