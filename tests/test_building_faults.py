"""Complete environments or none, whatever goes wrong while `kbtools toolchain sync` runs."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bases import KBTOOLS, Base
from shop import Shop

from kbtools.toolchains.uv import BuildFailed, find_uv


@pytest.fixture
def shop(new_base: Callable[..., Base]) -> Shop:
    """A knowledge base that declares nothing yet, and a wheel `tiny` of two versions."""
    shop = Shop(new_base())
    shop.wheel("tiny", "1.0")
    shop.wheel("tiny", "2.0")
    return shop


def test_a_missing_folder_of_programs(shop: Shop) -> None:
    """A `path` that no package has is an error of the declaration, and nothing is built."""
    shop.declare("one", "tiny==1.0", path=["nowhere/bin"])
    synced = shop.run("sync", "one")
    assert synced.code == 2
    assert "none of its packages has a folder `nowhere/bin`" in synced.err
    assert shop.builds() == []


def test_no_such_package(shop: Shop) -> None:
    """A package that does not exist: one message that names it, exit 2, and nothing is left."""
    shop.declare("one", "tiny==1.0", "nonesuch==3")
    shop.declare("two", "tiny==2.0")
    synced = shop.run("sync", "one", "two")
    assert synced.code == 2
    [message] = [line for line in synced.err.splitlines() if line.startswith("kbtools: ")]
    assert message.startswith("kbtools: toolchain one: ")
    assert "nonesuch" in message
    assert shop.builds() == []
    assert shop.states() == {"one": "not synced", "two": "ready"}


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"])
def test_no_index(shop: Shop, variable: str) -> None:
    """An index that does not answer is named as the reason, not the package that it would have."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/simple"
    shop.declare("one", "nonesuch==3", options=[])
    synced = shop.run("sync", "one", **{variable: address, "UV_HTTP_RETRIES": "0"})
    assert synced.code == 2
    [message] = [line for line in synced.err.splitlines() if line.startswith("kbtools: ")]
    assert f"Failed to fetch: {address}/nonesuch/" in message
    assert "Connection refused" in message
    assert shop.builds() == []


def test_no_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without uv, the message says how to get it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildFailed, match="next: pip install uv"):
        find_uv()


def test_no_such_python(shop: Shop) -> None:
    """A Python that is not there is named, whether by version or by path."""
    shop.declare("one", "tiny", python="3.987")
    shop.declare("two", "tiny", python="no/python")
    synced = shop.run("sync", "one", "two")
    assert synced.code == 2
    assert "`3.987`" in synced.err
    assert "no/python is not an interpreter" in synced.err
    assert shop.builds("one") == shop.builds("two") == []


def test_a_disk_too_small(shop: Shop) -> None:
    """What cannot fit is refused before anything is fetched, with both sizes."""
    shop.declare("one", "tiny==1.0", size_gb=10**7)
    synced = shop.run("sync", "one")
    assert synced.code == 2
    assert "takes about 20000000.0 GB while it is built" in synced.err
    assert "GB free" in synced.err
    assert shop.builds() == []


def test_a_disk_that_becomes_full(shop: Shop) -> None:
    """A disk that fills up meanwhile: one message, exit 2, and the disk as empty as before."""
    shop.wheel("big", zeros=bytes(64 << 20))
    shop.declare("one", "tiny==1.0", "big")
    small = shop.base.root / "small"
    small.mkdir()
    word = [*KBTOOLS, "-C", str(shop.base.root), "toolchain", "sync", "one"]
    script = 'mount -t tmpfs -o size=32m none "$0" || exit 77; "$@"; code=$?; '
    script += 'find "$0" -type f -size +1k; ls "$0"; exit $code'
    command = ["unshare", "-Urm", "sh", "-c", script, str(small), *word]
    variables = shop.variables | {"KBTOOLS_TOOLCHAINS": str(small)}
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    synced = subprocess.run(
        command, env=shop.base.environment(**variables), capture_output=True, text=True
    )
    if synced.returncode in (1, 77) and "kbtools" not in synced.stderr:
        pytest.skip(f"no file system can be mounted here: {synced.stderr}")
    assert synced.returncode == 2, synced.stderr
    [message] = [line for line in synced.stderr.splitlines() if line.startswith("kbtools: ")]
    assert "the disk is full" in message
    assert synced.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(shop: Shop, number: signal.Signals) -> None:
    """Ctrl-C, `kill` and a closed terminal: exit 130, nothing half-built, no process left."""
    shop.slow()
    shop.declare("one", "slow", before=[])
    process = shop.start_until_slow("sync", "one")
    assert len(shop.builds()) == 1
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "nothing half-built of one is left" in err
    assert "Traceback" not in err
    assert shop.builds() == []
    assert shop.base.running_after(2) == []


def test_killed(shop: Shop) -> None:
    """What `kill -9` leaves is never taken for an environment, and the next sync removes it."""
    shop.slow()
    shop.declare("one", "slow", before=["tiny"])
    process = shop.start_until_slow("sync", "one")
    process.kill()
    process.communicate()
    [half] = shop.builds()
    assert list((shop.home / ".builds/one" / half).glob("lib/*/site-packages/tiny"))
    assert shop.states() == {"one": "not synced"}
    assert shop.run("path", "one").code == 2
    shop.go.touch()  # an installer that outlives kbtools holds the lock until it ends
    shop.forget()
    shop.declare("one", "tiny==1.0")
    assert shop.run("sync", "one").code == 0
    assert len(shop.builds()) == 1
    assert half not in shop.builds()
    assert shop.packages() == {"tiny": "1.0"}


def test_an_old_environment_stays_until_the_new_is_complete(shop: Shop) -> None:
    """A declaration that cannot be built leaves the environment there was as it was, but stale."""
    shop.declare("one", "tiny==1.0")
    assert shop.run("sync", "one").code == 0
    before = shop.builds()
    shop.forget()
    shop.declare("one", "nonesuch==3")
    assert shop.states() == {"one": "stale"}
    assert shop.run("sync", "one").code == 2
    assert shop.builds() == before
    assert shop.packages() == {"tiny": "1.0"}
    assert shop.run("path", "one").code == 2
    shop.forget()
    shop.declare("one", "tiny==2.0")
    assert shop.run("sync", "one").code == 0
    assert shop.packages() == {"tiny": "2.0"}
    assert len(shop.builds()) == 1


def test_two_at_once(shop: Shop) -> None:
    """Two syncs of one name: one builds, the other waits for it and finds it synced."""
    shop.declare("one", "tiny==1.0")
    pair = [shop.base.start("toolchain", "sync", "one", **shop.variables) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], outputs
    assert sum("there already" in out for out, _ in outputs) == 1
    assert len(shop.builds()) == 1
    assert shop.packages() == {"tiny": "1.0"}


def test_what_is_in_the_way(shop: Shop) -> None:
    """A folder of that name that kbtools did not make is not touched."""
    shop.declare("one", "tiny==1.0")
    (shop.home / "one").mkdir(parents=True)
    synced = shop.run("sync", "one")
    assert synced.code == 2
    assert "is in the way: kbtools did not make it" in synced.err
    assert (shop.home / "one").is_dir()
