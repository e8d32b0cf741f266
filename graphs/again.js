// Loads the page anew where one of its files did not come. A browser drops what is on its way whenever a network of the
// machine comes or goes, as Docker's do with each container. It is within the page itself, so that it is always there.

addEventListener(
  "error",
  ({ target }) => {
    const tries = (history.state?.tries ?? 0) + 1;
    if (target === window || tries > 20) return;
    history.replaceState({ tries }, "");
    setTimeout(() => location.reload(), 100 * tries);
  },
  true,
);
