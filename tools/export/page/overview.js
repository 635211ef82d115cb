// The answer first: is something stuck, and on what.

function showOverview() {
  document.getElementById("subject").append(...subject());
  document.getElementById("damage").append(...damage());
  document.getElementById("answer").append(...answers());
  document.getElementById("heads").append(...headsPanel());
  document.getElementById("cpus").append(...cpusPanel());
  document.getElementById("about").append(...aboutPanel());
}

function subject() {
  const parts = [`Stackshot of ${(facts.system ?? "an unknown system").split(/[:;]/)[0]}`];
  if (facts.panic) parts.push("in a panic");
  if (facts.delta) parts.push("delta: complete only for what ran since another capture");
  if (facts.taken) parts.push(facts.taken.replace(/\.\d+/, ""));
  parts.push(`${plural(capturedTasks.length, "task")}, ${plural(captured.length, "thread")}`);
  if (facts.cpus.length) parts.push(plural(facts.cpus.length, "CPU"));
  if (facts.stopped !== undefined) parts.push(`stopped for ${span(facts.stopped)}`);
  const result = parts.map((part) => make("span", {}, part));
  if (captures.length > 1) {
    const select = make("select", { "aria-label": "Capture",
      onchange: () => { location.search = `?capture=${select.value}`; } },
      captures.map((one, i) => make("option", { value: i, selected: i === chosen },
        `${i + 1} of ${captures.length}: ${one.place}`)));
    result.push(make("span", {}, select));
  }
  return result;
}

// What is known to be missing or wrong; none: nothing is.
function losses() {
  const lines = [...capture.problems];
  const should = (count, is, what) => {
    if (count !== undefined && count !== is)
      lines.push(`${plural(is, what)} could be read; the capture says there are ${count.toLocaleString("en")}`);
  };
  should(facts.tasks_count, capturedTasks.length, "task");
  should(facts.threads_count, captured.length, "thread");
  if (facts.absent_cpus?.length)
    lines.push(`CPU ${ranges(facts.absent_cpus)} did not stop: the stacks of what ran there are the last known ones`);
  return lines;
}
function damage() {
  const lines = losses();
  if (!lines.length) return [];
  const title = capture.problems.length || !facts.absent_cpus?.length
    ? "This capture is damaged or incomplete. What could be read is shown; more may be missing."
    : "Not every CPU stopped.";
  return [make("div", { class: "damage", role: "alert" }, make("h2", {}, title),
    make("ul", {}, lines.slice(0, 12).map((line) => make("li", {}, line)),
      lines.length > 12 ? make("li", {}, `and ${lines.length - 12} more`) : ""))];
}

function answer(kind, title, ...rest) {
  return make("div", { class: `answer ${kind}` }, make("h1", {}, title), ...rest);
}

function answers() {
  const list = [];
  for (const deadlock of capture.deadlocks) list.push(deadlockAnswer(deadlock));
  for (const inversion of capture.inversions.slice(0, 3)) {
    const owner = threads[inversion.owner], waiter = threads[inversion.waiter];
    list.push(answer("warn", [make("b", {}, "Priority inversion: "), threadLink(waiter), " waits behind ", threadLink(owner)],
      make("p", { class: "quiet" }, `Base priority ${waiter.base_priority} behind ${owner.base_priority}, ${inversion.boost}`,
        inversion.runnable ? "; it could run, but does not: what the waiter lacks is a CPU."
          : ["; it ", linked(activityText(owner)), "."])));
  }
  const first = capture.heads[0];
  if (!list.length && first && first.behind > 1)
    list.push(answer("open", ["No deadlock. ", plural(first.behind, "thread"), " behind ", headLink(first)],
      make("p", { class: "quiet" }, first.kind === "thread" ? ["It ", headDoing(first), "."] : headDoing(first))));
  if (!list.length) list.push(quietAnswer());
  list[0].querySelector("h1").id = "verdict";
  return list;
}

function quietAnswer() {
  const running = captured.filter((thread) => thread.activity === "running").length;
  const note = !captured.length ? "No thread could be read."
    : `${plural(running, "thread")} on a CPU, ${captured.filter((t) => t.activity === "runnable").length} runnable, ` +
      `${captured.filter((t) => t.activity === "waiting").length} waiting.`;
  if (!captured.length) return answer("open", "Nothing to show", make("p", { class: "quiet" }, note));
  if (capture.no_wait_infos)
    return answer("open", "Nothing is known of deadlocks",
      make("p", { class: "quiet" }, "The capture does not tell what threads wait for: wait infos were not asked for. ", note));
  return answer(losses().length ? "open" : "",
    losses().length ? "No deadlock in what could be read" : "No deadlock", make("p", { class: "quiet" }, note));
}

// A ↔ B of two; A → B → C → A of more.
function deadlockAnswer(deadlock) {
  const ring = deadlock.threads.map((index) => threads[index]);
  const most = 6;
  const title = [make("b", {}, "Deadlock: ")];
  if (ring.length === 1) title.push(threadLink(ring[0]), " waits for itself");
  else if (ring.length === 2) title.push(threadLink(ring[0]), make("i", {}, " ↔ "), threadLink(ring[1]));
  else if (ring.length <= most)
    title.push(...ring.flatMap((thread) => [threadLink(thread), make("i", {}, " → ")]), threadLink(ring[0]));
  else title.push(`${ring.length} threads wait for each other`);
  return answer("stuck", title,
    make("p", { class: "quiet" }, ring.length > 1 ? `${ring.length} threads wait for each other and none can go on` : "It cannot go on",
      deadlock.behind ? `; ${plural(deadlock.behind, "more thread")} behind.` : "."),
    make("ul", { class: "chain" }, ring.slice(0, 40).map((thread) => make("li", {},
      make("span", {}, threadLink(thread), " ", make("span", { class: "quiet" }, make("bdi", {}, taskTitle(tasks[thread.task])))),
      make("span", {}, `${thread.wait?.verb ?? "waits"} `,
        thread.wait?.object !== undefined ? objectLink(objects[thread.wait.object], thread.wait.object) : ""),
      make("span", { class: "quiet" }, holder(thread))))));
}
function holder(thread) {
  const wait = thread.wait;
  if (!wait?.blocker) return "";
  const by = wait.blocker === "thread" ? threadLink(threads[wait.by])
    : wait.blocker === "task" ? taskLink(tasks[wait.by])
    : wait.blocker === "object" ? objectLink(objects[wait.by], wait.by) : `work queue ${queues[wait.by]}`;
  const since = thread.since === undefined ? "" : `, for ${span(thread.since)}`;
  return [`${wait.joint ?? ""} `, by, since];
}

const headLink = (head) => (head.kind === "thread" ? threadLink(threads[head.index])
  : head.kind === "task" ? taskLink(tasks[head.index]) : `work queue ${queues[head.index]}`);
function headDoing(head) {
  if (head.kind === "thread") return linked(activityText(threads[head.index]));
  if (head.kind === "task") return `any of its ${plural(tasks[head.index].threads.length, "thread")} may act`;
  return "a thread is still to come";
}

function headsPanel() {
  if (!capture.heads.length) return [];
  const most = Math.max(...capture.heads.map((head) => head.behind));
  return [panel("Heads of chains", "what everything behind them waits for in the end",
    ["Threads behind", "Head", "", "Which"],
    capture.heads.map((head) => [
      [most > 1 ? bar(head.behind / most) : "", make("span", {}, ` ${head.behind}`)],
      headLink(head),
      head.kind === "thread" ? make("span", { class: "quiet" }, taskTitle(tasks[threads[head.index].task])) : "",
      make("span", { class: "quiet" }, headDoing(head))]), 8)];
}
function bar(share) {
  const line = draw("svg", { width: 60, height: 8, "aria-hidden": true },
    draw("rect", { class: "fill-bar", width: Math.max(2, 60 * share), height: 8, rx: 1 }));
  return line;
}

function panel(title, note, heads, rows, most = 12) {
  const table = make("table", { class: "table" },
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))));
  const tbody = table.appendChild(make("tbody"));
  const add = (list) => tbody.append(...list.map((cells) => make("tr", {},
    cells.map((cell, i) => make("td", { class: i === cells.length - 1 && "wide" }, cell)))));
  add(rows.slice(0, most));
  const result = make("div", { class: "panel" },
    make("h3", {}, title, note ? make("span", { class: "quiet" }, ` – ${note}`) : ""),
    make("div", { class: "scroll" }, table));
  if (rows.length > most)
    result.append(make("button", { class: "more", type: "button", onclick: (event) => {
      add(rows.slice(most));
      event.target.remove();
    } }, `${rows.length - most} more`));
  return result;
}

function cpusPanel() {
  const rows = captured.filter((thread) => thread.on_core && thread.cpu !== undefined)
    .sort((a, b) => a.cpu - b.cpu)
    .map((thread) => {
      const frame = frames[(thread.kernel ?? thread.user_stack ?? [])[0]];
      return [`CPU ${thread.cpu}`, [dot(thread), " ", threadLink(thread)],
        make("span", { class: "quiet" }, taskTitle(tasks[thread.task])),
        thread.on_absent_cpu ? make("span", { class: "tag warn" }, "did not stop")
          : thread.activity === "idle" || !frame ? make("span", { class: "quiet" }, thread.activity)
          : make("span", { class: "code" }, frame.functions[0] ?? frame.address)];
    });
  if (!rows.length) return [];
  return [panel("CPUs", "", ["", "Thread", "Task", "In"], rows, 32)];
}

function aboutPanel() {
  const list = make("dl", { class: "facts" });
  const fact = (name, ...value) => list.append(make("dt", {}, name), make("dd", {}, ...value));
  fact("Capture", capture.place, `, ${bytes(facts.bytes)}`);
  fact("System", facts.system ?? "unknown", facts.build ? ` (${facts.build})` : "");
  fact("Taken", facts.taken ?? "unknown date",
    facts.absolute_time ? `, absolute time ${facts.absolute_time}` : "",
    facts.uptime === undefined ? "" : ` (${span(facts.uptime)} after boot)`);
  fact("Boot arguments", make("span", { class: "code" }, facts.boot_args || (facts.boot_args === "" ? "none" : "unknown")));
  fact("Kernel", facts.kernel_uuid
    ? [make("span", { class: "code" }, `${facts.kernel_uuid} at ${facts.kernel_address}`)] : "unknown");
  fact("Symbols", facts.symbols ?? "none: addresses only");
  fact("CPUs", facts.cpus.length ? `${facts.cpus.length} collected (${ranges(facts.cpus)})` : "which ones collected is unknown",
    facts.absent_cpus === undefined ? "" : facts.absent_cpus.length ? `; ${ranges(facts.absent_cpus)} did not stop` : "; all stopped");
  if (facts.page_size)
    fact("Memory", `${bytes(facts.free)} free, ${bytes(facts.active)} active, ${bytes(facts.wired)} wired; pages of ${bytes(facts.page_size)}`);
  fact("Time", `${span(facts.stopped)} stopped, ${span(facts.in_all)} in all`,
    facts.tries_before ? `, ${span(facts.tries_before)} in tries before` : "",
    facts.tries ? `, ${facts.tries === 1 ? "1 try" : `${facts.tries} tries`}` : "");
  if (facts.flags) fact("Asked for", make("span", { class: "code" }, facts.flags.join(" ")));
  if (capture.unknown.length)
    fact("Not known", make("ul", {}, capture.unknown.slice(0, 50).map((line) => make("li", {}, linked(line))),
      capture.unknown.length > 50 ? make("li", {}, `and ${capture.unknown.length - 50} more`) : ""));
  return [make("details", { class: "about panel" }, make("summary", {}, "About this capture"), list)];
}
