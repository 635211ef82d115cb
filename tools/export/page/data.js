// The captures of this page, as tools/export/page_data.cpp writes them. Whatever text is in them goes
// into the page as text nodes and attribute values, never as HTML.

// Characters that are not seen, or that turn the text around them, show as what they are.
const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu;
const shown = (text) => text.replace(unseen, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

const captures = JSON.parse(document.getElementById("data").textContent,
  (key, value) => (typeof value === "string" ? shown(value) : value));
const chosen = Math.min(captures.length - 1,
  Math.max(0, Number(new URLSearchParams(location.search).get("capture")) || 0));
const capture = captures[chosen];
const { tasks, threads, frames, images, objects, queues, facts } = capture;

tasks.forEach((task, index) => Object.assign(task, { index, threads: [] }));
threads.forEach((thread, index) => {
  thread.index = index;
  if (thread.task !== undefined) tasks[thread.task].threads.push(thread);
});
const captured = threads.filter((thread) => !thread.absent);
const capturedTasks = tasks.filter((task) => !task.absent);
const isStuck = (thread) => thread.deadlock !== undefined;

// Threads by what they wait for.
const waitersOf = { thread: new Map(), task: new Map(), queue: new Map(), object: new Map() };
for (const thread of threads) {
  const wait = thread.wait;
  if (!wait) continue;
  const add = (kind, index) => {
    if (!waitersOf[kind].has(index)) waitersOf[kind].set(index, []);
    waitersOf[kind].get(index).push(thread);
  };
  if (wait.blocker) add(wait.blocker, wait.by);
  if (wait.object !== undefined) add("object", wait.object);
}

// The text of one of the elements that hold a line for each capture, unpacked.
async function unpack(id) {
  const line = document.getElementById(id).textContent.split("\n")[chosen];
  if (!line) return undefined;
  const packed = Uint8Array.from(atob(line), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
