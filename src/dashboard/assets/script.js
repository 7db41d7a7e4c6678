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

  const say = (text) => {
    if (said.textContent !== text) said.textContent = text;
  };
  const keysOf = (root) =>
    new Set(Array.from(root.querySelectorAll("tbody a[href]:first-of-type"), ({ href }) => href));
  const isBusy = () =>
    part.contains(document.activeElement) || part.querySelector("input:checked") !== null;

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
    if (part.innerHTML !== next.innerHTML) part.replaceChildren(...next.childNodes);
    fresh += rows.length;
    say(
      fresh === 0
        ? "Up to date. New rows come by themselves."
        : `${fresh} new since you opened the page.`,
    );
  }

  function pause(text) {
    isPaused = true;
    toggle.setAttribute("aria-pressed", "true");
    toggle.textContent = "Go on";
    say(text);
  }

  async function look() {
    if (!isPaused && !document.hidden && !isBusy()) {
      if (performance.now() - touchedAt > untouchedMs)
        pause("Paused: nobody was here for a while.");
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
