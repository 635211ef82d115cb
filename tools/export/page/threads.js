// Tasks and threads to expand, and the drawer that shows one thing beside the page.

const shownAtOnce = 200;

function showThreads() {
  const counts = {};
  for (const thread of captured) counts[activity(thread)] = (counts[activity(thread)] ?? 0) + 1;
  const buttons = make("div", { class: "row controls" },
    make("button", { type: "button", onclick: () => setOpen(true) }, "Expand all"),
    make("button", { type: "button", onclick: () => setOpen(false) }, "Collapse all"),
    make("span", { class: "legend" }, Object.entries(activityTitle).filter(([kind]) => counts[kind])
      .map(([kind, title]) => make("span", {}, make("i", { class: `dot ${kind}` }), `${counts[kind].toLocaleString("en")} ${title}`))));
  const head = make("div", { class: "list-head", "aria-hidden": true }, make("span"), make("span", { class: "number" }, "Id"),
    make("span", {}, "Thread"), make("span", {}, "What it does"), make("span", { class: "number" }, "CPU"),
    make("span", { class: "number" }, "Priority"), make("span", { class: "number" }, "User"),
    make("span", { class: "number" }, "System"));
  body("threads").append(buttons, head, make("div", { id: "list" }));
  listThreads();
}

// All tasks, or those of the threads found, all of which are then open.
function listThreads(found) {
  const list = document.getElementById("list");
  list.replaceChildren();
  const few = captured.length <= 60;
  const groups = capturedTasks.map((task) => [task, found ? task.threads.filter((t) => found.has(t)) : task.threads])
    .filter(([, members]) => !found || members.length);
  let open = found ? shownAtOnce : Infinity;
  const add = (part) => list.append(...part.map(([task, members]) => {
    const isOpen = found ? open > 0 : few || groups.length === 1 || members.some(isStuck);
    if (found) open -= members.length;
    return taskItem(task, members, isOpen);
  }));
  paged(list, groups, add);
  if (!groups.length) list.append(make("p", { class: "note more" }, found ? "Nothing found." : "The capture has no tasks."));
}

// The first ones now and the rest when asked for: so many rows take their time.
function paged(list, rows, add, most = shownAtOnce) {
  add(rows.slice(0, most));
  const left = rows.length - most;
  if (left <= 0) return;
  const button = make("button", { type: "button", class: "more", onclick: () => {
    button.remove();
    paged(list, rows.slice(most), add);
  } }, left <= shownAtOnce ? `${left} more` : `${shownAtOnce} more of ${left.toLocaleString("en")}`);
  list.append(button);
}

// A details element whose inside is made when it is first opened.
function lazy(properties, summary, inside) {
  const item = make("details", properties, make("summary", {}, summary));
  const build = () => {
    if (item.open && item.children.length === 1) item.append(inside());
  };
  item.addEventListener("toggle", build);
  item.build = build;
  build();
  return item;
}

function taskItem(task, members, open) {
  const stuck = members.filter(isStuck).length;
  const tags = [
    stuck ? make("span", { class: "tag stuck" }, `${stuck} deadlocked`) : "",
    task.terminated ? make("span", { class: "tag" }, "terminated") : "",
    task.suspended ? make("span", { class: "tag warn" }, "suspended") : "",
    task.unchanged ? make("span", { class: "tag" }, "not run since the capture before") : ""];
  return lazy({ class: "task", open, "data-task": task.index }, [
    make("b", {}, make("bdi", {}, taskName(task))),
    make("span", { class: "quiet" }, `pid ${task.pid ?? "unknown"} · ${plural(members.length, "thread")}`), tags],
    () => {
      const list = make("div", { class: "threads" });
      paged(list, members, (part) => list.append(...part.map(threadItem)));
      return list;
    });
}

// In a line; the detail has all of it.
function doing(thread) {
  const since = thread.since === undefined ? "" : ` for ${span(thread.since)}`;
  const wait = thread.wait;
  if (thread.activity === "idle")
    return thread.on_core ? `idle on CPU ${thread.cpu ?? "unknown"}` : "idle thread of a CPU that is busy";
  if (thread.activity === "runnable") return `runnable${since}`;
  if (wait?.blocker === "thread" && wait.by !== thread.index)
    return [wait.verb, wait.object === undefined ? "" : objectTitle(objects[wait.object]), wait.joint, threadName(threads[wait.by])]
      .filter(Boolean).join(" ") + since;
  const text = activityText(thread).replace(/^is /, "");
  return text + (text.includes(",") && since ? "," : "") + since;
}

function threadItem(thread) {
  const priority = thread.sched_priority === undefined ? "–"
    : thread.base_priority !== undefined && thread.base_priority !== thread.sched_priority
      ? `${thread.base_priority}→${thread.sched_priority}` : `${thread.sched_priority}`;
  return lazy({ class: isStuck(thread) ? "thread stuck" : "thread", "data-thread": thread.index }, [
    dot(thread), make("span", { class: "quiet number" }, thread.id),
    make("bdi", { class: "name" }, thread.name ?? make("span", { class: "quiet" }, "no name")),
    make("bdi", { class: "doing" }, doing(thread)),
    make("span", { class: "number quiet side" }, thread.cpu === undefined ? "–" : `${thread.cpu}`),
    make("span", { class: "number side" }, priority),
    make("span", { class: "number quiet side" }, thread.user === undefined ? "–" : span(thread.user)),
    make("span", { class: "number quiet side" }, thread.system === undefined ? "–" : span(thread.system))],
    () => threadDetail(thread));
}

function setOpen(open) {
  const list = document.getElementById("list");
  for (const task of list.querySelectorAll(".task")) {
    task.open = open;
    task.build();
  }
  // Every stack of a small capture; of a large one the threads are enough.
  if (!open || captured.length <= shownAtOnce)
    for (const thread of list.querySelectorAll(".thread")) {
      thread.open = open;
      thread.build();
    }
}

function threadDetail(thread) {
  const part = (name, value) => (value === undefined ? "" : make("span", {}, make("span", { class: "quiet" }, `${name} `), value));
  const detail = make("div", { class: "detail" });
  if (isStuck(thread) || thread.wait)
    detail.append(make("p", {}, linked(activityText(thread)), thread.since === undefined ? "" : `, for ${span(thread.since)}`));
  const behind = waitersOf.thread.get(thread.index);
  if (behind) detail.append(make("p", {}, make("span", { class: "quiet" }, "Waited for by "), threadList(behind)));
  detail.append(make("div", { class: "row" },
    part("priority", thread.sched_priority), thread.base_priority !== thread.sched_priority ? part("base", thread.base_priority) : "",
    part("CPU", thread.cpu), part("user", thread.user === undefined ? undefined : span(thread.user)),
    part("system", thread.system === undefined ? undefined : span(thread.system)),
    part("runnable", thread.runnable === undefined ? undefined : span(thread.runnable)),
    thread.state ? part("state", make("span", { class: "code" }, thread.state.join(" ") || "0")) : "",
    part("dispatch queue", thread.queue),
    thread.event ? part("event", make("span", { class: "code" }, thread.event, thread.event_symbol ? ` ${thread.event_symbol}` : "")) : ""));
  if (thread.on_absent_cpu)
    detail.append(make("p", { class: "tag warn" }, "Its CPU did not stop: the stack is the last one known"));
  if (thread.kernel) detail.append(...stackTable(thread.kernel, thread.user_stack ? "Kernel stack" : ""));
  if (thread.user_stack) detail.append(...stackTable(thread.user_stack, "User stack"));
  if (thread.unchanged)
    detail.append(make("p", { class: "quiet" }, "It has not run since the capture before, which its stack is from."));
  if (thread.cut) detail.append(make("p", { class: "quiet" }, "The stack could not be followed any further."));
  if (!thread.kernel && !thread.user_stack)
    detail.append(make("p", { class: "quiet" }, "No stack was recorded."));
  return detail;
}

function stackTable(stack, caption) {
  const table = make("table", { class: "stack" }, caption ? make("caption", {}, caption) : "");
  const tbody = table.appendChild(make("tbody"));
  stack.forEach((index, i) => {
    const frame = frames[index];
    const names = frame.functions;
    const count = Math.max(names.length / 2, 1);
    for (let k = 0; k < count; ++k) {
      const inlined = k + 1 < count;
      const place = names[2 * k + 1] || (k === 0 && !names.length && frame.image !== undefined
        ? make("span", { title: imagePlace(frame) }, `${shortUuid(images[frame.image])} + ${frame.offset}`) : "");
      tbody.append(make("tr", {},
        make("td", {}, k === 0 ? `${i}` : ""),
        make("td", { class: names.length ? "function" : "function bare", title: frame.address }, names[2 * k] ?? frame.address,
          inlined ? make("span", { class: "quiet" }, " (inlined)") : ""),
        make("td", { class: "place" }, place),
        make("td", { class: "address" }, k === 0 && names.length ? frame.address : "")));
    }
    if (frame.exception)
      tbody.append(make("tr", { class: "break" }, make("td"), make("td", { colspan: 3 }, "exception; what it interrupted:")));
  });
  const used = [...new Set(stack.map((index) => frames[index]).filter((frame) => !frame.functions.length).map((frame) => frame.image))]
    .filter((index) => index !== undefined);
  return [table, used.length ? make("p", { class: "quiet code images" }, used.map((index) =>
    make("span", {}, `${images[index].uuid} at ${images[index].address} (${images[index].kind})`))) : ""];
}
const shortUuid = (image) => image.uuid.slice(0, 8);
// What other symbolicators need.
function imagePlace(frame) {
  if (frame.image === undefined) return "";
  const image = images[frame.image];
  return `${image.uuid} ${image.address} + ${frame.offset}`;
}

// #t, #p and #o with an index open the drawer on that thread, task or object.
let drawerReturn;
function followHash() {
  const drawer = document.getElementById("drawer");
  const [, kind, index] = /^#([tpo])(\d+)$/.exec(location.hash) ?? [];
  const list = { t: threads, p: tasks, o: objects }[kind];
  const thing = list?.[index];
  if (!thing) {
    drawer.hidden = true;
    return;
  }
  if (drawer.hidden) drawerReturn = document.activeElement;
  const close = make("button", { type: "button", class: "close", onclick: closeDrawer }, "Close");
  const title = (text, ...notes) => make("header", {}, make("div", {}, make("h2", {}, make("bdi", {}, text)), make("p", { class: "quiet" }, notes)), close);
  if (kind === "t")
    drawer.replaceChildren(title(threadName(thing), `thread ${thing.id}`, thing.task === undefined ? "" : [" of ", taskLink(tasks[thing.task])]),
      thing.wait ? "" : make("p", { class: "row" }, dot(thing), make("span", {}, doing(thing))), thing.absent ? "" : threadDetail(thing));
  else if (kind === "p")
    drawer.replaceChildren(title(taskTitle(thing), plural(thing.threads.length, "thread")),
      make("table", { class: "table" }, make("tbody", {}, thing.threads.slice(0, 500).map((thread) =>
        make("tr", {}, make("td", {}, dot(thread), " ", threadLink(thread)), make("td", { class: "wide quiet" }, doing(thread)))))));
  else
    drawer.replaceChildren(title(objectTitle(thing), make("span", { class: "code" }, `${thing.address} ${thing.symbol ?? ""}`)),
      make("p", {}, make("span", { class: "quiet" }, "Waited for by "), threadList(waitersOf.object.get(Number(index)) ?? [], 500)));
  drawer.hidden = false;
  drawer.scrollTop = 0;
  drawer.focus({ preventScroll: true });
}
function closeDrawer() {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("drawer").hidden = true;
  drawerReturn?.focus?.({ preventScroll: true });
}
