// One search over everything: names, functions, ids, addresses. All words have to be there.

const search = { words: [], found: undefined };

function haystack(thread) {
  thread.haystack ??= [thread.name, taskTitle(tasks[thread.task]), thread.queue, thread.event, thread.event_symbol, thread.doing, activityText(thread),
    thread.wait?.object === undefined ? "" : Object.values(objects[thread.wait.object]).join(" "),
    ...[...(thread.kernel ?? []), ...(thread.user_stack ?? [])].flatMap((index) => {
      const frame = frames[index];
      return [frame.address, ...frame.functions, frame.image === undefined ? "" : imagePlace(frame)];
    })].join("\n").toLowerCase();
  return thread.haystack;
}
function matches(thread, word) {
  if (!/^\d+$/.test(word)) return haystack(thread).includes(word);
  // In addresses and sentences there are too many of them.
  const task = tasks[thread.task];
  return thread.id === word || `${task?.pid}` === word || [thread.name, task?.name].some((name) => name?.includes(word));
}

function runSearch(text) {
  search.words = text.toLowerCase().split(/\s+/).filter(Boolean);
  search.found = search.words.length
    ? new Set(captured.filter((thread) => search.words.every((word) => matches(thread, word)))) : undefined;
  document.getElementById("found").textContent = search.found ? plural(search.found.size, "thread") : "";
  whenBuilt("threads", () => listThreads(search.found));
  if (isBuilt("flame")) markFlame();
  if (isBuilt("waits")) markGraph();
}

function showSearch() {
  const input = document.getElementById("search");
  let wait;
  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(() => runSearch(input.value), 80);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(wait);
      runSearch(input.value);
      document.getElementById("threads").scrollIntoView();
    } else if (event.key === "Escape") {
      input.value = "";
      runSearch("");
      input.blur();
      event.stopPropagation();
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && !document.getElementById("drawer").hidden) {
      closeDrawer();
    }
  });
}
