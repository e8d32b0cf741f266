// The view as a file: SVG, or PNG at twice the resolution of the page.

import { button, el } from "./dom.js";
import { draw } from "./draw.js";
import { SvgContext } from "./svg_context.js";

// `saved(file)`: a browser was given the file.
export function saveFigure(plot, run, saved) {
  const name = `${run.about.run.replace(/[^\w.-]/g, "_")}-graph`;
  const give = (blob, kind) => {
    save(blob, `${name}.${kind}`);
    dialog.close();
    saved(`${name}.${kind}`);
  };
  const dialog = el(
    "dialog",
    { class: "dialog", "aria-label": "Save the view", onclose: () => dialog.remove() },
    el("h2", {}, "Save the view"),
    el("p", {}, "As it is drawn now. ", el("code", {}, "evogit export run.html"), " makes one file of the whole run."),
    el("div", { class: "buttons end" }, button("Cancel", () => dialog.close()), button("PNG", () => png(plot.scene(), (blob) => give(blob, "png"))), button("SVG", () => give(new Blob([svg(plot.scene())], { type: "image/svg+xml" }), "svg"), { class: "primary" })),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function svg(scene) {
  const context = new SvgContext(scene.width, scene.height);
  draw(context, scene);
  return context.toString();
}

function png(scene, give) {
  const canvas = el("canvas", { width: scene.width * 2, height: scene.height * 2 });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  draw(context, scene);
  canvas.toBlob(give, "image/png");
}

function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
