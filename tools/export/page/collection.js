// What each CPU did while the system stood still, as far as the latency records tell.

function showCollection() {
  const place = body("collection");
  const latency = capture.latency;
  if (!latency?.cpus.length) {
    place.append(make("p", { class: "note" }, "The capture has no latency records: only development kernels write them, and only for a collection on several CPUs do they tell of each."));
  } else {
    place.append(make("p", { class: "note" }, "Each lane begins when its CPU had stopped. Time spent waiting for tasks is recorded as a sum: it is shown at the end, wherever it was. Which CPU took which task is not recorded."),
      lanes(latency));
  }
  const rows = capturedTasks.map((task) => {
    const own = (task.setup_time ?? 0) + (task.snapshot_time ?? 0);
    const stacks = task.threads.reduce((sum, thread) => sum + (thread.stack_time ?? 0), 0);
    const records = task.threads.reduce((sum, thread) => sum + (thread.facts_time ?? 0), 0);
    return { task, own, stacks, records, total: own + stacks + records };
  }).filter((row) => row.total > 0).sort((a, b) => b.total - a.total);
  if (!rows.length) return;
  const most = rows[0].total;
  place.append(panel("Tasks", "time on all CPUs that recorded them", ["Task", "Threads", "Time", ""],
    rows.map((row) => [taskLink(row.task), make("span", { class: "quiet" }, `${row.task.threads.length}`), span(row.total),
      shares([["work", row.stacks, "stacks"], ["facts", row.records, "thread records"], ["other", row.own, "task records"]], most)])),
    make("p", { class: "legend" }, legendItem("fill-work", "stacks"), legendItem("fill-facts", "thread records"), legendItem("fill-other", "task records")));
}

function shares(parts, most) {
  let x = 0;
  const picture = draw("svg", { width: "100%", height: 10, class: "shares", role: "img",
    "aria-label": parts.map(([, time, name]) => `${name} ${span(time)}`).join(", ") });
  for (const [kind, time, name] of parts) {
    const width = 100 * time / most;
    if (width > 0) picture.append(draw("rect", { class: `fill-${kind}`, x: `${x}%`, width: `${width}%`, height: 10 }, draw("title", {}, `${name}: ${span(time)}`)));
    x += width;
  }
  return picture;
}

// A round step that divides `range` into some four to nine parts.
function step(range) {
  const unit = 10 ** Math.floor(Math.log10(range / 5 || 1));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((each) => range / each <= 8) ?? unit;
}

const axisText = (time) => span(time).replace(/\.?0+(?= )/, "");

function lanes(latency) {
  const cpus = [...latency.cpus].sort((a, b) => a.cpu - b.cpu);
  const main = cpus.find((cpu) => cpu.cpu === latency.calling_cpu);
  const end = Math.max(1, ...cpus.map((cpu) => cpu.total ?? 0), main ? (main.total ?? 0) + (latency.cpu_wait ?? 0) : 0);
  const label = 150, right = 12, lane = 34, axis = 22;
  const height = cpus.length * lane + axis;
  const picture = draw("svg", { height, role: "img", "aria-label": cpus.map(describe).join("; ") });
  // Nested pictures take percentages of what is right of the labels.
  const plot = draw("svg", { class: "plot", x: label, y: 0, height });
  picture.append(plot);
  const fraction = (time) => `${100 * time / end}%`;
  const size = step(end);
  for (let time = 0; time <= end; time += size)
    plot.append(draw("line", { class: "grid", x1: fraction(time), x2: fraction(time), y1: 0, y2: cpus.length * lane }),
      draw("text", { class: "axis", x: fraction(time), y: cpus.length * lane + 15, "text-anchor": !time ? "start" : time > 0.96 * end ? "end" : "middle" }, axisText(time)));
  cpus.forEach((cpu, i) => {
    const y = i * lane;
    picture.append(draw("text", { x: 0, y: y + 15 }, `CPU ${cpu.cpu}${cpu.cpu === latency.main_cpu ? ", main" : ""}`),
      draw("text", { class: "axis", x: 0, y: y + 28 }, `${plural(cpu.tasks, "task")}, ${plural(cpu.threads, "thread")}`));
    const total = cpu.total ?? 0, init = Math.min(cpu.init ?? 0, total);
    const idle = Math.max(init, total - (cpu.queue ?? 0));
    const parts = [["start", 0, init, "until it began to record"], ["work", init, idle, "recording"], ["idle", idle, total, "waiting for tasks, in sum"]];
    if (cpu === main && latency.cpu_wait) parts.push(["idle", total, total + latency.cpu_wait, "waiting for the other CPUs"]);
    for (const [kind, from, to, what] of parts)
      if (to > from)
        plot.append(draw("rect", { class: `fill-${kind}`, x: fraction(from), y: y + 6, width: fraction(to - from), height: lane - 14 }, draw("title", {}, `CPU ${cpu.cpu}: ${what}, ${span(to - from)}`)));
  });
  const resize = () => plot.setAttribute("width", Math.max(50, picture.clientWidth - label - right));
  new ResizeObserver(resize).observe(picture);
  return make("div", {}, make("div", { class: "lanes" }, picture),
    make("p", { class: "legend" }, legendItem("fill-start", "until it began to record"), legendItem("fill-work", "recording"),
      legendItem("fill-idle", "waiting for tasks or CPUs"),
      latency.setup === undefined ? "" : make("span", {}, `set up in ${span(latency.setup)}`),
      latency.queue_building ? make("span", {}, `queue of tasks complete after ${span(latency.queue_building)}`) : "",
      latency.buffer_size ? make("span", {}, `${bytes(latency.buffer_used)} of ${bytes(latency.buffer_size)} buffer used`) : ""));
}
function describe(cpu) {
  return `CPU ${cpu.cpu}: ${plural(cpu.tasks, "task")}, ${plural(cpu.threads, "thread")}, ${span(cpu.total)}, of that ${span(cpu.queue)} waiting`;
}
