#!/usr/bin/env python3
"""Tests that run inside the image, where the hardware is, and say on the console how they ended.

Usage: selftests_test.py STACKSHOT IMAGE kernel|capture|long
"""

import re
import sys

from tap import Tap, check, check_equal
from unikernel import Unikernel, tasks_of

FORMAT = 0x10000  # STACKSHOT_KCDATA_FORMAT
GET_BOOT_PROFILE = 0x200
SAVE_IN_KERNEL_BUFFER = 0x4000
# SAVE_KEXT_LOADINFO, which XNU clears before the capture where it is not built.
CLEARED = 0x8
# The two faulting flags, COLLECT_SHAREDCACHE_LAYOUT, ASID, PAGE_TABLES, SAVE_DYLD_COMPACTINFO and
# EXCLAVES.
UNMET = 0x2b02a0000
RESERVED = 0xf0  # nobody's: accepted and shown
DELTA_FLAGS = 0x50006  # KCDATA_FORMAT, COLLECT_DELTA_SNAPSHOT, GET_GLOBAL_MEM_STATS, SAVE_LOADINFO
ON_CORE = 0x800  # kThreadOnCore
IDLE = 0x80  # SS_TH_IDLE


def is_missed_and_comes_back(unikernel):
    """The image's own check, with an ack timeout a masked CPU cannot keep."""
    unikernel.self_test('absent ack_timeout_ms=1000')


def costs_are_counted(unikernel):
    """The figures are printed for the reader; that they are there and plausible is the test."""
    outcome = unikernel.self_test('cost', '--smp', 1, '--icount', 0)
    line = next(line for line in outcome.log.splitlines() if line.startswith('cost: '))
    print(f'# {line}')
    thread, frame = map(int, re.findall(r'(\d+) instructions a thread and (\d+) a frame', line)[0])
    check(0 < frame < thread < 2000, line)


def line_is_shared(unikernel, smp):
    """Threads print while captures are sent: every line and every capture arrives whole."""
    outcome = unikernel.self_test('console', '--smp', smp, '--count', 2)
    check(outcome.status == 0 and outcome.kcdata, outcome.explain())
    unikernel.decode(outcome.kcdata)
    text = re.sub('\0[^\0]*\0', '', outcome.log)
    spoken = {str(thread): [] for thread in range(4)}
    for line in text.splitlines():
        if 'chatter' in line:
            words = re.fullmatch(
                r'chatter (\d) says (\d+): the quick brown fox jumps over the lazy dog', line)
            check(words, f'a torn line: {line!r}')
            spoken[words[1]].append(int(words[2]))
    for thread, numbers in spoken.items():
        check(numbers and numbers == list(range(len(numbers))), f'thread {thread}: lines are missing')


def captures_in_a_row(unikernel, count, *options):
    """Churn and captures in the image; outside, each capture is whole and consistent."""
    outcome = unikernel.self_test('stress workload=fleet', '--count', count, *options,
                                  timeout=max(300, 4 * count))
    print(next('# ' + line for line in outcome.log.splitlines() if line.startswith('stress: ')))
    kinds = set()
    for decoded in unikernel.decoded_captures(outcome, count):
        shot = decoded['kcdata_stackshot']
        tasks = tasks_of(shot)
        check_equal(shot['stackshot_tasks_count'], len(tasks), 'stackshot_tasks_count')
        threads = sum(len(task.get('thread_snapshots', {})) for task in tasks)
        check_equal(shot['stackshot_threads_count'], threads, 'stackshot_threads_count')
        check_equal(shot['stackshot_absent_cpus'], 0, 'the mask of CPUs that did not answer')
        kinds |= shot.keys()
    check('transitioning_task_snapshots' in kinds, 'no task was seen in teardown')


def deltas(unikernel):
    """A full capture, then deltas: what is not there in full has not run since the one before."""
    count = 4
    outcome = unikernel.run('--append', f'workload=fleet stackshot.flags={DELTA_FLAGS:#x} '
                            'stackshot.interval_ms=100', '--count', count)
    full, *rest = unikernel.decoded_captures(outcome, count)
    before = full['kcdata_stackshot']
    known = {thread['thread_snapshot']['ths_thread_id'] for task in tasks_of(before)
             for thread in task['thread_snapshots'].values()}
    shortly = 0
    for decoded in rest:
        check_equal(list(decoded), ['kcdata_delta_stackshot'], 'the kind of capture')
        shot = decoded['kcdata_delta_stackshot']
        since = shot['stackshot_delta_since_timestamp']
        check_equal(since, before['mach_absolute_time'], 'the timestamp')
        check('osversion' not in shot and 'mach_timebase_info' not in shot, 'constant facts')
        check_equal(shot['stackshot_tasks_count'], len(tasks_of(shot)), 'stackshot_tasks_count')
        seen = set()
        for task in tasks_of(shot):
            changed = task.get('thread_snapshots', {})
            unchanged = task.get('thread_delta_snapshot', [])
            shortly += len(unchanged)
            seen |= {thread['tds_thread_id'] for thread in unchanged}
            kinds = [kind for kind in ('task_snapshot', 'task_delta_snapshot',
                                       'transitioning_task_snapshot') if kind in task]
            check_equal(len(kinds), 1, f'the records of a task: {kinds}')
            if kinds[0] == 'task_delta_snapshot':
                check_equal(len(changed), 0, 'threads that ran in a task in which none did')
            for thread in changed.values():
                record = thread['thread_snapshot']
                seen.add(record['ths_thread_id'])
                on_core = record['ths_ss_flags'] & ON_CORE or record['ths_state'] & IDLE
                check(on_core or record['ths_last_run_time'] > since,
                      f'a thread in full that has not run: {record}')
        check(known <= seen, f'threads are missing: {known - seen}')
        before = shot
    check(shortly > 10, f'only {shortly} threads in all have not run between captures')


def boot_profile_is_given_out(unikernel):
    """It is no new capture: it was taken with other flags, and long before."""
    flags = f'stackshot.flags={FORMAT | GET_BOOT_PROFILE:#x}'
    outcome = unikernel.run('--append', f'stackshot.boot_profile {flags}', '--delay', 2000)
    shot = unikernel.decoded_captures(outcome, 1)[0]['kcdata_stackshot']
    check_equal(shot['stackshot_in_flags'] & GET_BOOT_PROFILE, 0, 'what the profile was taken with')
    timebase = shot['mach_timebase_info']
    taken = shot['mach_absolute_time'] * timebase['numer'] // timebase['denom'] // 1_000_000
    later = unikernel.run('--delay', 2000)
    ordinary = unikernel.decoded_captures(later, 1)[0]['kcdata_stackshot']['mach_absolute_time']
    check(taken < ordinary * timebase['numer'] // timebase['denom'] // 1_000_000 - 1000,
          f'taken {taken} ms behind the start of the counter')
    names = {task['task_snapshot']['ts_p_comm'] for task in shot['task_snapshots'].values()}
    check('kernel_task' in names and len(names) > 1, f'the tasks are {names}')
    without = unikernel.run('--append', flags, timeout=60)
    check('stackshot: 1 of 1: failed: ENOENT' in without.log, without.explain())


def admission_follows_boot_arguments(unikernel):
    for arguments, error in (('stackshot.override=1', 'ENOTSUP'),
                             ('stackshot.development=0 stackshot.compress', 'EPERM'),
                             (f'stackshot.flags={FORMAT | SAVE_IN_KERNEL_BUFFER:#x}', 'EPERM'),
                             ('stackshot.flags=0', 'ENOTSUP')):
        outcome = unikernel.run('--append', f'{arguments} workload=idle', timeout=60)
        check(f'stackshot: 1 of 1: failed: {error}' in outcome.log, outcome.explain())


def unmet_flags_are_cleared(unikernel):
    """What this kernel has nothing to record for: accepted, and not among the flags that were met."""
    asked = FORMAT | CLEARED | UNMET | RESERVED
    outcome = unikernel.run('--append', f'stackshot.flags={asked:#x} workload=idle')
    shot = unikernel.decoded_captures(outcome, 1)[0]['kcdata_stackshot']
    check_equal(hex(shot['stackshot_in_flags']), hex(asked & ~CLEARED), 'stackshot_in_flags')
    check_equal(hex(shot['stackshot_out_flags']), hex(asked & ~CLEARED & ~UNMET),
                'stackshot_out_flags')


def kernel_tests(tap, unikernel):
    tap.case('1,000 stops lose no CPU, no wake-up and no register, at -smp 4',
             lambda: unikernel.self_test('quiesce cycles=1000', timeout=300))
    tap.case('a CPU that does not answer is named, held when it comes late, and not lost',
             is_missed_and_comes_back, unikernel)
    for smp in (1, 4, 8):
        tap.case(f'threads are scheduled, woken and ended without loss, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('scheduler rounds=100', '--smp', smp))
    for smp in (1, 4):
        tap.case(f'a mutex passes its waiter\'s priority on, against threads in between, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('inversion workload=idle', '--smp', smp))
    tap.case('everything that waits loses no wake-up and leaves no boost, at -smp 8',
             lambda: unikernel.self_test('turnstiles seconds=3 workload=idle', '--smp', 8))
    for smp in (1, 4):
        tap.case(f'console lines and frames of captures do not split each other, at -smp {smp}',
                 line_is_shared, unikernel, smp)


def capture_tests(tap, unikernel):
    for smp in (1, 2, 4, 8):
        tap.case(f'single-threaded and parallel captures of one stop are equal, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('modes', '--smp', smp))
        tap.case(f'so are those with everything tasks and threads can tell, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('modes rounds=5 workload=services',
                                                     '--smp', smp))
        tap.case(f'so are those of a task that is cut into parts, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('modes modes.threads=1500 rounds=5',
                                                     '--smp', smp))
    tap.case('100 tasks of 100 threads are captured whole, at -smp 4',
             lambda: unikernel.self_test('scale'))
    tap.case('a task of 5,000 threads is captured whole',
             lambda: unikernel.self_test('scale scale.tasks=1 scale.threads=5000'))
    for smp in (1, 4):
        tap.case(f'each check of a request refuses it with its error, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('admission workload=idle', '--smp', smp))
    for smp in (1, 4):
        tap.case(f'whatever a request needs fails once, with the right error and no loss, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('injection workload=idle', '--smp', smp))
    tap.case('50 captures in a row, tasks coming and going, succeed and lose no memory, at -smp 4',
             captures_in_a_row, unikernel, 50, '--compress')
    tap.case('deltas hold what ran since, and tell the rest shortly, at -smp 4', deltas, unikernel)
    tap.case('the boot profile is taken at the end of boot, and given out later',
             boot_profile_is_given_out, unikernel)
    tap.case('boot arguments say who may have a stackshot', admission_follows_boot_arguments, unikernel)
    tap.case('flags nothing is recorded for are accepted and cleared', unmet_flags_are_cleared,
             unikernel)
    for smp in (1, 4):
        tap.case(f'corrupt stacks, lists and objects end in the right flag or error, at -smp {smp}',
                 lambda smp=smp: unikernel.self_test('hostile', '--smp', smp))
    tap.case('instructions in the trap are counted, by thread and by frame', costs_are_counted,
             unikernel)


def long_tests(tap, unikernel):
    tap.case('10,000 stops lose no CPU, no wake-up and no register, at -smp 4',
             lambda: unikernel.self_test('quiesce cycles=10000', timeout=1800))
    tap.case('2,000 stops lose no CPU, no wake-up and no register, at -smp 8',
             lambda: unikernel.self_test('quiesce cycles=2000', '--smp', 8, timeout=1800))
    tap.case('single-threaded and parallel captures of one stop are equal, at -smp 64',
             lambda: unikernel.self_test('modes modes.threads=3000 rounds=10 '
                                         'ack_timeout_ms=10000', '--smp', 64, timeout=1800))
    tap.case('1,000 captures in a row, tasks coming and going, succeed and lose no memory',
             captures_in_a_row, unikernel, 1000)
    tap.case('1,000 tasks of 20 threads are captured whole, given the buffer',
             lambda: unikernel.self_test('scale scale.tasks=1000 scale.threads=20 '
                                         'max_tracebuf_size=67108864'))
    tap.case('1,000 tasks of 20 threads are a KERN_RESOURCE_SHORTAGE with the default buffer',
             lambda: unikernel.self_test('scale scale.tasks=1000 scale.threads=20 '
                                         'scale.error=KERN_RESOURCE_SHORTAGE'))
    tap.case('10 minutes of everything that waits lose no wake-up and leave no boost, at -smp 8',
             lambda: unikernel.self_test('turnstiles seconds=600 workload=idle', '--smp', 8,
                                         timeout=1800))
    tap.case('single-threaded and parallel captures are timed in pairs',
             lambda: unikernel.self_test('speedup speedup.pairs=3', '--smp', 2))


def main():
    stackshot, image, extent = sys.argv[1:4]
    tap = Tap()
    {'kernel': kernel_tests, 'capture': capture_tests, 'long': long_tests}[extent](
        tap, Unikernel(stackshot, image))
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
