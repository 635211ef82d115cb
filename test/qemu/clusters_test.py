#!/usr/bin/env python3
"""Captures on machines whose device tree tells of clusters, of one kind of CPU or of two.

Usage: clusters_test.py STACKSHOT IMAGE
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from tap import Skip, Tap, check
from unikernel import Unikernel

QEMU = 'qemu-system-aarch64'


def modes_on(unikernel, clusters, capacities, described):
    """Compares captures of both modes on CPUs in `clusters` clusters, with these capacities."""
    cpus = len(capacities)
    for program in (QEMU, 'fdtput'):
        if shutil.which(program) is None:
            raise Skip(f'no {program}')
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory) / 'virt.dtb'
        subprocess.run([QEMU, '-M', f'virt,gic-version=3,dumpdtb={tree}', '-cpu', 'cortex-a72',
                        '-smp', f'{cpus},clusters={clusters},cores={cpus // clusters}', '-m', '1G',
                        '-display', 'none', '-nic', 'none'],
                       check=True, capture_output=True, timeout=60)
        for cpu, capacity in enumerate(capacities):
            if capacity:
                subprocess.run(['fdtput', '-t', 'i', str(tree), f'/cpus/cpu@{cpu}',
                                'capacity-dmips-mhz', str(capacity)], check=True, timeout=60)
        outcome = unikernel.self_test('modes modes.threads=1000 rounds=5', '--smp', cpus,
                                      '--qemu-option=-dtb', f'--qemu-option={tree}')
    check(f'modes: {described}\n' in outcome.log, outcome.explain())


def main():
    unikernel = Unikernel(*sys.argv[1:3])
    tap = Tap()
    tap.case('both modes give the same on two clusters of equal CPUs',
             modes_on, unikernel, 2, [0] * 4, '2 clusters, CPUs SSSS')
    tap.case('both modes give the same on E and P cores',
             modes_on, unikernel, 2, [446] * 4 + [1024] * 4, '2 clusters, CPUs EEEEPPPP')
    tap.case('both modes give the same where one P core helps E cores',
             modes_on, unikernel, 2, [1024, 500, 500, 500], '3 clusters, CPUs PEEE')
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
