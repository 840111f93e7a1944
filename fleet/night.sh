#!/usr/bin/env bash
# A night on one machine, for cron: every toolchain that is built here, the metrics, the site.
#   TOOLCHAIN  of toolchains.toml; without it every one that is built here
#   METRICS    a file for node_exporter's textfile collector, as in .../textfile/kbtools.prom
#   PUBLISH    where the site goes, as rsync takes it; without it none is built
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
code=0
kbtools verify --toolchain "${TOOLCHAIN:-all}" --all --record --quiet --require-sandbox --require-run \
    ${METRICS:+--prometheus "$METRICS"} || code=$?
[ "$code" -le 1 ] || exit "$code"
kbtools evidence changes --since HEAD
if [ -n "${PUBLISH:-}" ]; then
    kbtools build
    rsync --archive --delete site/ "$PUBLISH"
fi
exit "$code"
