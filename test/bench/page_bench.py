#!/usr/bin/env python3
"""How long the page of a capture with 1,000 threads takes in headless Chromium until it can be used.

Usage: page_bench.py STACKSHOT KERNEL_IMG

Interactive is when the page was painted for the first time and nothing waits to run (main.js), counted
from the start of the navigation: reading and parsing the file are in it.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile

for folder in ('qemu', 'page'):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))

from browser import Browser  # noqa: E402
from unikernel import Unikernel  # noqa: E402

LOADS = 9
THREADS = 1000


def figure(name, value, unit):
    print(f'{name}\t{value}\t{unit}', flush=True)


def main():
    stackshot, image = sys.argv[1:3]
    outcome = Unikernel(stackshot, image).run('--append', f'workload=fleet tasks={THREADS // 10} threads=10', '--memory', '1G')
    if outcome.status != 0:
        sys.exit(outcome.explain())
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        capture = pathlib.Path(directory) / 'capture.kcdata'
        capture.write_bytes(outcome.kcdata)
        page = capture.with_suffix('.html')
        with page.open('wb') as out:
            subprocess.run([stackshot, 'report', '--format', 'html', str(capture)], stdout=out, check=True)
        times, searches = [], []
        for _ in range(LOADS):
            browser.open(page)
            browser.wait("return performance.getEntriesByName('interactive').length")
            times.append(browser.run("return performance.getEntriesByName('interactive')[0].startTime"))
            if browser.run('return JSON.parse(document.getElementById("data").textContent)[0].threads.length') < THREADS:
                sys.exit(f'the page has fewer than {THREADS} threads')
            # With every part of the page made, and the first search, which reads every stack.
            searches.append(browser.run('''const input = document.getElementById("search");
                for (const part of ["waits", "threads", "flame", "collection", "records"])
                    document.getElementById(part).scrollIntoView({behavior: "instant"});
                return new Promise(done => setTimeout(() => {
                    const begin = performance.now();
                    input.value = "switch_to";
                    input.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
                    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
                }, 1000));'''))
        figure('page.interactive_ms', f'{statistics.median(times):.1f}', 'ms')
        figure('page.interactive_worst_ms', f'{max(times):.1f}', 'ms')
        figure('page.search_ms', f'{statistics.median(searches):.1f}', 'ms')
        figure('page.size_kib', f'{page.stat().st_size / 1024:.1f}', 'KiB')
        figure('page.capture_kib', f'{len(outcome.kcdata) / 1024:.1f}', 'KiB')


if __name__ == '__main__':
    main()
