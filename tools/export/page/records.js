// The items of the buffer as `stackshot dump` shows them, as a tree. The text is packed, and nothing of
// it is made before it is opened.

async function showRecords() {
  const place = body("records");
  const tree = make("div", { class: "records" });
  let text;
  try {
    const unpacked = await unpack("dump");
    text = unpacked && new TextDecoder().decode(unpacked);
  } catch (error) {
    place.append(make("p", { class: "note" }, `The records cannot be unpacked here (${error.message}). `, make("code", {}, "stackshot dump"), " shows them."));
    return;
  }
  if (text === undefined) {
    place.append(make("p", { class: "note" }, "The capture is too large for its records to be in this page. ", make("code", {}, "stackshot dump"), " shows them."));
    return;
  }
  place.append(make("div", { class: "row controls" },
    make("span", { class: "note" }, "Offset, item and fields, as ", make("code", {}, "stackshot dump"), " shows them."),
    make("button", { type: "button", onclick: save }, "Save the capture")), tree);
  const lines = text.split("\n");
  lines.pop();
  records.lines = lines;
  addRecords(tree, 0, lines.length);
}
const records = { lines: [] };

// An offset of 8 digits or more, two blanks, and two more for each level.
function levelOf(line) {
  const offset = line.indexOf(" ");
  let at = offset;
  while (line[at] === " ") ++at;
  return (at - offset - 2) >> 1;
}

// Lines from `first` to before `last`: each with what is indented below it.
function addRecords(parent, first, last) {
  const rows = [];
  const level = levelOf(records.lines[first] ?? "");
  for (let i = first; i < last; ) {
    let end = i + 1;
    while (end < last && levelOf(records.lines[end]) > level) ++end;
    rows.push([i, end]);
    i = end;
  }
  paged(parent, rows, (part) => {
    for (const [from, to] of part) {
      const line = records.lines[from];
      const content = recordLine(line, level);
      // Of containers the end has no inside, and of an empty one nothing is left to open.
      if (to === from + 1) parent.append(make("pre", {}, content));
      else parent.append(lazy({}, [content, recordName(from, to)], () => {
        const inside = make("div", { class: "inside" });
        addRecords(inside, from + 1, to);
        return inside;
      }));
    }
  });
}
function recordLine(line, level) {
  const offset = line.slice(0, line.indexOf(" "));
  const text = shown(line.slice(offset.length + 2 + 2 * level));
  return [make("span", { class: "offset" }, `${offset}  `), make("span", { class: text.startsWith("!!") ? "wrong" : undefined }, text)];
}
// What a container is of, so that it need not be opened to find one.
function recordName(from, to) {
  if (!records.lines[from].includes("CONTAINER_BEGIN")) return "";
  const level = levelOf(records.lines[from + 1] ?? "");
  for (let i = from + 1; i < Math.min(to, from + 60); ++i) {
    const name = /(?:ts_p_comm|tts_p_comm|pth_name)\s+(".*")/.exec(records.lines[i]);
    if (name && levelOf(records.lines[i]) <= level + 1) return make("span", { class: "quiet" }, `  ${shown(name[1])}`);
  }
  return "";
}

async function save() {
  const content = await unpack("capture");
  const link = make("a", { download: `${capture.place.split("/").pop().replace(/\.kcdata$|[^\w.-]+/g, "") || "capture"}.kcdata`,
    href: URL.createObjectURL(new Blob([content], { type: "application/octet-stream" })) });
  link.click();
  URL.revokeObjectURL(link.href);
}
