// The wait graph: an arrow goes from who waits to what it waits for, and from there to who must act.
//
// Nearly every node has one arrow out of it, so what hangs together is a tree that ends in a head or
// in a cycle. Trees grow from the head on the right to the left; a cycle stands in two columns, one
// read downwards and one upwards, with those behind it on their outer sides.

const cell = { width: 214, height: 46, gap: 46, row: 60, object: 32 };
const foldedFrom = 8;

const graphNodes = new Map();
const graphEdges = [];

function graphNode(kind, index) {
  const key = `${kind}${index}`;
  if (!graphNodes.has(key)) graphNodes.set(key, { key, kind, index, out: [], into: [], stuck: false, height: 0 });
  return graphNodes.get(key);
}
function graphEdge(from, to, label, { stuck = false, loose = false } = {}) {
  let edge = from.out.find((each) => each.to === to);
  if (!edge) {
    edge = { from, to, label, stuck, loose };
    from.out.push(edge);
    to.into.push(edge);
    graphEdges.push(edge);
  }
  edge.stuck ||= stuck;
}

const kindLetter = { thread: "t", task: "p", object: "o", queue: "q" };

function buildGraph() {
  for (const thread of threads) {
    const wait = thread.wait;
    if (!wait) continue;
    const stuck = isStuck(thread), loose = wait.loose;
    let from = graphNode("t", thread.index);
    if (wait.object !== undefined) {
      const object = graphNode("o", wait.object);
      graphEdge(from, object, wait.verb, { stuck });
      from = object;
    }
    if (wait.blocker) graphEdge(from, graphNode(kindLetter[wait.blocker], wait.by), wait.joint || wait.verb, { stuck, loose });
  }
  // A task acts by its threads: those that wait themselves are how a cycle closes.
  const acting = new Set(threads.filter(({ wait }) => wait?.blocker === "task" && !wait.creator).map(({ wait }) => wait.by));
  for (const node of [...graphNodes.values()])
    if (node.kind === "p" && acting.has(node.index))
      for (const thread of tasks[node.index].threads)
        if (graphNodes.has(`t${thread.index}`))
          graphEdge(node, graphNode("t", thread.index), "any of its threads", { stuck: isStuck(thread), loose: true });
  for (const edge of graphEdges)
    if (edge.stuck) edge.from.stuck = edge.to.stuck = true;
  for (const node of graphNodes.values())
    if (node.kind === "t") node.stuck ||= isStuck(threads[node.index]);
  for (const head of capture.heads) {
    const node = graphNodes.get(`${kindLetter[head.kind]}${head.index}`);
    if (node) node.head = head;
  }
}

// What hangs together, the most pressing first.
function components() {
  const seen = new Set(), list = [];
  for (const first of graphNodes.values()) {
    if (seen.has(first)) continue;
    const nodes = [first];
    seen.add(first);
    for (const node of nodes)
      for (const next of [...node.out.map((e) => e.to), ...node.into.map((e) => e.from)])
        if (!seen.has(next)) {
          seen.add(next);
          nodes.push(next);
        }
    list.push({ nodes, stuck: nodes.some((node) => node.stuck),
      blocked: nodes.some((node) => node.kind !== "o" && node.into.length > 0) });
  }
  return list.sort((a, b) => b.stuck - a.stuck || b.nodes.length - a.nodes.length);
}

function showWaits() {
  buildGraph();
  const place = body("waits");
  if (!graphNodes.size) {
    place.append(make("p", { class: "note" }, capture.no_wait_infos
      ? "The capture does not tell what threads wait for."
      : "No thread waits for anything that is recorded."));
    return;
  }
  const all = components();
  const known = all.filter((each) => each.blocked), rest = all.filter((each) => !each.blocked);
  const graphs = make("div", { class: "graphs" });
  place.append(make("p", { class: "legend" },
    make("span", {}, "An arrow leads from who waits to what it waits for, and on to who must act."),
    capture.deadlocks.length ? make("span", {}, make("i", { class: "dot stuck" }), "deadlock") : "",
    capture.heads.length ? make("span", {}, "Bold frame: head of a chain") : "",
    graphEdges.some((edge) => edge.loose) ? make("span", {}, "Dashed: others may act as well") : ""), graphs);
  const show = (place, list) => paged(place, list, (part) => {
    place.append(...part.map(figure));
    markGraph();
  }, 12);
  show(graphs, known);
  if (!known.length) graphs.append(make("p", { class: "note" }, "No thread is known to wait for another one."));
  if (rest.length)
    place.append(make("button", { type: "button", class: "more", id: "all-waits", onclick: (event) => {
      event.target.remove();
      place.append(make("h3", { class: "panel" }, "Nobody is known to hold what these wait for"));
      show(place.appendChild(make("div", { class: "graphs" })), rest);
    } }, `Also ${plural(rest.reduce((sum, each) => sum + each.nodes.filter((n) => n.kind === "t").length, 0), "thread")} that wait for what nobody is known to hold`));
  markGraph();
}

function figure(component) {
  const scroll = make("div", { class: "scroll" });
  const unfolded = new Set();
  const redraw = () => scroll.replaceChildren(drawComponent(component, unfolded, redraw));
  redraw();
  const waiting = component.nodes.filter((node) => node.kind === "t" && threads[node.index].wait).length;
  const head = component.nodes.filter((node) => node.head).sort((a, b) => b.head.behind - a.head.behind)[0];
  const stuck = component.nodes.filter((node) => node.kind === "t" && node.stuck).length;
  const caption = stuck ? `Deadlock of ${plural(stuck, "thread")}` + (waiting > stuck ? `, ${waiting - stuck} more behind` : "")
    : head?.head.behind > 1 ? [`${plural(head.head.behind, "thread")} behind `, headLink(head.head)]
    : "";
  return make("figure", { class: stuck ? "stuck" : undefined }, caption ? make("figcaption", {}, caption) : "", scroll);
}

// Waiters of one thing that nobody waits for stand as one node, if they are many.
function fold(nodes, unfolded) {
  const folds = new Map(), hidden = new Set();
  for (const node of nodes) {
    const leaves = node.into.map((e) => e.from).filter((from) => from.kind === "t" && !from.into.length && from.out.length === 1 && !from.stuck);
    if (leaves.length < foldedFrom || unfolded.has(node.key)) continue;
    leaves.forEach((leaf) => hidden.add(leaf));
    folds.set(node, { key: `f${node.key}`, kind: "f", of: node, leaves, out: [], into: [] });
  }
  return { folds, hidden };
}

function drawComponent(component, unfolded, redraw) {
  const { folds, hidden } = fold(component.nodes, unfolded);
  const nodes = component.nodes.filter((node) => !hidden.has(node));
  const inside = new Set(nodes);
  // The one arrow that a node is placed by: of several the one in a deadlock.
  const next = new Map();
  for (const node of nodes) {
    const edge = [...node.out].sort((a, b) => b.stuck - a.stuck).find((e) => inside.has(e.to));
    if (edge) next.set(node, edge.to);
  }
  const ring = findRings(nodes, next);
  const behind = new Map(nodes.map((node) => [node, []]));
  for (const [from, to] of next)
    if (!(ring.get(from) && ring.get(from) === ring.get(to))) behind.get(to).push(from);
  for (const [node, one] of folds) behind.get(node).push(one);

  // Chains may be longer than calls can be deep: first who is nearer to the end, then who is behind.
  const order = nodes.filter((node) => ring.has(node) || !next.has(node));
  for (const node of order) order.push(...(behind.get(node) ?? []));
  const heights = new Map();
  const heightBehind = (node) => (behind.get(node) ?? []).reduce((sum, each) => sum + heights.get(each), 0);
  for (const node of order.toReversed()) heights.set(node, Math.max(cell.row, heightBehind(node)));
  const heightOf = (node) => heights.get(node);
  const at = new Map();
  const put = (root, column, top, side) => {
    const left = [{ node: root, column, top }];
    for (const { node, column, top } of left) {
      const height = heightOf(node);
      at.set(node, { column, y: top + height / 2 });
      let y = top + (height - heightBehind(node)) / 2;
      for (const each of behind.get(node) ?? []) {
        left.push({ node: each, column: column + side, top: y });
        y += heightOf(each);
      }
    }
  };
  let top = 0;
  for (const one of new Set(ring.values())) top += putRing(one, top, heightOf, put);
  for (const node of nodes)
    if (!next.has(node)) {
      put(node, 0, top, -1);
      top += heightOf(node);
    }

  let left = 0, right = 0;
  for (const { column } of at.values()) {
    left = Math.min(left, column);
    right = Math.max(right, column);
  }
  const pitch = cell.width + cell.gap;
  const width = (right - left) * pitch + cell.width + 4, height = top + 4;
  for (const place of at.values()) place.x = (place.column - left) * pitch + cell.width / 2 + 2;
  const picture = draw("svg", { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Wait graph" });
  for (const node of at.keys())
    for (const edge of node.out)
      if (at.has(edge.to)) picture.append(...arrow(at.get(node), at.get(edge.to), node, edge.to, edge));
  for (const [node, one] of folds) picture.append(...arrow(at.get(one), at.get(node), one, node, { stuck: false, label: "waits for" }));
  for (const [node, place] of at)
    picture.append(node.kind === "f" ? foldBox(node, place, () => {
      unfolded.add(node.of.key);
      redraw();
      markGraph();
    }) : nodeBox(node, place));
  return picture;
}

// By node: the cycle it is in, as a list in the order of the arrows.
function findRings(nodes, next) {
  const state = new Map(), ring = new Map();
  for (const first of nodes) {
    const path = [];
    let node = first;
    for (; node && !state.has(node); node = next.get(node)) {
      state.set(node, first);
      path.push(node);
    }
    if (node && state.get(node) === first) {
      const cycle = path.slice(path.indexOf(node));
      // Read from a thread on.
      while (cycle.length > 1 && cycle[0].kind !== "t" && cycle.some((each) => each.kind === "t")) cycle.push(cycle.shift());
      cycle.forEach((each) => ring.set(each, cycle));
    }
  }
  return ring;
}

// Two columns; the shorter one is stretched to the height of the other. Returns the height.
function putRing(ring, top, heightOf, put) {
  const half = Math.ceil(ring.length / 2);
  const columns = [ring.slice(0, half), ring.slice(half).reverse()];
  const heights = columns.map((column) => column.reduce((sum, node) => sum + heightOf(node), 0));
  const height = Math.max(...heights);
  columns.forEach((column, side) => {
    const extra = column.length ? (height - heights[side]) / column.length : 0;
    let y = top;
    for (const node of column) {
      put(node, side, y + extra / 2, side ? 1 : -1);
      y += heightOf(node) + extra;
    }
  });
  return height;
}

function sizeOf(node) {
  const small = node.kind === "o" || node.kind === "q";
  return { w: cell.width / 2, h: (small ? cell.object : cell.height) / 2 };
}
function arrow(a, b, from, to, edge) {
  const s = sizeOf(from), t = sizeOf(to);
  const kind = `${edge.stuck ? " stuck" : ""}${edge.loose ? " loose" : ""}`;
  let path, tip, turn;
  if (from === to) {
    path = `M${a.x - 20} ${a.y - s.h} C${a.x - 20} ${a.y - s.h - 22} ${a.x + 20} ${a.y - s.h - 22} ${a.x + 20} ${a.y - s.h - 6}`;
    tip = [a.x + 20, a.y - s.h], turn = 90;
  } else if (a.column === b.column) {
    const down = Math.sign(b.y - a.y) || 1;
    const y1 = a.y + down * s.h, y2 = b.y - down * t.h;
    path = `M${a.x} ${y1} L${b.x} ${y2 - down * 6}`;
    tip = [b.x, y2], turn = down > 0 ? 90 : -90;
  } else {
    const right = Math.sign(b.x - a.x);
    // Two nodes that wait for each other: an arrow each way.
    const shift = to.out.some((each) => each.to === from) ? right * 7 : 0;
    const x1 = a.x + right * s.w, x2 = b.x - right * t.w, y1 = a.y + shift, y2 = b.y + shift;
    const bend = Math.max(14, Math.abs(x2 - x1) / 2);
    path = `M${x1} ${y1} C${x1 + right * bend} ${y1} ${x2 - right * bend} ${y2} ${x2 - right * 6} ${y2}`;
    tip = [x2, y2], turn = right > 0 ? 0 : 180;
  }
  return [draw("path", { class: `edge${kind}`, d: path, "data-edge": `${from.key}>${to.key}` }, draw("title", {}, edge.label)),
    draw("path", { class: `tip${edge.stuck ? " stuck" : ""}`, d: "M0 0 L-8 -4 L-8 4 Z", transform: `translate(${tip[0]} ${tip[1]}) rotate(${turn})` })];
}

const fit = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function nodeBox(node, place) {
  const { w, h } = sizeOf(node);
  let lines, label, classes = "";
  if (node.kind === "t") {
    const thread = threads[node.index];
    const where = thread.absent ? "not in the capture" : taskTitle(tasks[thread.task]);
    const state = thread.absent || thread.wait ? "" : ` · ${activity(thread) === "running" ? `on CPU ${thread.cpu}` : activity(thread)}`;
    lines = [threadName(thread), where + state];
    label = `${threadName(thread)}, ${where}: ${activityText(thread)}`;
    classes = "thread-node";
  } else if (node.kind === "p") {
    const task = tasks[node.index];
    lines = [taskTitle(task), task.absent ? "not in the capture" : "any of its threads"];
    label = lines.join(", ");
    classes = "task-node";
  } else {
    const object = objects[node.index];
    lines = [node.kind === "q" ? `work queue ${queues[node.index]}` : objectTitle(object)];
    label = node.kind === "q" ? lines[0] : `${lines[0]}, ${object.address}`;
    classes = "object";
  }
  const group = draw("g", { class: `node ${classes}${node.stuck ? " stuck" : ""}${node.head ? " head" : ""}`, tabindex: 0, role: "button",
    "aria-label": label, "data-node": node.key, transform: `translate(${place.x - w} ${place.y - h})` },
    draw("title", {}, label),
    draw("rect", { class: "box", width: 2 * w, height: 2 * h, rx: classes === "object" ? h : 6 }));
  if (lines.length === 1) {
    group.append(draw("text", { class: "code", x: w, y: h + 4, "text-anchor": "middle" }, fit(lines[0], 29)));
  } else {
    const dotKind = node.kind === "t" ? activity(threads[node.index]) : "";
    const colour = { stuck: "--stuck", running: "--running", runnable: "--runnable" }[dotKind] ?? "--waiting";
    if (node.kind === "t") {
      const mark = draw("circle", { cx: 15, cy: 17, r: 4 });
      mark.style.setProperty("fill", `var(${colour})`);
      group.append(mark);
    }
    const badge = node.head ? `${node.head.behind} behind` : "";
    group.append(draw("text", { x: node.kind === "t" ? 26 : 12, y: 21, "font-weight": 550 }, fit(lines[0], badge ? 17 : 24)),
      draw("text", { class: "small", x: node.kind === "t" ? 26 : 12, y: 37 }, fit(lines[1], 29)));
    if (badge) group.append(draw("text", { class: "badge", x: 2 * w - 10, y: 20, "text-anchor": "end" }, badge));
  }
  const open = () => {
    if (node.kind !== "q") location.hash = `#${node.key}`;
  };
  group.addEventListener("click", open);
  group.addEventListener("keydown", (event) => graphKey(event, node, open));
  return group;
}

function foldBox(fold, place, unfold) {
  const { w, h } = sizeOf(fold);
  const title = plural(fold.leaves.length, "thread");
  const group = draw("g", { class: "node fold", tabindex: 0, role: "button", "aria-label": `${title}; show each`, "data-members": fold.leaves.map((leaf) => leaf.key).join(" "),
    transform: `translate(${place.x - w} ${place.y - h})` },
    draw("title", {}, fold.leaves.slice(0, 30).map((leaf) => threadName(threads[leaf.index])).join("\n")),
    draw("rect", { class: "box", x: 4, y: -4, width: 2 * w - 4, height: 2 * h, rx: 6 }),
    draw("rect", { class: "box", width: 2 * w - 4, height: 2 * h, rx: 6 }),
    draw("text", { x: 14, y: 21, "font-weight": 550 }, title),
    draw("text", { class: "small", x: 14, y: 37 }, "show each"));
  group.addEventListener("click", unfold);
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    unfold();
  });
  return group;
}

// Right or Enter follow the arrows; Left goes back to who waits.
function graphKey(event, node, open) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open();
    return;
  }
  const next = { ArrowRight: () => node.out[0]?.to, ArrowLeft: () => node.into[0]?.from }[event.key];
  if (!next) return;
  event.preventDefault();
  const to = next();
  if (to) document.querySelector(`[data-node="${to.key}"]`)?.focus();
}

// Threads the search finds stand out.
function markGraph() {
  for (const group of document.querySelectorAll("#waits .thread-node"))
    group.classList.toggle("match", Boolean(search.found?.has(threads[group.dataset.node.slice(1)])));
}
