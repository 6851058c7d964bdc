"""`python -m dpd_infra`: the same as `dpd`."""

from __future__ import annotations

from dpd_infra.cli import main

if __name__ == "__main__":
    main()
