#!/usr/bin/env python3
"""Panics in all places where they are hard: the host gets the report, the capture, and an ended machine.

Usage: panic_test.py STACKSHOT ELF IMAGE
"""

import re
import subprocess
import sys

from tap import Tap, check, check_equal
from unikernel import Unikernel, tasks_of

FROM_PANIC = 0x400000
DO_COMPRESS = 0x400
ACTIVE_KERNEL_THREADS_ONLY = 0x100


class Panic:
    """One run of the image that ends in a panic."""

    def __init__(self, unikernel, arguments, *options):
        # One capture more than there is to come, for the run to end with the machine.
        self.unikernel = unikernel
        self.outcome = unikernel.run('--append', arguments, '--count', 2, *options, timeout=60)
        self.text = self.outcome.text()
        self.check('TEST ' not in self.text, 'the test went on')
        self.check('powered off' in self.outcome.stderr, 'the machine did not turn itself off')

    def check(self, condition, message):
        check(condition, message + '\n' + self.outcome.explain())

    def has(self, *texts):
        for text in texts:
            self.check(text in self.text, f'no {text!r} on the console')

    def reports(self, smp, said):
        """The report in text, which comes first."""
        self.has(*said)
        self.check(len(re.findall('^(?:panic|exception): ', self.text, re.M)) == 1, 'not one panic')
        self.check(len(re.findall(r'^  #\d+ +ffffffff8[0-9a-f]{7}$', self.text, re.M)) >= 3,
                   'no backtrace')
        for cpu in range(smp):
            self.check(f'\ncpu {cpu}: ' in self.text, f'CPU {cpu} is not named')

    def has_no_capture(self, why):
        self.check(not self.outcome.captures, 'there is a capture')
        self.has(f'panic capture: none: {why}')

    def shot(self):
        """The one capture there is: sound, and from a panic."""
        self.check(len(self.outcome.captures) == 1, 'not one capture')
        decoded = self.unikernel.decode(self.outcome.kcdata)['kcdata_stackshot']
        for name in ('stackshot_in_flags', 'stackshot_out_flags'):
            check(decoded[name] & FROM_PANIC, f'{name} is {decoded[name]:#x}')
        tasks = tasks_of(decoded)
        check_equal(decoded['stackshot_tasks_count'], len(tasks), 'stackshot_tasks_count')
        threads = sum(len(task.get('thread_snapshots', {})) for task in tasks)
        check_equal(decoded['stackshot_threads_count'], threads, 'stackshot_threads_count')
        return decoded

    def stack(self):
        """The functions of the thread that panicked, as `stackshot report` shows them."""
        thread = re.search(r'^cpu (\d+): panicked, thread (\d+) "', self.text, re.M)
        self.check(thread, 'no thread panicked')
        done = subprocess.run([self.unikernel.stackshot, 'report', '--elf', self.unikernel.elf, '-'],
                              input=self.outcome.kcdata, stdout=subprocess.PIPE, check=False)
        report = done.stdout.decode()
        check(done.returncode == 0, f'report exits with {done.returncode}')
        check(', in a panic' in report, 'the report does not tell that it is from a panic')
        block = re.search(rf'^  thread {thread[2]} "[^\n]*(?:\n[^\n]+)*', report, re.M)
        check(block, f'no thread {thread[2]}')
        check(re.search(rf'(running|idle) on CPU {thread[1]}$', block[0], re.M), block[0])
        return block[0]


def is_captured(unikernel, arguments, said, functions, smp=4, absent=0, *options):
    """`functions` stand in the stack of the thread that panicked, in this order, the first on top."""
    panic = Panic(unikernel, arguments, '--smp', smp, *options)
    panic.reports(smp, said)
    shot = panic.shot()
    check_equal(shot['stackshot_absent_cpus'].bit_count(), absent, 'the number of silent CPUs')
    stack = panic.stack()
    lines = stack.splitlines()[2:]
    where = 0
    for function in functions:
        rest = [n for n, line in enumerate(lines) if n >= where and function in line]
        check(rest, f'no {function} behind line {where} of\n{stack}')
        # An inlined function stands in the same frame.
        check(where != 0 or function != functions[0] or rest[0] <= 1,
              f'{function} is not on top of\n{stack}')
        where = rest[0] + 1
    return panic


def is_not_captured_again(unikernel, place, said):
    """A panic inside the panic: told in short, the first words stay, and nothing is captured."""
    panic = Panic(unikernel, f'test=panic panic.in={place}')
    panic.has(*said)
    panic.check(len(re.findall('^exception inside a panic: ', panic.text, re.M)) == 1,
                'not one panic inside the other')
    panic.check(not panic.outcome.captures, 'there is a capture')


def is_plain(unikernel, kib):
    """Where there is no room for compression it is left out, but no thread is."""
    panic = Panic(unikernel, f'test=panic stackshot.panic_kib={kib}')
    shot = panic.shot()
    check_equal(shot['stackshot_in_flags'] & DO_COMPRESS, 0, 'STACKSHOT_DO_COMPRESS')
    check_equal(shot['stackshot_in_flags'] & ACTIVE_KERNEL_THREADS_ONLY, 0,
                'STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY')
    check('panic_in_thread' in panic.stack(), panic.stack())


def is_ended_without_console(unikernel):
    """Each word of the report is another panic: none is told, and the machine ends all the same."""
    panic = Panic(unikernel, 'test=panic panic.in=no-console')
    panic.check(not panic.outcome.captures, 'there is a capture')


def is_refused(unikernel, kib, why):
    panic = Panic(unikernel, f'test=panic stackshot.panic_kib={kib}')
    panic.reports(4, ['panic: on purpose'])
    panic.has_no_capture(why)


def main():
    stackshot, elf, image = sys.argv[1:4]
    unikernel = Unikernel(stackshot, image, elf)
    tap = Tap()

    def case(name, where, *arguments):
        tap.case(f'a panic {name} is captured', is_captured, unikernel, where, *arguments)

    for smp in (1, 4):
        case(f'in a thread, at -smp {smp},', 'test=panic', ['panic: on purpose'],
             ['panic_in_thread', 'thread_main'], smp)
        case(f'in an interrupt handler, at -smp {smp},', 'test=panic panic.in=interrupt',
             ["panic: interrupt 7 is nobody's"],
             ['handle_irq', 'exception_entry', 'panic_in_interrupt'], smp)
        case(f'that a timer interrupt is in, holding the scheduler lock, at -smp {smp},',
             'test=panic panic.in=timer', ['CHECK failed: (thread.state'],
             ['unblock', 'timer_interrupt', 'handle_irq', 'exception_entry'], smp)
        case(f'in the collector on the CPU that asked, at -smp {smp},', 'test=panic-collector',
             ['panic: in the collector'],
             ['go_wrong', 'task_facts', 'Collection::collect', 'take_stackshot', 'thread_main'], smp)
    case('that is an exception', 'test=panic panic.in=thread-exception',
         ['exception: current_el_spx_sync: Data Abort', 'FAR_EL1 0000000deadbeef0', 'x30 ',
          'SPSR_EL1 '], ['fault_in_thread', 'panic_test', 'thread_main'])
    case('over a full stack', 'test=panic panic.in=overflow', ['stack_overflow: Data Abort'],
         ['recurse', 'recurse', 'recurse'])
    case('with the scheduler lock held', 'test=panic panic.in=scheduler',
         ['panic: with the scheduler lock'], ['panic_with_scheduler_lock', 'thread_main'])
    case('that is an exception with the scheduler lock held',
         'test=panic panic.in=scheduler-exception', ['exception: current_el_spx_sync: Data Abort'],
         ['fault_in_thread', 'fault_with_scheduler_lock', 'thread_main'])
    # Without a workload, whose threads may be given what is free between the two frees.
    case("with the page allocator's lock held", 'test=panic panic.in=page-allocator workload=idle',
         ['CHECK failed: state_[i] == allocated'],
         ['PageAllocator::free', 'free_pages_twice', 'thread_main'])
    case("with the heap's lock held", 'test=panic panic.in=heap workload=idle',
         ['CHECK failed: piece != memory'],
         ['free_small', 'free_piece_twice', 'thread_main'])
    case('of a thread that has the console', 'test=panic panic.in=console',
         ['half a line and', 'exception: current_el_spx_sync: Data Abort'],
         ['format_text', 'console::print', 'fault_in_print', 'thread_main'])
    case('in the collector on an auxiliary CPU', 'test=panic-collector panic.on=auxiliary',
         ['panic: in the collector'],
         ['go_wrong', 'task_facts', 'Collection::collect', 'Quiesce::serve', 'handle_irq'])
    case('in the collector on two CPUs at once', 'test=panic-collector panic.on=both',
         ['panic: in the collector'], ['go_wrong', 'task_facts', 'Collection::collect'])
    for cpu in ('initiator', 'auxiliary'):
        case(f'that is an exception in the collector, of the {cpu},',
             f'test=panic-collector panic.by=exception panic.on={cpu}',
             ['exception: current_el_spx_sync: Data Abort'],
             ['go_wrong', 'task_facts', 'Collection::collect'])
        case(f'in the preflight, of the {cpu},',
             f'test=panic-collector panic.at=preflight panic.on={cpu}',
             ['panic: in the collector'], ['go_wrong', 'cpu_preflight', 'Quiesce::s'])
    case('over a collector that hangs on another CPU', 'test=panic-collector panic.at=hang '
         'panic.on=auxiliary ack_timeout_ms=500', ['did not finish their part of the capture',
                                       ': did not stop, last seen at pc '],
         ['workers_overdue', 'wait_for_workers', 'take_stackshot', 'thread_main'], 4, 1)
    case('while another CPU does not answer', 'test=panic panic.in=without-another ack_timeout_ms=500',
         ['panic: on purpose, cpu '], ['panic_without_another', 'thread_main'], 4, 1)
    case('with a trace that was written over', 'test=panic panic.in=trace',
         ['panic: on purpose, with a spoilt trace', '0x5b01  ?:0'],
         ['panic_with_spoilt_trace', 'thread_main'])
    case('of all CPUs at once', 'test=panic panic.in=all-cpus', ['panic: on purpose, all at once'],
         ['panic_with_others', 'thread_main'])
    case('entered at EL2', 'test=panic', ['panic: on purpose'], ['panic_in_thread'], 4, 0, '--el', 2)
    tap.case('a panic inside the report of a panic is short and captures nothing',
             is_not_captured_again, unikernel, 'report', ['\npanic: '])
    tap.case("a panic inside a panic's capture is short and captures nothing",
             is_not_captured_again, unikernel, 'capture', ['\npanic: on purpose', 'cpu 3: '])
    tap.case('a panic without a working console ends the machine', is_ended_without_console, unikernel)
    tap.case('without room for compression a panic is captured plain', is_plain, unikernel, 128)
    tap.case('with too little room for anything it says so, and how to give it more', is_refused,
             unikernel, 40, 'it does not fit in 40 KiB (stackshot.panic_kib)')
    tap.case('without memory for it there is no capture', is_refused, unikernel, 0,
             'stackshot.panic_kib is 0')
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
