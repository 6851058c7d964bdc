"""What to do about a contradiction: the fix of each message that a spec's own validators give."""

from __future__ import annotations

import re

_SAID = re.compile(r"(?:[:;] |^)((?:use|write|give|leave|name|say|set|chain) .*)$")
"""A message that ends with what to do, or is that as a whole."""

_FIXES: tuple[tuple[str, str], ...] = (
    (r"preinstalled and oci exclude each other", "keep preinstalled where the chart is installed already, else oci with ociVersion"),
    (r"oci and ociVersion go together", "write both, or neither"),
    (
        r"overrides: (\S+) is not to be overridden",
        r"take \1 out of overrides: what it stands for has a key of the entry or is the entry's own name",
    ),
    (r"colocated\.gpus: ", "write colocated: {gpus: N} with the GPUs of one pod"),
    (r"efa: \S+ needs an instance type", "take one of these types, or write efa: documented, which asks for no devices"),
    (r"lengths are given by either", "keep mean with its variation, or percentiles"),
    (r"variation stands beside a mean", "remove variation, or give a mean in the place of the percentiles"),
    (r"percentiles: a higher percentile", "put the lengths in rising order"),
    (r"either requestsPerSecond or concurrency", "keep one of the two"),
    (r"a model comes from exactly one of (.*); here are none", r"add one of \1"),
    (r"a model comes from exactly one of", "keep one of them"),
    (r"for s3 the folder is s3\.prefix", "write the folder as s3.prefix and remove location"),
    (r"selfManagedAddons names (.*), which", r"add \1 under addons, or remove the name here"),
    (r"stands (?:here|there) twice", "keep one of the two"),
    (r"not an IPv4 block", "write a block's first address and its length"),
    (r"^cidr must be /16", "write a block of that size, or give the GPU subnet a block of its own with gpuCidr"),
    (r"controlPlaneZones needs two zones", "name a second zone of the region, or leave controlPlaneZones out"),
    (r"interfaceEndpoints go with egress", "write egress: endpoints, or remove interfaceEndpoints"),
    (r"^controlPlaneZones, interfaceEndpoints and flowLogs", "remove them, or remove routeTableId so that a VPC is made"),
    (
        r"adopt takes the add-on and its role as they are: (.*) would have",
        r"remove \1: what that role may reach is its owner's to allow (advice DPD454 lists it); or remove adopt, to have both made here",
    ),
    (r"names that begin with system:", "write a name without system: in front"),
    (r"existingNamespace leaves the namespace", "remove labels, or remove existingNamespace so that the namespace is made with them"),
)
"""By what a message says."""


def fix_of(message: str) -> str:
    """What to do about a contradiction; where no fix is known, to change what the message names."""
    if found := _SAID.search(message):
        return found[1].partition("; here are ")[0]
    for pattern, fix in _FIXES:
        if match := re.search(pattern, message):
            return match.expand(fix)
    return ""
