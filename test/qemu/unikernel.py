"""Boots the image through `stackshot run` and hands back what came out."""

import json
import pathlib
import struct
import subprocess
import tempfile

from tap import check


class Outcome:
    """One finished `stackshot run`."""

    def __init__(self, command, status, stderr, log, captures):
        self.command = command
        self.status = status
        self.stderr = stderr
        self.log = log  # the console, as text
        self.captures = captures  # bytes of each
        self.kcdata = captures[0] if captures else None

    def text(self):
        """The console without the frames, which zeroes delimit."""
        return ''.join(part for part in self.log.split('\0')
                       if part.isascii() and part.replace('\n', '').replace('\t', '').isprintable())

    def explain(self):
        tail = '\n'.join((self.stderr + '\n' + self.text()).splitlines()[-40:])
        return f"command: {' '.join(self.command)}\nstatus: {self.status}\n{tail}"


def tasks_of(shot):
    """The task snapshots of a decoded stackshot, those of tasks in teardown too."""
    return [*shot.get('task_snapshots', {}).values(),
            *shot.get('transitioning_task_snapshots', {}).values()]


class Unikernel:
    def __init__(self, stackshot, image, elf=None):
        self.stackshot = stackshot
        self.image = pathlib.Path(image)
        self.elf = elf

    def run(self, *options, image=None, timeout=120):
        """Runs the image until it powers off. `timeout` in seconds is a hang detector only."""
        with tempfile.TemporaryDirectory() as directory:
            captures = []
            out = pathlib.Path(directory) / 'capture.kcdata'
            log = pathlib.Path(directory) / 'uart.log'
            command = [self.stackshot, 'run', '--image', str(image or self.image), '--log', str(log),
                       '-o', str(out), '--timeout', str(timeout), *map(str, options)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=timeout + 60, check=False)
            text = log.read_bytes().decode('utf-8', 'replace') if log.exists() else ''
            text = text.replace('\r\n', '\n')
            while out.exists():
                captures.append(out.read_bytes())
                out = out.with_name(f'capture-{len(captures) + 1}.kcdata')
            return Outcome(command, done.returncode, done.stderr.decode('utf-8', 'replace'), text,
                           captures)

    def verify(self, kcdata):
        """Fails if the capture breaks any rule of the format or of a stackshot's records."""
        done = subprocess.run([self.stackshot, 'verify', '--generation', '3', '--strict', '-'],
                              input=kcdata, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        check(done.returncode == 0, f'verify exits with {done.returncode}: {done.stdout.decode()}')

    def decode(self, kcdata):
        """The capture as `stackshot decode` prints it; it must keep every rule."""
        self.verify(kcdata)
        done = subprocess.run([self.stackshot, 'decode', '-'], input=kcdata, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        check(done.returncode == 0, f'decode exits with {done.returncode}: {done.stderr.decode()}')
        return json.loads(done.stdout)

    def decoded_captures(self, outcome, count):
        """The captures of a run, in order: so many, and each one sound."""
        check(outcome.status == 0 and len(outcome.captures) == count, outcome.explain())
        return [self.decode(capture) for capture in outcome.captures]

    def self_test(self, test, *options, timeout=300):
        """Runs `test`, a name and its boot arguments, in the image; fails with the image's words."""
        outcome = self.run('--append', f'test={test}', *options, timeout=timeout)
        name = test.split()[0]
        lines = [line for line in outcome.log.splitlines() if line.startswith(f'TEST {name}: ')]
        check(lines, f'no result line of {name}\n' + outcome.explain())
        check(lines[-1] == f'TEST {name}: passed', lines[-1] + '\n' + outcome.explain())
        return outcome


def with_text_offset(image, text_offset, directory):
    """A copy of the image whose header asks for another load offset (arm64 boot protocol)."""
    data = bytearray(pathlib.Path(image).read_bytes())
    check(data[56:60] == b'ARM\x64', 'the image has no arm64 Image header')
    struct.pack_into('<Q', data, 8, text_offset)
    path = pathlib.Path(directory) / f'kernel8-{text_offset:#x}.img'
    path.write_bytes(data)
    return path
