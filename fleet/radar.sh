#!/usr/bin/env bash
# Releases that no toolchain names yet: the tables are read anew; each release is built in the place
# of the one before it, every article and the tables' programs run on it, and it is removed again.
# What they saw stands in evidence/ and tables/ of this checkout, what could not be built in
# build/radar/unbuilt. That a claim is contradicted is what is looked for, and no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p build/radar
: > build/radar/unbuilt
code=0
kbtools tables sync || code=$?
kbtools radar releases > build/radar/releases
while read -r toolchain; do
    if ! kbtools toolchain sync "$toolchain" 2> build/radar/log; then
        printf '%s\t%s\n' "$toolchain" "$(tail -n 1 build/radar/log)" >> build/radar/unbuilt
        continue
    fi
    kbtools verify --toolchain "$toolchain" --all --record --quiet --require-sandbox || test $? -le 3
    kbtools tables sync --on "$toolchain" || code=$?
    kbtools toolchain prune "$toolchain"
done < build/radar/releases
exit "$code"
