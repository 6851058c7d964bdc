"""The differential fuzz with a real API server as the judge: documents broken in one field are refused by it and by us, or by neither.

    python -m tests.kubernetes.fuzz [--documents 20000] [--seed 0]

Needs kube-apiserver and etcd (`make tools`). Prints how many documents of each kind of break were judged and how many of them were
refused; ends with 1 where the two differ, and shows the first such document of each break.
"""

# ruff: noqa: T201 - a script: its output is for people

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.kubernetes.api_server import api_server
from tests.kubernetes.client import Client
from tests.kubernetes.crd import install_crd
from tests.kubernetes.judge import Judge
from tests.kubernetes.manifests import broken_in_one_field
from tests.pure.crd.fuzz import Counts, report

BATCH = 3000


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    commands = [shutil.which(name, path=str(ROOT / ".tools" / "bin")) or shutil.which(name) for name in ("etcd", "kube-apiserver")]
    if None in commands:
        print("kube-apiserver or etcd is missing: run `make tools`", file=sys.stderr)
        return 2
    etcd, kube_apiserver = (Path(str(command)) for command in commands)
    counts, differences = Counts(), dict[str, str]()
    with tempfile.TemporaryDirectory() as folder, api_server(etcd, kube_apiserver, Path(folder)) as connection:
        client = Client(connection)
        install_crd(client)
        judge = Judge(client)
        seed = options.seed
        while len(counts.seen) < options.documents:
            for verdict in judge.verdicts(broken_in_one_field(min(BATCH, options.documents), seed)):
                if verdict.difference:
                    differences.setdefault(str(verdict.case.what), verdict.difference)
                else:
                    counts.add(verdict.case)
            seed += 1000  # a batch may take several seeds
            print(f"{len(counts.seen):>7} documents, {len(differences)} breaks that differ", file=sys.stderr)
    print(report(counts))
    for difference in differences.values():
        print(difference)
    print(f"{len(differences)} breaks differ" if differences else "the API server and we agree on every one")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
