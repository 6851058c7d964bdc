"""What each API wants: pure functions from specs and plans to plain dicts."""
