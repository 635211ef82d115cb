#!/usr/bin/env python3
"""What a capture says that tasks and threads are part of, use and have done, against what they did.

The workload (kernel/workload/services.cpp) prints what a capture is to say of it; names, numbers of
requests and the like are drawn anew in every run.

Usage: services_test.py STACKSHOT IMAGE
"""

import re
import subprocess
import sys

from tap import Tap, check, check_equal
from unikernel import Unikernel, tasks_of

FORMAT, LOADINFO, WAITINFO = 0x10000, 0x2, 0x1000000
GET_DQ, IMP_DONATION, THREAD_GROUP, COALITIONS, INSTRS_CYCLES, NO_IO = (
    0x1, 0x2000, 0x2000000, 0x4000000, 0x8000000, 0x800000)
EVERYTHING = (FORMAT | LOADINFO | WAITINFO | GET_DQ | IMP_DONATION | THREAD_GROUP | COALITIONS |
              INSTRS_CYCLES)
HAS_DISPATCH_SERIAL = 0x4
STACK_SIZE = 16 * 1024
# What stands on a stack below the deepest frame of a recursion, and is used behind it: the end of
# that frame, and waiting for a semaphore.
STACK_SLACK = 1024


class Capture:
    def __init__(self, unikernel, *arguments, boot='', flags=EVERYTHING):
        outcome = unikernel.run(*arguments, '--append',
                                f'workload=services stackshot.flags={flags:#x} {boot}')
        self.shot = unikernel.decoded_captures(outcome, 1)[0]['kcdata_stackshot']
        self.tasks = {(task.get('task_snapshot') or task['transitioning_task_snapshot']).get(
            'ts_pid', -1): task for task in tasks_of(self.shot)}
        self.threads = {int(thread): (task, record) for task in self.tasks.values()
                        for thread, record in task.get('thread_snapshots', {}).items()}
        self.text = outcome.text()
        check('services: stand' in self.text, outcome.explain())

    def told(self, pattern):
        found = re.findall(f'^services: {pattern}$', self.text, re.M)
        check(found, f'the image says nothing like {pattern}')
        return found


def coalitions_and_groups_are_told(unikernel):
    capture = Capture(unikernel)
    groups = {group['tgs_id']: group for group in capture.shot['thread_group_snapshot']}
    coalitions = {coalition['jcs_id']: coalition
                  for coalition in capture.shot['jetsam_coalition_snapshot']}
    for number, group, name, flags, leader in capture.told(
            r'coalition (\d+) group (\d+) "(.*)" flags (0x\w+) leader (\d+)'):
        check_equal(coalitions[int(number)]['jcs_thread_group'], int(group), 'the thread group')
        check_equal(coalitions[int(number)]['jcs_leader_task_uniqueid'], int(leader), 'the leader')
        told = groups[int(group)]
        check_equal(told['tgs_name'][:16] + told['tgs_name_cont'], name, 'the name of the group')
        check_equal(told['tgs_flags'], int(flags, 0), 'its flags')
    for pid, coalition in capture.told(r'task (\d+) coalition (\d+)'):
        check_equal(capture.tasks[int(pid)]['jetsam_coalition'], int(coalition),
                    f'the coalition of task {pid}')
    for task, thread in capture.threads.values():
        check(thread['thread_group'] in groups, f'a group that is not there: {thread}')
        coalition = task.get('jetsam_coalition')
        check(coalition is None or coalitions[coalition]['jcs_thread_group'] == thread['thread_group'],
              f'the thread is of another group than its task: {thread}')
    check_equal(capture.tasks[0]['jetsam_coalition'], 1, "kernel_task's coalition")


def policies_are_told(unikernel):
    capture = Capture(unikernel)
    check_equal(capture.shot['thread_policy_version'], 7, 'the version of the policy words')
    for thread, requested, effective, tier in capture.told(
            r'thread (\d+) group \d+ requested (0x\w+) effective (0x\w+) tier (\d+)'):
        snapshot = capture.threads[int(thread)][1]['thread_snapshot']
        requested, effective = int(requested, 0), int(effective, 0)
        check_equal(snapshot['ths_requested_policy'], requested, 'the requested policy')
        check_equal(snapshot['ths_effective_policy'], effective, 'the effective policy')
        check_equal(snapshot['ths_io_tier'], int(tier), 'the I/O tier')
        # By XNU's layout of version 7.
        check_equal(snapshot['ths_rqos'], requested >> 15 & 7, 'the requested class')
        check_equal(snapshot['ths_eqos'], effective >> 13 & 7, 'the effective class')
        check_equal(snapshot['ths_io_tier'], effective >> 1 & 3, 'the tier of the effective policy')
        check_equal(snapshot['ths_ss_flags'] & 0x30, (effective & 1) << 4 | (effective >> 3 & 1) << 5,
                    'the background and passive flags')


def ports_are_named(unikernel):
    capture = Capture(unikernel)
    for what, key in (('waits at', 'thread_waitinfo'), ('asks', 'thread_turnstileinfo')):
        for number, name, domain in capture.told(rf'thread (\d+) {what} "(.*)" of domain (\d+)'):
            task, _ = capture.threads[int(number)]
            info, = [info for info in task[key] if info['waiter'] == int(number)]
            label = task['portlabels'][str(info['portlabel_id'])]
            check_equal(label['portlabel_name'], name, f'the label thread {number} {what}')
            check_equal(label['portlabel_domain'], int(domain), 'its domain')
            check_equal(label['portlabel_flags'], 0, 'its flags')
            wait, = [wait for wait in task['thread_waitinfo'] if wait['waiter'] == int(number)]
            # A special reply port has no label.
            check_equal(wait['portlabel_id'], 0 if what == 'asks' else info['portlabel_id'],
                        'the label of what it waits for itself')
    mentioned = [(task, label) for task in capture.tasks.values() for label in task.get('portlabels', {})]
    check_equal(len(mentioned), 2, 'the labels of all tasks')


def donations_are_told(unikernel):
    capture = Capture(unikernel)
    donations = {int(donor): [int(to)] for donor, to in capture.told(r'task (\d+) donates to (\d+)')}
    check_equal({pid: task['donating_pids'] for pid, task in capture.tasks.items()
                 if 'donating_pids' in task}, donations, 'who donates to whom')


def io_is_told(unikernel):
    capture = Capture(unikernel)
    told = capture.told(r'(thread|task) (\d+) reads (\d+) of (\d+) bytes, writes (\d+) of (\d+) '
                        r'bytes, tier (\d), metadata (\d+)')
    tiers = [0] * 4
    for what, number, *counts in told:
        reads, read, writes, written, tier, metadata = map(int, counts)
        record = capture.threads[int(number)][1] if what == 'thread' else capture.tasks[int(number)]
        stats = record['io_statistics']
        for key, value in {'disk_reads_count': reads, 'disk_reads_size': read,
                           'disk_writes_count': writes, 'disk_writes_size': written,
                           'metadata_count': metadata, 'data_count': reads + writes - metadata,
                           'paging_count': 0, 'non_paging_count': reads + writes,
                           'non_paging_size': read + written}.items():
            check_equal(stats[f'ss_{key}'], value, f'{key} of {what} {number}')
        check_equal(stats['ss_data_size'] + stats['ss_metadata_size'], read + written, 'data in all')
        if what == 'thread':
            tiers[tier] += reads + writes
            check_equal(stats['ss_io_priority_count'],
                        [reads + writes if tier == n else 0 for n in range(4)], 'the tiers')
        else:
            check_equal(stats['ss_io_priority_count'], tiers, 'the tiers of the task')
    check_equal(sum('io_statistics' in task for task in capture.tasks.values()), 1, 'tasks that did I/O')
    without = Capture(unikernel, flags=EVERYTHING | NO_IO)
    check(not any('io_statistics' in task for task in without.tasks.values()), 'I/O is told all the same')


def queues_are_told(unikernel):
    capture = Capture(unikernel)
    (pid, serial, label), = capture.told(r'task (\d+) works for queue (\d+) "(.*)"')
    workers = [(task['task_snapshot']['ts_pid'], thread) for task, thread in capture.threads.values()
               if thread['thread_snapshot']['ths_ss_flags'] & HAS_DISPATCH_SERIAL]
    check_equal([task for task, _ in workers], [int(pid)], 'who works for queues')
    check_equal(workers[0][1]['thread_snapshot']['ths_dqserialnum'], int(serial), 'the serial number')
    check_equal(workers[0][1]['dispatch_queue_label'], label, 'the label')


def stacks_are_measured(unikernel):
    capture = Capture(unikernel, boot='stackshot.stack_high_water')
    for number, used in capture.told(r'thread (\d+) used (\d+) bytes of its stack'):
        mark = capture.threads[int(number)][1]['stack_high_water']
        check(int(used) <= mark <= int(used) + STACK_SLACK, f'{mark} bytes, not {used}')
    marks = [thread['stack_high_water'] for _, thread in capture.threads.values()
             if 'stack_high_water' in thread]
    check(len(marks) >= len(capture.threads) - 1 and all(0 < mark <= STACK_SIZE for mark in marks),
          f'the marks of {len(capture.threads)} threads are {marks}')
    check('stack_high_water' not in str(Capture(unikernel).shot), 'told without being asked for')


def work_is_counted(unikernel):
    for icount in ([], ['--icount', 0]):
        capture = Capture(unikernel, '--smp', 1 if icount else 4, *icount)
        check(capture.shot['stackshot_out_flags'] & INSTRS_CYCLES, 'no cycles are counted')
        for number, rounds in capture.told(r'thread (\d+) has run (\d+) rounds'):
            counters = capture.threads[int(number)][1]['instrs_cycles_snapshot']
            check(counters['ics_cycles'] > 0, f'{counters}')
            # QEMU counts instructions with -icount only. A round is of 2 to 20 of them.
            low, high = (2, 20) if icount else (0, 0)
            check(int(rounds) * low <= counters['ics_instructions'] <= int(rounds) * high,
                  f'{counters} for {rounds} rounds')
        for task in capture.tasks.values():
            threads = [thread['instrs_cycles_snapshot']['ics_cycles']
                       for thread in task.get('thread_snapshots', {}).values()]
            check(task['instrs_cycles_snapshot']['ics_cycles'] >= sum(threads),
                  f'a task has done less than its threads: {task["task_snapshot"]}, {threads}')


def capture_is_sound(unikernel):
    """And the scene of a server with a queued request and threads to spare is no deadlock."""
    for arguments in ([], ['--compress']):
        outcome = unikernel.run(*arguments, '--append',
                                f'workload=services stackshot.flags={EVERYTHING:#x}')
        unikernel.decoded_captures(outcome, 1)
        done = subprocess.run([unikernel.stackshot, 'analyze', '-'], input=outcome.captures[0],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        check_equal(done.returncode, 0, f"analyze's exit status\n{done.stdout.decode()}")


def main():
    unikernel = Unikernel(*sys.argv[1:3])
    tap = Tap()
    for name, test in (
            ('tasks tell their coalition, threads their group, and both are listed',
             coalitions_and_groups_are_told),
            ('threads tell the policies they were given', policies_are_told),
            ('threads that wait at ports name them', ports_are_named),
            ('a donor of importance tells whom its requests make important', donations_are_told),
            ('tasks and threads tell what they read and wrote', io_is_told),
            ('a worker tells which dispatch queue it works for', queues_are_told),
            ('stacks tell how far they were ever used', stacks_are_measured),
            ('cycles are counted by thread and task, instructions where they can be', work_is_counted),
            ('with everything recorded a capture verifies, and nobody is in a deadlock',
             capture_is_sound)):
        tap.case(name, test, unikernel)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
