// All stacks merged, outermost function on top; the width of a frame is how many threads are in it.

const flameRow = 21;
let flame;

function showFlame() {
  const choice = make("select", { "aria-label": "Threads in the flame graph", onchange: () => {
    const index = choice.value === "" ? undefined : Number(choice.value);
    flame.top = flameTree(index === undefined ? captured : tasks[index].threads);
    zoomFlame(flame.top);
  } }, make("option", { value: "" }, "All tasks"),
    capturedTasks.map((task) => make("option", { value: task.index }, `${taskTitle(task)}, ${plural(task.threads.length, "thread")}`)));
  flame = {
    top: flameTree(captured),
    chart: make("div", { class: "flame-chart", role: "tree", "aria-label": "Flame graph" }),
    status: make("p", { class: "flame-status", "aria-live": "polite" }),
    reset: make("button", { type: "button", hidden: true, onclick: () => zoomFlame(flame.top) }, "Zoom out"),
  };
  flame.chart.addEventListener("keydown", flameKey);
  body("flame").append(make("div", { class: "row controls" }, choice, flame.reset,
    make("span", { class: "legend" }, legendItem("fill-work", "threads on a CPU or runnable"),
      legendItem("fill-idle", "threads that wait"),
      capture.deadlocks.length ? legendItem("fill-flame-stuck", "deadlocked threads") : "")),
    make("div", { class: "flame" }, flame.status, flame.chart));
  // How much of a name fits depends on the width.
  let width = flame.chart.clientWidth;
  new ResizeObserver(() => {
    if (flame.chart.clientWidth === width) return;
    width = flame.chart.clientWidth;
    zoomFlame(flame.focus);
  }).observe(flame.chart);
  zoomFlame(flame.top);
}
function legendItem(kind, text) {
  return make("span", {}, draw("svg", { width: 14, height: 10 }, draw("rect", { class: kind, width: 14, height: 10, rx: 2 })), text);
}

// The names of a thread's frames, outermost first.
function stackNames(thread) {
  const names = [];
  for (const index of [...(thread.kernel ?? []), ...(thread.user_stack ?? [])]) {
    const frame = frames[index];
    if (!frame.functions.length)
      names.push([frame.address, frame.image === undefined ? "" : imagePlace(frame)]);
    for (let k = 0; k < frame.functions.length; k += 2)
      names.push([frame.functions[k], frame.functions[k + 1]]);
  }
  return names.reverse();
}

function flameNode(name, place, parent) {
  return { name, place, parent, depth: parent ? parent.depth + 1 : 0, count: 0, busy: 0, stuck: 0, children: new Map() };
}
function flameTree(list) {
  const top = flameNode("all", "", undefined);
  for (const thread of list) {
    let node = top;
    const count = (at) => {
      ++at.count;
      at.busy += thread.activity === "running" || thread.activity === "runnable";
      at.stuck += isStuck(thread);
    };
    count(top);
    for (const [name, place] of stackNames(thread)) {
      let child = node.children.get(name);
      if (!child) node.children.set(name, child = flameNode(name, place, node));
      count(node = child);
    }
  }
  top.name = plural(top.count, "thread");
  return top;
}

function zoomFlame(focus) {
  flame.focus = focus;
  flame.reset.hidden = !focus.parent;
  const rows = [];
  for (let node = focus.parent; node; node = node.parent) rows.unshift({ node, from: 0, to: 1, above: true });
  let depth = 0;
  const place = (node, from, to) => {
    if (to - from < 0.0008) return;
    rows.push({ node, from, to });
    depth = Math.max(depth, node.depth);
    let at = from;
    for (const child of [...node.children.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))) {
      const end = at + (to - from) * child.count / node.count;
      place(child, at, end);
      at = end;
    }
  };
  if (focus.count) place(focus, 0, 1);
  const picture = draw("svg", { height: (depth + 1) * flameRow });
  const width = flame.chart.clientWidth || 1100;
  for (const { node, from, to, above } of rows) {
    const share = node.count ? Math.round(100 * node.busy / node.count) : 0;
    const shade = (node.name.length + node.name.charCodeAt(node.name.length - 1)) % 2;
    const box = draw("svg", { x: `${100 * from}%`, y: node.depth * flameRow, width: `${100 * (to - from)}%`, height: flameRow });
    const group = draw("g", { class: ["frame", shade && "shade", node.stuck === node.count && node.count && "stuck", above && "above"].filter(Boolean).join(" "),
      role: "treeitem", tabindex: node === focus ? 0 : -1, "aria-level": node.depth + 1, "aria-label": `${node.name}, ${plural(node.count, "thread")}` },
      draw("rect", { width: "100%", height: flameRow }));
    group.style.setProperty("--busy", `${share}%`);
    const room = Math.floor(((to - from) * width - 8) / 7);
    if (room > 3) group.append(draw("text", { x: 5, y: 15 }, node.name.length <= room ? node.name : fit(lastName(node.name), room)));
    group.node = node;
    group.addEventListener("click", () => { zoomFlame(node); });
    group.addEventListener("pointerenter", () => flameStatus(node));
    group.addEventListener("focus", () => flameStatus(node));
    box.append(group);
    picture.append(box);
  }
  flame.chart.replaceChildren(picture);
  flameStatus(focus);
  markFlame();
}

function flameStatus(node) {
  const share = flame.top.count ? (100 * node.count / flame.top.count).toFixed(node.count === flame.top.count ? 0 : 1) : 0;
  flame.status.replaceChildren(make("b", { class: "code" }, node.name),
    node.place ? make("span", { class: "code" }, `  ${node.place}`) : "", make("br"),
    `${plural(node.count, "thread")}, ${share} %; ${node.busy} on a CPU or runnable${node.stuck ? `, ${node.stuck} deadlocked` : ""}`);
}

// Frames the search finds stand out.
function markFlame() {
  if (!flame) return;
  flame.chart.classList.toggle("searching", search.words.length > 0);
  for (const group of flame.chart.querySelectorAll(".frame"))
    group.classList.toggle("match", search.words.length > 0 && search.words.some((word) => group.node.name.toLowerCase().includes(word)));
}

// Arrows go to callers, callees and neighbours; Enter zooms in, Escape out.
function flameKey(event) {
  const group = event.target.closest(".frame");
  if (!group) return;
  const all = [...flame.chart.querySelectorAll(".frame")];
  const of = (node) => all.find((each) => each.node === node);
  const siblings = all.filter((each) => each.node.parent === group.node.parent && each.node.depth === group.node.depth);
  const at = siblings.indexOf(group);
  const next = {
    ArrowUp: () => group.node.parent && of(group.node.parent),
    ArrowDown: () => all.find((each) => each.node.parent === group.node),
    ArrowLeft: () => siblings[at - 1],
    ArrowRight: () => siblings[at + 1],
  }[event.key];
  if (next) {
    event.preventDefault();
    next()?.focus();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    zoomFlame(group.node);
    flame.chart.querySelector('.frame[tabindex="0"]').focus();
  } else if (event.key === "Escape" && flame.focus !== flame.top) {
    event.stopPropagation();
    zoomFlame(flame.focus.parent);
    flame.chart.querySelector('.frame[tabindex="0"]').focus();
  }
}
