#!/usr/bin/env python3
"""Makes the pictures of the page in docs/ again, from captures of the image.

Usage: screenshots.py STACKSHOT KERNEL_IMG DIRECTORY

After a build: test/page/screenshots.py build/tools/stackshot build/kernel8.img docs
The page's own font is Inter, where it is installed (apt-get install fonts-inter).
"""

import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'qemu'))

from browser import Browser  # noqa: E402
from unikernel import Unikernel  # noqa: E402

WIDTH = 1120

# File, boot arguments, colours, what to do, and the parts of the page that are shown.
PICTURES = [
    ('page-deadlock.png', 'workload=deadlock-ring threads=5', 'light', '', ('subject', 'waits')),
    ('page-threads.png', '', 'dark', '''
        const rows = [...document.querySelectorAll("#list .thread")];
        const thread = rows.find(row => /held by/.test(row.textContent)) ?? rows.findLast(row => /waits for/.test(row.textContent));
        for (const task of document.querySelectorAll("#list .task")) task.open = task.contains(thread);
        thread.open = true;''', ('threads', 'threads')),
    ('page-flame.png', '', 'light', '''
        document.querySelectorAll("#flame .frame")[1].dispatchEvent(new MouseEvent("pointerenter"));''', ('flame', 'collection')),
]
MARGIN = 24


def pack(path):
    """Deflates the PNG's pixels anew: browsers do that in a hurry."""
    data = path.read_bytes()
    chunks, at = [], 8
    while at < len(data):
        size = struct.unpack_from('>I', data, at)[0]
        chunks.append((data[at + 4:at + 8], data[at + 8:at + 8 + size]))
        at += 12 + size
    pixels = zlib.compress(zlib.decompress(b''.join(content for kind, content in chunks if kind == b'IDAT')), 9)
    out = data[:8]
    for kind, content in [chunks[0], (b'IDAT', pixels), (b'IEND', b'')]:
        out += struct.pack('>I', len(content)) + kind + content + struct.pack('>I', zlib.crc32(kind + content))
    path.write_bytes(out)


def main():
    stackshot, image, directory = sys.argv[1:4]
    unikernel = Unikernel(stackshot, image)
    pages = {}
    with tempfile.TemporaryDirectory() as temporary, Browser(WIDTH, 900) as browser:
        for name, arguments, scheme, action, (first, last) in PICTURES:
            if arguments not in pages:
                outcome = unikernel.run(*(['--append', arguments] if arguments else []))
                if outcome.status != 0:
                    sys.exit(outcome.explain())
                file = pathlib.Path(temporary) / f'{len(pages)}.kcdata'
                file.write_bytes(outcome.kcdata)
                pages[arguments] = file.with_suffix('.html')
                with pages[arguments].open('wb') as out:
                    subprocess.run([stackshot, 'report', '--format', 'html', str(file)], stdout=out, check=True)
            browser.resize(WIDTH, 900)
            browser.prefer(scheme)
            browser.open(pages[arguments])
            browser.wait("return performance.getEntriesByName('interactive').length")
            for part in ('waits', 'threads', 'flame', 'collection', 'records'):
                browser.run('document.getElementById(arguments[0]).scrollIntoView({behavior: "instant"})', part)
                browser.wait('return document.querySelector(`#${arguments[0]} > .body`).children.length', part)
            browser.run(action)
            browser.run('document.querySelector(".bar").style.position = "static"')
            # A window as large as the parts: what is outside of it need not be painted, and what is not
            # painted need not have its size.
            for _ in range(3):
                top, bottom = browser.run('''return [document.getElementById(arguments[0]).getBoundingClientRect().top,
                    document.getElementById(arguments[1]).getBoundingClientRect().bottom]''', first, last)
                browser.resize(WIDTH, round(bottom - top) + 2 * MARGIN)
                browser.run('scrollBy({top: arguments[0], behavior: "instant"})', top - MARGIN)
                browser.run('return new Promise(done => requestAnimationFrame(() => setTimeout(done, 500)))')
            out = pathlib.Path(directory) / name
            browser.screenshot(out)
            pack(out)
            print(f'{out}: {out.stat().st_size // 1024} KiB')


if __name__ == '__main__':
    main()
