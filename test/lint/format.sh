#!/bin/sh
# Every C++ file is as clang-format leaves it. Exit 77 (skipped) without the version we format with.
set -eu
cd "$1"
formatter=$(command -v clang-format-14 || command -v clang-format || true)
case $([ -n "$formatter" ] && "$formatter" --version || true) in
*"version 14."*) ;;
*)
    echo "skipped: clang-format 14 is not installed (other versions lay out code differently)"
    exit 77
    ;;
esac
find boot platform kernel stackshot kcdata tools test -name '*.cpp' -o -name '*.hpp' | sort |
    xargs "$formatter" --dry-run --Werror
