#!/usr/bin/env bash
# The articles of an approved pull request, on a machine with GPUs.
#   HEAD_SHA   the commit that was approved
#   TOOLCHAIN  of toolchains.toml; without it the Python at hand
# Only what it changes in kb/ is taken. What runs outside the sandbox (kbtools, its configuration,
# the packages of toolchains, this script) is that of this checkout, which is the main branch.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
[[ "$HEAD_SHA" =~ ^[0-9a-f]{40}$ ]] || { echo "$HEAD_SHA is no commit" >&2; exit 2; }
git fetch --quiet --no-tags origin "$HEAD_SHA"
base=$(git merge-base HEAD "$HEAD_SHA")
changed=$(git diff --name-only --no-renames --diff-filter=d "$base" "$HEAD_SHA" -- kb)
# no link to a file of this machine, and no .gitattributes that would have git show one thing and
# write another
if git ls-tree -r "$HEAD_SHA" -- kb | grep --invert-match '^100644 blob ' ||
    grep --invert-match --extended-regexp '^(kb/[A-Za-z0-9_][A-Za-z0-9._-]*\.md)?$' <<< "$changed"; then
    echo "kb/ may hold plain Markdown files only" >&2
    exit 2
fi
xargs --no-run-if-empty git checkout --quiet "$HEAD_SHA" -- <<< "$changed"
# the network that this machine is in is not a stranger's
if git diff --text --no-textconv --no-ext-diff HEAD -- kb | grep -E '^\+.*\bnet='; then
    echo "a fence of it asks for the network; merge it first, then a night runs it" >&2
    exit 2
fi
mkdir -p build/reports
kbtools verify --changed-since HEAD --needs gpu --needs gpus:2 --require-sandbox \
    ${TOOLCHAIN:+--toolchain "$TOOLCHAIN"} --junit build/reports/verify.xml
