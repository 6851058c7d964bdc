"""For every rule an input that trips it and a near miss, by family."""
