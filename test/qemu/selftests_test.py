#!/usr/bin/env python3
"""Tests that run inside the image, where the hardware is, and say on the console how they ended.

Usage: selftests_test.py STACKSHOT IMAGE short|long
"""

import re
import sys

from tap import Tap, check
from unikernel import Unikernel


def dies(unikernel, name, expected):
    """The image stops over `name`: it says why, shows where, and powers off by itself."""
    outcome = unikernel.run('--append', f'test={name}', timeout=60)
    check('TEST ' not in outcome.log, outcome.explain())
    for text in expected:
        check(text in outcome.log, f'no {text!r} on the console\n' + outcome.explain())
    check(len(re.findall(r'^  #\d+ +ffffffff8[0-9a-f]{7}$', outcome.log, re.M)) >= 3,
          'no backtrace\n' + outcome.explain())
    check(all(f'cpu {cpu}: ' in outcome.log for cpu in range(4)),
          'not every CPU is named\n' + outcome.explain())
    check('powered off' in outcome.stderr, outcome.explain())


def main():
    stackshot, image, extent = sys.argv[1:4]
    unikernel = Unikernel(stackshot, image)
    tap = Tap()
    if extent == 'long':
        tap.case('10,000 stops lose no CPU, no wake-up and no register, at -smp 4',
                 lambda: unikernel.self_test('quiesce cycles=10000', timeout=1800))
        tap.case('2,000 stops lose no CPU, no wake-up and no register, at -smp 8',
                 lambda: unikernel.self_test('quiesce cycles=2000', '--smp', 8, timeout=1800))
        return tap.end()
    tap.case('1,000 stops lose no CPU, no wake-up and no register, at -smp 4',
             lambda: unikernel.self_test('quiesce cycles=1000', timeout=300))
    for smp in (1, 2, 4, 8):
        tap.case(f'single-threaded and parallel captures of one stop are equal, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('modes', '--smp', smp))
    for smp in (1, 4, 8):
        tap.case(f'threads are scheduled, woken and ended without loss, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('scheduler', '--smp', smp))
    tap.case('100 tasks of 100 threads are captured whole, at -smp 4',
             lambda: unikernel.self_test('scale'))
    tap.case('a panic says why and where, and names every CPU',
             dies, unikernel, 'panic', ['panic: on purpose'])
    tap.case('an unexpected exception shows its registers and where it happened',
             dies, unikernel, 'exception',
             ['current_el_spx_sync: Data Abort', 'FAR_EL1 0000000deadbeef0', 'x30 ', 'SPSR_EL1 '])
    tap.case('a stack overflow is told as such',
             dies, unikernel, 'overflow', ['stack_overflow: Data Abort'])
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
