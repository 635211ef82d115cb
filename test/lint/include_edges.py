#!/usr/bin/env python3
"""Checks every #include between folders of this tree against the table of allowed edges.

Usage: include_edges.py SOURCE_ROOT
Prints one line per include that is not allowed and exits 1 if there is any.
"""

import pathlib
import re
import sys

# Folder -> folders it may include from, itself always among them. The longest matching folder counts.
ALLOWED = {
    'kcdata': set(),
    'kcdata/serial': {'kcdata'},
    'stackshot': {'kcdata'},
    'platform/arm64': set(),
    'kernel': {'stackshot', 'kcdata', 'kcdata/serial', 'platform/arm64'},
    'boot': {'platform/arm64'},
    'tools': {'kcdata', 'kcdata/serial'},
}
# Single headers allowed beyond the table.
ALLOWED_HEADERS = {'boot': {'kernel/main.hpp'}}
# Headers of platform/arm64 that only platform/arm64 and boot may see.
PLATFORM_PRIVATE = re.compile(r'platform/arm64/.*(_registers|/sysreg|/registers)\.hpp$')
# Outside of our tree: what the portable folders may include in angle brackets.
FREESTANDING = {
    'algorithm', 'array', 'atomic', 'bit', 'climits', 'compare', 'concepts', 'cstdarg', 'cstddef',
    'cstdint', 'cstring', 'initializer_list', 'iterator', 'limits', 'new', 'numeric', 'optional',
    'span', 'string_view', 'tuple', 'type_traits', 'utility', 'version',
}
EXTERNAL = {
    'kcdata': FREESTANDING | {'zlib.h'},
    'kcdata/serial': FREESTANDING,
    'stackshot': FREESTANDING,
    'platform/arm64': FREESTANDING | {'libfdt.h', 'fdt.h'},
    'kernel': FREESTANDING,
    'boot': FREESTANDING,
}
# Files of a portable folder that only the host builds; they may use the hosted library.
HOST_ONLY = {
    f'kcdata/serial/{name}.{suffix}' for name in ('gathering', 'host', 'receiver', 'repair') for suffix in ('cpp', 'hpp')
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    matches = [f for f in ALLOWED if path == f or path.startswith(f + '/')]
    return max(matches, key=len) if matches else None


def violations(root):
    for folder in sorted({f.split('/')[0] for f in ALLOWED}):
        for file in sorted((root / folder).rglob('*')):
            if file.suffix not in {'.cpp', '.hpp', '.S', '.c', '.h'}:
                continue
            path = file.relative_to(root).as_posix()
            source = folder_of(path)
            if source is None:
                yield f'{path}:1: not in a folder the table knows'
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                kind, name = match.groups()
                where = f'{path}:{number}: '
                if kind == '<':
                    allowed = EXTERNAL.get(source)
                    if allowed is not None and path not in HOST_ONLY and name not in allowed:
                        yield where + f'{source} may not include <{name}>'
                    continue
                if not (root / name).is_file():
                    yield where + f'"{name}" is not a path from the root of the tree'
                    continue
                target = folder_of(name)
                if target is None:
                    yield where + f'"{name}" is in no folder the table knows'
                elif target != source and target not in ALLOWED[source]:
                    if name not in ALLOWED_HEADERS.get(source, set()):
                        yield where + f'{source} may not include {target} ("{name}")'
                elif source not in {'platform/arm64', 'boot'} and PLATFORM_PRIVATE.match(name):
                    yield where + f'"{name}" is for platform/arm64 and boot only'


def main():
    found = list(violations(pathlib.Path(sys.argv[1])))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
