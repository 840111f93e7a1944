#!/usr/bin/env bash
# The articles of an approved pull request, on a machine with GPUs.
#   HEAD_SHA   the commit that was approved
#   TOOLCHAIN  of toolchains.toml; without it the Python at hand
# Only what it changes in kb/ is taken. What runs outside the sandbox (kbtools, its configuration, the packages
# of toolchains, this script) is that of this checkout, which is the main branch.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
[[ "$HEAD_SHA" =~ ^[0-9a-f]{40}$ ]] || { echo "$HEAD_SHA is no commit" >&2; exit 2; }
git fetch --quiet --no-tags origin "$HEAD_SHA"
if git ls-tree -r "$HEAD_SHA" -- kb | grep -v '^100644 blob '; then
    echo "kb/ may hold plain files only" >&2
    exit 2
fi
base=$(git merge-base HEAD "$HEAD_SHA")
git diff --name-only --no-renames --diff-filter=AM -z "$base" "$HEAD_SHA" -- kb |
    xargs --null --no-run-if-empty git checkout --quiet "$HEAD_SHA" --
mkdir -p build/reports
kbtools verify --changed-since HEAD --needs gpu --needs gpus:2 --require-sandbox \
    ${TOOLCHAIN:+--toolchain "$TOOLCHAIN"} --junit build/reports/verify.xml
