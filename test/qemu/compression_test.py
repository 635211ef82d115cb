#!/usr/bin/env python3
"""Captures the image compresses by itself, read with Python's zlib as well as with our own tools.

Usage: compression_test.py STACKSHOT IMAGE
"""

import struct
import subprocess
import sys
import zlib

from tap import Tap, check, check_equal
from unikernel import Unikernel

BEGIN_COMPRESSED = 0x434f4d50
BEGIN_STACKSHOT = 0x59a25807
END = 0xf19158ed
DESCRIBED = (2, 3)
DURATION = 0x91a
TRANSITIONING_TASK_SNAPSHOT = 0x930
DO_COMPRESS = 0x400
KCDATA_FORMAT = 0x10000
COLLECT_DELTA_SNAPSHOT = 0x40000


def header(data, offset):
    return struct.unpack_from('<IIQ', data, offset)


def plain_of(data):
    """The plain buffer of a compressed one, by the format's rules."""
    check_equal(header(data, 0), (BEGIN_COMPRESSED, 0, 0x80), 'the first item')
    values = []
    for number, name in enumerate((b'kcd_c_type', b'kcd_c_totalout', b'kcd_c_totalin')):
        offset = 16 + 64 * number
        check_equal(header(data, offset), (3, 48, 0x88), f'the header of {name}')
        check_equal(data[offset + 16:offset + 48].rstrip(b'\0'), name, 'a name')
        values += struct.unpack_from('<Q', data, offset + 48)
    kind, total_out, total_in = values
    check_equal(kind, 1, 'kcd_c_type')
    check_equal(header(data, 208), (BEGIN_STACKSHOT, 0, 0x80), 'the inner BEGIN')
    check_equal(len(data), 224 + total_out + 16, 'the size')
    check_equal(header(data, 224 + total_out), (END, 0, 0), 'what follows the stream')
    inflater = zlib.decompressobj()
    items = inflater.decompress(data[224:224 + total_out])
    check(inflater.eof and not inflater.unused_data, 'the stream does not end where it should')
    check_equal(len(items), total_in, 'kcd_c_totalin')
    check_equal(len(items) % 16, 0, 'the padding of the items')
    return data[208:224] + items + data[224 + total_out:]


def items_of(data):
    """(name or type, payload) of every item."""
    offset = 0
    while True:
        kind, size, flags = header(data, offset)
        payload = data[offset + 16:offset + 16 + size]
        if kind in DESCRIBED:
            yield payload[:32].rstrip(b'\0').decode(), payload[32:]
        elif 0x20 <= kind <= 0x2f:
            yield f'array of {flags >> 32:#x}', payload
        else:
            yield f'{kind:#x}', payload
        if kind == END:
            return
        offset += 16 + size


def command(stackshot, *arguments, data):
    done = subprocess.run([stackshot, *arguments], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    check(done.returncode == 0, f'{arguments}: {done.returncode}: {done.stderr.decode()}')
    return done.stdout


def is_compressed(unikernel, *options):
    outcome = unikernel.run('--compress', *options)
    check(outcome.status == 0 and outcome.kcdata, outcome.explain())
    plain = plain_of(outcome.kcdata)
    check(command(unikernel.stackshot, 'decompress', '-', data=outcome.kcdata) == plain,
          'decompress gives other bytes than zlib')
    check(unikernel.decode(outcome.kcdata) == unikernel.decode(plain),
          'decode shows the compressed buffer otherwise')
    items = list(items_of(plain))
    for name in ('stackshot_in_flags', 'stackshot_out_flags'):
        flags = struct.unpack_from('<Q', dict(items)[name])[0]
        check(flags & DO_COMPRESS, f'{name} is {flags:#x}')
    durations = struct.unpack_from('<QQQ', dict(items)[f'{DURATION:#x}'])
    check(durations[0] > 0 and durations[1] == 0, f'durations are {durations}')

    other = unikernel.run(*options)
    check(other.status == 0 and other.kcdata, other.explain())
    # Whether a task is seen in teardown depends on the moment.
    names = {name for name, _ in items_of(other.kcdata)} - {f'{TRANSITIONING_TASK_SNAPSHOT:#x}'}
    check_equal(names - {name for name, _ in items}, {'stackshot_tries'}, 'what is missing')
    print(f'# {len(plain)} bytes in {len(outcome.kcdata)}; plain there were {len(other.kcdata)}')


def delta_is_refused(unikernel):
    """The full capture a series of deltas begins with is taken; the first delta is not."""
    flags = f'stackshot.flags={KCDATA_FORMAT | COLLECT_DELTA_SNAPSHOT:#x}'
    outcome = unikernel.run('--compress', '--append', f'{flags} stackshot.interval_ms=10',
                            '--count', 2)
    check('stackshot: 1 of 2: ' in outcome.log, outcome.explain())
    check('stackshot: 2 of 2: failed: ENOTSUP' in outcome.log, outcome.explain())


def main():
    stackshot, image = sys.argv[1:3]
    unikernel = Unikernel(stackshot, image)
    tap = Tap()
    for smp in (1, 4):
        tap.case(f'a compressed capture holds what a plain one does, at -smp {smp}',
                 is_compressed, unikernel, '--smp', smp)
    tap.case('also with many stacks', is_compressed, unikernel, '--workload', 'fleet')
    tap.case('also of a single-threaded collection', is_compressed, unikernel, '--append',
             'stackshot.pid=0')
    tap.case('a delta is not compressed, and that is told', delta_is_refused, unikernel)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
