"""The sandbox: each attack succeeds without it, and none succeeds in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attacks import ATTACKS, WORKS, plant, snippets
from bases import KBTOOLS, Base, Finished, fence

PARTS = ("network", "sight", "files", "signals")
NAMES = [attack.name for attack in ATTACKS]
OTHER_KERNEL = """
import ctypes, os, sys

uid, gid = os.getuid(), os.getgid()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000 | 0x00020000):
    raise SystemExit(77)
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"{uid} {uid} 1")
open("/proc/self/gid_map", "w").write(f"{gid} {gid} 1")
exec(sys.argv[1])
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Starts a program for which the kernel behaves differently."""
NO_NAMESPACES = "open('/proc/sys/user/max_user_namespaces', 'w').write('0')"
MOUNTED_BELOW_PROC = """
if libc.mount(b"none", b"/", None, 0x44000, None) or libc.mount(
    b"none", b"/proc/sys/fs", b"tmpfs", 0, None
):
    raise SystemExit(77)
"""
"""As binfmt_misc is, on most machines."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Things that a snippet must not reach; name → path, address or number."""
    with plant(tmp_path_factory.mktemp("outside")) as words:
        yield words


@pytest.fixture(scope="module")
def attacked(new_base: Callable[..., Base], planted: dict[str, Any]) -> Base:
    """A knowledge base of attacks, each a repro that ends in an OSError, and of what must work."""
    base = new_base("timeout = 30")
    base.article(*snippets({**planted, "base": str(base.root)}))
    asks = "import socket\n\nsocket.create_connection(('127.0.0.1', {port}), timeout=5)"
    base.article(
        *(fence(f"python control id={name}", code) for name, code in WORKS.items()),
        fence("python control id=asks net=yes", asks.format(**planted)),
        number=2,
    )
    return base


@pytest.fixture(scope="module")
def refused(attacked: Base) -> list[str]:
    """The parts of the sandbox that this kernel refuses."""
    lines = attacked.kbtools("env").out.splitlines()
    states = {part: line for part in PARTS for line in lines if f"sandbox, {part} " in line}
    assert set(states) == set(PARTS)
    return [line for line in states.values() if not line.endswith(" yes")]


@pytest.fixture(scope="module", params=["fork", "spawn"])
def within(request: pytest.FixtureRequest, attacked: Base, refused: list[str]) -> Finished:
    """All of it, in the sandbox."""
    if refused:
        pytest.skip(refused[0])
    return attacked.verify("--isolation", request.param, "--all", "-j", "2", timeout=300)


@pytest.fixture(scope="module")
def without(attacked: Base) -> Finished:
    """The attacks, with no sandbox."""
    return attacked.verify("KB0001", "--no-sandbox", "--all", "-j", "2", timeout=300)


@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
def test_the_attack_succeeds_without_the_sandbox(attack: Any, without: Finished) -> None:
    """Without the sandbox each attack runs to its end: it really is one."""
    verdict = without.result(attack.name)
    if not attack.sure and verdict["verdict"] == "reproduced":
        pytest.skip(f"nothing to attack here: {verdict['reason']}")
    assert verdict["verdict"] == "not-reproduced", verdict


@pytest.mark.parametrize("name", NAMES)
def test_the_attack_fails_within(name: str, within: Finished) -> None:
    """In the sandbox every attack ends in an OSError."""
    result = within.result(name)
    assert result["verdict"] == "reproduced", result


@pytest.mark.parametrize("name", [*WORKS, "asks"])
def test_what_works_within(name: str, within: Finished) -> None:
    """What a snippet needs works in the sandbox, and with `net=yes` the network does."""
    result = within.result(f"KB0002/{name}")
    assert result["verdict"] == "holds", result


def test_nothing_came_through(within: Finished, planted: dict[str, Any]) -> None:
    """Nothing outside has changed, and the report says nothing of a missing sandbox."""
    assert Path(planted["victim"]).read_text("utf-8") == "unchanged"
    assert within.json["unsandboxed"] == "" and "not sandboxed" not in within.out


def test_without_it_the_report_says_so(without: Finished) -> None:
    """A run with no sandbox says so once, for people and for programs."""
    assert without.out.count("not sandboxed") == 1
    assert without.json["unsandboxed"] == "all of it (--no-sandbox)"


def on_kernel(kernel: str, base: Base, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `kbtools` on a kernel that behaves differently."""
    command = [sys.executable, "-c", OTHER_KERNEL, kernel]
    done = subprocess.run(
        [*command, *KBTOOLS, "-C", str(base.root), *words],
        env=base.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("no user namespace can be made here, not even to refuse the next one")
    return done


@pytest.fixture
def small(new_base: Callable[..., Base], planted: dict[str, Any]) -> Base:
    """A knowledge base with a snippet that reads the secret, and a control."""
    base = new_base()
    base.article(
        fence("python repro fails=OSError", f"open({planted['secret']!r}).read()"),
        fence("python control", "import json, sys\n\nopen('file', 'w').close()"),
    )
    return base


def test_a_kernel_that_refuses(small: Base, refused: list[str]) -> None:
    """If the kernel allows no namespace, Landlock shuts files off and the report says the rest."""
    if any("files" in line for line in refused):
        pytest.skip(refused[0])
    junit = small.root / "junit.xml"
    done = on_kernel(NO_NAMESPACES, small, "verify", "--junit", str(junit))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 reproduced, 1 holds" in done.stdout
    assert done.stdout.count("not sandboxed: network (") == 1 and "sight (" in done.stdout
    assert 'name="unsandboxed" value="network (' in junit.read_text("utf-8")
    listed = on_kernel(NO_NAMESPACES, small, "env").stdout
    assert listed.count("NOT sandboxed") == 2


def test_something_is_mounted_below_proc(base: Base, refused: list[str]) -> None:
    """A mount below /proc, as that of binfmt_misc, takes no part of the sandbox away."""
    if refused:
        pytest.skip(refused[0])
    listed = on_kernel(MOUNTED_BELOW_PROC, base, "env").stdout
    assert "sandbox, sight" in listed and "NOT sandboxed" not in listed, listed


def test_the_sandbox_is_required(small: Base, refused: list[str]) -> None:
    """With --require-sandbox nothing is run if a part is refused, and the exit code is 2."""
    done = on_kernel(NO_NAMESPACES, small, "verify", "--require-sandbox")
    assert done.returncode == 2
    assert "--require-sandbox demands: network (" in done.stderr
    assert "reproduced" not in done.stdout and not small.running_after(5)
    if not refused:
        assert small.verify("--require-sandbox").code == 0


def test_both_options(small: Base) -> None:
    """--require-sandbox and --no-sandbox exclude each other."""
    done = small.kbtools("verify", "--require-sandbox", "--no-sandbox")
    assert done.code == 2 and "not both" in done.err


def test_the_network_shows_in_review(base: Base) -> None:
    """`check` lists a snippet with `net=yes`, which is no problem; another value is one."""
    base.article(fence("python control id=c1 net=yes", "pass"), fence("python control", "pass"))
    done = base.kbtools("check")
    asks = [line for line in done.out.splitlines() if "asks for the network" in line]
    assert len(asks) == 1 and "KB0001/c1" in asks[0] and "KB008" not in done.out
    base.article(fence("python control net=maybe", "pass"))
    listed = base.kbtools("check").out
    assert "KB008" in listed and "`net=maybe`" in listed


@pytest.mark.parametrize(
    ("info", "needed"),
    [("requires=cpu", ""), ("net=yes", "net"), ("requires=gpu net=yes", "gpu, net")],
)
def test_the_network_shows_on_the_site(base: Base, info: str, needed: str) -> None:
    """What stands above a snippet on the site says that it needs the network."""
    from kbtools.checks.base import load_base
    from kbtools.config import find
    from kbtools.site.pages.article import needs

    base.article(fence(f"python repro {info}", "raise OSError('the failure')"))
    [article] = load_base(find(base.root)).articles
    frame: Any = SimpleNamespace(words=lambda word: word.removeprefix("article.needs-"))
    assert needs(frame, article.snippets[0]) == needed


def test_a_readable_folder(new_base: Callable[..., Base], tmp_path: Path) -> None:
    """A folder that `readable` names can be read, not written to."""
    (tmp_path / "data").write_text("readable", "utf-8")
    base = new_base(f'readable = ["{tmp_path}"]')
    base.article(
        fence("python control", f"assert open('{tmp_path}/data').read() == 'readable'"),
        fence("python repro fails=OSError", f"open('{tmp_path}/data', 'a')"),
    )
    assert set(base.verify().verdicts.values()) == {"holds", "reproduced"}


@pytest.mark.parametrize("folder", ["/var/tmp", "/dev/shm"])
def test_temporary_files_elsewhere(
    folder: str, new_base: Callable[..., Base], planted: dict[str, Any], refused: list[str]
) -> None:
    """The sandbox is the same where the temporary folder is not in /tmp."""
    if refused:
        pytest.skip(refused[0])
    root = new_base().root
    elsewhere = Path(tempfile.mkdtemp(prefix="kbt-", dir=folder))
    try:
        base = Base(root, elsewhere)
        reads = "import os\n\nopen(os.path.dirname(os.path.dirname(__file__)) + '/zygote.log')"
        base.article(
            fence("python control", WORKS["tmp"]),
            fence("python control", WORKS["shared-memory"]),
            fence("python repro fails=OSError id=other", reads),
            fence("python repro fails=OSError id=home", f"open({planted['secret']!r})"),
        )
        done = base.verify()
        assert set(done.verdicts.values()) == {"holds", "reproduced"}, done.out
        assert list(elsewhere.iterdir()) == []
    finally:
        shutil.rmtree(elsewhere)
