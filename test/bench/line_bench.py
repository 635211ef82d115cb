#!/usr/bin/env python3
"""How much of a line's bytes are a capture's, from the image in QEMU to a file.

Usage: line_bench.py STACKSHOT KERNEL_IMG

The line is a socket that lets through 11,520 bytes a second, as 115200 baud do with 8N1. QEMU has to
keep up with that: it wants an idle CPU.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'qemu'))

from link_test import Machine  # noqa: E402

BYTES_A_SECOND = 11_520


def main():
    with Machine(*sys.argv[1:3], '--smp', '2', '--workload', 'idle') as machine:
        proxy = machine.proxy()
        machine.request(proxy, 'run', 'fleet', 'tasks=30', 'threads=10')
        proxy.pace = BYTES_A_SECOND
        _, said = machine.request(proxy, '--plain', '-q', timeout=600)
        size = (machine.path / 'a.kcdata').stat().st_size
        seconds, sent = re.search(r'\((\d+\.\d+) s, (\d+) bytes of the line\)', said).groups()
        print(f'# {size} bytes of a capture, {sent} of the line, {seconds} s', file=sys.stderr)
        print(f'wire.goodput_115200_image\t{size / float(seconds) / BYTES_A_SECOND:.4f}\tratio')
        proxy.close()


if __name__ == '__main__':
    main()
