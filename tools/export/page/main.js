// Puts the page together. What is far down is made when it comes near.

const builders = { waits: showWaits, threads: showThreads, flame: showFlame, collection: showCollection, records: showRecords };
const built = new Set();
const isBuilt = (id) => built.has(id);
function build(id) {
  if (built.has(id)) return;
  built.add(id);
  // Whatever one part makes of a strange capture, the others are there.
  try {
    builders[id]();
  } catch (error) {
    console.error(error);
    body(id).replaceChildren(make("p", { class: "note" }, `This part of the capture cannot be shown here: ${error.message}`));
  }
}
function whenBuilt(id, action) {
  build(id);
  action();
}

function showTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  // Some browsers keep nothing for pages that are files.
  const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("theme", value); } catch { /* only for this visit, then */ } } };
  const current = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  const label = () => {
    const other = current() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "☾" : "☀";
    button.setAttribute("aria-label", `Switch to ${other}`);
    button.title = `Switch to ${other}`;
  };
  const kept = store.get();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  button.addEventListener("click", () => {
    const other = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = other;
    store.set(other);
    label();
  });
  system.addEventListener("change", label);
  label();
}

function followScroll() {
  const links = new Map([...document.querySelectorAll(".bar nav a")].map((a) => [a.hash.slice(1), a]));
  const current = () => {
    let now = "overview";
    for (const id of links.keys())
      if (document.getElementById(id).getBoundingClientRect().top < innerHeight * 0.35) now = id;
    if (innerHeight + scrollY >= document.body.scrollHeight - 4) now = [...links.keys()].pop();
    for (const [id, a] of links) a.toggleAttribute("aria-current", id === now);
  };
  addEventListener("scroll", current, { passive: true });
  current();
}

function start() {
  document.title = `${verdictText()} – ${document.title}`;
  showTheme();
  showOverview();
  showSearch();
  document.getElementById("page").hidden = false;
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        near.unobserve(entry.target);
        build(entry.target.id);
      }
  }, { rootMargin: "600px" });
  for (const id of Object.keys(builders)) near.observe(document.getElementById(id));
  addEventListener("hashchange", followHash);
  followHash();
  followScroll();
  // On paper there is nothing to open: everything of a small capture, else what is stuck.
  addEventListener("beforeprint", () => {
    for (const id of Object.keys(builders)) if (id !== "records") build(id);
    for (const about of document.querySelectorAll("details.about")) about.open = true;
    if (captured.length <= shownAtOnce) setOpen(true);
    for (const thread of document.querySelectorAll("#list .thread.stuck")) {
      thread.open = true;
      thread.build();
    }
  });
  // What the page was opened for can be read and used: painted, and nothing waits to run.
  requestAnimationFrame(() => setTimeout(() => performance.mark("interactive")));
}
function verdictText() {
  return capture.problems.length ? "Damaged" : capture.deadlocks.length ? "Deadlock" : capture.inversions.length ? "Priority inversion" : "Stackshot";
}

start();
