#!/usr/bin/env python3
"""What a capture costs inside of its trap, and what more CPUs bring, measured in the image.

Usage: trap_bench.py STACKSHOT KERNEL_IMG

Instructions are exact and the same on any machine (-icount, one CPU). The speed-ups are times, of two
CPUs that QEMU runs side by side: they want a machine with two idle CPUs.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'qemu'))

from unikernel import Unikernel  # noqa: E402

PAIRS = 9
SPEEDUPS = {'trap.speedup_smp2_many_tasks': (1000, 20), 'trap.speedup_smp2_one_task': (1, 5000)}


def figure(name, value, unit):
    print(f'{name}\t{value}\t{unit}', flush=True)


def line_of(outcome, start):
    return next(line for line in outcome.log.splitlines() if line.startswith(start))


def main():
    unikernel = Unikernel(*sys.argv[1:3])
    line = line_of(unikernel.self_test('cost', '--smp', 1, '--icount', 0), 'cost: ')
    thread, frame = re.search(r'(\d+) instructions a thread and (\d+) a frame', line).groups()
    figure('trap.instructions_per_thread', thread, 'instructions')
    figure('trap.instructions_per_frame', frame, 'instructions')
    for name, (tasks, threads) in SPEEDUPS.items():
        outcome = unikernel.self_test(
            f'speedup speedup.tasks={tasks} speedup.threads={threads} speedup.pairs={PAIRS}',
            '--smp', 2, '--memory', '1G', timeout=600)
        line = line_of(outcome, 'speedup: ')
        print(f'# {line}', file=sys.stderr)
        figure(name, re.search(r'ratio (\d+\.\d+)', line)[1], 'ratio')


if __name__ == '__main__':
    main()
