"""What `dpd size` of the prod stack costs as a whole process, against importing pydantic.

    python bench/size_stack.py

Processor seconds, the median of seven runs that take turns. Ends with 1 where the promise, at most five times, is not kept.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 7
MOST_OF_IMPORT = 5
SIZE = "import sys; from dpd_infra.cli import main; sys.argv[0] = 'dpd'; main()"


def seconds(*command: str) -> float:
    """Processor seconds of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure in turns and say the ratio."""
    ours, pydantic = [], []
    for _ in range(ROUNDS):
        ours.append(seconds("-c", SIZE, "size", str(ROOT / "stacks" / "Pulumi.prod.yaml")))
        pydantic.append(seconds("-c", "import pydantic"))
    ratio = median(ours) / median(pydantic)
    print(f"dpd size of the prod stack: {median(ours) * 1000:.0f} ms; import pydantic: {median(pydantic) * 1000:.0f} ms; ratio {ratio:.1f}")
    return 0 if ratio <= MOST_OF_IMPORT else 1


if __name__ == "__main__":
    sys.exit(main())
