"""Builds small stackshots, straight from the layout of kcdata."""

import struct

BEGIN, END = 0x59A25807, 0xF19158ED
ARRAY, CONTAINER_BEGIN, CONTAINER_END, UINT32_DESC, UINT64_DESC = 0x20, 0x13, 0x14, 0x2, 0x3
TIMEBASE, ABSOLUTE_TIME, USECS_SINCE_EPOCH = 0x32, 0x33, 0x35
TASK, THREAD = 0x903, 0x904
TASK_SNAPSHOT, THREAD_SNAPSHOT, THREAD_NAME, OSVERSION = 0x905, 0x906, 0x909, 0x90F
KERN_STACKLR64, USER_STACKLR64, KERNELCACHE_LOADINFO = 0x914, 0x916, 0x91C
THREAD_WAITINFO, LATENCY_INFO_CPU = 0x91D, 0x956

STATE_WAIT, STATE_RUN = 0x1, 0x4
ON_CORE = 0x800  # kThreadOnCore
MUTEX, PORT_SEND = 1, 4  # kThreadWaitKernelMutex, kThreadWaitPortSend
NOW = 10_000_000_000  # absolute time of every capture, in ns


def item(kind, payload=b'', flags=None):
    pad = -len(payload) % 16
    if flags is None:
        flags = 0x80 | pad
    return struct.pack('<IIQ', kind, len(payload) + pad, flags) + payload + bytes(pad)


def array(kind, elements):
    payload = b''.join(elements)
    return item(ARRAY | -len(payload) % 16, payload, kind << 32 | len(elements))


def container(kind, identity, *inside):
    return (item(CONTAINER_BEGIN, struct.pack('<I', kind), identity) + b''.join(inside)
            + item(CONTAINER_END, b'', identity))


def described(name, value):
    return item(UINT64_DESC, name.encode().ljust(32, b'\0') + struct.pack('<Q', value))


def thread(identity, name=b'', *, state=STATE_WAIT, cpu=None, stack=(), user_stack=(), event=0):
    """What runs, runs on `cpu`."""
    flags = ON_CORE if cpu is not None and state == STATE_RUN else 0
    snapshot = struct.pack('<11Q', identity, event, 0, 0, 0, 0, 0, 0, flags, NOW - 2_500_000_000,
                           NOW - 2_500_000_000)
    snapshot += struct.pack('<IIhh', state, 0, 31, 31)
    inside = [item(THREAD_SNAPSHOT, snapshot.ljust(128, b'\0'))]
    if name:
        inside.append(item(THREAD_NAME, name.ljust(64, b'\0')))
    if cpu is not None:
        inside.append(item(UINT32_DESC, b'last_processor'.ljust(32, b'\0') + struct.pack('<I', cpu)))
    for kind, addresses in ((KERN_STACKLR64, stack), (USER_STACKLR64, user_stack)):
        if addresses:
            inside.append(array(kind, [struct.pack('<Q', address) for address in addresses]))
    return container(THREAD, identity, *inside)


def task(pid, name, *threads, waits=(), kernel=None):
    """`waits`: (waiter, owner, context, type). `kernel`: load address and UUID."""
    snapshot = struct.pack('<6Q', pid, 0, 0, 0, 0, 0).ljust(84, b'\0') + struct.pack('<i', pid)
    inside = [item(KERNELCACHE_LOADINFO, struct.pack('<Q', kernel[0]) + kernel[1])] if kernel else []
    inside.append(item(TASK_SNAPSHOT, snapshot + name.ljust(32, b'\0')))
    inside.extend(threads)
    if waits:
        inside.append(array(THREAD_WAITINFO, [struct.pack('<QQQBhI', owner, waiter, context, kind, 0, 0)
                                              for waiter, owner, context, kind in waits]))
    return container(TASK, pid, *inside)


def latency_of_cpu(cpu, init, queue, total, tasks, threads):
    return struct.pack('<iiQQQQQQQQQQ', cpu, 0, init, queue, total, 0, 0, tasks, threads, 0, 0, 0)


def capture(*tasks, tail=(), system=b'test kernel 1.0'):
    return (item(BEGIN) + item(OSVERSION, system + b'\0') + item(TIMEBASE, struct.pack('<II', 1, 1))
            + item(ABSOLUTE_TIME, struct.pack('<Q', NOW))
            + item(USECS_SINCE_EPOCH, struct.pack('<Q', 1_700_000_000_000_000))
            + b''.join(tasks) + b''.join(tail) + item(END, b'', 0))
