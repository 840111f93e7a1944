#!/usr/bin/env bash
# What a pull request changed, on a machine without a GPU.
#   BASE       the commit or branch that it is for
#   TOOLCHAIN  of toolchains.toml; without it the Python at hand
# Exits with 1 when a rule is broken, a claim is contradicted, or an article ran nowhere: what only a
# machine with a GPU can run needs a row of evidence before it is merged.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p build/reports
code=0
kbtools check --sarif build/reports/check.sarif || code=$?
verified=0
kbtools verify --changed-since "$BASE" ${TOOLCHAIN:+--toolchain "$TOOLCHAIN"} --require-sandbox \
    --require-run --sarif build/reports/verify.sarif --junit build/reports/verify.xml || verified=$?
if [ "$verified" = 3 ]; then
    echo "nothing of it can be run here; on approval a machine with a GPU runs it" >&2
    verified=0
fi
exit $((code > verified ? code : verified))
