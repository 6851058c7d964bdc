"""The differential fuzz: what is held of the CRD, against the CRD itself in the `jsonschema` library, on documents broken in one field.

    python -m tests.pure.crd.fuzz [--documents 100000] [--seed 0]

Prints how many documents of each kind of break were judged and how many of them were refused by both; ends with 1 and the smallest
document on which the two differ, where there is one.
"""

# ruff: noqa: T201 - a script: its output is for people

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from dpd_infra.catalog.crd.validate import validate_document
from tests.pure.crd.fuzz_documents import AT_ONCE, Broken, breaks, broken
from tests.pure.crd.raw_crd import refused_places

BATCH = 5000
"""Documents of one seed: hypothesis remembers each that it made."""


@dataclass(slots=True)
class Counts:
    """What was judged."""

    by_break: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Documents by the kind of break and whether both judges refuse them."""
    seen: set[bytes] = field(default_factory=set)
    """Digests of the documents: each counts once, however often hypothesis makes it."""

    def add(self, case: Broken) -> None:
        """Count a document on which the judges agree."""
        digest = hashlib.blake2b(json.dumps(case.document, sort_keys=True).encode(), digest_size=12).digest()
        if digest not in self.seen:
            self.seen.add(digest)
            self.by_break[case.what.how, bool(validate_document(case.document))] += 1


def differences(case: Broken) -> str:
    """What the two judges do not agree on; empty where they name the same places."""
    ours = {problem.path for problem in validate_document(case.document)}
    theirs = refused_places(case.document, case.what.version)
    if ours == theirs:
        return ""
    return f"{case.what}: only we refuse {sorted(map(str, ours - theirs))}, only the CRD refuses {sorted(map(str, theirs - ours))}"


def fuzz(documents: int, first_seed: int) -> Counts:
    """Judge so many documents or a few more, none twice. Raises `AssertionError` with the smallest document on which the judges differ."""
    counts = Counts()
    number = first_seed
    while len(counts.seen) < documents:
        judge(min(BATCH, documents), number, counts)
        number += 1
        print(f"{len(counts.seen):>7} documents", file=sys.stderr)
    return counts


def judge(documents: int, number: int, counts: Counts) -> None:
    """Make and judge so many documents of one seed. Raises `AssertionError` with the smallest one on which the judges differ."""

    @seed(number)
    @settings(
        max_examples=max(1, documents // AT_ONCE),
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(broken())
    def judge_each(cases: tuple[Broken, ...]) -> None:
        for case in cases:
            difference = differences(case)
            assert not difference, f"{difference}\n{json.dumps(case.document, indent=1)}"
            counts.add(case)

    judge_each()


def report(counts: Counts) -> str:
    """The counts as a table."""
    lines = [f"{'break':<16}{'documents':>10}{'refused':>10}{'taken':>10}"]
    sums = {how: [counts.by_break[how, True], counts.by_break[how, False]] for how in sorted({how for how, _ in counts.by_break})}
    sums["all"] = [sum(column) for column in zip(*sums.values(), strict=True)]
    lines += [f"{how:<16}{refused + taken:>10}{refused:>10}{taken:>10}" for how, (refused, taken) in sums.items()]
    return "\n".join(lines)


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.process_time()
    try:
        counts = fuzz(options.documents, options.seed)
    except AssertionError as error:
        print(error)
        return 1
    print(report(counts))
    seconds = time.process_time() - begin
    print(f"the two judges agree on every one; {len(breaks())} ways of breaking a field, {seconds:.0f} s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
