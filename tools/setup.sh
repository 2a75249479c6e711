#!/usr/bin/env bash
# Gets what the build needs and leaves alone what is there already, so that it can be called again and works without
# a network once everything is installed.
#
#   tools/setup.sh packages            Debian packages, through apt-get (sudo when not root)
#   tools/setup.sh developer-packages  those of make lint and make fuzz
#   tools/setup.sh venv FOLDER FILE    a Python environment with the packages listed in FILE
set -euo pipefail
cd "$(dirname "$0")/.."

library="gcc libc6-dev make meson ninja-build pkg-config python3 libjpeg62-turbo-dev libspng-dev zlib1g-dev
  libprotobuf-c-dev protobuf-c-compiler libcjson-dev libzip-dev libhdf5-dev libcurl4-openssl-dev libssl-dev
  libcmocka-dev ca-certificates"
commands="python3-venv python3-pip xz-utils man-db libopenmpi-dev openmpi-bin iproute2"
developer="clang clang-format clang-tidy cppcheck libclang-rt-dev"

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }

packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "not Debian: please install what Meson names below by hand ($*)"
    return
  fi
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  if [ ${#missing[@]} = 0 ]; then
    say "all $# packages are installed"
    return
  fi
  local sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo=$(command -v sudo) || die "not root and no sudo; as root: apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  $sudo apt-get update -q
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

venv() {
  local folder=$1 list=$2
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  local pip="$folder/bin/python -m pip install -q --disable-pip-version-check"
  if $pip --no-index -r "$list" 2>/dev/null; then
    say "$folder has all of $list"
    return
  fi
  say "installing $list into $folder (some minutes)"
  $pip -r "$list"
}

case "${1:-}" in
packages) packages $library $commands ;;
developer-packages) packages $developer ;;
venv) venv "${2:?folder}" "${3:?list of packages}" ;;
*) die "packages, developer-packages or venv, please" ;;
esac
