#!/usr/bin/env python3
"""What the image does on machines whose device tree is not true: it says so, and ends.

Usage: device_tree_test.py STACKSHOT IMAGE
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tap import Skip, Tap, check, check_equal
from unikernel import Unikernel

QEMU = 'qemu-system-aarch64'


def with_tree(unikernel, change, *options):
    """Runs the image on QEMU's virt with the tree that `change` makes of the true one's bytes.
    Returns the outcome and how many exceptions were taken, by their names in QEMU's log."""
    if shutil.which(QEMU) is None:
        raise Skip(f'no {QEMU}')
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory) / 'virt.dtb'
        subprocess.run([QEMU, '-M', f'virt,gic-version=3,dumpdtb={tree}', '-cpu', 'cortex-a72',
                        '-smp', '4', '-m', '1G', '-display', 'none',
                        '-nic', 'none'], check=True, capture_output=True, timeout=60)
        tree.write_bytes(change(tree.read_bytes()))
        log = pathlib.Path(directory) / 'exceptions'
        arguments = ['-dtb', str(tree), '-d', 'int', '-D', str(log)]
        outcome = unikernel.run(*[f'--qemu-option={a}' for a in arguments], *options, timeout=60)
        taken = {}
        for name in re.findall(r'^Taking exception \d+ \[(.*?)\]', log.read_text(), re.M):
            taken[name] = taken.get(name, 0) + 1
        return outcome, taken


def replaced(data, old, new):
    check_equal(data.count(old), 1, f'occurrences of {old!r} in the tree')
    check_equal(len(new), len(old), 'the length of what replaces it')
    return data.replace(old, new)


def faults_in_the_uart(unikernel):
    """The first access to the UART is a data abort: too early to tell anybody, but not for ever."""
    outcome, taken = with_tree(unikernel, lambda tree: replaced(
        tree, bytes.fromhex('0000000009000000 0000000000001000'),
        bytes.fromhex('0000000009800000 0000000000001000')))
    check('powered off' in outcome.stderr, outcome.explain())
    check_equal(outcome.log, '', 'the console')
    check_equal(taken.get('Data Abort'), 1, 'data aborts')


def has_no_interrupt_controller(unikernel):
    outcome, _ = with_tree(unikernel, lambda tree: replaced(tree, b'arm,gic-v3\0', b'arm,gic-vX\0'))
    check('panic: interrupt controller: the device tree has no interrupt controller we know'
          in outcome.log, outcome.explain())
    check(re.search(r'^  #0 +ffffffff8', outcome.log, re.M), outcome.explain())
    check('powered off' in outcome.stderr, outcome.explain())


def has_too_few_redistributors(unikernel):
    outcome, _ = with_tree(unikernel, lambda tree: replaced(
        tree, bytes.fromhex('00000000080a0000 0000000000f60000'),
        bytes.fromhex('00000000080a0000 0000000000060000')))
    check("cpu 3 (MPIDR 0x3) stopped: no GICR_TYPER has this CPU's affinity\n" in outcome.log,
          outcome.explain())
    check('AFFINITY_INFO' not in outcome.log, outcome.explain())
    check('3 of 4 CPUs online' in outcome.log, outcome.explain())
    check(outcome.status == 0 and outcome.kcdata, outcome.explain())
    shot = unikernel.decode(outcome.kcdata)['kcdata_stackshot']
    names = [thread.get('pth_name', '') for task in shot['task_snapshots'].values()
             for thread in task.get('thread_snapshots', {}).values()]
    check('idle #2' in names and 'idle #3' not in names, f'threads: {names}')


def main():
    unikernel = Unikernel(*sys.argv[1:3])
    tap = Tap()
    tap.case('an exception before there is a console happens once and turns the machine off',
             faults_in_the_uart, unikernel)
    tap.case('a panic before there are interrupts says why and turns the machine off',
             has_no_interrupt_controller, unikernel)
    tap.case('a CPU without a redistributor is named, turned off, and leaves nothing behind',
             has_too_few_redistributors, unikernel)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
