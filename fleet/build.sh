#!/usr/bin/env bash
# Builds the distributions in dist/, and tries the wheel in an empty environment, away from any
# knowledge base. With a tag in $GITHUB_REF_NAME it must be the version's, and CHANGELOG.md must say
# what is in it.
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
"$PYTHON" -m venv "$folder/empty"
"$folder/empty/bin/python" -m pip install --quiet dist/*.whl
log=$PWD/tests/logs/half-linear-torch25.log
cd "$folder"
kbtools="$folder/empty/bin/kbtools"
set -x
"$kbtools" --version
"$kbtools" diagnose "$log"
"$folder/empty/bin/python" -c 'import kbtools.hook, kbtools.repro'
