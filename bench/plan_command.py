"""What `dpd plan` costs, against importing the providers that it needs.

    python bench/plan_command.py [--stack prod] [--rounds 9]

Both are whole processes and run in turns: `dpd plan` in each of its forms, and a Python that imports Pulumi with the three provider
packages and touches each class of theirs that the stack uses (they are loaded when they are touched). Times are processor seconds, ratios
are of medians. The exit code is 1 where a ratio is over 1.3. For information: the ratio to the import statements alone, without the start
and the end of the Python that runs them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from registration import sdk_class

from dpd_infra.testing import run_project

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.3
FORMS = {"tree": (), "--json": ("--json",), "--mermaid": ("--mermaid",), "--dot": ("--dot",)}


def imports(stack: str) -> str:
    """A program that loads what a stack needs of the providers and does nothing with it."""
    classes = sorted({sdk_class(resource) for resource in run_project(stack, ROOT).custom})
    return "import pulumi, pulumi_aws, pulumi_aws_native, pulumi_kubernetes\n" + "\n".join(classes)


def seconds(*command: str) -> float:
    """The processor seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def statements_alone(code: str) -> float:
    """The processor seconds that the import statements themselves take."""
    timed = f"import time\nbegin = time.process_time()\n{code}\nprint(time.process_time() - begin)"
    return float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Measure and print. 1 where a ratio is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", default="prod")
    parser.add_argument("--rounds", type=int, default=9, help="how often each runs (default 9)")
    options = parser.parse_args()
    file = str(ROOT / "stacks" / f"Pulumi.{options.stack}.yaml")
    code = imports(options.stack)
    plan = (sys.executable, "-m", "dpd_infra", "plan", file)
    commands = {"imports": (sys.executable, "-c", code)} | {name: (*plan, *flags) for name, flags in FORMS.items()}
    found: dict[str, list[float]] = {name: [] for name in commands}
    alone: list[float] = []
    for number in range(options.rounds + 1):
        alone.append(statements_alone(code))
        for name in list(commands)[:: 1 if number % 2 else -1]:
            taken = seconds(*commands[name])
            if number:
                found[name].append(taken)
    medians = {name: statistics.median(times) for name, times in found.items()}
    worst = 0.0
    for name in FORMS:
        ratio = medians[name] / medians["imports"]
        worst = max(worst, ratio)
        print(f"dpd plan {name}: {medians[name]:.2f} s, imports {medians['imports']:.2f} s, ratio {ratio:.2f} (limit {LIMIT:.2f})")
    bare = statistics.median(alone[1:])
    print(f"for information, import statements alone: {bare:.2f} s, ratio {medians['tree'] / bare:.2f}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
