"""Pulumi components, one noun a file: the only place that imports providers."""
