"""The other end of QEMU's UART, with whatever a line can do to bytes.

A Proxy holds one connection to QEMU's socket and lets hosts come and go at a socket of its own.
"""

import pathlib
import random
import select
import socket
import threading
import time


class Faults:
    """What befalls each byte: with probability `rate` one of its bits flips, it is lost or it comes
    twice."""

    def __init__(self, rate, seed):
        self.rate = rate
        self.random = random.Random(seed)
        self.count = 0

    def apply(self, data):
        if not self.rate:
            return data
        out = bytearray()
        for byte in data:
            if self.random.random() >= self.rate:
                out.append(byte)
                continue
            self.count += 1
            kind = self.random.randrange(3)
            if kind == 0:
                out.append(byte ^ 1 << self.random.randrange(8))
            elif kind == 1:
                out += bytes((byte, byte))
        return bytes(out)


class Proxy:
    def __init__(self, directory, target, rate=0.0, seed=1, pace=None):
        """`target`: the path of QEMU's socket. `pace`: bytes a second, each way; None: at once."""
        self.path = str(pathlib.Path(directory) / 'proxy.sock')
        self.to_host = Faults(rate, seed)
        self.to_target = Faults(rate, seed + 1)
        self.pace = pace
        self.sent_to_host = 0
        self.text = bytearray()  # what came without a host
        self._typed = bytearray()
        self._waiting = 0
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._target = socket.socket(socket.AF_UNIX)
        # A line holds no more than a UART does.
        self._target.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        deadline = time.monotonic() + 20
        while True:
            try:
                self._target.connect(target)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self._listener = socket.socket(socket.AF_UNIX)
        pathlib.Path(self.path).unlink(missing_ok=True)
        self._listener.bind(self.path)
        self._listener.listen(1)
        self._host = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def type(self, data):
        """Sends bytes to the target, between those of the host."""
        with self._lock:
            self._typed += data

    def backlog(self):
        """Bytes that the target has not taken yet."""
        with self._lock:
            return len(self._typed) + self._waiting

    def close(self):
        self._end.set()
        self._thread.join()
        for end in (self._target, self._listener, self._host):
            if end:
                end.close()

    def _run(self):
        queues = {'host': bytearray(), 'target': bytearray()}
        allowed = {'host': time.monotonic(), 'target': time.monotonic()}
        while not self._end.is_set():
            readers = [self._target, self._listener]
            # A full queue is what a UART's flow stops at.
            if self._host and len(queues['target']) < 4096:
                readers.append(self._host)
            if len(queues['host']) >= 4096:
                readers.remove(self._target)
            ready, _, _ = select.select(readers, [], [], 0.002)
            if self._listener in ready:
                if self._host:
                    self._host.close()
                self._host, _ = self._listener.accept()
                queues['host'].clear()
            if self._target in ready:
                data = self._target.recv(4096)
                if not data:
                    return
                if self._host:
                    queues['host'] += self.to_host.apply(data)
                else:
                    self.text += data
            if self._host and self._host in ready:
                data = self._receive_from_host()
                if data:
                    queues['target'] += self.to_target.apply(data)
            with self._lock:
                queues['target'] += self._typed
                self._typed.clear()
            self._pump('target', self._target, queues, allowed)
            self._waiting = len(queues['target'])
            if self._host:
                self._pump('host', self._host, queues, allowed)

    def _receive_from_host(self):
        try:
            data = self._host.recv(4096)
        except OSError:
            data = b''
        if not data:
            self._host.close()
            self._host = None
        return data

    def _pump(self, name, end, queues, allowed):
        queue = queues[name]
        if not queue:
            allowed[name] = max(allowed[name], time.monotonic())
            return
        count = len(queue)
        if self.pace:
            count = min(count, int((time.monotonic() - allowed[name]) * self.pace))
            if count <= 0:
                return
            allowed[name] += count / self.pace
        # Not more than the other end takes now: nobody waits for it here.
        if not select.select([], [end], [], 0)[1]:
            return
        try:
            count = end.send(bytes(queue[:count]), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            count = len(queue)
        if name == 'host':
            self.sent_to_host += count
        del queue[:count]
