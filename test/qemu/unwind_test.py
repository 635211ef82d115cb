#!/usr/bin/env python3
"""Every thread's captured stack is the one gdb unwinds, threads of every kind among them.

Usage: unwind_test.py STACKSHOT KERNEL_ELF KERNEL_IMG

gdb stops the image inside of each trap, before anything is recorded, loads each thread's registers
into a CPU and unwinds by DWARF; the capture that follows has to hold the same addresses, and the
report made of it the same functions, inlined ones included.
"""

import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tap import Skip, Tap, check, check_equal

HERE = pathlib.Path(__file__).resolve().parent
GDB = 'gdb-multiarch'
CAPTURES = 12
# Instructions take 4 ns of the machine's time, and nothing else takes any: the speed of the host does
# not matter, one run is much like the other, and interrupts come at any instruction, not only where
# QEMU's translation blocks begin.
QEMU = ['qemu-system-aarch64', '-machine', 'virt,gic-version=3', '-cpu', 'cortex-a72', '-smp', '4',
        '-m', '1G', '-icount', 'shift=2,sleep=off', '-display', 'none', '-nodefaults',
        '-monitor', 'none', '-no-reboot', '-S']
BOOT_ARGUMENTS = ('workload=kinds depth=32 ack_timeout_ms=60000 stackshot.delay_ms=400 '
                  f'stackshot.interval_ms=23 stackshot.count={CAPTURES} stackshot.then=off')
PATIENCE = 240  # seconds, a hang detector only

SS_TH_WAIT, SS_TH_RUN, SS_TH_TERMINATE, SS_TH_IDLE = 0x01, 0x04, 0x10, 0x80
kThreadTruncatedBT, kThreadOnCore, kThreadTruncKernBT = 0x80, 0x800, 0x4000


def kinds(thread):
    """The kinds a thread is of, by what gdb saw of it."""
    state, frames = thread['state'], thread['frames']
    interrupted = [frame['interrupted'] for frame in frames if frame['interrupted']]
    # The interrupt that took it off its CPU is the innermost one.
    at = interrupted[0] if interrupted and not state & SS_TH_WAIT else None
    return [kind for kind, is_one in {
        'running': thread['on_cpu'] and state & SS_TH_RUN and not state & SS_TH_IDLE,
        'taking the stackshot': thread['on_cpu'] and at is None,
        'preempted': not thread['on_cpu'] and at,
        'interrupted in a leaf': at and at['leaf'] and at['part'] == 'body',
        'interrupted in a function without frame record': at and not at['frame record'],
        'interrupted at a first instruction': at and at['first instruction'],
        'interrupted in a prologue': at and at['part'] == 'prologue',
        'interrupted in an epilogue': at and at['part'] == 'epilogue',
        'deep': len(frames) >= 32,
        'blocked': state & SS_TH_WAIT and thread['in_turnstile'],
        'sleeping': state & SS_TH_WAIT and thread['has_deadline'],
        'just created': thread['never_ran'] and state & SS_TH_WAIT,
        'exiting': state & SS_TH_TERMINATE,
        'idle': state & SS_TH_IDLE,
        'with inlined functions': any(len(frame['functions']) > 1 for frame in frames),
    }.items() if is_one]


REQUIRED = ['running', 'taking the stackshot', 'preempted', 'interrupted in a leaf',
            'interrupted in a function without frame record',
            'interrupted in a prologue', 'deep', 'blocked', 'sleeping', 'just created', 'exiting',
            'idle', 'with inlined functions']


def tool(*command):
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)
    check(done.returncode == 0, f'{command} exits with {done.returncode}:\n'
          + done.stderr.decode('utf-8', 'replace'))
    return done.stdout.decode()


def run_under_gdb(elf, image, directory):
    """Boots the image under gdb; what gdb saw at each stop, and the log of the UART."""
    socket, log, out = directory / 'gdb', directory / 'uart.log', directory / 'gdb.json'
    qemu = subprocess.Popen(QEMU + ['-serial', f'file:{log}', '-kernel', image, '-append',
                                    BOOT_ARGUMENTS, '-gdb', f'unix:{socket},server=on,wait=off'],
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for _ in range(100):
            if socket.exists() or qemu.poll() is not None:
                break
            time.sleep(0.1)
        folders = [str(HERE), str(HERE.parents[1] / 'tools' / 'gdb')]
        gdb = subprocess.run(
            [GDB, '-nx', '-batch', '-ex', f'target remote {socket}',
             '-ex', f'python import sys; sys.dont_write_bytecode = True; sys.path[:0] = {folders}',
             '-ex', f'python import unwind_walk; unwind_walk.run({str(out)!r})', elf],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
        if out.exists():
            qemu.wait(30)
    finally:
        qemu.kill()
        words = qemu.communicate()[1].decode('utf-8', 'replace')
    check(out.exists(), gdb.stdout.decode() + gdb.stderr.decode() + words)
    return json.loads(out.read_text()), log


def captured_threads(stackshot, capture):
    """thread id -> its record, of all tasks."""
    shot = json.loads(tool(stackshot, 'decode', capture))['kcdata_stackshot']
    check_equal(shot['stackshot_tries'], 1, 'tries')
    return {thread['thread_snapshot']['ths_thread_id']: thread
            for kind in ('task_snapshots', 'transitioning_task_snapshots')
            for task in shot.get(kind, {}).values()
            for thread in task['thread_snapshots'].values()}


def reported_stacks(stackshot, elf, capture):
    """thread id -> [(address, [function, those it is inlined into...])...], as the report shows."""
    report = json.loads(tool(stackshot, 'report', '--json', '--elf', elf, capture))
    return {thread['id']: by_entry(thread.get('stack', []))
            for task in report['captures'][0]['tasks'] for thread in task['threads']}


def by_entry(frames):
    """The frames of a stack, those inlined into one another together."""
    entries = []
    inlined = False
    for frame in frames:
        address = int(frame['address'], 16)
        if not inlined:
            entries.append((address, []))
        entries[-1][1].append(short_name(frame.get('function', f'{address:#018x}')))
        inlined = frame.get('inlined', False)
    return entries


def short_name(function):
    return function.replace('(anonymous namespace)::', '')


def lines(stack):
    return '\n'.join(f'  {address:#x}  {" < ".join(functions)}' for address, functions in stack)


class Comparison:
    def __init__(self, stackshot, elf, image):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            seen, log = run_under_gdb(elf, image, directory)
            self.stops, self.traces = seen['stops'], seen['traces']
            capture = directory / 'capture.kcdata'
            tool(stackshot, 'extract', '-o', capture, log)
            captures = [capture] + [directory / f'capture-{n}.kcdata'
                                    for n in range(2, len(self.stops) + 1)]
            self.captured = [captured_threads(stackshot, c) for c in captures]
            self.reported = [reported_stacks(stackshot, elf, c) for c in captures]

    def pairs(self):
        """Each thread as gdb saw it, as it was captured, and as it is reported."""
        for seen, captured, reported in zip(self.stops, self.captured, self.reported):
            for thread in seen:
                yield thread, captured[thread['id']], reported[thread['id']]

    def same_threads(self):
        check_equal(len(self.stops), CAPTURES, 'stops seen by gdb')
        for seen, captured, reported in zip(self.stops, self.captured, self.reported):
            ids = [thread['id'] for thread in seen]
            check_equal(list(captured), ids, 'captured threads')
            check_equal(list(reported), ids, 'reported threads')
        for thread, captured, _ in self.pairs():
            snapshot = captured['thread_snapshot']
            check_equal((captured['pth_name'], snapshot['ths_state'],
                         bool(snapshot['ths_ss_flags'] & kThreadOnCore)),
                        (thread['name'], thread['state'], thread['on_cpu']), 'what was captured')

    def complete(self):
        for thread, captured, _ in self.pairs():
            check_equal(thread['end'], 'outermost', f'the end gdb finds of {thread["name"]}')
            check(not captured['thread_snapshot']['ths_ss_flags']
                  & (kThreadTruncatedBT | kThreadTruncKernBT), f'{thread["name"]} is truncated')

    def same_addresses(self):
        for thread, captured, _ in self.pairs():
            by_gdb = [frame['pc'] for frame in thread['frames']]
            ours = [frame['lr'] for frame in captured['kernel_stack_frames']]
            check(by_gdb == ours, f'thread {thread["id"]} {thread["name"]}\n'
                  f'captured: {" ".join(map(hex, ours))}\n'
                  'gdb:\n' + lines([(f['pc'], f['functions']) for f in thread['frames']]))

    def same_functions(self):
        for thread, _, reported in self.pairs():
            by_gdb = [(frame['pc'], [short_name(name) for name in frame['functions']])
                      for frame in thread['frames']]
            check(by_gdb == reported, f'thread {thread["id"]} {thread["name"]}\n'
                  f'reported:\n{lines(reported)}\ngdb:\n{lines(by_gdb)}')

    def traces_are_read(self):
        check_equal(len(self.traces), CAPTURES, 'traces seen by gdb')
        for number, trace in enumerate(self.traces):
            for cpu in range(4):
                last = [entry for entry in trace if entry['cpu'] == cpu][-1]
                check_equal((last['event'], last['file']), ('preflight', 'stackshot/capture.cpp'),
                            f'what CPU {cpu} did last before its stop {number}')

    def every_kind(self):
        counts = collections.Counter(kind for thread, _, _ in self.pairs() for kind in kinds(thread))
        frames = sum(len(thread['frames']) for thread, _, _ in self.pairs())
        print(f'# {len(self.stops)} captures, {sum(map(len, self.stops))} stacks, {frames} frames: '
              + ', '.join(f'{count} {kind}' for kind, count in counts.items()))
        missing = [kind for kind in REQUIRED if not counts[kind]]
        check(not missing, f'no thread is {" or ".join(missing)}')


def main():
    stackshot, elf, image = sys.argv[1:4]
    tap = Tap()
    comparison = None

    def compare():
        nonlocal comparison
        if not shutil.which(GDB):
            raise Skip(f'{GDB} is not installed')
        comparison = Comparison(stackshot, elf, image)

    tap.case('gdb stops the image in every trap, and every capture arrives', compare)
    if comparison is not None:
        tap.case('gdb and the captures see the same threads in the same states', comparison.same_threads)
        tap.case('every stack is walked to its outermost function', comparison.complete)
        tap.case('the captured addresses are those gdb unwinds', comparison.same_addresses)
        tap.case('the reported functions are those gdb names', comparison.same_functions)
        tap.case('threads of every kind are among them', comparison.every_kind)
        tap.case('gdb finds in the traces that every CPU has come to the stop', comparison.traces_are_read)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
