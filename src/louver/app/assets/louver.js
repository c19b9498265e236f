// What happens in the browser alone: theme, keys, addresses, uploads, copying. Data never pass through here as HTML.
"use strict";
window.louver = {
  theme(choice) {
    const root = document.documentElement;
    const next = choice ?? (root.dataset.theme === "dark" ? "light" : "dark");
    root.dataset.theme = next;
    if (choice === undefined) localStorage.setItem("louver-theme", next);
    window.dispatchEvent(new Event("louver-theme"));
  },
  at(page) {
    if (location.hash !== "#" + page) history.pushState(null, "", "#" + page);
  },
  help() {
    const keys = document.getElementById("keys");
    keys.open ? keys.close() : keys.showModal();
  },
  enter(id) {
    // Where somebody came from: closing the drawer leads back there. A drawer that replaces itself has taken the focus with it.
    const drawer = document.getElementById(id), now = document.activeElement;
    if (now !== document.body && !now?.closest(".drawer")) louver.from = now;
    drawer?.querySelector("[data-close]")?.focus({ focusVisible: false });
  },
  filter(text, selector) {
    // Shows only what has the text in its name.
    const wanted = text.trim().toLowerCase();
    for (const one of document.querySelectorAll(selector)) one.classList.toggle("gone", !(one.dataset.name ?? one.textContent).toLowerCase().includes(wanted));
  },
  typed(id, value) {
    const element = mounted_app.elements[id];
    if (element) element.props.value = value;
  },
  toggle(selector, name) {
    document.querySelector(selector)?.classList.toggle(name);
  },
  say(text) {
    document.getElementById("announcer").textContent = text;
  },
  async copy(id) {
    await navigator.clipboard.writeText(document.getElementById(id).textContent);
    louver.say("Copied.");
  },
  async fill(id, file) {
    // A small text file into a field; what is larger would not be looked over there.
    if (!file || file.size > 1e6) return louver.say("Choose a file of less than one megabyte.");
    const box = document.getElementById(id);
    box.value = await file.text();
    box.dispatchEvent(new Event("input", { bubbles: true }));
  },
  async upload(file, purpose = "", chosen = "") {
    if (!file) return;
    louver.say("Uploading.");
    await fetch(`${window.path_prefix}/upload/${window.clientId}`, {
      method: "POST",
      body: file,
      headers: { "X-Name": encodeURIComponent(file.name), "X-Purpose": purpose, "X-Chosen": chosen, "Content-Type": "application/octet-stream" },
    });
  },
  async uploadAll(files, purpose) {
    for (const file of files) await louver.upload(file, purpose);
  },
  color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  },
};

(function () {
  // The prefix opens nothing but this load; neither the address nor the history keeps it. Reloading asks at the door for another.
  document.addEventListener("DOMContentLoaded", () => history.replaceState(null, "", "/" + location.hash));

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => louver.theme(localStorage.getItem("louver-theme") ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", follow);
  follow();

  window.addEventListener("beforeunload", (event) => louver.unsaved && event.preventDefault());
  window.addEventListener("hashchange", () => emitEvent("louver_go", location.hash.slice(1)));

  const isTyping = (element) => element.matches("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]");
  const press = (selector) => [...document.querySelectorAll(selector)].find((one) => one.offsetParent !== null)?.click();
  let afterG = 0;
  document.addEventListener("keydown", (event) => {
    const command = event.ctrlKey || event.metaKey;
    if (event.key === "Escape") return press(".drawer:not(.gone) [data-close]") ?? press(".run:not(.gone) [data-cancel]");
    if (command && event.shiftKey && event.key.toLowerCase() === "c") return event.preventDefault(), press("[data-copy]");
    if (command && event.key === "Enter") return press("[data-run]");
    if (isTyping(event.target)) return;
    if (command && event.key.toLowerCase() === "z") return event.preventDefault(), press("[data-undo]");
    if (command || event.altKey) return;
    if (event.key === "?") return louver.help();
    if (event.key === "g") return (afterG = Date.now()), undefined;
    if (Date.now() - afterG < 1500) {
      afterG = 0;
      for (const link of document.querySelectorAll(".rail a"))
        if (link.title.endsWith(` ${event.key})`)) {
          event.preventDefault();
          event.stopImmediatePropagation();
          location.hash = link.getAttribute("href");
        }
    }
  }, true);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close]")) return;
    const from = louver.from;
    louver.from = null;
    setTimeout(() => from?.focus?.(), 60);
  });
  // A button may be moved by an answer while it is pressed; the browser then sees a press and a release in two places, and no click.
  let pressed = null;
  document.addEventListener("pointerdown", (event) => {
    const button = event.button === 0 ? event.target.closest("button, a[href], summary") : null;
    pressed = button && { button, x: event.clientX, y: event.clientY };
  }, true);
  document.addEventListener("pointerup", (event) => {
    const held = pressed;
    pressed = null;
    if (!held?.button.isConnected || held.button.contains(event.target)) return;
    if (Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) held.button.click();
  }, true);
  document.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    louver.upload(event.dataTransfer.files[0]);
  });
})();
