#!/usr/bin/env bash
# Chromium and glyphs for Chinese, for the tests of the site in a browser. Where they cannot be
# installed those tests are skipped, and this says so.
set -euo pipefail
command -v chromium >/dev/null && exit 0
install=(apt-get)
[ "$(id -u)" = 0 ] || install=(sudo -n apt-get)
{ "${install[@]}" update -q && "${install[@]}" install -qy --no-install-recommends chromium fonts-noto-cjk; } ||
  echo "no Chromium: the tests that need one will be skipped"
