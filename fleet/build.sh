#!/usr/bin/env bash
# Builds the distributions in dist/, and tries the wheel in an empty environment, away from any
# knowledge base: each command that strangers are told of must serve the base that is in the wheel.
# With a tag in $GITHUB_REF_NAME it must be the version's, and CHANGELOG.md must say what is in it.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
version=$("$PYTHON" -c 'import re; print(re.search(r"^__version__ = \"(.+)\"", open("kbtools/__init__.py").read(), re.M)[1])')
if [[ "${GITHUB_REF:-}" = refs/tags/* ]]; then
  [ "$GITHUB_REF_NAME" = "v$version" ] || { echo "the tag $GITHUB_REF_NAME is not the version $version" >&2; exit 1; }
  grep -q "^## $version (20" CHANGELOG.md || { echo "CHANGELOG.md has no heading '## $version (DATE)'" >&2; exit 1; }
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rm -rf dist
"$PYTHON" -m venv "$folder/build"
"$folder/build/bin/python" -m pip install --quiet build twine
"$folder/build/bin/python" -m build --outdir dist .
"$folder/build/bin/python" -m twine check --strict dist/*
wheel=$(echo "$PWD"/dist/*.whl)
bytes=$(stat --format %s "$wheel")
echo "the wheel has $bytes bytes, of which the knowledge base takes $("$PYTHON" -m zipfile -l "$wheel" | awk '/packaged.tar.xz/ {print $NF}')"

# a user who has nothing: no cache, no settings, and an interpreter that is not the one of kbtools
"$PYTHON" -m venv "$folder/empty"
"$folder/empty/bin/python" -m pip install --quiet "$wheel"
"$PYTHON" -m venv "$folder/mine"
log=$PWD/tests/logs/half-linear-torch25.log
cd "$folder"
export HOME=$folder/home XDG_CACHE_HOME=
mkdir "$HOME"
kbtools() { echo "\$ kbtools $*"; "$folder/empty/bin/kbtools" "$@" > "$folder/printed"; }
prints() { grep --quiet -e "$1" "$folder/printed" || { echo "it does not print '$1', but:"; cat "$folder/printed"; exit 1; } >&2; }
kbtools --version
prints "$version"
kbtools diagnose "$log"
prints KB0044
kbtools explain kb44
prints '^# KB0044'
kbtools explain kb2 --fix
prints 'pip install'
kbtools list
prints '^KB0002 *reproduced'
kbtools search 显存
prints '^KB'
kbtools link KB0044
prints KB0044
kbtools matrix
prints 'KB0044'
kbtools env
prints '^python '
kbtools verify KB0044 --toolchain "$folder/mine/bin/python" || [ $? = 3 ] # 3: it has no torch
prints ' snippets in '
"$folder/empty/bin/python" -c 'import kbtools.hook, kbtools.repro'
"$folder/empty/bin/python" -m kbtools --version
"$folder/empty/bin/python" -m pip install --quiet "$wheel[mcp]"
"$folder/empty/bin/python" - "$folder/empty/bin/kbtools" <<'PYTHON_END'
import asyncio, sys
from mcp import ClientSession, StdioServerParameters, stdio_client

async def ask():
    async with stdio_client(StdioServerParameters(command=sys.argv[1], args=["mcp"])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            answer = await session.call_tool("search", {"words": "operand does not dominate this use"})
            assert "KB0002" in answer.content[0].text, answer

asyncio.run(ask())
print("kbtools mcp answers")
PYTHON_END
du -sk "$folder"/empty/lib/python*/site-packages/kbtools "$HOME/.cache/kbtools"
