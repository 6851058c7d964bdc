"""Print the folder of the policy pack: `pulumi preview --policy-pack "$(python -m dpd_infra.policy)"`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.stdout.write(f"{Path(__file__).with_name('pack')}\n")
