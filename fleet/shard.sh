#!/usr/bin/env bash
# One job of a night: what it saw is recorded in evidence/ of this checkout.
#   TOOLCHAIN  of toolchains.toml
#   NEEDS      cpu, gpu or gpus:2
#   SHARD      as in 2/8
# Exits with 1 when a claim is contradicted; that nothing could be run here is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p build/reports
code=0
kbtools verify --toolchain "$TOOLCHAIN" --needs "$NEEDS" --shard "$SHARD" --all --record \
    --require-sandbox --json build/reports/verify.json --junit build/reports/verify.xml || code=$?
[ "$code" = 3 ] || exit "$code"
