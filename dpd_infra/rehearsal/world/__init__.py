"""The world behind the simulated account: what AWS and the operator enforce, and what a file says is there and how much of it.

`World.read(path)` reads such a file, `World.default()` has room for everything.
"""

from __future__ import annotations

from dpd_infra.rehearsal.world.file import World, WorldRefused

__all__ = ["World", "WorldRefused"]
