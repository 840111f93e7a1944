"""What evidence keeps of output: head and tail, nothing of this machine, no secret."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kbtools.running.output import Redaction, head_and_tail


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Cleans a text as on a machine `gpu-17` with an environment in `…/home/me/env`."""
    home = tmp_path / "home" / "me"
    python = home / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-17")
    redact = Redaction(str(python)).with_paths(
        {f"{tmp_path}/run1/KB0001-a.py": "kb/KB0001-a.md", f"{tmp_path}/run1": "<scratch>"}
    )
    return lambda text: redact(text.replace("TMP", str(tmp_path)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('File "TMP/run1/KB0001-a.py", line 7', 'File "kb/KB0001-a.md", line 7'),
        ("TMP/run1/cache/triton/x.ptx", "<scratch>/cache/triton/x.ptx"),
        ("TMP/run1\n", "<scratch>\n"),
        ("TMP/run12/a", "TMP/run12/a"),
        ("TMP/home/me/env/lib/torch/x.py", "<env>/lib/torch/x.py"),
        ("TMP/home/me/environment", "~/environment"),
        ("TMP/home/me/.triton:TMP/home/me", "~/.triton:~"),
        ("TMP/home/mean", "TMP/home/mean"),
        ('"/a/b-c/lib/python3.11/site-packages/x.py"', '"<env>/lib/python3.11/site-packages/x.py"'),
        ("[gpu-17]:0 connects to gpu-17", "[<host>]:0 connects to <host>"),
    ],
)
def test_paths_and_host(
    text: str, expected: str, clean: Callable[[str], str], tmp_path: Path
) -> None:
    """The scratch folder, the environment, the home folder and the host are renamed."""
    assert clean(text) == expected.replace("TMP", str(tmp_path))


def test_base_interpreter(clean: Callable[[str], str]) -> None:
    """The folder of the Python that an environment was made of is not kept."""
    base = Path(sys.executable).resolve().parent.parent
    assert clean(f"{base}/lib/python3/threading.py") == "<python>/lib/python3/threading.py"


SECRETS = {
    "github": "gh" + "p_" + "a1B2" * 9,
    "fine-grained": "github" + "_pat_" + "a1B2_" * 12,
    "hugging-face": "hf" + "_" + "aBcD" * 8,
    "openai": "sk" + "-proj-" + "a1B2" * 9,
    "aws": "AK" + "IA" + "ABCD2345" * 2,
    "gitlab": "glp" + "at-" + "a1B2" * 5,
    "slack": "xox" + "b-" + "1234-" * 4 + "abcd",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_tokens(secret: str, clean: Callable[[str], str]) -> None:
    """What has the form of a token is not kept, wherever it stands."""
    for text in ("{}", "a {} b", 'url="https://me:{}@host/"', "HEADER=[{}]\n"):
        cleaned = clean(text.format(secret))
        assert secret not in cleaned
        assert cleaned == text.format("<redacted>")


@pytest.mark.parametrize(
    "text",
    [
        "password: correct-horse-7-battery",
        "api_key = 0123456789abcdef0123",
        "Secret=0123456789abcdef0123",
        "HF_TOKEN=0123456789abcdef0123",
        "AWS_SECRET_ACCESS_KEY=0123456789abcdef0123",
        "'token': '0123456789abcdef0123'",
    ],
)
def test_named_secrets(text: str, clean: Callable[[str], str]) -> None:
    """The value of what is named a secret is not kept."""
    cleaned = clean(text)
    assert "<redacted>" in cleaned
    assert "0123456789" not in cleaned
    assert "battery" not in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "error: unexpected token: ')' in expression",
        "token = tokens[i]",
        "assert num_tokens == 128, 'tokens: 128'",
        "sk-learn hf_hub ghp_x",
        "KeyError: 'secret'",
        "at::native::token_t",
    ],
)
def test_ordinary_text_is_kept(text: str, clean: Callable[[str], str]) -> None:
    """The words of a compiler and of ordinary code are no secrets: signatures must find them."""
    assert clean(text) == text


def test_host_that_is_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the name of the machine is a word, texts with that word are kept."""
    monkeypatch.setattr(socket, "gethostname", lambda: "main")
    text = 'File "a.py", in __main__: domain'
    assert Redaction(str(tmp_path / "env" / "bin" / "python")).with_paths({})(text) == text


def test_short_output_is_kept(tmp_path: Path) -> None:
    """Up to the cap, output is kept byte for byte; bytes that are not UTF-8 are shown in hex."""
    file = tmp_path / "out"
    file.write_bytes("a\r\n错".encode() + b"\xff\x00\x1b[31m")
    assert head_and_tail(file, 64) == "a\r\n错\\xff\x00\x1b[31m"
    file.write_bytes(b"x" * 64)
    assert head_and_tail(file, 64) == "x" * 64
    file.write_bytes(b"")
    assert head_and_tail(file, 64) == ""


def test_long_output_keeps_both_ends(tmp_path: Path) -> None:
    """Of longer output whole lines of both ends are kept, the tail thrice the head."""
    file = tmp_path / "out"
    lines = [f"line {i:05}" for i in range(10_000)]
    file.write_text("\n".join(lines) + "\n")
    head, tail = head_and_tail(file, 4096).split("\n[... ")
    left_out, tail = tail.split(" bytes left out ...]\n")
    assert head.splitlines() == lines[: len(head.splitlines())]
    assert tail.splitlines() == lines[-len(tail.splitlines()) :]
    assert 900 < len(head) <= 1024
    assert 2900 < len(tail) <= 3072
    assert int(left_out) == file.stat().st_size - 4096


def test_long_output_without_lines(tmp_path: Path) -> None:
    """A single endless line is cut, too, and no more than the cap is read of it."""
    file = tmp_path / "out"
    file.write_bytes(b"a" * 1000 + b"b" * 100_000 + b"c" * 1000)
    text = head_and_tail(file, 400)
    assert text.startswith("a" * 100 + "\n[... ")
    assert text.endswith(" ...]\n" + "c" * 300)


def test_no_output(tmp_path: Path) -> None:
    """A file that does not exist has no text."""
    assert head_and_tail(tmp_path / "missing", 64) == ""
