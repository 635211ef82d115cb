#!/usr/bin/env python3
"""Every CPU the device tree names is started, or named with what its start answered.

Usage: cpus_test.py STACKSHOT IMAGE
"""

import pathlib
import subprocess
import sys
import tempfile

from tap import Tap, check
from unikernel import Unikernel


def missing_cpus_are_named(unikernel, named, present):
    """Boots a machine of `present` CPUs with the device tree of one of `named`."""
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory) / 'virt.dtb'
        subprocess.run(['qemu-system-aarch64', '-M', f'virt,gic-version=3,dumpdtb={tree}', '-cpu',
                        'cortex-a72', '-smp', str(named), '-m', '1G', '-nodefaults', '-display',
                        'none'], check=True, capture_output=True)
        outcome = unikernel.run('--smp', present, '--qemu-option=-dtb', f'--qemu-option={tree}',
                                timeout=120)
    check(outcome.status == 0 and outcome.kcdata, outcome.explain())
    for cpu in range(present):
        check(f'cpu {cpu} (MPIDR {cpu:#x}) online\n' in outcome.log, outcome.explain())
    for cpu in range(present, named):
        check(f'cpu {cpu} (MPIDR {cpu:#x}) not started: INVALID_PARAMETERS\n' in outcome.log,
              outcome.explain())
    check(f'{present} of {named} CPUs online\n' in outcome.log, outcome.explain())
    shot = unikernel.decode(outcome.kcdata)['kcdata_stackshot']
    names = [thread['pth_name'] for thread in
             shot['task_snapshots']['0']['thread_snapshots'].values() if 'pth_name' in thread]
    idle = sorted(name for name in names if name.startswith('idle #'))
    check(idle == [f'idle #{cpu}' for cpu in range(present)], f'idle threads: {idle}')


def main():
    unikernel = Unikernel(*sys.argv[1:3])
    tap = Tap()
    tap.case('a CPU the machine lacks is named with the PSCI error, and the others work',
             missing_cpus_are_named, unikernel, 4, 2)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
