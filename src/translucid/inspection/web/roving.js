// One Tab stop for many buttons: the arrow keys go from one to another, Home and End to the ends of a line.
//
// lines: [[button, …], …]. `upright()` says whether the lines run downwards at the moment.

export function roving(lines, upright = () => false) {
  const all = lines.flat();
  if (!all.length) return;
  const stop = all.find((one) => one.getAttribute("aria-selected") === "true") ?? all[0];
  for (const one of all) {
    one.tabIndex = one === stop ? 0 : -1;
    one.addEventListener("focus", () => { for (const other of all) other.tabIndex = other === one ? 0 : -1; });
    one.addEventListener("keydown", (event) => {
      const next = after(one, event.key);
      if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      next.focus();
    });
  }

  function after(one, key) {
    const l = lines.findIndex((line) => line.includes(one));
    const line = lines[l];
    const at = line.indexOf(one);
    if (key === "Home") return line[0];
    if (key === "End") return line.at(-1);
    const [back, on, before, behind] = upright()
      ? ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]
      : ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
    const reversed = !upright() && getComputedStyle(line[0].parentElement).direction === "rtl"; // places do not tell: lines wrap
    if (key === back || key === on) return line[at + ((key === on) === reversed ? -1 : 1)];
    if (key === before) return nearest(one, lines[l - 1]);
    if (key === behind) return nearest(one, lines[l + 1]);
    return undefined;
  }

  function nearest(one, line) {
    if (!line) return undefined;
    const [x, y] = middle(one);
    const far = (other) => Math.hypot(middle(other)[0] - x, middle(other)[1] - y);
    return line.reduce((best, other) => (far(other) < far(best) ? other : best));
  }
}

function middle(one) {
  const { left, width, top, height } = one.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}
