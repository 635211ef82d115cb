#!/usr/bin/env python3
"""Plants forbidden includes in a copy of the rules' folders and expects each to be reported."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from include_edges import ALLOWED, violations  # noqa: E402

PLANTED = {
    'kcdata/a.cpp': '#include "stackshot/b.hpp"',
    'stackshot/c.cpp': '#include "kernel/d.hpp"',
    'platform/arm64/e.cpp': '#include "kernel/d.hpp"',
    'tools/f.cpp': '#include "stackshot/b.hpp"',
    'kernel/g.cpp': '#include "platform/arm64/gic/gicv3_registers.hpp"',
    'boot/h.cpp': '#include "kernel/d.hpp"',
    'stackshot/i.cpp': '#include <vector>',
    'kcdata/j.cpp': '#include "a.hpp"',
}
FINE = {
    'kernel/k.cpp': '#include "stackshot/b.hpp"\n#include <span>',
    'boot/l.cpp': '#include "kernel/main.hpp"',
    'tools/m.cpp': '#include "kcdata/n.hpp"\n#include <vector>',
}
HEADERS = ['stackshot/b.hpp', 'kernel/d.hpp', 'kernel/main.hpp', 'kcdata/n.hpp',
           'platform/arm64/gic/gicv3_registers.hpp']


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for folder in ALLOWED:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for path, text in {**PLANTED, **FINE, **{h: '' for h in HEADERS}}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text + '\n')
        reported = {line.split(':')[0] for line in violations(root)}
    if reported != set(PLANTED):
        print('not reported:', sorted(set(PLANTED) - reported))
        print('wrongly reported:', sorted(reported - set(PLANTED)))
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
