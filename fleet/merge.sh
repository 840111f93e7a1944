#!/usr/bin/env bash
# Joins the evidence that other machines recorded, in the folders given as arguments, with ours, and
# says what changed since the night before.
#   ISSUES=yes     opens or updates an issue for each article of which anything changed
#   RECORD=BRANCH  then commits the evidence and pushes it there
# A file with a row that no run can have written is refused: what is sound is kept all the same, and
# the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
code=0
kbtools evidence merge "$@" || code=$?
[ "$code" -le 1 ] || exit "$code"
issues=()
[ "${ISSUES:-no}" = no ] || issues=(--issues)
# what is committed is the evidence of the night before; where no issue could be opened nothing is
# recorded, so that the next night is compared with it again
kbtools evidence changes --since HEAD "${issues[@]}"
[ -z "${RECORD:-}" ] || fleet/record.sh "$RECORD"
exit "$code"
