"""The answers of AIConfigurator 0.12 that a test replays, and how to record them.

    python -m tests.pure.advice.recorded

with the extra `models` installed. Each case is asked as `dpd advise` asks, and what the library was asked and said is kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import KvFormat, find_model
from dpd_infra.plan.advice import second_opinion
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Lengths, Workload

FILE = Path(__file__).with_name("aiconfigurator_0_12_answers.json")


@dataclass(frozen=True)
class Case:
    """One question to both."""

    model: str
    instance_type: str
    tensor_parallel_size: int
    input: int
    output: int
    concurrency: int | None = None
    rate: float | None = None
    kv: str = "bf16"

    @property
    def serving(self) -> Serving:
        """One prefiller and one decoder."""
        shape = find_model(self.model)
        assert shape is not None
        ranks = self.tensor_parallel_size
        return Serving(shape, INSTANCE_TYPES[self.instance_type], 16_384, tensor_parallel_size=ranks, kv_format=KvFormat(self.kv))

    @property
    def workload(self) -> Workload:
        """All prompts and all answers of the same length."""
        return Workload(
            Lengths.constant(self.input), Lengths.constant(self.output), requests_per_second=self.rate, concurrency=self.concurrency
        )


CASES = (
    Case("Llama-3.3-70B-Instruct", "ml.p5.48xlarge", 8, 4096, 256, concurrency=32),
    Case("Llama-3.3-70B-Instruct", "ml.p5.48xlarge", 8, 4096, 256, concurrency=8),
    Case("Llama-3.3-70B-Instruct", "ml.p5.48xlarge", 8, 6000, 400, rate=2.5),
    Case("Llama-3.3-70B-Instruct", "ml.p5e.48xlarge", 8, 4096, 256, rate=2.0, kv="fp8"),
    Case("Qwen/Qwen2.5-72B-Instruct", "ml.p6-b200.48xlarge", 8, 4096, 256, rate=2.0),
    Case("Qwen/Qwen3-32B", "ml.p5.48xlarge", 4, 4096, 256, rate=2.0),
    Case("Llama-3.1-8B-Instruct", "ml.p5.48xlarge", 1, 2000, 256, concurrency=16),
    Case("mistralai/Mixtral-8x7B-Instruct-v0.1", "ml.p5.48xlarge", 4, 2000, 256, concurrency=16),
    Case("deepseek-ai/DeepSeek-V3", "ml.p5e.48xlarge", 8, 4000, 256, concurrency=16),
    Case("openai/gpt-oss-120b", "ml.p5.48xlarge", 8, 4000, 256, concurrency=16),
)


@dataclass(frozen=True)
class Answer:
    """What the library said, as far as we read it."""

    ttft: float
    tpot: float
    backend_version: str
    raw: dict[str, float]


class Replay:
    """Stands for the library's function: the recorded answers of one case, each to the question it was the answer to."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._calls: Iterator[dict[str, Any]] = iter(calls)
        self.configs: list[dict[str, Any]] = []

    def __call__(self, folder: str, system: str, **arguments: Any) -> Answer:
        """Raises AssertionError for another question."""
        call = next(self._calls)
        assert (system, arguments) == (call["system"], call["arguments"])
        self.configs.append(json.loads(Path(folder, "config.json").read_text(encoding="utf-8")))
        return Answer(call["ttft"], call["tpot"], call["backend_version"], {"tokens/s": call["tokens_per_second"]})


def recorded() -> list[tuple[Case, list[dict[str, Any]]]]:
    """The cases with their calls."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    return [(Case(**entry["case"]), entry["calls"]) for entry in data["cases"]]


def main() -> int:
    """Ask the library and write the file."""
    real = second_opinion._library()
    if real is None:
        raise SystemExit("install the extra `models` first")
    found: list[dict[str, Any]] = []
    for case in CASES:
        calls: list[dict[str, Any]] = []

        def ask(folder: str, system: str, *, kept: list[dict[str, Any]] = calls, **arguments: Any) -> Any:
            answer = real(folder, system, **arguments)
            kept.append(
                {
                    "system": system,
                    "arguments": arguments,
                    "ttft": float(answer.ttft),
                    "tpot": float(answer.tpot),
                    "tokens_per_second": float(answer.raw["tokens/s"]),
                    "backend_version": str(answer.backend_version),
                }
            )
            return answer

        opinion = second_opinion.second_opinion(case.serving, case.workload, ask)
        print(case.model, case.instance_type, opinion.note, [f"{each.what} {each.difference:+.1%}" for each in opinion.compared])  # noqa: T201  # a script's output
        found.append({"case": vars(case), "calls": calls})
    FILE.write_text(json.dumps({"library": second_opinion._version(), "cases": found}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
