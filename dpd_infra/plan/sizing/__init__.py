"""The numbers of an endpoint: KV cache, PD buffer, GPU memory, transfer, prefill, decode, rates and cost; each formula in one place.

Every formula is a function of plain values; `.quantity(...)` of the same function gives the value with its unit, confidence,
formula, source and working.
"""
