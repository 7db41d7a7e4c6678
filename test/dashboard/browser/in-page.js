// What tests ask a page from inside. Each page gets it before its own script (use-browser.ts).
document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) => {
  console.error(`refused by ${violatedDirective}: ${blockedURI} ${sample}`);
});

const nameOf = (element) => element.outerHTML.slice(0, 120);

/** What makes the page itself scroll sideways: the elements that reach beyond the window. */
function sidewaysFaults() {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const beyond = [...document.body.querySelectorAll("*")].filter(
    (each) => each.getBoundingClientRect().right > clientWidth + 1,
  );
  const names = beyond.slice(0, 3).map(nameOf).join(" | ");
  return [`${scrollWidth} px wide in ${clientWidth}: ${names}`];
}

/** The rows of tables and lists that have the form of a row before them, and other words. */
function repeatedRows() {
  const seen = new Map();
  return [...document.querySelectorAll("main :is(tbody > tr, li)")].filter((row) => {
    const form = row.outerHTML
      .replaceAll(/>[^<]+</g, ">x<")
      .replaceAll(/ (?:href|value|datetime|title|id|for|aria-label|aria-describedby)="[^"]*"/g, "");
    const forms = seen.get(row.parentElement) ?? new Set();
    const isKnown = forms.has(form);
    seen.set(row.parentElement, forms.add(form));
    return isKnown;
  });
}

async function axeFaults({ options, onlyContent }) {
  const where = onlyContent ? { include: ["main", ".foot"], exclude: repeatedRows() } : document;
  const { violations } = await globalThis.axe.run(where, options);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.slice(0, 3).map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  );
}

const reachableSelector =
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0'], [contenteditable]";

/** Of a group of choices Tab reaches one. */
function isOtherChoice(element) {
  if (element.type !== "radio") return false;
  const group = [...document.querySelectorAll("input[type=radio]")].filter(
    ({ name, form }) => name === element.name && form === element.form,
  );
  return element !== (group.find(({ checked }) => checked) ?? group[0]);
}

/** Notes from now on where the focus goes. Gives back the names of all that Tab should reach, in order. */
function noteFocus() {
  const reachable = [...document.querySelectorAll(reachableSelector)].filter(
    (each) => each.disabled !== true && !isOtherChoice(each) && each.checkVisibility({ visibilityProperty: true }),
  );
  globalThis.stops = [];
  document.addEventListener("focusin", ({ target }) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(target);
    const { width, height } = target.getBoundingClientRect();
    globalThis.stops.push({
      place: reachable.indexOf(target),
      name: nameOf(target),
      isSeen: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2 && width * height > 0,
    });
  });
  document.activeElement?.blur();
  return reachable.map(nameOf);
}

const bidiMarks = /[\u202a-\u202e\u2066-\u2069]/;
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/** Whether a mark that turns the direction of text can turn what stands beside it. */
function turnsOthers(node) {
  for (let each = node.parentElement; each !== null; each = each.parentElement) {
    const { unicodeBidi, display } = getComputedStyle(each);
    if (/isolate|plaintext/.test(unicodeBidi) && each.textContent.trim() === node.data.trim()) return false;
    if (!display.startsWith("inline")) return each.textContent.trim() !== node.data.trim();
  }
  return false;
}

/** What a text from outside has done to the page. */
function hostileFaults() {
  const faults = [];
  if (globalThis.ran !== undefined) faults.push("a text ran");
  for (const made of document.querySelectorAll("[data-hostile], [onerror], [onfocus]")) {
    faults.push(`a text became an element: ${nameOf(made)}`);
  }
  for (const link of document.querySelectorAll("a[href], form[action], [src]")) {
    const to = link.href ?? link.action ?? link.src;
    if (new URL(to, location.href).origin !== location.origin && to !== "data:,") {
      faults.push(`leads elsewhere: ${nameOf(link)}`);
    }
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    if (controls.test(node.data)) faults.push(`a control character: ${nameOf(node.parentElement)}`);
    if (bidiMarks.test(node.data) && turnsOthers(node)) {
      faults.push(`turns what stands beside it: ${nameOf(node.parentElement.parentElement)}`);
    }
  }
  return faults.slice(0, 5);
}

globalThis.inPage = { hostileFaults, sidewaysFaults, axeFaults, noteFocus };
