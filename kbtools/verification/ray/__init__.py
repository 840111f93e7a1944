"""`--on ray[://ADDRESS]`: snippets on the machines of a Ray cluster, judged here.

Nothing else of kbtools knows that Ray exists; this package is imported when it is asked for.
"""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec

from kbtools.config import Config, KbtoolsError
from kbtools.verification.machines import MachinePool

LOOPBACK = ("127.0.0.1:", "localhost:")


def ray_pool(config: Config, on: str) -> MachinePool:
    """The cluster that `--on` names; plain `ray` is one of this machine alone, gone afterwards.

    Raises:
        KbtoolsError: the word names none, or Ray is not installed.
    """
    scheme, colon, address = on.partition("://")
    if scheme != "ray" or (colon and not address):
        raise KbtoolsError(f"--on {on}: no engine of that name; there is: ray, ray://ADDRESS")
    if find_spec("ray") is None:
        raise KbtoolsError("--on ray: Ray is not installed; next: pip install 'kbtools[ray]'")
    # read when Ray is imported
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if not address or address.startswith(LOOPBACK):
        # whatever its name says, this is what keeps Ray on 127.0.0.1: else it turns that into
        # the machine's address, and listens there
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if not address:
        # of this run alone: without one given, Ray leaves a token in the home folder
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    from kbtools.verification.ray.cluster import RayPool

    return RayPool(config, address)
