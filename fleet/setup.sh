#!/usr/bin/env bash
# kbtools in .venv, and the toolchains that are named, each built where it is not there yet.
set -euo pipefail
cd "$(dirname "$0")/.."
make .venv/.kb TORCH=no
[ $# = 0 ] || .venv/bin/kbtools toolchain sync "$@"
