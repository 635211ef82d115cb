#!/usr/bin/env python3
"""Captures the image sends by itself, found in logs of lines that damage them.

Usage: one_way_test.py STACKSHOT IMAGE
"""

import pathlib
import random
import subprocess
import sys
import tempfile

from tap import Tap, check, check_equal


def run(stackshot, image, directory, arguments):
    """The capture as it arrived over a good line, and the line's log."""
    capture = pathlib.Path(directory) / 'capture.kcdata'
    log = pathlib.Path(directory) / 'uart.log'
    done = subprocess.run([stackshot, 'run', '-q', '--smp', '2', '--image', image, '--log', str(log),
                           '-o', str(capture), '--compress', '--append', arguments],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300, check=False)
    check_equal(done.returncode, 0, done.stderr.decode('utf-8', 'replace'))
    return capture.read_bytes(), log.read_bytes()


def extract(stackshot, directory, log):
    """The capture that `stackshot extract` finds in the log, or None."""
    line = pathlib.Path(directory) / 'damaged.log'
    found = pathlib.Path(directory) / 'found.kcdata'
    found.unlink(missing_ok=True)
    line.write_bytes(log)
    done = subprocess.run([stackshot, 'extract', str(line), '-o', str(found)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, check=False)
    if done.returncode != 0:
        check(not found.exists(), 'an incomplete capture was written as a whole one')
        return None
    return found.read_bytes()


def damage(generator, log, rate):
    """One byte in 1/`rate` has a bit flipped, is lost, or comes twice."""
    result = bytearray()
    for byte in log:
        if generator.random() >= rate:
            result.append(byte)
            continue
        what = generator.randrange(3)
        if what == 0:
            result.append(byte ^ 1 << generator.randrange(8))
        elif what == 1:
            result += bytes((byte, byte))
    return bytes(result)


def with_parity(stackshot, image):
    """Of 20 logs in which one byte in a thousand is damaged all hold the whole capture; without
    parity frames none does."""
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        whole = {}
        for name, arguments in (('plain', 'stackshot.payload=128'), ('parity', 'stackshot.parity=30')):
            capture, log = run(stackshot, image, directory, arguments)
            found = [extract(stackshot, directory, damage(generator, log, 0.001)) for _ in range(20)]
            check(all(one in (None, capture) for one in found), 'a wrong capture came out')
            whole[name] = found.count(capture)
        check_equal(whole, {'plain': 0, 'parity': 20}, 'whole captures of 20')


def repeated(stackshot, image):
    """What one of three copies lacks is taken from the others."""
    with tempfile.TemporaryDirectory() as directory:
        capture, log = run(stackshot, image, directory,
                           'stackshot.payload=500 stackshot.repeats=3')
        frames = [part for part in log.split(b'\0') if part.startswith(b'\x01')]
        each = len(frames) // 3
        check_equal(frames[:each], frames[each:2 * each], 'the second copy')
        # A third of each copy is lost, another one each time.
        kept = [frame for copy in range(3) for number, frame
                in enumerate(frames[copy * each:copy * each + each]) if number % 3 != copy]
        line = b''.join(b'\0' + frame + b'\0' for frame in kept)
        check_equal(extract(stackshot, directory, line), capture, 'the capture of all copies')
        check(extract(stackshot, directory, line[:len(line) // 3]) is None,
              'a third of it was taken for the whole')


def as_text(stackshot, image):
    """A line of text is what every frame is, which a terminal's log keeps."""
    with tempfile.TemporaryDirectory() as directory:
        capture, log = run(stackshot, image, directory, 'stackshot.encoding=text')
        check(all(byte in b'\r\n\t' or 0x20 <= byte < 0x7f for byte in log),
              'something on the line is no text')
        check(b'~kc:' in log, 'there is no text frame')
        for ending in (b'\r\n', b'\n', b'\r\r\n'):
            check_equal(extract(stackshot, directory, log.replace(b'\r\n', ending)), capture,
                        f'the capture of lines that end with {ending}')


def main():
    tap = Tap()
    tap.case('parity frames restore what a line loses that damages one byte in a thousand',
             with_parity, *sys.argv[1:3])
    tap.case('repeats make up for each other', repeated, *sys.argv[1:3])
    tap.case('frames as lines of text survive a terminal', as_text, *sys.argv[1:3])
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
