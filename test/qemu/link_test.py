#!/usr/bin/env python3
"""Requests over the serial line of the running image, over good lines and bad ones.

Usage: link_test.py STACKSHOT IMAGE everyday|long
"""

import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from line_proxy import Proxy
from tap import Tap, check, check_equal
from unikernel import Unikernel, tasks_of

FAILURE, USAGE, NO_TARGET = 1, 2, 4
BEGIN_STACKSHOT, BEGIN_DELTA, BEGIN_COMPRESSED = 0x59a25807, 0xde17a59a, 0x434f4d50


def crc32c(data):
    """RFC 3720: bit by bit, so that it is another one than ours."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Machine:
    """The image in QEMU, with its line at a socket."""

    def __init__(self, stackshot, image, *options, append=''):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name)
        self.socket = str(self.path / 'uart.sock')
        self.stackshot = stackshot
        self.process = subprocess.Popen(
            [stackshot, 'run', '--image', str(image), '--listen', self.socket, *options,
             '--append', append], stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        self.directory.cleanup()

    def proxy(self, **options):
        return Proxy(self.path, self.socket, **options)

    def command(self, proxy, *arguments, output='a.kcdata'):
        return [self.stackshot, 'request', proxy.path, *map(str, arguments), '-o',
                str(self.path / output)]

    def request(self, proxy, *arguments, output='a.kcdata', status=0, timeout=120):
        """Makes a request; what it printed. `timeout` in seconds is a hang detector only."""
        done = subprocess.run(self.command(proxy, *arguments, output=output), timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        out, err = done.stdout.decode(), done.stderr.decode('utf-8', 'replace')
        check(done.returncode == status,
              f'{arguments}: exit status {done.returncode}, not {status}\n{out}{err}')
        return out, err

    def capture(self, proxy, *arguments, **options):
        self.request(proxy, *arguments, **options)
        return (self.path / options.get('output', 'a.kcdata')).read_bytes()

    def names(self, proxy):
        """CRC-32C and size of the captures the image holds, as it says."""
        out, _ = self.request(proxy, 'captures')
        return [(int(name, 16), int(size))
                for name, size in re.findall(r'^(\w{8}) (\d+) bytes', out, re.MULTILINE)]

    def statistics(self, proxy):
        out, _ = self.request(proxy, 'statistics')
        return {name: int(value) for name, value in (line.split() for line in out.splitlines())}


def begin_of(data):
    return struct.unpack_from('<I', data)[0]


def texts_tell_of_the_image(machine, proxy, unikernel):
    out, _ = machine.request(proxy, 'tasks')
    rows = [line.split() for line in out.splitlines()]
    check_equal(rows[0], ['PID', 'THREADS', 'RUNNABLE', 'TIME-MS', 'NAME'], 'the first line')
    pids = {row[4]: int(row[0]) for row in rows[1:]}
    shot = unikernel.decode(machine.capture(proxy, '--plain'))['kcdata_stackshot']
    captured = {task['task_snapshot']['ts_p_comm']: task['task_snapshot']['ts_pid']
                for task in tasks_of(shot) if 'task_snapshot' in task}
    for name in ('kernel_task', 'ledgerd', 'mediad'):
        check(name in pids and pids[name] == captured.get(name), f'{name}: {pids} {captured}')
    statistics = machine.statistics(proxy)
    check_equal(statistics['cpus'], 2, 'the CPUs')
    check_equal(statistics['stackshot_count'], 1, 'the stackshots taken')
    check(statistics['memory_free'] < statistics['memory_total'], f'memory: {statistics}')
    check(statistics['uart_received'] > 0, 'nothing was received')
    out, _ = machine.request(proxy, 'trace')
    check(re.search(r'^trace: cpu \d+ .* assembled ', out, re.MULTILINE), f'the trace: {out}')


def captures_are_as_asked(machine, proxy, unikernel):
    plain = machine.capture(proxy, '--plain')
    check_equal(begin_of(plain), BEGIN_STACKSHOT, 'the begin of a plain one')
    packed = machine.capture(proxy)
    check_equal(begin_of(packed), BEGIN_COMPRESSED, 'the begin of a compressed one')
    check(len(packed) * 3 < len(plain), f'{len(packed)} bytes of {len(plain)}')
    unikernel.decode(packed)
    check((crc32c(packed), len(packed)) in machine.names(proxy), 'it is another one than the image has')

    one = unikernel.decode(machine.capture(proxy, '--pid', 1))['kcdata_stackshot']
    check_equal([task['task_snapshot']['ts_pid'] for task in tasks_of(one)], [1], 'the tasks')
    few = unikernel.decode(machine.capture(proxy, '--flags', 'kcdata_format,ACTIVE_KERNEL_THREADS_ONLY',
                                           '--plain'))['kcdata_stackshot']
    check_equal(few['stackshot_in_flags'], 0x10000 | 0x100, 'the flags')

    base = unikernel.decode(machine.capture(proxy, '--plain', output='base.kcdata'))
    for options, begin in (('--plain',), BEGIN_DELTA), ((), BEGIN_COMPRESSED):
        delta = machine.capture(proxy, '--delta-from', machine.path / 'base.kcdata', *options,
                                output='delta.kcdata')
        check_equal(begin_of(delta), begin, 'the begin of a delta')
        shot = unikernel.decode(delta)['kcdata_delta_stackshot']
        check_equal(shot['stackshot_delta_since_timestamp'],
                    base['kcdata_stackshot']['mach_absolute_time'], 'what the delta goes on from')


def captures_are_held(machine, proxy, unikernel):
    first = machine.capture(proxy, '--pid', 1)
    name = crc32c(first)
    check_equal(machine.names(proxy)[0], (name, len(first)), 'the newest capture')
    check_equal(machine.capture(proxy, 'receive', f'{name:x}', output='again.kcdata'), first,
                'the same capture, received again')
    machine.request(proxy, 'release', f'{name:x}')
    check((name, len(first)) not in machine.names(proxy), 'it is still there')
    _, err = machine.request(proxy, 'release', f'{name:x}', status=FAILURE)
    check('KERN_NOT_IN_SET' in err, err)

    _, err = machine.request(proxy, 'retained', status=FAILURE)
    check('KERN_NOT_IN_SET' in err, err)
    _, err = machine.request(proxy, '--flags', 'SAVE_IN_KERNEL_BUFFER')
    check('retained in the kernel' in err, err)
    _, err = machine.request(proxy, '--flags', 'SAVE_IN_KERNEL_BUFFER', status=FAILURE)
    check('KERN_MEMORY_PRESENT' in err, err)
    unikernel.decode(machine.capture(proxy, 'retained'))
    _, err = machine.request(proxy, 'retained', status=FAILURE)
    check('KERN_NOT_IN_SET' in err, err)


def memory_is_given_back(machine, proxy):
    free = []
    for _ in range(6):
        machine.capture(proxy, '--pid', 1, '--size-hint', '2M')
        free.append(machine.statistics(proxy)['memory_free'])
    # The first ones fill the places there are; tasks come and go meanwhile.
    check(abs(free[2] - free[-1]) < 1 << 20, f'free memory after each capture: {free}')


def workloads_start_and_stop(machine, proxy):
    before = machine.statistics(proxy)['threads']
    machine.request(proxy, 'run', 'fleet', 'tasks=3', 'threads=5')
    check(machine.statistics(proxy)['threads'] >= before + 15 - 9, 'the fleet is not there')
    out, _ = machine.request(proxy, 'tasks')
    check('ship-2' in out, out)
    machine.request(proxy, 'stop', 'fleet')
    deadline = time.monotonic() + 10
    while 'ship-' in machine.request(proxy, 'tasks')[0]:
        check(time.monotonic() < deadline, 'ships are still there')
    _, err = machine.request(proxy, 'stop', 'fleet', status=FAILURE)
    check('KERN_NOT_IN_SET' in err, err)
    shot = machine.capture(proxy, '--workload', 'deadlock2')
    done = subprocess.run([machine.stackshot, 'analyze', '-'], input=shot, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    check_equal(done.returncode, 10, 'what analyze makes of a deadlock')


def bad_requests_are_named(machine, proxy):
    for arguments, error in (
            (('--flags', 'FROM_PANIC'), 'KERN_NO_ACCESS'),
            (('--flags', 'SAVE_IN_KERNEL_BUFFER,COLLECT_DELTA_SNAPSHOT,DO_COMPRESS'), 'KERN_NOT_SUPPORTED'),
            (('--flags', 'EXCLAVES,SKIP_EXCLAVES'), 'KERN_INVALID_ARGUMENT'),
            (('run', 'nothing-like-that'), 'KERN_INVALID_NAME'),
            (('run', 'fleet', 'tusks=3'), 'KERN_INVALID_ARGUMENT'),
            (('run', 'daemons'), 'KERN_ALREADY_IN_SET'),
            (('run', 'fleet', 'tasks=9999', 'threads=9999'), 'KERN_RESOURCE_SHORTAGE'),
            (('stop', 'daemons'), 'KERN_NOT_SUPPORTED'),
            (('stop', 'nothing-like-that'), 'KERN_INVALID_NAME')):
        _, err = machine.request(proxy, *arguments, status=FAILURE)
        check(error in err, f'{arguments}: {err}')
    for arguments in (('--flags', 'NO_SUCH_FLAG'), ('no-such-request',), ('run',), ('tasks', 'x')):
        machine.request(proxy, *arguments, status=USAGE)
    _, err = machine.request(proxy, '--rate', 4000000, '--pid', 1)
    check('KERN_NOT_SUPPORTED' in err and 'stays at 115200' in err, err)
    machine.request(proxy, '--rate', 1500000, '--pid', 1)


def typed_commands_are_carried_out(machine, proxy):
    done = subprocess.run([machine.stackshot, 'console', proxy.path, '--linger', '1', '-o',
                           str(machine.path / 'typed.kcdata')],
                          input=b'help\nhexp\b\x7flp\nps\nno such\nstackshot pid=1\n',
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    out = done.stdout.decode()
    check_equal(done.returncode, 0, f'the exit status of: {out}{done.stderr.decode()}')
    check_equal(out.count('the tasks'), 2, 'how often the help says what ps does')
    check('ledgerd' in out and 'no: no such command' in out, out)
    check_equal(begin_of((machine.path / 'typed.kcdata').read_bytes()), BEGIN_COMPRESSED,
                'what was received')


def text_in_between_is_whole(machine, proxy):
    """Typed while a capture is on the line: the answer comes in between, and both are whole."""
    proxy.pace = 30_000
    try:
        host = subprocess.Popen(machine.command(proxy, '--plain'), stderr=subprocess.PIPE)
        for _ in range(5):
            time.sleep(0.1)
            proxy.type(b'help\r')
        _, err = host.communicate(timeout=120)
    finally:
        proxy.pace = None
    text = err.decode('utf-8', 'replace')
    check_equal(host.returncode, 0, f'the exit status of: {text}')
    lines = [line for line in text.splitlines() if line == 'ps         the tasks']
    check(lines, f'no answer in between: {text}')
    data = (machine.path / 'a.kcdata').read_bytes()
    check_equal(machine.names(proxy)[0], (crc32c(data), len(data)), 'the capture the image has')


def killed_host_goes_on(machine, proxy, unikernel):
    proxy.pace = 20_000
    part = machine.path / 'k.kcdata.part'
    try:
        host = subprocess.Popen(machine.command(proxy, '--plain', output='k.kcdata'),
                                stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not part.exists() or part.stat().st_size < 8000:
            check(time.monotonic() < deadline and host.poll() is None, 'nothing arrives')
            time.sleep(0.01)
        host.kill()
        host.wait()
        kept = part.stat().st_size
        name = machine.names(proxy)[0]
        proxy.pace = None
        _, err = machine.request(proxy, '--plain', output='k.kcdata')
    finally:
        proxy.pace = None
    check('going on with capture' in err, err)
    data = (machine.path / 'k.kcdata').read_bytes()
    check_equal((crc32c(data), len(data)), name, 'the capture')
    unikernel.decode(data)
    check(not part.exists(), 'the part is still there')
    sent = int(re.search(r'(\d+) bytes of the line', err).group(1))
    check(sent < len(data) - kept // 2, f'{sent} bytes were sent for the rest of {len(data)}')


def lossy_lines_lose_nothing(machine, count, rate):
    proxy = machine.proxy(rate=rate, seed=7)
    try:
        began = time.monotonic()
        for index in range(count):
            arguments = ('--plain', '--pid', 1) if index % 2 else ('--pid', 2)
            data = machine.capture(proxy, '--timeout', 60, *arguments)
            faults = proxy.to_host.rate, proxy.to_target.rate
            proxy.to_host.rate = proxy.to_target.rate = 0
            check_equal(machine.names(proxy)[0], (crc32c(data), len(data)), 'the capture')
            proxy.to_host.rate, proxy.to_target.rate = faults
        print(f'# {count} captures in {time.monotonic() - began:.1f} s, '
              f'{proxy.to_host.count} and {proxy.to_target.count} faults')
        check(proxy.to_host.count > 20, 'the line was hardly disturbed')
    finally:
        proxy.close()


def floods_stop_nothing(machine, proxy):
    """Random bytes, as fast as the UART takes them, while captures are asked for in between."""
    before = machine.statistics(proxy)
    end = threading.Event()
    noise = random.Random(3)

    def flood():
        while not end.is_set():
            if proxy.backlog() < 1000:
                proxy.type(noise.randbytes(100))
            time.sleep(0.001)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        for _ in range(3):
            data = machine.capture(proxy, '--pid', 1, '-q', '--timeout', 30)
            check_equal(begin_of(data), BEGIN_COMPRESSED, 'the begin')
    finally:
        end.set()
        thread.join()
    after = machine.statistics(proxy)
    received = after['uart_received'] - before['uart_received']
    check(received > 5000, f'only {received} bytes of the flood arrived')
    check(after['stackshot_count'] >= before['stackshot_count'] + 3, 'stackshots are missing')


def watching_shows_what_changes(machine, proxy):
    done = subprocess.run([machine.stackshot, 'watch', proxy.path, '-q', '--every', '200ms', '--count',
                           '2'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)
    out, err = done.stdout.decode(), done.stderr.decode('utf-8', 'replace')
    check_equal(done.returncode, 0, f'the exit status of: {out}{err}')
    heads = re.findall(r'^[\d.]+ s \+[\d.]+ m?s: \d+ threads, (\d+) ran, .* new, .* gone', out,
                       re.MULTILINE)
    check_equal(len(heads), 2, f'the intervals of: {out}')
    check(all(int(ran) > 5 for ran in heads), f'hardly anybody ran: {out}')
    check(re.search(r'^  (ran|moved) +ledgerd \[1\] thread \d+ "ledger\.', out, re.MULTILINE), out)


def silence_is_an_end(machine, proxy):
    """Everything is lost: the host says so, and does not hang."""
    proxy.to_host.rate, proxy.to_target.rate = 1.0, 1.0
    try:
        _, err = machine.request(proxy, 'tasks', '--timeout', 2, status=NO_TARGET)
    finally:
        proxy.to_host.rate, proxy.to_target.rate = 0, 0
    check('connecting' in err, err)


def polls_without_an_interrupt(stackshot, image, unikernel):
    """The tree gives the UART's interrupt a type that there is not."""
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory) / 'virt.dtb'
        subprocess.run(['qemu-system-aarch64', '-M', f'virt,gic-version=3,dumpdtb={tree}', '-cpu',
                        'cortex-a72', '-smp', '2', '-m', '1G', '-display', 'none', '-nic', 'none'],
                       check=True, capture_output=True, timeout=60)
        spi_1 = bytes.fromhex('00000000 00000001 00000004')
        data = tree.read_bytes()
        check_equal(data.count(spi_1), 1, 'the interrupts of that number')
        tree.write_bytes(data.replace(spi_1, bytes.fromhex('00000007 00000001 00000004')))
        with Machine(stackshot, image, '--smp', '2', '--qemu-option=-dtb',
                     f'--qemu-option={tree}') as machine:
            proxy = machine.proxy()
            try:
                unikernel.decode(machine.capture(proxy))
                check(machine.statistics(proxy)['uart_received'] > 0, 'nothing was received')
            finally:
                proxy.close()


def machine_ends(stackshot, image, request):
    with Machine(stackshot, image, '--smp', '1') as machine:
        proxy = machine.proxy()
        try:
            machine.request(proxy, request)
            check_equal(machine.process.wait(timeout=30), 0, 'the exit status of run')
        finally:
            proxy.close()


def main():
    stackshot, image, extent = sys.argv[1:4]
    everyday = extent == 'everyday'
    unikernel = Unikernel(stackshot, image)
    tap = Tap()
    with Machine(stackshot, image, '--smp', '2') as machine:
        proxy = machine.proxy()
        tap.case('tasks, statistics and trace tell of the image', texts_tell_of_the_image, machine,
                 proxy, unikernel)
        tap.case('a capture is as it was asked for', captures_are_as_asked, machine, proxy, unikernel)
        tap.case('captures are held until they are released, replaced or retrieved',
                 captures_are_held, machine, proxy, unikernel)
        tap.case('what captures take is given back', memory_is_given_back, machine, proxy)
        tap.case('a request that cannot be met is refused with its name', bad_requests_are_named,
                 machine, proxy)
        tap.case('commands typed at the console are carried out', typed_commands_are_carried_out,
                 machine, proxy)
        tap.case('console text between frames is whole, and so is the capture',
                 text_in_between_is_whole, machine, proxy)
        tap.case('a host that was killed goes on where it was', killed_host_goes_on, machine, proxy,
                 unikernel)
        tap.case('watching shows who ran in between', watching_shows_what_changes, machine, proxy)
        tap.case('a flood of random bytes stops nothing', floods_stop_nothing, machine, proxy)
        tap.case('a line that loses everything ends with a clear error', silence_is_an_end, machine,
                 proxy)
        tap.case('workloads start and, where they can, stop', workloads_start_and_stop, machine, proxy)
        proxy.close()
    with Machine(stackshot, image, '--smp', '2') as machine:
        for count, rate in ((2, 0.01),) if everyday else ((50, 0.001), (20, 0.01)):
            tap.case(f'{count} captures over a line that spoils {rate:.1%} of the bytes are the ones '
                     'the image has', lossy_lines_lose_nothing, machine, count, rate)
    tap.case('where the tree names no interrupt of the UART, it is polled',
             polls_without_an_interrupt, stackshot, image, unikernel)
    for request in ('reboot', 'poweroff'):
        tap.case(f'{request} ends the machine', machine_ends, stackshot, image, request)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
