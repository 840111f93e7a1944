"""`kbtools.toml` → `Config`: the settings of a knowledge base."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

FILE = "kbtools.toml"
NOTICE = "N"
"""Stands between the prefix and the number in the id of a notice."""

Words = Annotated[tuple[str, ...], Meta(min_length=1)]
Need = Annotated[str, Meta(pattern=r"^(cpu|gpu|gpus:[2-9])$")]


class KbtoolsError(Exception):
    """An error that a user can correct: the command line prints it, and exits with 2.

    Packages raise subclasses, each named for its cause; this class is raised nowhere.
    """


class ConfigError(KbtoolsError):
    """`kbtools.toml` is missing, cannot be read or is not valid."""


class KnowledgeBase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[knowledge-base]`: its name, where it lives and how its ids look."""

    name: str
    prefix: Annotated[str, Meta(pattern=r"^[A-Z][A-Z-]{0,9}$")]
    digits: Annotated[int, Meta(ge=1)] = 4
    languages: Words = ("en",)
    repository: str = ""
    url: str = ""
    install: str = ""
    """What `pip install` and `uvx --from` take to get kbtools with this base in it.

    As in `kbtools`, or `git+https://…`. Empty: strangers cannot install it yet, and no page and no
    reply says how to.
    """


class ArticleForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[article]`: the words an article may use and the sections it must have."""

    sections: tuple[str, ...] = ("Symptom", "Root cause", "Fix", "Best practice")
    optional_sections: tuple[str, ...] = ("Does not help",)
    stages: Words = ("build", "import", "launch", "runtime")
    severities: Words = ("blocks", "crash", "wrong-result", "hang", "slow")
    components: tuple[str, ...] = ()
    """Known components; empty: any."""
    claim_sections: tuple[str, ...] = ()
    """Sections whose claims need receipts; empty: all but the first of `sections`."""


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[run.store]`: what every snippet would make anew, and a program makes once for all.

    docs/running.md says what such a program may leave, and who sees it.
    """

    program: Annotated[str, Meta(pattern=r"^[^/].*\.py$")]
    """Path of a Python file, from the folder of the knowledge base; trusted as kbtools is."""
    when: str
    """Regular expression that finds the snippets that use what the program leaves."""
    at_least: Annotated[int, Meta(ge=1)] = 8
    """How many of these snippets have to be asked for before an empty store is filled."""
    timeout: float = 600.0
    """Seconds of wall time that the program may take."""
    needs: tuple[str, ...] = ()
    """Programs on the PATH without which the store is not used."""
    environment: dict[str, str] = {}
    """Variables of the program, and of every snippet that finds the store."""


class Running(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[run]`: limits of one snippet and what a zygote imports for all of them."""

    timeout: float = 60.0
    """Seconds of wall time for a snippet whose fence has no `timeout=`."""
    memory_gib: float = 16.0
    """Address space of a snippet without a GPU."""
    gpu_memory_gib: float = 64.0
    """Address space of a snippet with one; 64 GiB was measured not to disturb CUDA on an H200."""
    file_gib: float = 1.0
    """Largest file a snippet may write, its captured output included."""
    processes: int = 512
    """Processes alive at once under one snippet."""
    output_kib: int = 24
    """How much of a snippet's output is kept: a quarter from its start, the rest from its end."""
    share: int = 4
    """Snippets with `requires=gpu` that may share one GPU."""
    compile_needs: dict[str, str] = {}
    """What `requires=compile` needs: distribution → range, as `needs` of an article."""
    preload: dict[str, str] = {}
    """Module that a zygote imports once → regular expression that finds the snippets that use it.

    `module:function` also calls a function, whose result the module keeps: it must run no
    operation and start no thread.
    """
    preload_variables: dict[str, str] = {}
    """Environment variables of the process that imports the modules of `preload`."""
    preload_guards: tuple[str, ...] = ()
    """Functions, `module:function`, that must return false after the imports.

    Each is asked if its module was imported. It stands for a state that no fork could use.
    """
    store: StoreSettings | None = None
    environment: tuple[str, ...] = ()
    """Names of environment variables that snippets see, in addition to the built-in ones."""
    variables: dict[str, str] = {}
    """Environment variable → its value for every snippet, whatever it is outside.

    `{cache}` stands for a folder that is empty at the start of each run.
    """
    readable: tuple[str, ...] = ()
    """Absolute paths of folders that snippets may read, in addition to the built-in ones."""


VersionText = Annotated[str, Meta(pattern=r"^[^{}]+\{version\}[^{}]*$")]


class ToolchainForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[toolchain]`: which distributions are part of what a toolchain is."""

    packages: tuple[str, ...] = ()
    """Shell patterns of distribution names, as in `nvidia-*`."""
    programs: tuple[str, ...] = ()
    """Programs that snippets may need, as in `needs="bin:cuobjdump"`; looked up on the PATH."""
    headline: tuple[str, ...] = ()
    """What a toolchain is named and sorted by, in order.

    Canonical names of distributions; `cuda` adds the version of nvcc, and `gpus` the GPU.
    """
    ptxas: dict[str, tuple[str, ...]] = {}
    """Module → where its compiler finds ptxas before it looks on the PATH, in this order.

    Each is a path in the module's folder, or `$NAME` for the path that a variable holds.
    """
    gpus: dict[str, str] = {}
    """A part of the name of a GPU, as in `H100` → its compute capability, as in `9.0`."""
    families: dict[str, tuple[str, ...]] = {}
    """A name for several distributions that are one project → their names."""
    version_texts: dict[str, tuple[VersionText, ...]] = {}
    """Distribution → texts of a log that show its version beside its name and the version.

    The version is `{version}`; a blank stands for one blank or several.
    """


Text = Annotated[str, Meta(min_length=6)]


class Texts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[diagnose]`: texts of products by which `diagnose` knows what a line of a log is.

    Each is a part of a line. What Python, compilers, build programs and shells print is known
    without them.
    """

    wrappers: tuple[Text, ...] = ()
    """In lines that report the failure of another process or program."""
    witnesses: tuple[Text, ...] = ()
    """In lines that notice what another process did: it stopped, or failed at an earlier call."""
    aftermath: tuple[Text, ...] = ()
    """In lines that are printed on the way out, after a failure."""


Colour = Annotated[str, Meta(pattern=r"^#[0-9a-f]{6}$")]


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[site]`: how the site looks, and which pages it has beside those of articles."""

    tagline: str = ""
    """Below the name on the first page, and where the site is described."""
    colour: Colour = "#0b57d0"
    """Of links and buttons on a light page, as in `#0b57d0`."""
    colour_dark: Colour = "#8ab4f8"
    """The same on a dark page."""
    packages: dict[str, str] = {}
    """Name of a distribution or project → how pages call it."""
    licence: str = ""
    """Of the articles: an address, or a name as SPDX has it."""
    reference: tuple[Literal["rules", "cli", "api"], ...] = ()
    """Pages about kbtools itself: the rules, the commands, the modules."""
    builder: Literal["mkdocs", "properdocs"] = "mkdocs"
    """What builds HTML of the pages."""


class Ci(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Table `[ci]`: the machines that `kbtools ci-matrix` gives jobs to."""

    shard_seconds: Annotated[int, Meta(ge=1)] = 900
    """A job that takes longer, by recorded seconds, is cut into shards."""
    runners: dict[Need, Words] = msgspec.field(default_factory=lambda: {"cpu": ("ubuntu-latest",)})
    """`cpu`, `gpu` or `gpus:2` → labels of the machines that have it.

    A snippet goes to a machine with exactly what it needs, one with `gpus:1` to that of `gpu`.
    Snippets that need a machine without labels are not run.
    """


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A `kbtools.toml`, and the folder that it is in."""

    knowledge_base: KnowledgeBase
    article: ArticleForm = ArticleForm()
    run: Running = Running()
    toolchain: ToolchainForm = ToolchainForm()
    diagnose: Texts = Texts()
    site: Site = Site()
    ci: Ci = Ci()
    root: Path = Path()

    @property
    def articles(self) -> Path:
        """Folder of the articles."""
        return self.root / "kb"

    @property
    def notices(self) -> Path:
        """Folder of the notices."""
        return self.articles / "notices"

    @property
    def probes(self) -> Path:
        """Folder of the probes, which `kbtools doctor` imports and runs."""
        return self.articles / "probes"

    @property
    def data_files(self) -> Path:
        """Folder of the files that snippets get copies of."""
        return self.articles / "files"

    @property
    def evidence(self) -> Path:
        """Folder of the recorded evidence."""
        return self.root / "evidence"

    @property
    def memory(self) -> Path:
        """Folder of the rows of runs on this machine; they save runs and are never committed."""
        return self.root / ".kbtools" / "memory"

    @property
    def stores(self) -> Path:
        """Folder of what `[run.store]` makes, one folder for each toolchain; never committed."""
        return self.root / ".kbtools" / "stores"

    @property
    def cache(self) -> Path:
        """Folder of what follows from files that have not changed; it may be deleted."""
        return self.root / ".kbtools" / "cache"

    @property
    def id_pattern(self) -> re.Pattern[str]:
        """Matches the whole id of an article or a notice, and nothing else."""
        base = self.knowledge_base
        return re.compile(rf"{re.escape(base.prefix)}{NOTICE}?\d{{{base.digits}}}")

    def is_notice_id(self, identifier: str) -> bool:
        """Whether a whole id is that of a notice, as in `KBN0002`."""
        return identifier.startswith(f"{self.knowledge_base.prefix}{NOTICE}")

    def canonical_id(self, word: str) -> str | None:
        """The id that a person means: `kb0002`, `KB2` and `kb2` are `KB0002`; None for no id."""
        base = self.knowledge_base
        pattern = rf"{re.escape(base.prefix)}({NOTICE}?)0*([0-9]{{1,{base.digits}}})"
        match = re.fullmatch(pattern, word.strip(), re.IGNORECASE)
        if not match:
            return None
        return self.notice_id(int(match[2])) if match[1] else self.article_id(int(match[2]))

    def article_id(self, number: int) -> str:
        """The id with that number, as in `KB0042`."""
        base = self.knowledge_base
        return f"{base.prefix}{number:0{base.digits}d}"

    def notice_id(self, number: int) -> str:
        """The id of the notice with that number, as in `KBN0042`."""
        base = self.knowledge_base
        return f"{base.prefix}{NOTICE}{number:0{base.digits}d}"


def decode(text: str, root: Path) -> Config:
    """Decodes the text of a `kbtools.toml` that stands in `root`.

    Raises:
        ConfigError: the text is not TOML, or a key is unknown, missing or of the wrong type.
    """
    try:
        config = msgspec.toml.decode(text, type=Config)
    except msgspec.MsgspecError as error:
        place, message = explained(text, str(error))
        raise ConfigError(f"{root / FILE}{place}: {message}") from error
    return msgspec.structs.replace(config, root=root)


def explained(text: str, message: str) -> tuple[str, str]:
    """Where in a `kbtools.toml` an error of its decoder lies, as in `:12`, and the error.

    Args:
        text: Of the file.
        message: Of the decoder, as in ``Expected `int`, got `str` - at `$.run.processes```.
    """
    what, _, path = message.partition(" - at `$.")
    unknown = re.search(r"unknown field `([^`]*)`", what)
    keys = path.rstrip("`").split(".") if path else []
    keys += [unknown[1]] if unknown else []
    if not keys:
        return "", message
    if unknown:
        what = f"unknown key `{'.'.join(keys)}`; docs/configuration.md explains every key"
    table, key = ".".join(keys[:-1]), re.escape(keys[-1])
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+([^\]]+)\]", line):
            current = header[1].strip()
        at_header = current == ".".join(keys) and header
        if at_header or (current == table and re.match(rf"\s*[\"']?{key}[\"']?\s*=", line)):
            return f":{number}", what if unknown else f"`{'.'.join(keys)}`: {what}"
    return "", message


def find(start: Path) -> Config:
    """The configuration in a folder or in the nearest of its parents that has one.

    Raises:
        ConfigError: there is none, or it cannot be decoded.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / FILE
        if file.is_file():
            try:
                return decode(file.read_text("utf-8"), folder)
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{file}: {error}") from error
    raise ConfigError(
        f"no {FILE} in {start} or above it; "
        "go to a knowledge base, or start one with: kbtools init DIR"
    )
