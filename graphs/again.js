// Loads the page anew where one of its files did not come. A browser drops what is on its way whenever a network of the
// machine comes or goes, as Docker's do with each container. It is within the page itself, so that it is always there. A
// page that is ready has all its files, and whoever works with it is not interrupted.

addEventListener(
  "error",
  ({ target }) => {
    const tries = (history.state?.tries ?? 0) + 1;
    if (target === window || tries > 20 || document.body?.dataset.ready) return;
    document.documentElement.dataset.again = "true";
    history.replaceState({ tries }, "");
    setTimeout(() => location.reload(), 100 * tries);
  },
  true,
);
