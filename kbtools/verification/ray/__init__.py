"""`--on ray[://ADDRESS]`: snippets on the machines of a Ray cluster, judged on the local one.

No other part of kbtools knows Ray; this package is imported when `--on` is given.

Ray stays an extra, `kbtools[ray]`, and is no distribution of its own. The command sends its own
package to every worker, so that both ends of a run are always the same kbtools; two distributions
would have to be matched first. And the engine's interface, which changed several times, would have
to be a public one, for 700 lines that cost nothing until they are asked for.
"""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec

from kbtools.config import Config, KbtoolsError
from kbtools.installation import command_for
from kbtools.verification.machines import MachinePool

LOOPBACK = ("127.0.0.1:", "localhost:")


class UnknownEngineError(KbtoolsError):
    """`--on` names something other than Ray."""


class RayMissingError(KbtoolsError):
    """Ray is not installed."""


def ray_pool(config: Config, on: str) -> MachinePool:
    """The cluster that `--on` names; plain `ray` starts one on this machine, and ends it after use.

    Args:
        config: Of the knowledge base.
        on: `ray`, or `ray://ADDRESS`.

    Raises:
        UnknownEngineError: `on` is something else.
        RayMissingError: Ray is not installed.
    """
    scheme, colon, address = on.partition("://")
    if scheme != "ray" or (colon and not address):
        raise UnknownEngineError(f"--on {on}: unknown engine; it is ray or ray://ADDRESS")
    if find_spec("ray") is None:
        raise RayMissingError(f"--on ray: Ray is not installed; next: {command_for('ray')}")
    # Ray reads these when it is imported
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if not address or address.startswith(LOOPBACK):
        # whatever its name says, this keeps Ray on 127.0.0.1: without it Ray takes the machine's
        # outer address instead, and listens there
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if not address:
        # a token of this run alone: without one Ray writes a token to the home folder
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    from kbtools.verification.ray.cluster import RayPool

    return RayPool(config, address)
