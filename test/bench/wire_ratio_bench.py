#!/usr/bin/env python3
"""What the line carries for the default workload's capture, in percent of its plain kcdata.

Usage: wire_ratio_bench.py STACKSHOT KERNEL_IMG
"""

import pathlib
import subprocess
import sys
import tempfile


def frame_bytes(log):
    """Of all frames, their delimiters included: between 0x00 and 0x00, with 0x01 first."""
    return sum(len(part) + 2 for part in log.split(b'\0') if part.startswith(b'\x01'))


def main():
    stackshot, image = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory) / 'uart.log'
        capture = pathlib.Path(directory) / 'capture.kcdata'
        subprocess.run([stackshot, 'run', '-q', '--compress', '--image', image, '--log', str(log),
                        '-o', str(capture)], check=True, stdin=subprocess.DEVNULL)
        plain = subprocess.run([stackshot, 'decompress', str(capture), '-o', '-'], check=True,
                               stdout=subprocess.PIPE).stdout
        print(f'wire.ratio\t{100 * frame_bytes(log.read_bytes()) / len(plain):.1f}\t%')


if __name__ == '__main__':
    main()
