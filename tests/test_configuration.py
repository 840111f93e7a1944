"""`docs/configuration.md` explains every key of `kbtools.toml`, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from kbtools.config import FILE, Config, ConfigError, StoreSettings, decode

DOCUMENT = Path(__file__).parent.parent / "docs" / "configuration.md"


def test_every_key_is_explained() -> None:
    """Each table of `Config` has a section, and each of its keys a row."""
    text = DOCUMENT.read_text("utf-8")
    sections = dict(
        re.findall(r"^## \[([\w.-]+)\]\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    )
    tables = {
        field.encode_name: {key.encode_name for key in msgspec.structs.fields(field.type)}
        for field in msgspec.structs.fields(Config)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
    }
    tables["run"].remove("store")  # a table of its own
    tables["run.store"] = {key.encode_name for key in msgspec.structs.fields(StoreSettings)}
    rows = {
        name: set(
            re.findall(r"`([\w-]+)`", " ".join(re.findall(r"^\|([^|]+)\|", body, re.MULTILINE)))
        )
        for name, body in sections.items()
    }
    assert rows == tables
    assert "share" in tables["run"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[toolchain]\nheadlin = []", ":6: unknown key `toolchain.headlin`"),
        ("[run]\ntimeout = 1\nshare = 'x'", ":7: `run.share`: Expected `int`, got `str`"),
        ("[unknown]\nshare = 1", ":5: unknown key `unknown`"),
        ("[run]\ntimeout = ", ": "),
    ],
)
def test_an_error_names_its_line(tmp_path: Path, text: str, expected: str) -> None:
    """The line of a key that is unknown or of the wrong type stands in front of the message."""
    head = '[knowledge-base]\nname = "a"\nprefix = "A"\n\n'
    with pytest.raises(ConfigError) as error:
        decode(head + text, tmp_path)
    assert str(error.value).startswith(f"{tmp_path / FILE}{expected}")
