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
