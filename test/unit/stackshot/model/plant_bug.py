#!/usr/bin/env python3
"""Writes a copy of SOURCE in which OLD, which must be there exactly once, is NEW.

Usage: plant_bug.py SOURCE OUTPUT OLD NEW

A tilde in OLD and NEW stands for the end of a line.
"""

import pathlib
import sys


def main():
    source, output = sys.argv[1:3]
    old, new = (text.replace('~', '\n') for text in sys.argv[3:5])
    text = pathlib.Path(source).read_text()
    if text.count(old) != 1:
        print(f'{source}: {old!r} is there {text.count(old)} times, not once', file=sys.stderr)
        return 1
    pathlib.Path(output).write_text(text.replace(old, new))
    return 0


if __name__ == '__main__':
    sys.exit(main())
