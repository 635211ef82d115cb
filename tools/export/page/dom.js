// Elements and texts.

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== ""));
  return element;
}
const make = (name, properties = {}, ...children) =>
  fill(document.createElement(name), properties, children);
const draw = (name, properties = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
const body = (id) => document.querySelector(`#${id} > .body`);

const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

// To about four digits, as `stackshot report` has it.
function span(nanoseconds) {
  if (nanoseconds === undefined) return "unknown";
  if (nanoseconds === 0) return "0";
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
    if (nanoseconds >= size) {
      const value = nanoseconds / size;
      return `${value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1)} ${unit}`;
    }
  return `${nanoseconds} ns`;
}
function bytes(count) {
  return count < 10240 ? plural(count, "byte")
    : count < 10 * 1048576 ? `${Math.round(count / 1024)} KiB`
    : `${(count / 1048576).toFixed(1)} MiB`;
}
// "0–3, 7"
function ranges(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length; ) {
    let last = i;
    while (sorted[last + 1] === sorted[last] + 1) ++last;
    parts.push(last === i ? `${sorted[i]}` : `${sorted[i]}–${sorted[last]}`);
    i = last + 1;
  }
  return parts.join(", ");
}

const taskName = (task) => task.name ?? (task.absent ? "not in the capture" : "(no name)");
// Nothing, if the task is not known.
const taskTitle = (task) => (!task ? "" : task.pid === undefined ? taskName(task) : `${taskName(task)} [${task.pid}]`);
const threadName = (thread) => thread.name ?? `thread ${thread.id}`;
const functionOf = (frame) => frame.functions[frame.functions.length - 2] ?? frame.address;

// What a thread's dot says.
const activity = (thread) => (isStuck(thread) ? "stuck" : thread.activity ?? "unknown");
const activityTitle = { stuck: "deadlocked", running: "on a CPU", runnable: "runnable, not running",
  waiting: "waiting", idle: "idle thread", suspended: "suspended", terminating: "terminating",
  unknown: "unknown" };
const dot = (thread) => make("span", { class: `dot ${activity(thread)}`, role: "img",
  "aria-label": activityTitle[activity(thread)], title: activityTitle[activity(thread)] });

// Links that open the drawer.
const threadLink = (thread, text = threadName(thread)) =>
  make("a", { href: `#t${thread.index}`, title: `thread ${thread.id}` }, make("bdi", {}, text));
const taskLink = (task) => make("a", { href: `#p${task.index}` }, make("bdi", {}, taskTitle(task)));
const objectLink = (object, index) => make("a", { href: `#o${index}` }, objectTitle(object));
function objectTitle(object) {
  return `${object.kind} ${object.symbol ? lastName(object.symbol) : object.address}${object.label ? ` {${object.label}}` : ""}`;
}
// Without its namespaces: but those of template arguments are not its own.
const lastName = (name) => name.replace(/^(?:\w+::)+(?=[\w~])/, "");
const threadList = (list, most = 12) => [
  ...list.slice(0, most).flatMap((thread, i) => [i ? ", " : "", threadLink(thread)]),
  list.length > most ? ` and ${list.length - most} more` : ""];

// What a thread is at, with the names of the things it waits for.
function activityText(thread) {
  if (!thread.wait && thread.event_symbol && thread.activity === "waiting")
    return thread.event_is_code ? (/sleep/.test(thread.event_symbol) ? "sleeps" : `waits in ${thread.event_symbol}`)
      : `waits for ${lastName(thread.event_symbol)}`;
  const object = objects[thread.wait?.object];
  const text = thread.doing ?? "";
  return object?.symbol ? text.replace(`${object.kind} ${object.address}`, objectTitle(object)) : text;
}

// A sentence about threads that the program made: "thread 12" in it becomes a link.
const threadById = new Map(threads.map((thread) => [thread.id, thread]));
function linked(sentence) {
  const parts = sentence.split(/\bthread (\d+)/);
  for (let i = 1; i < parts.length; i += 2) {
    const thread = threadById.get(parts[i]);
    const name = thread?.name && ` "${thread.name}"`;
    let text = `thread ${parts[i]}`;
    if (name && parts[i + 1].startsWith(name)) {
      text += name;
      parts[i + 1] = parts[i + 1].slice(name.length);
    }
    parts[i] = thread ? threadLink(thread, text) : text;
  }
  return parts;
}
