#!/usr/bin/env python3
"""Makes one C++ source of the page: its HTML with style and script in place, cut at what is filled in
for each capture.

Usage: embed.py OUT.cpp PAGE.html STYLE.css SCRIPT.js...

The scripts are joined in the given order. The page's Content-Security-Policy allows these bytes of
script and style and no others.
"""

import base64
import hashlib
import pathlib
import sys

# What the program fills in, in order.
SLOTS = ['{{title}}', '{{data}}', '{{dump}}', '{{capture}}']
# Compilers need not take longer literals.
LITERAL = 60


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def literal(text):
    data = text.encode()
    lines = []
    for at in range(0, len(data), LITERAL):
        escaped = ''.join(chr(byte) if 0x20 <= byte < 0x7f and chr(byte) not in '"\\?' else f'\\{byte:03o}'
                          for byte in data[at:at + LITERAL])
        lines.append(f'    "{escaped}"')
    return '\n'.join(lines) or '    ""'


def main():
    out, page, style, *scripts = map(pathlib.Path, sys.argv[1:])
    css = style.read_text(encoding='utf-8')
    js = '"use strict";\n(() => {\n' + '\n'.join(s.read_text(encoding='utf-8') for s in scripts) + '})();\n'
    assert '</style' not in css.lower() and '</script' not in js.lower(), 'ends its own element'
    html = page.read_text(encoding='utf-8')
    for slot, text in {'{{script-hash}}': digest(js), '{{style-hash}}': digest(css),
                       '{{style}}': css, '{{script}}': js}.items():
        assert html.count(slot) == 1, slot
        html = html.replace(slot, text)
    pieces = []
    for slot in SLOTS:
        piece, found, html = html.partition(slot)
        assert found, slot
        pieces.append(piece)
    pieces.append(html)
    body = ',\n'.join(f'    std::string_view(\n{literal(piece)},\n    {len(piece.encode())})' for piece in pieces)
    out.write_text('// Made by tools/export/embed.py.\n'
                   '#include "tools/export/page_pieces.hpp"\n\n'
                   '// Longer than every compiler has to take, but those that build this do.\n'
                   '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n'
                   'namespace tools {\n\n'
                   f'const std::array<std::string_view, {len(pieces)}> page_pieces = {{\n{body},\n}};\n\n'
                   '}  // namespace tools\n', encoding='ascii')


if __name__ == '__main__':
    main()
