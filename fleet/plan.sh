#!/usr/bin/env bash
# The jobs of a night, for a workflow: `matrix` and `jobs`, their number, in $GITHUB_OUTPUT.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
matrix=$(kbtools ci-matrix)
jobs=$(python3 -c 'import json, sys; print(len(json.loads(sys.argv[1])["include"]))' "$matrix")
printf 'matrix=%s\njobs=%s\n' "$matrix" "$jobs" >> "${GITHUB_OUTPUT:-/dev/stdout}"
