#!/usr/bin/env python3
"""Tests of the page that `stackshot report --format html` writes, in headless Chromium.

Usage: page_test.py STACKSHOT SYMBOL_TARGET SHARED_DIR

What is right comes from the captures as they are built here (capture.py), from `analyze --format json`,
`dump` and `report --format folded`, and of Apple's captures from libkdd's own output beside them.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'qemu'))

import capture as build  # noqa: E402
from browser import Browser  # noqa: E402
from tap import Skip, Tap, check, check_equal  # noqa: E402

ENTER, ESCAPE, LEFT, RIGHT, DOWN = '\ue007', '\ue00c', '\ue012', '\ue014', '\ue015'

PARTS = ('waits', 'threads', 'flame', 'collection', 'records')
NODES = "return [...document.querySelectorAll('#waits .node')].flatMap(n => n.dataset.members?.split(' ') ?? [n.dataset.node])"

# Five tasks: a ring of three threads with two behind, a cycle of two through a task of one thread,
# twelve waiters for one mutex whose owner runs, two that wait for what nobody is known to hold.
MUTEX = 0xFFFFFFFF80001000


def ring_tasks():
    def waits(*pairs):
        return [(waiter, owner, context, build.MUTEX) for waiter, owner, context in pairs]
    return [
        build.task(1, b'alpha', build.thread(11, b'one', stack=[0x1000, 0x2000]),
                   build.thread(12, b'two', stack=[0x1000, 0x2000]), build.thread(13, b'three', stack=[0x1000, 0x3000]),
                   build.thread(14, b'behind'), build.thread(15),
                   waits=waits((11, 12, MUTEX), (12, 13, MUTEX + 16), (13, 11, MUTEX + 32), (14, 11, MUTEX + 32), (15, 14, MUTEX + 48))),
        build.task(2, b'beta', build.thread(21, b'sender'), waits=[(21, 3, 0xFFFF000000000100, build.PORT_SEND)]),
        build.task(3, b'gamma', build.thread(31, b'receiver'), waits=[(31, 21, MUTEX + 64, build.MUTEX)]),
        build.task(4, b'crowd', build.thread(40, b'owner', state=build.STATE_RUN, cpu=2, stack=[0x5000]),
                   *(build.thread(41 + i, b'waiter %d' % i, stack=[0x1000, 0x4000]) for i in range(12)),
                   waits=waits(*((41 + i, 40, MUTEX + 80) for i in range(12)))),
        build.task(5, b'alone', build.thread(61), build.thread(62), waits=waits((61, 0, MUTEX + 96), (62, 0, MUTEX + 96))),
    ]


class Pages:
    def __init__(self, browser, stackshot, directory):
        self.browser = browser
        self.stackshot = stackshot
        self.directory = pathlib.Path(directory)

    def stackshot_of(self, content, *arguments):
        """The output of the program for a capture, which it must take as sound."""
        done = subprocess.run([self.stackshot, *arguments, '-'], input=content, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        check(done.returncode in (0, 5, 10), f'{arguments} exits with {done.returncode}: {done.stderr.decode()}')
        return done.stdout

    def open(self, content, *options, fragment='', status=(0, 5)):
        """Shows a capture, with every part of the page made; returns what the program said."""
        file = self.directory / 'capture.kcdata'
        file.write_bytes(content)
        return self.open_file(file, *options, fragment=fragment, status=status)

    def open_file(self, file, *options, fragment='', status=(0, 5)):
        page = self.directory / 'page.html'
        with page.open('wb') as out:
            done = subprocess.run([self.stackshot, 'report', '--format', 'html', *options, str(file)],
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, check=False)
        check(done.returncode in status, f'report exits with {done.returncode}: {done.stderr.decode()}')
        self.browser.log()
        self.browser.log('performance')
        self.browser.open(page, fragment)
        self.browser.wait("return performance.getEntriesByName('interactive').length")
        for part in PARTS:
            self.browser.run('document.getElementById(arguments[0]).scrollIntoView({behavior: "instant"})', part)
            self.browser.wait("return document.querySelector(`#${arguments[0]} > .body`).children.length", part)
        return done.stderr.decode()

    def run(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def texts(self, selector):
        return self.run('return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)', selector)

    def complaints(self):
        return [entry['message'] for entry in self.browser.log()]

    def search(self, text):
        self.run('''const input = document.getElementById("search");
            input.value = arguments[0];
            input.dispatchEvent(new Event("input"));''', text)
        # Typing is followed after a while.
        self.run('return new Promise(done => setTimeout(done, 150))')

    def found(self):
        return sorted(self.run('''return [...document.querySelectorAll("#list .thread > summary")]
            .map(row => Number(row.children[1].textContent))'''))


def loads_alone(pages):
    pages.open(build.capture(*ring_tasks()))
    check_equal(pages.complaints(), [], 'what the console says')
    urls = []
    for entry in pages.browser.log('performance'):
        message = json.loads(entry['message'])['message']
        # What the browser itself shows before is not ours.
        if (message['method'] == 'Network.requestWillBeSent'
                and message['params']['documentURL'].endswith('/page.html')):
            urls.append(message['params']['request']['url'])
    check(any(url.endswith('/page.html') for url in urls), f'the page is not among {urls}')
    outside = [url for url in urls if not url.startswith(('file:', 'data:', 'blob:', 'about:'))]
    check_equal(outside, [], 'what is loaded from elsewhere')


def says_the_verdict(pages):
    pages.open(build.capture(*ring_tasks()))
    titles = pages.texts('#answer h1')
    check('Deadlock: one → two → three → one' in titles, f'titles are {titles}')
    check('Deadlock: sender ↔ receiver' in titles, f'titles are {titles}')
    check(pages.run('return document.title').startswith('Deadlock'), 'the title tells of no deadlock')
    pages.open(build.capture(build.task(1, b'calm', build.thread(1, state=build.STATE_RUN, cpu=0))))
    check_equal(pages.texts('#answer h1'), ['No deadlock'], 'the verdict of a capture without')
    pages.open(build.capture(ring_tasks()[3]))
    check_equal(pages.texts('#answer h1'), ['No deadlock. 12 threads behind owner'], 'the verdict of a convoy')


def search_filters(pages):
    pages.open(build.capture(*ring_tasks()))
    # Whoever waits for a thread is found by its name, too.
    for text, ids in {'two': [11, 12], 'WAITER 1': [42, 51, 52], '13': [13], 'gamma': [21, 31], '0x3000': [13], 'crowd owner': list(range(40, 53)),
                      'nothing like it': []}.items():
        pages.search(text)
        check_equal(pages.found(), ids, f'what the search finds for {text!r}')
        check_equal(pages.run('return document.getElementById("found").textContent'),
                    f'{len(ids)} thread{"" if len(ids) == 1 else "s"}', f'the count for {text!r}')
    pages.search('one')
    marked = pages.run("return [...document.querySelectorAll('#waits .match')].map(n => n.getAttribute('aria-label'))")
    check_equal(sorted(label.split(',')[0] for label in marked), ['behind', 'one', 'three'], 'nodes marked')
    pages.search('0x3000')
    check_equal(pages.run("return [...document.querySelectorAll('.frame.match')].map(f => f.getAttribute('aria-label'))"),
                ['0x3000, 1 thread'], 'frames that a search for an address marks')
    pages.search('')
    check_equal(len(pages.found()), 22, 'threads shown without a search')


def nodes_by_json(pages, content):
    """The nodes and edges of the graph, from what analyze tells."""
    analysis = json.loads(pages.stackshot_of(content, 'analyze', '--format', 'json'))
    nodes, edges = set(), set()
    acting, threads = set(), {f"thread {t['id']}": t for t in analysis['threads']}
    for thread in analysis['threads']:
        if 'wait' not in thread:
            continue
        wait, at = thread['wait'], f"thread {thread['id']}"
        nodes.add(at)
        if 'object' in wait:
            there = f"{wait['object']['kind']} {wait['object']['address']}"
            nodes.add(there)
            edges.add((at, there))
            at = there
        by = {'thread': lambda w: f"thread {w['blocker_thread']}", 'task': lambda w: f"task {w['blocker_pid']}",
              'creator': lambda w: f"task {w['blocker_pid']}", 'work_queue': lambda w: f"work queue {w['blocker_address']}",
              'port': lambda w: f"port {w['blocker_address']}", 'none': lambda w: None}[wait['blocker']](wait)
        if by:
            nodes.add(by)
            edges.add((at, by))
        if wait['blocker'] == 'task':
            acting.add(wait['blocker_pid'])
    for pid in acting:
        edges.update((f'task {pid}', name) for name in nodes & set(threads) if threads[name].get('pid') == pid)
    stuck = {f"thread {t['id']}" for t in analysis['threads'] if 'deadlock' in t}
    heads = {f"{h['kind']} {h.get('id', h.get('pid'))}": h['behind'] for h in analysis['heads']}
    return nodes, edges, stuck, heads


def check_graph(pages, content):
    nodes, edges, stuck, heads = nodes_by_json(pages, content)
    pages.open(content)
    pages.run('document.getElementById("all-waits")?.click()')
    names = '''const data = JSON.parse(document.getElementById("data").textContent)[0];
        const name = (key) => { const i = Number(key.slice(1));
            return { t: () => `thread ${data.threads[i].id}`, p: () => `task ${data.tasks[i].pid}`, q: () => `work queue ${data.queues[i]}`,
                o: () => `${data.objects[i].kind} ${data.objects[i].address}` }[key[0]](); };'''
    folded = pages.run(f'{names} {NODES}.map(name)')
    check_equal(sorted(folded), sorted(nodes), 'the nodes, folded ones too')
    while pages.run('const one = document.querySelector("#waits .fold"); one?.dispatchEvent(new MouseEvent("click")); return Boolean(one)'):
        pass
    check_equal(sorted(pages.run(f'{names} {NODES}.map(name)')), sorted(nodes), 'the nodes')
    drawn = pages.run(f'''{names} return [...document.querySelectorAll("#waits [data-edge]")]
        .map(e => e.dataset.edge.split(">").map(name))''')
    check_equal(sorted(map(tuple, drawn)), sorted(edges), 'the edges')
    check_equal(sorted(pages.run(f'{names} return [...document.querySelectorAll("#waits .thread-node.stuck")].map(n => name(n.dataset.node))')),
                sorted(stuck), 'the nodes in deadlocks')
    shown = dict(pages.run(f'''{names} return [...document.querySelectorAll("#waits .head")]
        .map(n => [name(n.dataset.node), parseInt(n.querySelector(".badge").textContent)])'''))
    check_equal(shown, heads, 'the heads of chains with the threads behind them')
    # No box may hide another one.
    boxes = pages.run('''return [...document.querySelectorAll("#waits svg.graph")].map(svg =>
        [...svg.querySelectorAll(".node")].map(n => { const b = n.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; }))''')
    for graph in boxes:
        for i, a in enumerate(graph):
            for b in graph[i + 1:]:
                check(a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], f'boxes {a} and {b} overlap')


def graph_is_analysis(pages):
    check_graph(pages, build.capture(*ring_tasks()))


def graph_of_task_cycles(pages):
    # A task of two threads, one of which may yet act; and a thread that waits for itself.
    check_graph(pages, build.capture(
        build.task(2, b'beta', build.thread(21, b'sender'), waits=[(21, 3, 0xFFFF000000000100, build.PORT_SEND)]),
        build.task(3, b'gamma', build.thread(31), build.thread(32, state=build.STATE_RUN, cpu=1),
                   waits=[(31, 21, MUTEX, build.MUTEX)]),
        build.task(4, b'self', build.thread(41), waits=[(41, 41, MUTEX + 16, build.MUTEX)]),
        build.task(5, b'gone', build.thread(51), build.thread(52), waits=[(51, 999, MUTEX + 32, build.MUTEX), (52, 77, 0xFFFF000000000200, build.PORT_SEND)])))


def expands(pages, symbol_target):
    told = subprocess.run([symbol_target], stdout=subprocess.PIPE, check=True).stdout.split()
    address, inner_line, outer_line = int(told[0], 16), int(told[1]), int(told[2])
    content = build.capture(build.task(0, b'kernel', build.thread(1, b'walker', stack=[address, address]), kernel=(0x400000, bytes(range(16)))))
    pages.open(content, '--elf', symbol_target)
    check_equal(pages.run('return document.querySelectorAll("#list .detail").length'), 0, 'details before a thread is opened')
    pages.run('document.querySelector("#list .thread").open = true')
    pages.browser.wait('return document.querySelector("#list .detail")')
    rows = pages.run('''return [...document.querySelectorAll("#list .stack tr")]
        .map(row => [...row.children].map(cell => cell.textContent))''')
    # The second entry is a return address: it belongs to the call before it.
    check_equal([row[0] for row in rows[-2:]], ['1', ''], 'numbers of an entry with an inlined function')
    check(rows[-2][1].endswith(' (inlined)') and 'target::inlined' in rows[-2][1], f'inlined function: {rows[-2]}')
    check(rows[-1][1].endswith('Caller::outer'), f'outer function: {rows[-1]}')
    check(rows[-2][2].endswith(f'symbol_target.cpp:{inner_line}'), f'place of the inlined function: {rows[-2]}')
    check(rows[-1][2].endswith(f'symbol_target.cpp:{outer_line}'), f'place of the outer function: {rows[-1]}')
    check_equal(rows[-2][3], f'{address:#x}', 'the address')


def expand_all(pages):
    pages.open(build.capture(*ring_tasks()))
    pages.run('document.querySelector("#threads button").click()')
    check_equal(len(pages.texts('#list .detail')), 22, 'threads with details')
    check_equal(len(pages.texts('#list .stack')), 16, 'stacks')


def flame_is_folded(pages):
    content = build.capture(*ring_tasks())
    counts = {}
    for line in pages.stackshot_of(content, 'report', '--format', 'folded').decode().splitlines():
        names, count = line.rsplit(' ', 1)
        path = ()
        # Task and thread come first.
        for name in names.split(';')[2:]:
            path += (f'{int(name, 16):#x}',)
            counts[path] = counts.get(path, 0) + int(count)
    pages.open(content)
    widths = '''const all = [...document.querySelectorAll(".frame")];
        const path = (n) => n.parent ? [...path(n.parent), n.name] : [];
        return all.map(f => [path(f.node), f.node.count, f.querySelector("rect").getBoundingClientRect().width / document.querySelector(".flame-chart").clientWidth])'''
    frames = pages.run(widths)
    drawn = {tuple(path): count for path, count, _ in frames if path}
    check_equal(drawn, counts, 'frames and how many threads are in each')
    for path, count, share in frames:
        check(abs(share - count / 22) < 0.01, f'{path}: {share} of the width for {count} of 22 threads')
    pages.run('''[...document.querySelectorAll(".frame")].find(f => f.node.name === "0x4000").dispatchEvent(new MouseEvent("click"))''')
    check_equal(pages.run('''const f = [...document.querySelectorAll(".frame")].find(f => f.node.name === "0x4000");
        return Math.round(100 * f.querySelector("rect").getBoundingClientRect().width / document.querySelector(".flame-chart").clientWidth)'''),
                100, 'percent of the width that the frame zoomed to has')
    pages.run('''const s = document.querySelector("#flame select"); s.value = 3; s.dispatchEvent(new Event("change"));''')
    check_equal(sorted(pages.run('return [...document.querySelectorAll(".frame")].map(f => f.getAttribute("aria-label"))')),
                ['0x1000, 12 threads', '0x4000, 12 threads', '0x5000, 1 thread', '13 threads, 13 threads'], 'frames of one task')


def collection_is_latency(pages):
    pages.open(build.capture(ring_tasks()[3], tail=[build.array(build.LATENCY_INFO_CPU, [
        build.latency_of_cpu(0, 100_000, 0, 1_000_000, 3, 30), build.latency_of_cpu(1, 200_000, 300_000, 800_000, 1, 10)])]))
    label = pages.run('return document.querySelector("#collection .lanes svg").getAttribute("aria-label")')
    check_equal(label, 'CPU 0: 3 tasks, 30 threads, 1.000 ms, of that 0 waiting; CPU 1: 1 task, 10 threads, 800.0 µs, of that 300.0 µs waiting', 'the lanes')
    shares = pages.run('''const plot = document.querySelector(".plot"), all = plot.getBoundingClientRect();
        return [...plot.querySelectorAll("rect")].map(r => { const b = r.getBoundingClientRect();
            return [r.className.baseVal, ...[b.left, b.right].map(x => Math.round(100 * (x - all.left) / plot.width.baseVal.value))]; })''')
    check_equal(shares, [['fill-start', 0, 10], ['fill-work', 10, 100], ['fill-start', 0, 20], ['fill-work', 20, 50], ['fill-idle', 50, 80]],
                'bars in percent of the longest')


def light_and_dark(pages):
    def lightness():
        numbers = re.findall(r'[\d.]+', pages.run('return getComputedStyle(document.body).backgroundColor'))
        return sum(map(float, numbers[:3])) / 3
    content = build.capture(*ring_tasks())
    try:
        pages.browser.prefer('dark')
        pages.open(content)
        check(lightness() < 60, 'the page is not dark for who prefers that')
        pages.browser.prefer('light')
        check(lightness() > 200, 'the page is not light for who prefers that')
        pages.run('document.getElementById("theme").click()')
        check(lightness() < 60, 'the switch does not make the page dark')
        pages.open(content)
        check(lightness() < 60, 'the page does not stay dark')
        # Text stands out in both: at least 4.5:1 (WCAG 2, AA).
        for _ in range(2):
            for selector in ('body', '.quiet', '.answer.stuck h1 b', 'a[href^="#t"]', '.tag.stuck', '.bar nav a'):
                ratio = pages.run(CONTRAST, selector)
                check(ratio >= 4.5, f'{selector}: contrast {ratio:.1f}')
            pages.run('document.getElementById("theme").click()')
    finally:
        pages.run('localStorage.clear()')


CONTRAST = '''const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const light = (color) => { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const text = light(getComputedStyle(document.querySelector(arguments[0])).color);
    const back = light(getComputedStyle(document.body).backgroundColor);
    return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);'''

HOSTILE = [b'</script><script>window.harm=1</script>', b'<img src=x onerror=window.harm=1>', b'"\'`${window.harm=1}\\', b'\x1b[31m\x07\x00',
           '\u2028\u2029\u202egnirts\u0085'.encode(), b'\xff\xfe\xc0\x80', b'<!--<script>', b'javascript:window.harm=1', b'__proto__', b'&lt;b&gt;']


def hostile_names(pages):
    threads = [build.thread(i + 1, name, event=0x1000) for i, name in enumerate(HOSTILE)]
    content = build.capture(build.task(1, HOSTILE[0][:31], *threads, waits=[(1, 2, 0x10, build.MUTEX), (2, 1, 0x20, build.MUTEX)]),
                            build.task(2, b'<b>task</b>', build.thread(2**53 + 1, b'odd'), build.thread(2**53, b'even')), system=HOSTILE[0])
    pages.open(content)
    pages.run('document.querySelector("#threads button").click()')
    pages.run('location.hash = "#t0"')
    pages.browser.wait('return !document.getElementById("drawer").hidden')
    check_equal(pages.complaints(), [], 'what the console says')
    check_equal(pages.run('return window.harm ?? null'), None, 'what a name did')
    check_equal(pages.run('return document.scripts.length'), 4, 'script elements')
    check_equal(pages.run('return document.querySelectorAll("img, b > b, iframe").length'), 0, 'elements out of names')
    names = pages.texts('#list .thread .name')
    check_equal(names[:3], ['</script><script>window.harm=1</script>', '<img src=x onerror=window.harm=1>', '"\'`${window.harm=1}\\'], 'names')
    check_equal(names[3], '\\u{1b}[31m\\u{7}', 'a name of control characters')
    check_equal(names[4], '\\u{2028}\\u{2029}\\u{202e}gnirts\\u{85}', 'a name that turns text around')
    check_equal(names[5], '\ufffd' * 4, 'a name that is not UTF-8')
    check_equal(names[6:10], ['<!--<script>', 'javascript:window.harm=1', '__proto__', '&lt;b&gt;'], 'names')
    # Beyond 53 bits they would be the same in JavaScript.
    pages.search(str(2**53 + 1))
    check_equal(pages.texts('#list .thread .name'), ['odd'], 'the thread of a large id')
    policy = pages.run('return document.querySelector("meta[http-equiv]").content')
    check("default-src 'none'" in policy and 'unsafe' not in policy, f'the policy allows too much: {policy}')


def long_chains(pages):
    """A chain of 3,000 threads, a fan of 3,000, and a stack as deep as they come."""
    count = 3000
    pages.open(build.capture(
        build.task(1, b'chain', *(build.thread(i) for i in range(1, count + 1)),
                   waits=[(i, i + 1, 0x1000 + i, build.MUTEX) for i in range(1, count)]),
        build.task(2, b'fan', *(build.thread(10_000 + i) for i in range(count)),
                   waits=[(10_000 + i, 10_000, 0xFF00, build.MUTEX) for i in range(1, count)]),
        build.task(3, b'deep', build.thread(20_000, stack=[0x1000 + 4 * i for i in range(1024)]))))
    check_equal(pages.complaints(), [], 'what the console says')
    check_equal(len(pages.run(NODES)), 3 * count - 1 + 1, 'nodes, folded ones too')
    # Of all threads one is too thin to see.
    pages.run('const s = document.querySelector("#flame select"); s.value = 2; s.dispatchEvent(new Event("change"))')
    check_equal(pages.run('return Math.max(...[...document.querySelectorAll(".frame")].map(f => f.node.depth))'), 1024, 'frames of the deepest stack')
    pages.search('20000')
    check_equal(pages.found(), [20_000], 'threads found')


def damage_is_named(pages):
    content = build.capture(*ring_tasks())
    # Cut inside of the last task.
    said = pages.open(content[:-300], status=(3,))
    problem = re.search(r'offset 0x[0-9a-f]+: .*', said)
    check(problem, f'the program names no damage: {said}')
    alert = pages.texts('[role=alert]')
    check(len(alert) == 1 and problem[0] in alert[0] and 'damaged' in alert[0], f'the page says {alert}, not {problem[0]!r}')
    check(pages.run('return document.title').startswith('Damaged'), 'the title tells of no damage')
    check('Deadlock: one → two → three → one' in pages.texts('#answer h1'), 'what was read is not shown')
    # Nothing of waits is left: that is not the same as "no deadlock".
    pages.open(build.capture(build.task(1, b'calm', build.thread(1, state=build.STATE_RUN, cpu=0)))[:-40], status=(3,))
    check_equal(pages.texts('#answer h1'), ['No deadlock in what could be read'], 'the verdict of a damaged capture')
    # Sound, but fewer threads than it says itself.
    pages.open(build.capture(ring_tasks()[3], tail=[build.described('stackshot_threads_count', 20)]))
    check('13 threads could be read; the capture says there are 20' in pages.texts('[role=alert]')[0], 'missing threads are not named')


def keyboard(pages):
    pages.open(build.capture(*ring_tasks()))
    browser = pages.browser
    browser.press('/')
    check_equal(pages.run('return document.activeElement.id'), 'search', 'what / brings the focus to')
    browser.press('t', 'h', 'r', 'e', 'e')
    browser.wait('return document.getElementById("found").textContent === "2 threads"')
    browser.press(ESCAPE)
    check_equal(pages.run('return document.getElementById("search").value'), '', 'the search after Escape')
    pages.run('document.querySelector("#list .thread > summary").focus()')
    browser.press(ENTER)
    browser.wait('return document.querySelector("#list .thread[open] .detail")')
    pages.run('document.querySelector("#waits .node").focus({preventScroll: true})')
    first = pages.run('return document.activeElement.dataset.node')
    browser.press(RIGHT)
    second = pages.run('return document.activeElement.dataset.node')
    check(second and second != first, f'from {first} the right arrow leads to {second}')
    browser.press(LEFT)
    check_equal(pages.run('return document.activeElement.dataset.node'), first, 'where the left arrow leads back to')
    browser.press(ENTER)
    browser.wait('return !document.getElementById("drawer").hidden')
    browser.press(ESCAPE)
    browser.wait('return document.getElementById("drawer").hidden')
    check_equal(pages.run('return document.activeElement.dataset.node'), first, 'where the focus is when the drawer is closed')
    pages.run('document.querySelector(".frame").focus()')
    browser.press(DOWN, ENTER)
    check_equal(pages.run('return document.querySelector("#flame button").hidden'), False, 'whether the flame graph is not zoomed')
    browser.press(ESCAPE)
    check_equal(pages.run('return document.querySelector("#flame button").hidden'), True, 'whether Escape zooms out')


def narrow_and_print(pages):
    pages.open(build.capture(*ring_tasks()))
    browser = pages.browser
    try:
        browser.resize(390, 800)
        check(pages.run('return document.documentElement.scrollWidth') <= 390, 'the page is wider than a narrow window')
    finally:
        browser.resize(1280, 900)
    file = pages.directory / 'page.pdf'
    browser.print_pdf(file)
    check(file.read_bytes().startswith(b'%PDF') and file.stat().st_size > 20_000, 'nothing is printed')
    check_equal(len(pages.texts('#list .thread[open] .detail')), 22, 'threads that are open on paper')
    browser.devtools('Emulation.setEmulatedMedia', media='print')
    try:
        check_equal(pages.run('return ["records", "drawer"].map(id => getComputedStyle(document.getElementById(id)).display)'),
                    ['none', 'none'], 'what is not for paper')
    finally:
        browser.devtools('Emulation.setEmulatedMedia', media='')


OPEN_RECORDS = '''const next = [...document.querySelectorAll(".records details:not([open])")];
    for (const each of next) { each.open = true; each.build(); }
    for (const more of document.querySelectorAll(".records .more")) more.click();
    return next.length + document.querySelectorAll(".records .more").length;'''


def records_are_dump(pages):
    content = build.capture(*ring_tasks())
    pages.open(content)
    pages.browser.wait('return document.querySelector(".records details")')
    while pages.run(OPEN_RECORDS):
        pass
    # What is behind a container's name is ours.
    lines = pages.run('''return [...document.querySelectorAll(".records pre, .records summary")]
        .map(line => line.querySelectorAll("span")[0].textContent + line.querySelectorAll("span")[1].textContent)''')
    wanted = [re.sub(r'^(\S+) +', r'\1  ', line) for line in pages.stackshot_of(content, 'dump').decode().splitlines()]
    check_equal(lines, wanted, 'the records')
    kept = pages.run('''const packed = Uint8Array.from(atob(document.getElementById("capture").textContent.split("\\n")[0]), c => c.charCodeAt(0));
        return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
            .then(b => [...new Uint8Array(b)])''')
    check_equal(bytes(kept), content, 'the capture in the page')


def several_captures(pages):
    pages.open(build.capture(*ring_tasks()) + build.capture(build.task(9, b'second', build.thread(91, state=build.STATE_RUN, cpu=0))))
    check('Deadlock' in pages.texts('#answer h1')[0], 'the first capture is not shown first')
    check_equal(len(pages.texts('#subject option')), 2, 'captures to choose from')
    pages.run('const s = document.querySelector("#subject select"); s.value = 1; s.dispatchEvent(new Event("change"))')
    pages.browser.wait('return document.querySelector("#answer h1")?.textContent === "No deadlock" && performance.getEntriesByName("interactive").length')
    pages.run('document.getElementById("threads").scrollIntoView({behavior: "instant"})')
    pages.browser.wait('return document.querySelector("#list .task")')
    check_equal(pages.texts('#list .task b'), ['second'], 'tasks of the second capture')


def threads_of(shot):
    """What libkdd made of a stackshot: how many threads, those told of in arrays of a delta too."""
    count = 0
    for kind in ('task_snapshots', 'transitioning_task_snapshots'):
        for task in shot.get(kind, {}).values():
            ids = set(task.get('thread_snapshots', {}))
            ids |= {str(each['tds_thread_id']) for each in task.get('thread_delta_snapshot', [])}
            count += len(ids)
    return count


def sample_opens(pages, sample):
    expected = json.loads(sample.with_suffix('.expected.json').read_text())
    shot = expected.get('kcdata_stackshot') or expected.get('kcdata_delta_stackshot')
    pages.open_file(sample)
    check_equal(pages.complaints(), [], 'what the console says')
    check_equal(pages.run('return document.querySelectorAll("[role=alert]").length'), 0, 'damage in a sound capture')
    subject = pages.texts('#subject span')
    count = threads_of(shot)
    check(any(re.search(rf', {count} threads?$', text) for text in subject), f'{count} threads are not in {subject}')


def frames_tell_images(pages, sample):
    """Each frame of a user stack names an image of the task, and where in it."""
    expected = json.loads(sample.with_suffix('.expected.json').read_text())['kcdata_stackshot']
    known = [expected['shared_cache_dyld_load_info']] if 'shared_cache_dyld_load_info' in expected else []
    (task,) = expected['task_snapshots'].values()
    loaded = {image['imageUUID'].replace('-', '').lower()[:8]: image['imageLoadAddress']
              for image in task['dyld_load_info'] if isinstance(image['imageUUID'], str)}
    loaded.update({bytes(image['imageUUID']).hex()[:8]: image['imageLoadAddress']
                   for image in task['dyld_load_info'] if not isinstance(image['imageUUID'], str)})
    check(loaded, f'no images in {sample}: {known}')
    pages.open_file(sample)
    pages.run('document.querySelector("#threads button").click()')
    rows = pages.run("""return [...document.querySelectorAll("#list .stack .place > span")]
        .map(cell => [cell.closest("tr").children[1].textContent, cell.textContent])""")
    told = 0
    for address, place in rows:
        uuid, offset = place.split(' + ')
        if uuid in loaded:
            told += 1
            check_equal(int(address, 16) - int(offset, 16), loaded[uuid], f'where the image of {address} begins')
    check(told >= 3, f'of {rows} only {told} name an image of the task')


def main():
    stackshot, symbol_target, shared = sys.argv[1:4]
    tap = Tap()
    samples = sorted((pathlib.Path(shared) / 'samples').glob('*stackshot*.kcdata'))
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        pages = Pages(browser, stackshot, directory)
        tap.case('the page loads without a word on the console and loads nothing else', loads_alone, pages)
        tap.case('the verdict names who waits for whom', says_the_verdict, pages)
        tap.case('search filters by name, task, id and address, and marks nodes and frames', search_filters, pages)
        tap.case('the wait graph has the nodes, edges, deadlocks and heads that analyze tells', graph_is_analysis, pages)
        tap.case('so it has for tasks, for a thread that waits for itself, and for what is not in the capture',
                 graph_of_task_cycles, pages)
        tap.case('a thread opens to its stack, with inlined functions and lines', expands, pages, symbol_target)
        tap.case('all threads open at once', expand_all, pages)
        tap.case('the flame graph has the stacks of the folded format, as wide as their counts', flame_is_folded, pages)
        tap.case('the lanes of the CPUs are as long as their latency records say', collection_is_latency, pages)
        tap.case('light and dark follow the system and the switch, and text stands out in both', light_and_dark, pages)
        tap.case('names are text, whatever is in them', hostile_names, pages)
        tap.case('chains, fans and stacks may be long', long_chains, pages)
        tap.case('a damaged or incomplete capture says so', damage_is_named, pages)
        tap.case('all of it can be reached by keyboard', keyboard, pages)
        tap.case('the page fits a narrow window and prints with every stack', narrow_and_print, pages)
        tap.case('the records are what dump shows, and the capture itself is in the page', records_are_dump, pages)
        tap.case('a file of several captures shows each', several_captures, pages)
        if not samples:
            tap.case('captures of real kernels open', no_samples, shared)
        for sample in samples:
            if sample.stem == 'stackshot-with-waitinfo':
                tap.case('frames without names tell image and offset', frames_tell_images, pages, sample)
            tap.case(f'{sample.stem} opens with all its threads', sample_opens, pages, sample)
    return tap.end()


def no_samples(shared):
    raise Skip(f'no reference samples in {shared}')


if __name__ == '__main__':
    sys.exit(main())
