#!/usr/bin/env python3
"""The image boots, uses all CPUs and delivers a capture on every machine of the matrix.

Usage: machines_test.py STACKSHOT IMAGE pairwise|full
"""

import concurrent.futures
import itertools
import sys
import tempfile

from tap import Tap, check, check_equal
from unikernel import Unikernel, tasks_of, with_text_offset

AXES = {
    'smp': [1, 2, 3, 4, 8, 16, 17, 32, 64],
    'el': [1, 2],
    'cpu': ['cortex-a72', 'cortex-a76', 'max'],
    'memory': ['128M', '1G', '4G'],
    # None: as linked. The others are 4 KiB-aligned and not 2 MiB-aligned.
    'text_offset': [None, 0x81000, 0x123000],
}


def pairwise(axes):
    """Machines such that every two values of different axes meet in at least one (greedy)."""
    names = list(axes)
    everything = [dict(zip(names, values)) for values in itertools.product(*axes.values())]

    def pairs(machine):
        return set(itertools.combinations(sorted(machine.items(), key=lambda i: i[0]), 2))

    wanted = set().union(*(pairs(m) for m in everything))
    chosen = []
    while wanted:
        best = max(everything, key=lambda m: len(pairs(m) & wanted))
        wanted -= pairs(best)
        chosen.append(best)
    return chosen


def boots_and_captures(unikernel, machine):
    with tempfile.TemporaryDirectory() as directory:
        image = unikernel.image
        if machine['text_offset'] is not None:
            image = with_text_offset(image, machine['text_offset'], directory)
        outcome = unikernel.run('--smp', machine['smp'], '--el', machine['el'], '--cpu', machine['cpu'],
                                '--memory', machine['memory'], image=image, timeout=240)
    check(outcome.status == 0 and outcome.kcdata, outcome.explain())
    for cpu in range(1, machine['smp']):
        check(f'cpu {cpu} ' in outcome.log, f'cpu {cpu} is not named\n' + outcome.explain())
    shot = unikernel.decode(outcome.kcdata)['kcdata_stackshot']
    tasks = tasks_of(shot)
    threads = [thread for task in tasks for thread in task.get('thread_snapshots', {}).values()]
    check_equal(shot['stackshot_threads_count'], len(threads), 'stackshot_threads_count')
    check_equal(shot['stackshot_tasks_count'], len(tasks), 'stackshot_tasks_count')
    check_equal(shot['stackshot_absent_cpus'], 0, 'the mask of CPUs that did not answer')
    # libkdd has no name for the latency record: one list of bytes a CPU that took part, its number
    # first.
    collected = sorted(int.from_bytes(bytes(row[:4]), 'little') for row in shot['Type_0x956'])
    check_equal(collected, list(range(machine['smp'])), 'the CPUs that took part')
    on_core = [t for t in threads if t['thread_snapshot']['ths_ss_flags'] & 0x800]
    check_equal(len(on_core), machine['smp'], 'threads on core')
    for thread in threads:
        check(thread.get('kernel_stack_frames'),
              f"thread {thread['thread_snapshot']['ths_thread_id']} has no kernel stack")


def main():
    stackshot, image, extent = sys.argv[1:4]
    unikernel = Unikernel(stackshot, image)
    if extent == 'pairwise':
        machines = pairwise(AXES)
    else:
        machines = [dict(zip(AXES, values)) for values in itertools.product(*AXES.values())]
    tap = Tap()
    # Two at a time: each runs its vCPUs on one host thread unless they fit the host's cores.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = [(m, pool.submit(boots_and_captures, unikernel, m)) for m in machines]
        for machine, future in running:
            name = ' '.join(f'{k}={hex(v) if k == "text_offset" and v else v}'
                            for k, v in machine.items())
            tap.case(f'boots and captures with {name}', future.result)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
