// The pages work without it. It copies ids on click, and submits nothing by itself.
document.documentElement.classList.add("scripted");

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
  if (target === null || navigator.clipboard === undefined) return;
  const text = target.getAttribute("data-copy") ?? "";
  navigator.clipboard.writeText(text).then(
    () => {
      target.setAttribute("data-copied", "");
      setTimeout(() => target.removeAttribute("data-copied"), 1_200);
    },
    () => {},
  );
});

// Shows times as distances by the server's clock and renews them every few seconds; the title has the exact time. A time
// more than a month away stays a date.
const tellAges = (() => {
  const beganMs = Date.parse(document.body.dataset.now ?? "") - performance.now();
  if (Number.isNaN(beganMs)) return () => {};
  const units = [
    [86_400, "day"],
    [3_600, "hour"],
    [60, "min"],
    [1, "s"],
  ];
  const distance = (seconds) => {
    const [length, unit] = units.find(([each]) => seconds >= 2 * each) ?? [1, "s"];
    const n = Math.floor(seconds / length);
    return `${n} ${unit}${length >= 3_600 && n !== 1 ? "s" : ""}`;
  };
  const tell = () => {
    for (const time of document.querySelectorAll("time.ago")) {
      const seconds = (beganMs + performance.now() - Date.parse(time.dateTime)) / 1_000;
      const isNear = Math.abs(seconds) < 30 * 86_400;
      const text = !isNear ? time.title : seconds >= 0 ? `${distance(seconds)} ago` : `in ${distance(-seconds)}`;
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(tell, 5_000);
  return tell;
})();

// A part of a page that keeps itself up to date: parts/live.ts. One question at a time, 3 s after the last answer, and
// none while the page is hidden, something in the part is chosen, or nobody has touched the page for half an hour.
(() => {
  const part = document.querySelector("[data-live]");
  const toggle = document.querySelector("[data-live-toggle]");
  const said = document.querySelector("[data-live-said]");
  if (part === null || toggle === null || said === null) return;
  const everyMs = 3_000;
  const untouchedMs = 30 * 60_000;
  let isPaused = false;
  let touchedAt = performance.now();
  let fresh = 0;
  let shown = part.innerHTML;

  const say = (text) => {
    if (said.textContent !== text) said.textContent = text;
  };
  const keysOf = (root) =>
    new Set(Array.from(root.querySelectorAll("tbody a[href]:first-of-type"), ({ href }) => href));
  const isBusy = () => part.contains(document.activeElement) || part.querySelector("input:checked") !== null;

  async function refresh() {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    // Signed out, or a page of a problem: what stands there is the last that is known.
    if (!answer.ok || answer.redirected) {
      pause("Paused: the page could not be read again. Reload it.");
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.querySelector("[data-live]");
    if (next === null || isBusy()) return;
    const known = keysOf(part);
    const rows = Array.from(next.querySelectorAll("tbody tr")).filter((row) => {
      const link = row.querySelector("a[href]");
      return link !== null && !known.has(link.href);
    });
    for (const row of rows) row.classList.add("fresh");
    if (shown !== next.innerHTML) {
      shown = next.innerHTML;
      part.replaceChildren(...next.childNodes);
      tellAges();
    }
    fresh += rows.length;
    say(fresh === 0 ? "Up to date. New rows come by themselves." : `${fresh} new since you opened the page.`);
  }

  function pause(text) {
    isPaused = true;
    toggle.setAttribute("aria-pressed", "true");
    toggle.textContent = "Go on";
    say(text);
  }

  async function look() {
    if (!isPaused && !document.hidden && !isBusy()) {
      if (performance.now() - touchedAt > untouchedMs) pause("Paused: nobody was here for a while.");
      else await refresh().catch(() => say("The dashboard does not answer; trying again."));
    }
    setTimeout(look, everyMs);
  }

  toggle.addEventListener("click", () => {
    if (!isPaused) return pause("Paused.");
    isPaused = false;
    toggle.setAttribute("aria-pressed", "false");
    toggle.textContent = "Pause";
    say("");
  });
  for (const kind of ["pointerdown", "keydown"]) {
    document.addEventListener(kind, () => (touchedAt = performance.now()));
  }
  setTimeout(look, everyMs);
})();

// Moves by keys, listed by "?". Not while a field has the focus, nor together with Ctrl, Alt or Meta. Who speaks to the
// computer can turn them off on the page of their own account.
(() => {
  const pages = new Map(Array.from(document.querySelectorAll(".side li a"), (link) => [link.dataset.key, link]));
  if (pages.size === 0) return;
  const offKey = "tallyhook-keys-off";
  const isOff = () => localStorage.getItem(offKey) !== null;
  const withinMs = 1_500;
  let goPressedAt = Number.NEGATIVE_INFINITY;

  const isWriting = (target) =>
    target instanceof Element &&
    target.closest("input:not([type=checkbox]):not([type=radio]), select, textarea, dialog") !== null;
  const rowLinks = () =>
    [...document.querySelectorAll("main tbody tr a[href]:first-of-type")].filter(
      (link, n, all) => all[n - 1]?.closest("tr") !== link.closest("tr"),
    );

  function moveBy(step) {
    const links = rowLinks();
    const now = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = now < 0 ? (step > 0 ? 0 : links.length - 1) : now + step;
    const link = links[next];
    link?.focus();
    return link !== undefined;
  }

  function focusSearch() {
    const field = document.querySelector(".find input, main form[method=get] input:not([type=hidden])");
    field?.focus();
    field?.select();
    return field !== null;
  }

  function openPage(key) {
    const link = pages.get(key);
    link?.click();
    return link !== undefined;
  }

  function showKeys() {
    const dialog = document.createElement("dialog");
    dialog.className = "card keys";
    dialog.setAttribute("aria-labelledby", "keys");
    const rows = [
      ["j, k", "Next row, row before"],
      ["/", "To the search field"],
      ["?", "This list"],
      ...Array.from(pages, ([key, link]) => [`g ${key}`, link.firstChild.textContent.trim()]),
    ];
    const title = document.createElement("h2");
    title.id = "keys";
    title.textContent = "Keys";
    const list = document.createElement("dl");
    list.className = "facts";
    for (const [keys, says] of rows) {
      list.append(document.createElement("dt"), document.createElement("dd"));
      list.lastChild.previousSibling.textContent = keys;
      list.lastChild.textContent = says;
    }
    const off = document.createElement("p");
    off.className = "hint";
    off.textContent = "Your account has a switch that turns them off.";
    const close = document.createElement("button");
    close.className = "second";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(title, list, off, close);
    document.body.append(dialog);
    dialog.showModal();
    return true;
  }

  const toggle = document.querySelector("[data-keys-switch]");
  const sayToggle = () => {
    if (toggle !== null) toggle.textContent = isOff() ? "Turn the keys on" : "Turn the keys off";
  };
  toggle?.addEventListener("click", () => {
    if (isOff()) localStorage.removeItem(offKey);
    else localStorage.setItem(offKey, "yes");
    sayToggle();
  });
  sayToggle();

  const moves = { j: () => moveBy(1), k: () => moveBy(-1), "/": focusSearch, "?": showKeys };

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (isOff() || isWriting(target)) return;
    const isGoing = performance.now() - goPressedAt < withinMs;
    goPressedAt = key === "g" && !isGoing ? performance.now() : Number.NEGATIVE_INFINITY;
    if (isGoing ? openPage(key) : Object.hasOwn(moves, key) && moves[key]()) event.preventDefault();
  });
})();

// Last, so that the part above compares what the server sent.
tellAges();
