"""gdb commands for the threads of the image: gdb itself sees only the CPUs they run on.

    kernel-threads                 all tasks and their threads
    kernel-bt THREAD|TASK|all      their stacks
    kernel-trace [CPU]             what stackshots have left in the CPUs' trace rings

Structures are read by their debug information, registers as QEMU's gdbstub names them. Exact while
the world is stopped (`break stackshot::CaptureTrap::initiator`). Anywhere else a CPU may be caught
in the midst of a switch: the thread it leaves is shown where it was switched away from before.
"""

import contextlib

import gdb

# As kernel/thread.hpp has them; an anonymous enumerator may not be in the debug information.
STATES = [(0x01, 'WAIT'), (0x02, 'SUSP'), (0x04, 'RUN'), (0x08, 'UNINT'), (0x10, 'TERMINATE'),
          (0x20, 'TERMINATE2'), (0x80, 'IDLE')]
NO_CPU = 0xffffffff


def variable(name):
    """The value of a variable, one of an anonymous namespace included."""
    symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    if symbol is None:
        raise gdb.GdbError(f'no debug information of {name}: load kernel.elf')
    return symbol.value()


def elements(linked_list, link):
    """The elements of a kernel::List whose link is the member `link`."""
    pointer = linked_list['first_']
    while int(pointer) != 0:
        element = pointer.dereference()
        yield element
        pointer = element[link]['next']


class Task:
    def __init__(self, value):
        self.value = value
        self.pid = int(value['pid'])
        self.name = value['name'].string()

    def threads(self):
        return [Thread(value, self) for value in elements(self.value['threads'], 'task_link')]


class Thread:
    def __init__(self, value, task):
        self.value = value
        self.task = task
        self.id = int(value['thread_id'])
        self.name = value['name'].string()
        self.state = int(value['state'])
        self.priority = int(value['sched_pri'])
        self.last_cpu = int(value['last_cpu'])

    def state_text(self):
        names = [name for bit, name in STATES if self.state & bit]
        return ' '.join(names) or f'{self.state:#x}'

    def virtual_cpu(self):
        """The gdb thread (a CPU of QEMU) the thread is on; None if it is on none."""
        if self.last_cpu == NO_CPU:
            return None
        cpu = variable('kernel::cpus')['_M_elems'][self.last_cpu]
        if int(cpu['current']) != int(self.value.address):
            return None
        for virtual_cpu in gdb.selected_inferior().threads():
            with selected(virtual_cpu):
                if register('TPIDR_EL1') == int(cpu.address):
                    return virtual_cpu
        raise gdb.GdbError(f'no CPU of QEMU is CPU {self.last_cpu}')

    def saved_registers(self):
        """The registers it goes on with when it is not on a CPU: inside switch_context(), whose
        frame is the innermost one then, as it is in a thread that has never run."""
        context = self.value['context']
        registers = {f'x{19 + i}': int(context['x19_to_x28']['_M_elems'][i]) for i in range(10)}
        registers['x29'] = int(context['fp'])
        registers['x30'] = int(context['lr'])
        registers['sp'] = int(context['sp'])
        registers['pc'] = int(gdb.parse_and_eval('(unsigned long)&switch_context'))
        return registers


def tasks():
    try:
        return [Task(value) for name in ('tasks', 'terminated_tasks')
                for value in elements(variable(f'kernel::(anonymous namespace)::{name}'), 'link')]
    except gdb.MemoryError:
        raise gdb.GdbError('the kernel is not mapped yet on this CPU') from None


def register(name):
    return int(gdb.parse_and_eval(f'(unsigned long)${name}'))


@contextlib.contextmanager
def selected(virtual_cpu):
    """Within, `virtual_cpu` is selected, at its innermost frame."""
    before, frame = gdb.selected_thread(), gdb.selected_frame()
    try:
        virtual_cpu.switch()
        gdb.newest_frame().select()
        yield
    finally:
        before.switch()
        if frame.is_valid():
            frame.select()


@contextlib.contextmanager
def loaded(registers):
    """Within, the selected CPU has these registers."""
    gdb.newest_frame().select()
    # The program counter last of all: what gdb makes of the others depends on it.
    names = [name for name in registers if name != 'pc'] + ['pc']
    before = {name: register(name) for name in names}
    try:
        for name in names:
            gdb.execute(f'set ${name} = {registers[name]:#x}', to_string=True)
        yield
    finally:
        for name in names:
            gdb.execute(f'set ${name} = {before[name]:#x}', to_string=True)


@contextlib.contextmanager
def standing_in(thread):
    """Within, gdb's innermost frame is the thread's: what its CPU does, or the switch_context() it
    goes on from."""
    virtual_cpu = thread.virtual_cpu()
    with selected(virtual_cpu or gdb.selected_thread()):
        if virtual_cpu is not None:
            yield
        else:
            with loaded(thread.saved_registers()):
                yield


class ThreadsCommand(gdb.Command):
    """List the tasks of the image with their threads: id, state, priority, CPU, name."""

    def __init__(self):
        super().__init__('kernel-threads', gdb.COMMAND_USER)

    def invoke(self, argument, from_tty):
        for task in tasks():
            print(f'{task.name}  pid {task.pid}')
            for thread in task.threads():
                virtual_cpu = thread.virtual_cpu()
                if virtual_cpu is not None:
                    where = f'on CPU {thread.last_cpu}, gdb thread {virtual_cpu.num}'
                elif thread.last_cpu == NO_CPU:
                    where = 'never ran'
                else:
                    where = f'last on CPU {thread.last_cpu}'
                print(f'  {thread.id:>5}  {thread.state_text():<17} {thread.priority:>3}  '
                      f'{where:<24}  {thread.name}')


class BacktraceCommand(gdb.Command):
    """Show the stacks of threads of the image.
Usage: kernel-bt THREAD|TASK|all
THREAD is an id or a name, TASK a name. A thread on a CPU is shown with what stopped it."""

    def __init__(self):
        super().__init__('kernel-bt', gdb.COMMAND_USER)

    def invoke(self, argument, from_tty):
        wanted = argument.strip()
        if not wanted:
            raise gdb.GdbError('Usage: kernel-bt THREAD|TASK|all')
        chosen = [thread for task in tasks() for thread in task.threads()
                  if wanted in ('all', str(thread.id), thread.name, task.name)]
        if not chosen:
            raise gdb.GdbError(f'no thread or task is {wanted!r}: see kernel-threads')
        for thread in chosen:
            print(f'{thread.task.name}: thread {thread.id} "{thread.name}", {thread.state_text()}')
            with standing_in(thread):
                gdb.execute('bt')
            print()


class TraceEntry:
    """One complete entry of a stackshot::TraceRing."""

    def __init__(self, cpu, slot):
        event_and_line = atomic(slot['event_and_line'])
        self.cpu = cpu
        self.time = atomic(slot['time'])
        self.event = str(gdb.Value(event_and_line >> 32).cast(
            gdb.lookup_type('stackshot::TraceEvent'))).rsplit('::', 1)[-1]
        self.line = event_and_line & 0xffffffff
        self.file = slot['file']['_M_b']['_M_p'].string()
        self.word = atomic(slot['word'])


def array_elements(value):
    """The elements of a std::array."""
    array = value['_M_elems']
    return [array[n] for n in range(array.type.strip_typedefs().range()[1] + 1)]


def atomic(value):
    """The value of a std::atomic of an integer."""
    return int(value['_M_i'])


def trace():
    """The entries of all CPUs, oldest first."""
    entries = []
    rings = variable('kernel::(anonymous namespace)::trace_rings')
    for cpu, ring in enumerate(array_elements(rings)):
        for slot in array_elements(ring['slots_']):
            sequence = atomic(slot['sequence'])
            # Odd: it was being written when the machine stopped.
            if sequence != 0 and sequence % 2 == 0:
                entries.append((sequence, TraceEntry(cpu, slot)))
    return [entry for _, entry in sorted(entries, key=lambda e: (e[1].time, e[1].cpu, e[0]))]


class TraceCommand(gdb.Command):
    """Show the trace of stackshots, of all CPUs by time or of one: when, which CPU, what, the event's
word, and the line that wrote it.
Usage: kernel-trace [CPU]"""

    def __init__(self):
        super().__init__('kernel-trace', gdb.COMMAND_USER)

    def invoke(self, argument, from_tty):
        wanted = argument.strip()
        if wanted and not wanted.isdigit():
            raise gdb.GdbError('Usage: kernel-trace [CPU]')
        for entry in trace():
            if not wanted or entry.cpu == int(wanted):
                print(f'{entry.time:>16}  cpu {entry.cpu:<2}  {entry.event:<18} {entry.word:#x}  '
                      f'{entry.file}:{entry.line}')


ThreadsCommand()
BacktraceCommand()
TraceCommand()
