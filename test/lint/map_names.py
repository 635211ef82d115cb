#!/usr/bin/env python3
"""Checks docs/stackshot-map.md: every file, function and test it names exists, and every flag has a row.

Usage: map_names.py SOURCE_ROOT
Prints one line per name that does not hold and exits 1 if there is any.
"""

import pathlib
import re
import sys

MAP = 'docs/stackshot-map.md'
FLAGS = 'kcdata/stackshot_flags.hpp'
# A file in backquotes, and the names behind it, up to what ends the list.
CODE = re.compile(r'`([\w/]+\.\w+)`((?: [\w:]+,?)*)')
TEST = re.compile(r'\b(\w+_test(?:\.py)?): "([^"]*)"')


def test_source(root, name):
    folder, file = ('test/qemu', name) if name.endswith('.py') else ('test/unit', name + '.cpp')
    found = list((root / folder).rglob(file))
    return found[0].read_text() if found else None


def problems(root):
    text = (root / MAP).read_text()
    rows = [line for line in text.splitlines() if line.startswith('| ')]
    for row in rows:
        for path, names in CODE.findall(row):
            if not (root / path).is_file():
                yield f'no file {path}'
                continue
            source = (root / path).read_text()
            for name in re.findall(r'[\w:]+', names):
                if name.split('::')[-1] not in source:
                    yield f'{path} has no {name}'
    for name, begin in TEST.findall(text):
        source = test_source(root, name)
        if source is None:
            yield f'no test {name}'
        # A name may be broken into several literals.
        elif begin not in re.sub(r'"\s*"', '', source):
            yield f'{name} has no test "{begin}"'
    named = {row.split()[1] for row in rows}
    for flag in re.findall(r'\bSTACKSHOT_\w+(?= = 0x)', (root / FLAGS).read_text()):
        if flag not in named:
            yield f'no row of {flag}'


def main():
    root = pathlib.Path(sys.argv[1])
    found = [f'{MAP}: {problem}' for problem in problems(root)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
