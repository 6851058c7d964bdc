"""Writing plain data as YAML that every reader takes for what it is: PyYAML's, Pulumi's and kubectl's."""

from __future__ import annotations

from typing import Any

import yaml

from dpd_infra.spec.yaml_scalar import plain_value

_WIDTH = 140


class _Dumper(yaml.SafeDumper):
    """PyYAML quotes what YAML 1.1 takes for another type; Go's readers take more: `1e5` and `0o7` are numbers to them."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write out what stands in two places twice: an anchor says nothing to people."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # U+0085 and its like end a line for some readers only.
    is_plain = text == plain_value(text) == plain_value(text, kubernetes=True) and text.replace("\n", "").isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def write_yaml(data: Any) -> str:
    """Plain data as one YAML document, keys in their own order. Raises `yaml.YAMLError` for what is no plain data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
