#!/usr/bin/env bash
# Says what new releases changed, from what fleet/radar.sh left on another machine: the folder given
# as argument has its evidence/, tables/ and build/radar/; without one, they are those of this checkout.
#   ISSUES=yes     opens or updates one issue
#   RECORD=BRANCH  then commits the evidence and the tables and pushes them there
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
code=0
unbuilt=build/radar/unbuilt
if [ $# != 0 ]; then
    kbtools evidence merge "$1/evidence" || code=$?
    [ "$code" -le 1 ] || exit "$code"
    [ ! -d "$1/tables" ] || cp "$1"/tables/*.jsonl tables/
    unbuilt="$1/build/radar/unbuilt"
fi
options=()
[ ! -s "$unbuilt" ] || options+=(--unbuilt "$unbuilt")
[ "${ISSUES:-no}" = no ] || options+=(--issue)
kbtools radar report --since HEAD "${options[@]}"
[ -z "${RECORD:-}" ] || fleet/record.sh "$RECORD"
exit "$code"
