"""What benchmarks of the site measure: CPU seconds of a command, bytes that a reader fetches."""

from __future__ import annotations

import gzip
import re
import resource
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

from kbtools.site.linkcheck import take_apart


def run(*command: str, cwd: Path) -> float:
    """Runs a command to its end; the processor seconds that it and all it started took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{process.stdout}{process.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compressed(file: Path) -> int:
    """Bytes that a server sends of a file."""
    content = file.read_bytes()
    packed = file.suffix.startswith(".pf_") or file.suffix == ".pagefind"
    return len(content) if packed else len(gzip.compress(content, 6))


def page_weight(site: Path, name: str) -> int:
    """Bytes of a page and of all that it loads, modules that scripts import included."""
    page = site / name / "index.html"
    html = page.read_bytes()
    queue = [urljoin(f"/{name}/", link) for link, loaded in take_apart(html).addresses if loaded]
    total, addresses = compressed(page), set[str]()
    while queue:
        address = queue.pop().partition("?")[0]
        if address in addresses or not address.startswith("/"):
            continue
        addresses.add(address)
        file = site / address[1:]
        total += compressed(file)
        if file.suffix == ".js":
            imports = re.findall(r"""(?m)^import .*?["'](\.[^"']+)["']""", file.read_text("utf-8"))
            queue += [urljoin(address, link) for link in imports]
    return total
