"use strict";
// Search hides what does not hold every word, opens what does, and marks the words. Nothing is fetched, nothing stored.
(() => {
  const box = document.getElementById("find"), told = document.getElementById("told");
  const entries = Array.from(document.querySelectorAll("article")), sections = Array.from(document.querySelectorAll("section"));
  const texts = entries.map((entry) => entry.textContent.normalize("NFC").toLowerCase());
  const kinds = document.querySelectorAll("button[data-kind]"), hiddenKinds = new Set();
  document.getElementById("tools").hidden = false;

  let marks = [], at = -1;

  // Enter goes to the next mark, Shift and Enter to the one before.
  function jump(by) {
    if (!marks.length) return;
    at = (at + by + marks.length) % marks.length;
    marks[at].startContainer.parentElement.scrollIntoView({ block: "center" });
  }

  function words() { return box.value.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean); }

  function mark(found, wanted) {
    if (!window.CSS || !CSS.highlights) return;
    CSS.highlights.delete("found");
    marks = [];
    at = -1;
    if (!wanted.length) return;
    const ranges = [];
    for (const entry of found) {
      const walker = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node && ranges.length < 2000; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (const word of wanted) {
          for (let from = text.indexOf(word); from >= 0 && ranges.length < 2000; from = text.indexOf(word, from + word.length)) {
            const range = new Range();
            range.setStart(node, from);
            range.setEnd(node, from + word.length);
            ranges.push(range);
          }
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
    marks = ranges;
  }

  function apply() {
    const wanted = words(), found = [];
    entries.forEach((entry, index) => {
      const hit = wanted.every((word) => texts[index].includes(word)) && !hiddenKinds.has(entry.dataset.kind);
      entry.hidden = !hit;
      if (hit) found.push(entry);
      if (hit && wanted.length) entry.querySelectorAll("details").forEach((fold) => {
        if (wanted.some((word) => fold.textContent.toLowerCase().includes(word))) fold.open = true;
      });
    });
    for (const section of sections) section.hidden = !section.querySelector("article:not([hidden])");
    told.textContent = wanted.length || hiddenKinds.size ? `${found.length} of ${entries.length}` : `${entries.length} entries`;
    mark(found, wanted);
  }

  let timer = 0;
  box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(apply, 120); });
  for (const button of kinds) button.addEventListener("click", () => {
    const kind = button.dataset.kind;
    if (!hiddenKinds.delete(kind)) hiddenKinds.add(kind);
    button.setAttribute("aria-pressed", String(!hiddenKinds.has(kind)));
    apply();
  });
  const fold = (open) => document.querySelectorAll("details").forEach((one) => { one.open = open; });
  document.getElementById("open").addEventListener("click", () => fold(true));
  document.getElementById("close").addEventListener("click", () => fold(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
    if (event.key === "Enter" && document.activeElement === box) jump(event.shiftKey ? -1 : 1);
    if (event.key === "Escape" && document.activeElement === box) { box.value = ""; apply(); }
  });
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target) target.querySelectorAll("details").forEach((one) => { one.open = true; });
  });
  apply();
})();
