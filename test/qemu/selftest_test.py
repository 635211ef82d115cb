#!/usr/bin/env python3
"""The tests that live in the image pass, and a panic says what happened and ends.

Usage: selftest_test.py STACKSHOT IMAGE [long]
"""

import re
import sys

from tap import Tap, check, check_equal
from unikernel import Unikernel


def run_test(unikernel, name, arguments='', *options, timeout=300):
    """Runs a test of the image and returns its outcome; fails with the test's own words."""
    outcome = unikernel.run('--append', f'test={name} {arguments}', *options, timeout=timeout)
    results = [line for line in outcome.log.splitlines() if line.startswith(f'TEST {name}: ')]
    check_equal(len(results), 1, f'number of results of {name}\n{outcome.explain()}\n')
    check(results[0] == f'TEST {name}: passed', f'{results[0]}\n{outcome.explain()}')
    for line in outcome.log.splitlines():
        if line.startswith(f'{name}: '):
            print(f'# {line}')
    return outcome


def panics(unikernel, name, wanted, depth):
    outcome = unikernel.run('--append', f'test={name}', timeout=60)
    log = outcome.log
    check('gave up' not in outcome.stderr, 'the machine does not end\n' + outcome.explain())
    check(re.search(wanted, log, re.M), f'no line {wanted!r}\n' + outcome.explain())
    frames = re.findall(r'^  #(\d+) +([0-9a-f]{16})', log, re.M)
    check(len(frames) >= depth, f'a backtrace of {len(frames)} frames\n' + outcome.explain())
    check(' inside a panic: ' not in log, outcome.explain())
    check_equal(len(re.findall(r'^cpu \d: panicked, thread \d+ "selftest"', log, re.M)), 1,
                'CPUs that panicked')
    check_equal(len(re.findall(r'^cpu \d: stopped at pc [0-9a-f]{16} .*thread', log, re.M)), 3,
                'CPUs that stopped')
    return outcome


def exception_shows_registers(unikernel):
    outcome = panics(unikernel, 'exception',
                     r'^exception: current_el_spx_sync: Data Abort .* FAR_EL1 0000000deadbeef0', 3)
    for register in [f'x{n}' for n in range(31)] + ['sp', 'ELR_EL1', 'SPSR_EL1', 'FAR_EL1']:
        check(re.search(rf'\b{register} +[0-9a-f]{{16}}', outcome.log),
              f'{register} is not shown\n' + outcome.explain())


def main():
    stackshot, image = sys.argv[1:3]
    unikernel = Unikernel(stackshot, image)
    tap = Tap()
    if sys.argv[3:] == ['long']:
        tap.case('no CPU, wake-up or register is lost in 10000 stops of 4 CPUs', run_test, unikernel,
                 'quiesce', 'cycles=10000', '--smp', 4, timeout=3600)
        tap.case('nor in 1000 stops of 16 CPUs', run_test, unikernel, 'quiesce', 'cycles=1000',
                 '--smp', 16, timeout=3600)
        return tap.end()
    tap.case('no CPU, wake-up or register is lost in 1000 stops of 4 CPUs', run_test, unikernel,
             'quiesce', 'cycles=1000', '--smp', 4)
    tap.case('a CPU that does not answer is named, held when it comes late, and not lost', run_test,
             unikernel, 'absent', 'ack_timeout_ms=1000', '--smp', 4)
    for smp in [1, 2, 4, 8]:
        tap.case(f'both modes capture a frozen world of {smp} CPUs alike', run_test, unikernel, 'modes',
                 '', '--smp', smp)
    tap.case('100 tasks of 100 threads are captured', run_test, unikernel, 'scale', '', '--smp', 4,
             '--memory', '1G')
    tap.case('instructions in the trap are counted by thread and frame', run_test, unikernel, 'cost',
             '', '--smp', 1, '--icount', 0)
    tap.case('a panic tells its message, its stack and where every CPU is', panics, unikernel, 'panic',
             r'^panic: on purpose, thread \d+\s*$', 3)
    tap.case('an unexpected exception tells its registers, too', exception_shows_registers, unikernel)
    tap.case('a stack overflow is caught in the guard and told', panics, unikernel, 'overflow',
             r'^exception: stack_overflow: ', 20)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
