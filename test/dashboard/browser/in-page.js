// What tests ask a page from inside. Each page gets it before its own script (use-browser.ts).
document.addEventListener(
  "securitypolicyviolation",
  ({ violatedDirective, blockedURI, sample }) => {
    console.error(`refused by ${violatedDirective}: ${blockedURI} ${sample}`);
  },
);

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

async function axeFaults(options) {
  const { violations } = await globalThis.axe.run(document, options);
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
    (each) =>
      each.disabled !== true &&
      !isOtherChoice(each) &&
      each.checkVisibility({ visibilityProperty: true }),
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

globalThis.inPage = { sidewaysFaults, axeFaults, noteFocus };
