#!/usr/bin/env python3
"""Profiles of the image: captures it takes by itself, and captures asked for while it runs.

Usage: profile_test.py STACKSHOT KERNEL_ELF IMAGE
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

from tap import Tap, check, check_equal

SMP = 4
CAPTURES = 3
EVERY_MS = 50
BEGIN_DELTA_STACKSHOT = 0xde17a59a
PATIENCE = 240


class Profiles:
    def __init__(self, stackshot, elf, image, directory):
        self.stackshot, self.elf, self.image, self.directory = stackshot, elf, image, directory

    def command(self, *arguments):
        done = subprocess.run([self.stackshot, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                              check=False)
        check(done.returncode == 0, f'{arguments}: {done.returncode}: {done.stderr.decode()}')
        return done.stdout.decode()

    def profile(self, *arguments):
        return self.command('profile', '--elf', self.elf, '--count', CAPTURES, '--every',
                            f'{EVERY_MS}ms', '-q', *arguments)

    def take(self):
        return json.loads(self.profile('--image', self.image, '--smp', SMP, '-o',
                                       self.directory / 'own.kcdata', '--format', 'speedscope'))

    def files(self, name):
        return [self.directory / f'{name}.kcdata'] + [self.directory / f'{name}-{n}.kcdata'
                                                      for n in range(2, CAPTURES + 1)]

    def ask(self):
        """A tree of captures asked for over the line of an image that runs."""
        socket = self.directory / 'line'
        image = subprocess.Popen([self.stackshot, 'run', '--image', self.image, '--listen', socket],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + PATIENCE
            while not socket.exists():
                check(image.poll() is None and time.monotonic() < deadline, 'the image is not there')
                time.sleep(0.1)
            return self.profile('--from', f'unix:{socket}', '--timeout', 60, '-o',
                                self.directory / 'asked.kcdata')
        finally:
            image.terminate()
            check_equal(image.wait(PATIENCE), 130, 'the status of what ran the image')


def has_a_sample_of_each_capture(profile):
    names = [frame['name'] for frame in profile['shared']['frames']]
    threads = {each['name']: each for each in profile['profiles']}
    for cpu in range(SMP):
        [idle] = [thread for name, thread in threads.items() if f'"idle #{cpu}"' in name]
        check_equal(len(idle['samples']), CAPTURES, f'samples of the idle thread of CPU {cpu}')
        for sample in idle['samples']:
            outermost = names[sample[0]]
            check_equal(outermost, 'primary_entry' if cpu == 0 else 'secondary_entry', 'its begin')
            check('kernel::scheduler::idle' in (names[frame] for frame in sample), 'it is not idle')


def shows_every_cpu_collecting(trace):
    events = trace['traceEvents']
    collections = [event for event in events if event['name'] == 'collection']
    check_equal(len(collections), CAPTURES * SMP, 'collections')
    for cpu in range(SMP):
        begins = sorted(event['ts'] for event in collections if event['tid'] == cpu)
        check_equal(len(begins), CAPTURES, f'collections of CPU {cpu}')
        for one, next_one in zip(begins, begins[1:]):
            check(next_one - one >= EVERY_MS * 1000, f'CPU {cpu} collects at {begins}')
    check(any(event.get('cat') == 'record' for event in events), 'no record of a task is shown')


def main():
    stackshot, elf, image = sys.argv[1:4]
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        profiles = Profiles(stackshot, elf, image, pathlib.Path(name))
        own = []
        tap.case('the image takes the captures of a profile by itself',
                lambda: own.append(profiles.take()))
        tap.case('every thread that was there all the time has a sample of each',
                lambda: has_a_sample_of_each_capture(own[0]))
        tap.case('the kept captures make a trace that shows each CPU collecting them in turn',
                lambda: shows_every_cpu_collecting(json.loads(profiles.command(
                    'profile', '--format', 'perfetto', *profiles.files('own')))))
        tree = []
        tap.case('a unikernel that runs is asked for the captures of a profile',
                lambda: tree.append(profiles.ask()))

        def are_deltas():
            for file in profiles.files('asked')[1:]:
                [magic] = struct.unpack_from('<I', file.read_bytes())
                check_equal(magic, BEGIN_DELTA_STACKSHOT, file.name)
        tap.case('all captures but the first are deltas', are_deltas)

        def are_completed():
            check(f'"idle #0"  in {CAPTURES} of {CAPTURES}' in tree[0], tree[0])
            check('kernel::scheduler::idle' in tree[0], tree[0])
            check(tree[0].splitlines()[0].split(' over ')[1] != '0 ns', tree[0].splitlines()[0])
        tap.case('they are completed from those before', are_completed)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
