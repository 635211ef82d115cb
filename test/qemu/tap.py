"""Test Anything Protocol for the Python tests: one line a case, diagnostics behind a failed one."""

import sys
import traceback


class Skip(Exception):
    """Raised by a case that cannot run here; its text is the reason."""


class Failure(Exception):
    """Raised by check(): the rule did not hold."""


def check(condition, message):
    """Fails the running case with `message` unless `condition` holds."""
    if not condition:
        raise Failure(message)


def check_equal(got, wanted, what):
    check(got == wanted, f'{what} is {got!r}, not {wanted!r}')


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, function, *arguments):
        """Runs one case, named for the rule it checks."""
        self.count += 1
        try:
            function(*arguments)
        except Skip as reason:
            print(f'ok {self.count} - {name} # SKIP {reason}', flush=True)
        except Failure as failure:
            self._failed(name, str(failure))
        except Exception:  # a broken test is a failed one, and the rest still runs
            self._failed(name, traceback.format_exc())
        else:
            print(f'ok {self.count} - {name}', flush=True)

    def _failed(self, name, text):
        self.failed += 1
        print(f'not ok {self.count} - {name}')
        for line in text.splitlines():
            print(f'# {line}')
        sys.stdout.flush()

    def end(self):
        """Prints the plan; returns the exit status."""
        print(f'1..{self.count}', flush=True)
        return 1 if self.failed else 0
