#!/bin/sh
# The portable folders pass .clang-tidy. Usage: tidy.sh SOURCE_ROOT BUILD_DIRECTORY
# Exit 77 (skipped) without the version the checks were chosen with.
set -eu
cd "$1"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
case $([ -n "$tidy" ] && "$tidy" --version || true) in
*"version 14."*) ;;
*)
    echo "skipped: clang-tidy 14 is not installed (other versions check other things)"
    exit 77
    ;;
esac
find kcdata stackshot -name '*.cpp' | sort | xargs -n 4 -P 2 "$tidy" --quiet -p "$2"
