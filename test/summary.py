#!/usr/bin/env python3
"""Adds up the JUnit logs of `meson test` and prints what failed, what was skipped, and the counts.

Usage: summary.py BUILD_DIRECTORY... -- BROKEN_STEP...
Each broken step (something that could not be configured or built) counts as one failure. Exits 1 if
anything failed or nothing passed.
"""

import glob
import sys
import xml.etree.ElementTree as ElementTree


def cases(directory):
    """Yields (name, outcome, detail) for every test case a build directory's log holds."""
    logs = glob.glob(f'{directory}/meson-logs/testlog*.junit.xml')
    if not logs:
        yield f'{directory}: no test log', 'failed', ''
    for log in logs:
        for suite in ElementTree.parse(log).getroot().iter('testsuite'):
            for case in suite.iter('testcase'):
                # Of 'PROJECT.PROJECT:SUITE / TEST' only the test says something here.
                test = (case.get('classname') or suite.get('name')).split(' / ')[-1]
                name = f"{directory}: {test}: {case.get('name')}"
                if case.find('failure') is not None or case.find('error') is not None:
                    yield name, 'failed', ''
                elif (skip := case.find('skipped')) is not None:
                    yield name, 'skipped', skip.get('message') or ''
                else:
                    yield name, 'passed', ''


def main():
    split = sys.argv.index('--')
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    listed = {'failed': [], 'skipped': []}
    for directory in sys.argv[1:split]:
        for name, outcome, detail in cases(directory):
            counts[outcome] += 1
            if outcome in listed:
                listed[outcome].append(f'{name}: {detail}' if detail else name)
    for broken in sys.argv[split + 1:]:
        counts['failed'] += 1
        listed['failed'].append(broken)
    for outcome in ('skipped', 'failed'):
        for line in listed[outcome]:
            print(f'{outcome}: {line}')
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts['failed'] or not counts['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
