#!/usr/bin/env python3
"""Makes the buffers beside this script, and what libkdd decodes them to, from their texts.

Usage: make.py [--check] REFERENCE

REFERENCE is the folder of kcdata-types.tsv and kcdata-enums.tsv: XNU's types and libkdd's names for
them. From these tables and the format's rules alone, independently of the project's own code:

  types_*.json          is written: every type of the table, every field with a value of its own
  NAME.kcdata           is written: the bytes of NAME.json
  NAME.expected.json    is written: what libkdd makes of them

For damaged/NAME.json only the bytes are made. With --check nothing is written, and the exit status
is 1 if anything differs from what would be.
"""

import json
import pathlib
import re
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {'char': 1, 'i8': 1, 'u8': 1, 'i16': 2, 'u16': 2, 'i32': 4, 'u32': 4, 'i64': 8, 'u64': 8}
REST = 65535  # count of a field that takes the rest of its item

STRING_DESC, INT64_DESC = 1, 5
ARRAY, TYPEDEFINITION, BEGIN, END = 0x11, 0x12, 0x13, 0x14
NESTED, BUFFER_END, COMPRESSED = 0x38, 0xf19158ed, 0x434f4d50
HAS_PADDING = 0x80
LEGACY_ELEMENTS = {0x30: 20, 0x31: 24, 0x90a: 8, 0x90c: 8, 0x90b: 16, 0x90d: 16, 0x907: 4, 0x941: 48,
                   0x81a: 8}
SUBTYPE_FIELDS = [('kcs_flags', 'u8', 0, 1), ('kcs_elem_type', 'u8', 1, 1),
                  ('kcs_elem_offset', 'u16', 2, 1), ('kcs_elem_size', 'u32', 4, 1),
                  ('kcs_name', 'char', 8, 32)]
SUBTYPES = ['', 'char', 'i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64']
C_TYPES = ['', 'char', 'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'int64_t',
           'uint64_t']


# The reference tables.

class Field:
    def __init__(self, name, kind, offset, count, key=None, read_as=None, decoded=True):
        self.name, self.kind, self.offset, self.count = name, kind, offset, count
        self.key, self.read_as, self.decoded = key or name[:31], read_as or kind, decoded


class Type:
    def __init__(self, number, name):
        self.number, self.name, self.key, self.shape = number, name, '', 'opaque'
        self.fields, self.is_element, self.older = [], False, []

    def size(self):
        return max((f.offset + (0 if f.count == REST else SIZES[f.kind] * f.count)
                    for f in self.fields), default=0)


def shape_of(number, rows):
    first = rows[0]
    if STRING_DESC <= number <= INT64_DESC:
        return 'described'
    if number in (TYPEDEFINITION, NESTED):
        return {TYPEDEFINITION: 'typedef', NESTED: 'nested'}[number]
    if first['kind'] == 'marker':
        return 'buffer'
    if first['kind'] == 'container':
        return 'container'
    if first['libkdd_type_key'].startswith('Type_') or first['notes'].startswith('no built-in'):
        return 'opaque'
    if first['libkdd_type_key'].endswith('(merged, not printed)'):
        return 'merged'
    return 'basic' if first['libkdd_field_key'] == first['libkdd_type_key'] else 'structure'


def read_types(path):
    lines = path.read_text().splitlines()
    header = lines[0].split('\t')
    rows = {}
    for line in lines[1:]:
        row = dict(zip(header, line.split('\t')))
        if row['type_id'] != '-' and row['kind'] != 'alias':
            rows.setdefault(int(row['type_id'], 16), []).append(row)
    types = {}
    for number, group in rows.items():
        kind = types[number] = Type(number, group[0]['type_name'])
        if number == 0 or number == ARRAY or BEGIN <= number <= 0x2f or number == BUFFER_END:
            kind.shape = 'format'
            continue
        kind.shape = shape_of(number, group)
        kind.key = group[0]['libkdd_type_key'].split(' (')[0]
        kind.is_element = any('writer emits as array element' in row['notes'] for row in group)
        for row in group:
            if not row['field_name'] or row['field_type'].startswith('struct '):
                continue
            match = re.match(r'(\w+)(\[(\d*)\])?', row['field_type'])
            count = 1 if not match[2] else int(match[3]) if match[3] else REST
            if row['size'] == '0':  # a list whose length the fields before it tell
                continue
            in_header = re.search(r'header says (\w+)', row['notes'])
            read_as = re.search(r'libkdd (?:reads it|prints) as (\w+)', row['notes'])
            kind.fields.append(Field(row['field_name'], in_header[1] if in_header else match[1],
                                     int(row['offset']), count,
                                     row['libkdd_field_key'], read_as and read_as[1],
                                     row['libkdd_field_key'] != '(not decoded)'))
            older = re.search(r'older writers .*payload (\d+) bytes', row['notes'])
            if older:
                kind.older.append(int(older[1]))
        if group[0]['notes'].startswith('no built-in'):
            kind.fields = []  # the buffer brings its own description
    return types


def read_names(path):
    names = {}
    for line in path.read_text().splitlines()[1:]:
        _, name, value, _ = line.split('\t')
        names[name] = int(value, 0)
    return names


# From text to bytes.

def from_hex(text):
    return bytes.fromhex(text if isinstance(text, str) else ''.join(text))


def padding(size):
    return bytes(-size % 16)


class Encoder:
    def __init__(self, types, names):
        self.types, self.names = types, names
        self.numbers = {kind.name: kind.number for kind in types.values()}

    def type(self, value):
        return value if isinstance(value, int) else self.numbers.get(value) or int(value, 0)

    def number(self, value):
        if isinstance(value, int):
            return value
        total = 0
        for word in value.split('|'):
            word = word.strip()
            total |= self.names[word] if word in self.names else int(word, 0)
        return total

    def value(self, kind, count, value):
        if isinstance(value, dict):
            return from_hex(value['hex'])
        if kind == 'char':
            return value.encode() + (b'\0' if count == REST else b'')
        if count == 1:
            return (self.number(value) & (1 << 8 * SIZES[kind]) - 1).to_bytes(SIZES[kind], 'little')
        if isinstance(value, str):
            return from_hex(value)
        return b''.join(self.value(kind, 1, each) for each in value)

    def fields(self, layout, values):
        known = {name for name, *_ in layout}
        assert set(values) <= known, (set(values) - known)
        size = max((o + (0 if c == REST else SIZES[k] * c) for _, k, o, c in layout), default=0)
        out = bytearray(size)
        for name, kind, offset, count in layout:
            if name in values:
                data = self.value(kind, count, values[name])
                out[offset:offset + len(data)] = data
        return bytes(out)

    def layout(self, number):
        kind = self.types.get(number)
        return [(f.name, f.kind, f.offset, f.count) for f in kind.fields] if kind else []

    def item(self, item):
        if 'bytes' in item:
            return from_hex(item['bytes'])
        if 'zeros' in item:
            return bytes(item['zeros'])
        if 'container_end' in item:
            payload = from_hex(item.get('hex', ''))
            return self.finish(item, payload, b'', lambda pad: (END, item['container_end']))
        if 'container' in item:
            payload = struct.pack('<I', self.type(item['container']))
            out = self.finish(item, payload, padding(4), lambda pad: (BEGIN, item['id']))
            if 'items' in item:
                out += b''.join(map(self.item, item['items'])) + struct.pack('<IIQ', END, 0, item['id'])
            return out
        if 'array' in item:
            return self.array(item)
        number = self.type(item['type'])
        payload = b''
        if 'fields' in item:
            values = dict(item['fields'])
            elements = values.pop('kct_elements', [])
            payload = self.fields(self.layout(number), values)
            payload += b''.join(self.fields(SUBTYPE_FIELDS, each) for each in elements)
        elif 'hex' in item:
            payload = from_hex(item['hex'])
        elif 'items' in item:
            payload = b''.join(map(self.item, item['items']))
        tail = from_hex(item.get('tail', ''))
        if 'length' in item:
            head = item['length'] - len(tail)
            payload = payload[:head].ljust(head, b'\0')
        payload += tail
        marked = 0 if number in (BUFFER_END, TYPEDEFINITION) else HAS_PADDING
        return self.finish(item, payload, padding(len(payload)), lambda pad: (number, marked | pad))

    def array(self, item):
        number = self.type(item['array'])
        layout = self.layout(number)
        elements = []
        for each in item['elements']:
            if isinstance(each, dict) and 'hex' in each:
                data = from_hex(each['hex'])
            elif isinstance(each, dict):
                data = self.fields(layout, each)
            else:
                data = self.fields(layout, {layout[0][0]: each})
            size = item.get('element_size', len(data))
            elements.append(data[:size].ljust(size, b'\0'))
        payload = b''.join(elements)
        count = item.get('count', len(elements))
        return self.finish(item, payload, padding(len(payload)),
                           lambda pad: (self.type(item.get('type', 0x20 + pad)), number << 32 | count))

    def finish(self, item, payload, pad, header):
        if 'padding' in item:
            pad = from_hex(item['padding'])
        number, flags = header(len(pad))
        flags = item.get('flags', flags)
        flags = flags if isinstance(flags, int) else int(flags, 0)
        return struct.pack('<IIQ', number, item.get('size', len(payload) + len(pad)), flags) + payload + pad


# From bytes to what libkdd prints.

class Decoder:
    def __init__(self, types):
        self.types = types
        self.defined = {}

    def find(self, number):
        kind = self.types.get(number)
        if kind is None or (kind.shape == 'opaque' and number in self.defined):
            return self.defined.get(number)
        return kind

    @staticmethod
    def text(data):
        return data.split(b'\0')[0].decode()

    def value(self, kind, offset, count, payload):
        """The value, or None: left out."""
        size = SIZES[kind]
        if len(payload) <= offset:
            return None
        n = min(count, (len(payload) - offset) // size)
        if n == 0:
            return None
        data = payload[offset:offset + n * size]
        if kind == 'char':
            return self.text(data)
        values = [int.from_bytes(data[i:i + size], 'little', signed=kind[0] == 'i')
                  for i in range(0, len(data), size)]
        return values[0] if n == 1 else values

    def structure(self, kind, payload):
        out = {}
        for field in kind.fields:
            if field.decoded:
                value = self.value(field.read_as, field.offset, field.count, payload)
                if value is not None:
                    out[field.key] = value
        return out

    @staticmethod
    def put(parent, key, value):
        if key in parent:
            assert isinstance(parent[key], list) and isinstance(value, list), f'repeated key {key}'
            parent[key] = parent[key] + value
        else:
            parent[key] = value

    def buffer(self, data):
        magic, size, _ = struct.unpack_from('<IIQ', data)
        if magic == COMPRESSED:
            return self.buffer(self.inflate(data))
        out = {}
        offset = self.items(data, 16 + size, out, True, magic)
        return {self.types[magic].key: out}, offset

    def inflate(self, data):
        numbers, offset = {}, 16
        for _ in range(3):
            _, size, _ = struct.unpack_from('<IIQ', data, offset)
            numbers[self.text(data[offset + 16:offset + 48])] = struct.unpack_from('<Q', data,
                                                                                   offset + 48)[0]
            offset += 16 + size
        inner = data[offset:offset + 16]
        stream = data[offset + 16:offset + 16 + numbers['kcd_c_totalout']]
        items = zlib.decompress(stream)
        assert len(items) == numbers['kcd_c_totalin'] and numbers['kcd_c_type'] == 1
        return inner + items + struct.pack('<IIQ', BUFFER_END, 0, 0)

    def items(self, data, offset, parent, top, magic, open_id=None):
        """Decodes up to the end of the container or buffer; returns the offset behind it."""
        containers = {}
        while True:
            number, size, flags = struct.unpack_from('<IIQ', data, offset)
            payload = data[offset + 16:offset + 16 + size]
            assert len(payload) == size
            offset += 16 + size
            if number == BUFFER_END:
                assert open_id is None
                break
            if number == magic:
                continue
            if number == BEGIN:
                kind = struct.unpack_from('<I', payload)[0]
                known = self.types.get(kind)
                name = known.key if known and known.shape == 'container' else str(kind)
                inner = {}
                offset = self.items(data, offset, inner, False, magic, flags)
                assert str(flags) not in containers.setdefault(name, {})
                containers[name][str(flags)] = inner
            elif number == END:
                assert flags == open_id
                break
            elif number == ARRAY or 0x20 <= number <= 0x2f:
                self.array(number, flags, payload, parent)
            else:
                self.plain(number, self.payload_of(number, flags, payload), parent, top)
        for name, inner in containers.items():
            assert name not in parent
            parent[name] = inner
        return offset

    @staticmethod
    def payload_of(number, flags, data):
        if flags & 0x8f == 0 and (number, len(data)) in ((0x906, 112), (0x908, 32)):
            return data[:-8]
        return data[:max(0, len(data) - (flags & 0xf))]

    def array(self, number, flags, data, parent):
        element, count = flags >> 32, flags & 0xffffffff
        if count == 0:
            assert not data
            size = 0
        elif number == ARRAY:
            size = LEGACY_ELEMENTS[element]
            assert count <= len(data) // size and len(data) % count < 16
        else:
            pad = number & 0xf
            assert (len(data) - pad) % count == 0
            size = (len(data) - pad) // count
        kind = self.find(element)
        values = []
        for i in range(count):
            part = data[i * size:(i + 1) * size]
            if kind and kind.shape in ('structure', 'merged', 'typedef'):
                values.append(self.structure(kind, part))
            elif kind and kind.shape == 'basic':
                field = kind.fields[0]
                values.append(self.value(field.read_as, field.offset, field.count, part))
            else:
                values.append(self.value('u8', 0, REST, part))
            assert values[-1] is not None
        key = f'Type_{element:#x}'
        if kind and kind.shape == 'basic':
            key = kind.fields[0].key
        elif kind and kind.shape in ('structure', 'merged', 'typedef'):
            key = kind.key
        self.put(parent, key, values)

    def plain(self, number, payload, parent, top):
        kind = self.find(number)
        shape = kind.shape if kind else 'opaque'
        if shape == 'typedef' and not top:
            shape = 'structure'
        if shape == 'basic':
            field = kind.fields[0]
            value = self.value(field.read_as, field.offset, field.count, payload)
            if value is not None:
                self.put(parent, field.key, value)
        elif shape == 'structure':
            self.put(parent, kind.key, self.structure(kind, payload))
        elif shape == 'merged':
            for key, value in self.structure(kind, payload).items():
                self.put(parent, key, value)
        elif shape == 'described':
            field = kind.fields[1]
            value = self.value(field.read_as, field.offset, field.count, payload)
            if value is not None:
                self.put(parent, self.text(payload[:32]), value)
        elif shape == 'typedef':
            self.define(payload, parent)
        elif shape == 'nested':
            for key, value in self.buffer(payload)[0].items():
                self.put(parent, key, value)
        else:
            value = self.value('u8', 0, REST, payload)
            if value is not None:
                self.put(parent, f'Type_{number:#x}', value)

    def define(self, payload, parent):
        number, count = struct.unpack_from('<II', payload)
        name = self.text(payload[8:40])[:31]
        fields, lines, flags_seen = [], [], 0
        for offset in range(40, len(payload) - 39, 40):
            flags, code, at, size = struct.unpack_from('<BBHI', payload, offset)
            field_name = self.text(payload[offset + 8:offset + 40])
            elements, total, suffix = 1, size, ''
            if flags & 1:
                elements = size >> 16
                total = elements * (size & 0xffff)
                suffix = f'[{elements}]'
            flags_seen |= flags
            fields.append(Field(field_name, SUBTYPES[code], at, elements))
            lines.append(f'[{at},{total}] {C_TYPES[code]}  {field_name}{suffix};')
        single = len(fields) == 1 and not flags_seen & 2
        self.put(parent, f'typedef[{fields[0].key if single else name}]',
                 {'typeID': number, 'numOfFields': count, 'name': name, 'fields': lines})
        # libkdd files a single field under the code of its own type.
        if single:
            number, name = SUBTYPES.index(fields[0].kind), fields[0].key
        if number not in self.defined:
            kind = self.defined[number] = Type(number, name)
            kind.key, kind.fields = name, fields
            kind.shape = 'basic' if single else 'merged' if flags_seen & 4 else 'structure'


# The texts that the table alone determines.

def pattern(kind, number, offset, index):
    """A value that tells where it comes from: no two neighbours alike, half of them above the
    middle of their range."""
    size = SIZES[kind]
    data = bytes((number * 29 + offset * 7 + index * 13 + i * 31 + 5) & 0xff for i in range(size))
    return int.from_bytes(data, 'little', signed=kind[0] == 'i')


def values_of(kind):
    values = {}
    for field in kind.fields:
        if field.kind == 'char':
            room = 40 if field.count == REST else field.count - 1
            values[field.name] = f'{field.name} of {kind.number:#x}'[:room]
        elif field.count == 1:
            values[field.name] = pattern(field.kind, kind.number, field.offset, 0)
        elif field.kind == 'u8':
            values[field.name] = ''.join(f'{pattern("u8", kind.number, field.offset, i):02x}'
                                         for i in range(min(field.count, 48)))
        else:
            values[field.name] = [pattern(field.kind, kind.number, field.offset, i)
                                  for i in range(field.count)]
    return values


def items_of(kind):
    if not kind.fields:
        size = 21
        return [{'type': kind.name,
                 'hex': ''.join(f'{pattern("u8", kind.number, i, 0):02x}' for i in range(size))}]
    values = values_of(kind)
    if kind.is_element:
        second = {name: value for name, value in values.items() if not isinstance(value, int)}
        items = [{'array': kind.name, 'elements': [values, second]}]
        items += [{'array': kind.name, 'element_size': size,
                   'elements': [{f.name: values[f.name] for f in kind.fields if f.offset < size}]}
                  for size in kind.older]
        return items
    items = [{'type': kind.name, 'fields': values}]
    items += [{'type': kind.name, 'length': size,
               'fields': {f.name: values[f.name] for f in kind.fields if f.offset < size}}
              for size in kind.older]
    return items


def keys_of(kind):
    if kind.shape == 'merged':
        return {f.key for f in kind.fields}
    if kind.shape == 'basic':
        return {kind.fields[0].key}
    return {kind.key} if kind.shape == 'structure' else set()


RANGES = {
    'types_generic': ('KCDATA_BUFFER_BEGIN_CRASHINFO', 0x1, 0x7ff),
    'types_crashinfo': ('KCDATA_BUFFER_BEGIN_CRASHINFO', 0x800, 0x8ff),
    'types_stackshot': ('KCDATA_BUFFER_BEGIN_STACKSHOT', 0x900, 0x93f),
    'types_stackshot_later': ('KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT', 0x940, 0x9ff),
    'types_btinfo': ('KCDATA_BUFFER_BEGIN_CRASHINFO', 0xa00, 0xaff),
    'types_exit_reason': ('KCDATA_BUFFER_BEGIN_OS_REASON', 0x1000, 0x103f),
    'types_xnupost': ('KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG', 0x1040, 0x105f),
}


def text_of_types(types, magic, first, last):
    lines = [json.dumps({'type': magic})]
    used = set()
    for number in sorted(n for n in types if first <= n <= last):
        kind = types[number]
        if kind.shape in ('format', 'buffer', 'typedef', 'nested'):
            continue
        if kind.shape == 'container':
            lines.append(json.dumps({'container': kind.name, 'id': number, 'items': []}))
            continue
        for index, item in enumerate(items_of(kind)):
            # What would collide stands in a container of its own.
            if used & keys_of(kind) or index > 0:
                item = {'container': 'STACKSHOT_KCCONTAINER_PORTLABEL', 'id': number * 16 + index,
                        'items': [item]}
            used |= keys_of(kind)
            lines.append(json.dumps(item))
    lines.append(json.dumps({'type': 'KCDATA_TYPE_BUFFER_END'}))
    return '[\n' + ',\n'.join(lines) + '\n]\n'


def parse(text):
    return json.loads(re.sub(r'^\s*//.*$', '', text, flags=re.M))


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ['--check']
    reference = pathlib.Path(arguments[-1])
    if not (reference / 'kcdata-types.tsv').exists():
        print(f'skipped: no reference tables in {reference}')
        return 77
    types = read_types(reference / 'kcdata-types.tsv')
    encoder = Encoder(types, read_names(reference / 'kcdata-enums.tsv'))
    different = []

    def write(path, data):
        if check:
            if not path.exists() or path.read_bytes() != data:
                different.append(path.relative_to(HERE))
        else:
            path.write_bytes(data)

    for name, (magic, first, last) in RANGES.items():
        write(HERE / f'{name}.json', text_of_types(types, magic, first, last).encode())
    count = 0
    for path in sorted(HERE.rglob('*.json')):
        if path.name.endswith('.expected.json'):
            continue
        try:
            data = b''.join(map(encoder.item, parse(path.read_text())))
            write(path.with_suffix('.kcdata'), data)
            if path.parent == HERE:
                expected, _ = Decoder(types).buffer(data)
                text = json.dumps(expected, indent=1, ensure_ascii=False) + '\n'
                write(path.with_suffix('.expected.json'), text.encode())
        except Exception:
            print(f'in {path.name}:', file=sys.stderr)
            raise
        count += 1
    print(f'{count} texts')
    for path in different:
        print(f'{path} is not what make.py makes of the reference')
    return 1 if different else 0


if __name__ == '__main__':
    sys.exit(main())
