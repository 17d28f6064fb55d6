(() => {
  "use strict";
  const figure = document.querySelector("figure.diagram");
  if (!figure) return;
  const says = figure.querySelector(".says");
  const idle = says.textContent;
  const KINDS = ["branch", "in", "out"];
  let pinned = null;

  const keyOf = (element) => {
    const kind = KINDS.find((one) => element.dataset[one] !== undefined);
    return { kind, index: element.dataset[kind] };
  };
  const subject = (target) => (target.closest ? target.closest(".box, .node, .card") : null);

  function light(element) {
    const lit = element ? keyOf(element) : null;
    figure.classList.toggle("lit", lit !== null);
    document.querySelectorAll(".on").forEach((one) => one.classList.remove("on"));
    if (!lit) {
      says.textContent = idle;
      return;
    }
    const own = `[data-${lit.kind}="${lit.index}"]`;
    document.querySelectorAll(`.card${own}`).forEach((one) => one.classList.add("on"));
    for (const svg of figure.querySelectorAll("svg")) {
      const touched = [own];
      for (const edge of svg.querySelectorAll(`.edge${own}`)) {
        edge.classList.add("on");
        const ends = KINDS.filter((kind) => edge.dataset[kind] !== undefined);
        touched.push(...ends.map((kind) => `[data-${kind}="${edge.dataset[kind]}"]`));
      }
      svg.querySelectorAll(`.numbers ${own}`).forEach((one) => one.classList.add("on"));
      for (const which of new Set(touched)) {
        svg.querySelectorAll(`.box${which}, .node${which}`).forEach((one) => one.classList.add("on"));
      }
    }
    says.textContent = figure.querySelector(`.box${own}, .node${own}`).getAttribute("aria-label");
  }

  function pin(element) {
    pinned = element;
    figure.querySelectorAll(".box").forEach((box) => box.setAttribute("aria-pressed", String(box === element)));
  }

  const show = (event) => {
    const element = subject(event.target);
    if (element) light(element);
  };
  const leave = () => light(pinned);
  document.addEventListener("mouseover", show);
  document.addEventListener("mouseout", leave);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", leave);
  document.addEventListener("click", (event) => {
    const element = subject(event.target);
    pin(element && element !== pinned && !element.classList.contains("card") ? element : null);
    light(pinned || element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      pin(null);
      light(null);
    } else if ((event.key === "Enter" || event.key === " ") && event.target.closest(".box")) {
      event.preventDefault();
      event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    }
  });
  addEventListener("beforeprint", () => {
    light(null);
    document.querySelectorAll("details").forEach((one) => (one.open = true));
  });
})();
