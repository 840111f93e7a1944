"""Ray for the tests that talk to it in this process: what it is given, it reads at its import."""

from __future__ import annotations

import secrets
from contextlib import suppress

import pytest

GIVEN = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
}

with pytest.MonkeyPatch.context() as patch, suppress(ImportError):
    for name, value in GIVEN.items():
        patch.setenv(name, value)
    import ray as ray
