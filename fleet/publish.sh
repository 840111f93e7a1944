#!/usr/bin/env bash
# Publishes dist/ as the release $GITHUB_REF_NAME on GitHub, with its part of CHANGELOG.md, and,
# where INDEX is not empty, at that package index by trusted publishing (no token of ours), with an
# attestation of each file (PEP 740): the index shows which commit and which workflow made it.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${GITHUB_REF_NAME#v}
notes=$(mktemp)
sed -n "/^## ${version//./\\.} /,/^## /{/^## /d;p}" CHANGELOG.md > "$notes"
gh release create "$GITHUB_REF_NAME" dist/* --verify-tag --title "kbtools $version" --notes-file "$notes"
if [ -n "${INDEX:-}" ]; then
  python3 -m pip install --quiet uv pypi-attestations
  python3 -m pypi_attestations sign dist/*.whl dist/*.tar.gz
  # uv uploads the attestation that lies beside a file
  uv publish --trusted-publishing always --publish-url "$INDEX" dist/*.whl dist/*.tar.gz
fi
