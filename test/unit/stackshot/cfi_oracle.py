#!/usr/bin/env python3
"""Compares stackshot::UnwindTables with readelf, for every instruction of AArch64 programs.

Usage: cfi_oracle.py CFI_ROWS PREFIX --elf FILE
       cfi_oracle.py CFI_ROWS PREFIX SOURCE...

CFI_ROWS is the program that prints our rows; PREFIX the cross tools' (aarch64-linux-gnu-). Sources
are compiled and linked in several ways. Prints TAP.
"""

import re
import shutil
import subprocess
import sys
import tempfile

FLAGS = ['-ffreestanding', '-fno-pic', '-static', '-nostdlib', '-fno-stack-protector', '-w',
         '-fasynchronous-unwind-tables', '-Wl,--eh-frame-hdr', '-Wl,--build-id=none', '-Wl,-e,0',
         '-Wl,-Ttext-segment=0xffff000000000000', '-mno-outline-atomics']
VARIANTS = {
    'unoptimized': ['-O0'],
    'as the image': ['-O2', '-fno-omit-frame-pointer', '-mno-omit-leaf-frame-pointer',
                     '-fno-shrink-wrap', '-fno-optimize-sibling-calls', '-mgeneral-regs-only'],
    'no frame pointers, shrink-wrapped': ['-O2', '-fomit-frame-pointer'],
    'signed return addresses': ['-O2', '-mbranch-protection=standard'],
    'for size': ['-Os', '-fno-exceptions'],
}

FDE = re.compile(r'FDE.* pc=([0-9a-f]+)\.\.([0-9a-f]+)')


def expected_rows(readelf, elf):
    """{pc: 'CFA X29 X30'} as readelf interprets it."""
    text = subprocess.run([readelf, '--debug-dump=frames-interp', elf], check=True,
                          capture_output=True, text=True).stdout
    rows = {}
    columns, end, table = None, None, []

    def finish():
        for (start, row), (following, _) in zip(table, table[1:] + [(end, None)]):
            for pc in range(start, following, 4):
                rows[pc] = row

    in_frames = False
    for line in text.splitlines():
        if line.startswith('Contents of the'):
            in_frames = '.eh_frame' in line
        if not in_frames:
            continue
        match = FDE.search(line)
        if match or ' CIE ' in line:
            finish()
            table, columns = [], None
            end = int(match.group(2), 16) if match else None
            if match:
                table = [(int(match.group(1), 16), 'sp+0 u u')]
        elif line.split()[:2] == ['LOC', 'CFA']:
            columns = line.split()
        elif columns and end is not None and re.match(r'^[0-9a-f]{16} ', line):
            cells = dict(zip(columns, line.split()))
            # The same value: still in its register, as if nothing had been said.
            x29, ra = (cells.get(name, 'u').replace('s', 'u') for name in ('x29', 'ra'))
            row = f"{cells['CFA']} {x29} {ra}"
            start = int(cells['LOC'], 16)
            if table and table[-1][0] == start:
                table[-1] = (start, row)
            else:
                table.append((start, row))
    finish()
    return rows


def compare(cfi_rows, readelf, elf):
    """Problems, and how many instructions with call frame information were compared."""
    expected = expected_rows(readelf, elf)
    ours = subprocess.run([cfi_rows, elf], check=True, capture_output=True, text=True).stdout
    problems, compared = [], 0
    for line in ours.splitlines():
        pc, row = line.split(' ', 1)
        right = expected.pop(int(pc, 16), 'none')
        # DWARF expressions are for exception entry code, where no walk starts: refused, not guessed.
        refused = row == 'unsupported' or '?' in row
        # readelf shows registers that were never saved and undefined ones alike.
        if refused != ('exp' in right) or (not refused and row.replace(' n', ' u') != right):
            problems.append(f'{pc}: {row}, but readelf says {right}')
        compared += right != 'none'
    problems += [f'{pc:016x}: readelf says {row}, we printed nothing'
                 for pc, row in expected.items()]
    return problems, compared


def main():
    cfi_rows, prefix, *rest = sys.argv[1:]
    compiler, readelf = prefix + 'g++', prefix + 'readelf'
    cases = ['--elf'] if rest[0] == '--elf' else list(VARIANTS)
    print(f'1..{len(cases)}')
    for number, case in enumerate(cases, 1):
        name = f'every instruction, {case}' if case != '--elf' else 'every instruction of the image'
        if not shutil.which(readelf) or (case != '--elf' and not shutil.which(compiler)):
            print(f'ok {number} {name} # SKIP no {prefix} tools')
            continue
        with tempfile.TemporaryDirectory() as folder:
            elf = rest[1] if case == '--elf' else f'{folder}/program'
            if case != '--elf':
                subprocess.run([compiler, '-std=c++20', *FLAGS, *VARIANTS[case], *rest, '-o', elf],
                               check=True)
            problems, compared = compare(cfi_rows, readelf, elf)
        if compared < 100:
            problems.append(f'only {compared} instructions had call frame information')
        print(f"{'not ok' if problems else 'ok'} {number} {name}")
        print(f'# {compared} instructions compared')
        for problem in problems[:20]:
            print(f'# {problem}')


if __name__ == '__main__':
    main()
