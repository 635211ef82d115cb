"""The gdb side of unwind_test.py: at every stop of the world, gdb's own walk of every thread.

In gdb, with tools/gdb and this folder in sys.path: import unwind_walk; unwind_walk.run('OUT.json')
"""

import functools
import json
import re

import gdb

import kernel

# Called on the initiator once every other CPU has stopped, and before anything is recorded.
WORLD_STOPPED = 'stackshot::CaptureTrap::initiator'
# The initiator's stack is captured from its call of this.
TRAP = 'kernel::(anonymous namespace)::KernelSystem::trap'
INSTRUCTION_SIZE = 4


@functools.lru_cache(maxsize=None)
def instructions(pc):
    """Addresses and text of the function `pc` lies in, as gdb bounds it."""
    listing = gdb.execute(f'disassemble {pc:#x}', to_string=True)
    return [(int(address, 16), text.replace('\t', ' ')) for address, text in
            re.findall(r'(0x[0-9a-f]+) <\+\d+>:\t(.*)', listing)]


def position(pc):
    """Where in its function a thread was interrupted."""
    code = instructions(pc)
    leaf = not any(re.match(r'blr? ', text) for _, text in code)
    records = [address for address, text in code if re.match(r'(mov x29, sp|add x29, sp,)', text)]
    if not records:
        part = 'body'
    elif pc <= records[0]:
        part = 'prologue'
    else:
        part = 'body'
        for _, text in (instruction for instruction in code if instruction[0] >= pc):
            if re.match(r'ret\b', text):
                part = 'epilogue'
            if re.match(r'(ret|b|bl|br|blr|b\..*|cbn?z|tbn?z|ldp x29, x30,.*)\b', text):
                break
    return {'part': part, 'leaf': leaf, 'frame record': bool(records),
            'first instruction': pc == code[0][0]}


def walk():
    """The selected CPU's physical frames, innermost first, each with the functions at work in it."""
    frames, functions = [], []
    frame = gdb.newest_frame()
    newer_is_exception = False
    while True:
        functions.append(frame.name())
        if frame.type() != gdb.INLINE_FRAME:
            frames.append({'pc': frame.pc(), 'functions': functions,
                           'exception': frame.type() == gdb.SIGTRAMP_FRAME,
                           'interrupted': position(frame.pc()) if newer_is_exception else None})
            newer_is_exception = frames[-1]['exception']
            functions = []
        older = frame.older()
        if older is None:
            reason = frame.unwind_stop_reason()
            return frames, gdb.frame_stop_reason_string(reason)
        frame = older


def without_the_stop(frames):
    """What the thread did before the stop: its CPU was interrupted for it, or called for it."""
    for index, frame in enumerate(frames):
        if frame['exception']:
            return frames[index + 1:]
        if TRAP in frame['functions']:
            # It stands at its call; gdb tells where it goes on.
            frames[index + 1]['pc'] -= INSTRUCTION_SIZE
            return frames[index + 1:]
    raise gdb.GdbError('a CPU is neither interrupted nor in the trap')


def thread_facts(thread):
    on_cpu = thread.virtual_cpu() is not None
    with kernel.standing_in(thread):
        frames, end = walk()
    if on_cpu:
        frames = without_the_stop(frames)
    else:
        assert frames[0]['functions'] == ['switch_context'], frames[0]
        frames = frames[1:]
    return {'id': thread.id, 'name': thread.name, 'task': thread.task.name, 'state': thread.state,
            'on_cpu': on_cpu, 'never_ran': thread.last_cpu == kernel.NO_CPU,
            'in_turnstile': int(thread.value['turnstile']) != 0,
            'has_deadline': int(thread.value['deadline']) != 2 ** 64 - 1,
            'frames': frames, 'end': end}


def run(path):
    """Writes what was seen at every stop until the image powers off."""
    stops, traces = [], []
    breakpoint_at_stop = gdb.Breakpoint(WORLD_STOPPED)
    while True:
        try:
            gdb.execute('continue', to_string=True)
        except gdb.error:
            break  # QEMU has gone
        if not gdb.selected_inferior().threads():
            break
        if breakpoint_at_stop.hit_count != len(stops) + 1:
            raise gdb.GdbError('stopped for something else')
        stops.append([thread_facts(thread) for task in kernel.tasks() for thread in task.threads()])
        traces.append([{'cpu': entry.cpu, 'event': entry.event, 'file': entry.file}
                       for entry in kernel.trace()])
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'stops': stops, 'traces': traces}, file, indent=1)
