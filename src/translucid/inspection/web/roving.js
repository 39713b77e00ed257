// Roving tabindex: a group of buttons is a single Tab stop, and the arrow keys move the focus within it.

// Set up the keyboard navigation of a group of buttons. Home and End move to the ends of a row.
//
// rows: arrays of buttons.
// isVertical: a function that returns whether the rows currently run from top to bottom, so that the arrow keys swap their roles.
export function addRovingTabindex(rows, isVertical = () => false) {
  const buttons = rows.flat();
  if (!buttons.length) return;
  setTabStop(buttons.find((button) => button.getAttribute("aria-selected") === "true") ?? buttons[0]);
  for (const button of buttons) {
    button.addEventListener("focus", () => setTabStop(button));
    button.addEventListener("keydown", (event) => {
      const next = findNext(button, event.key);
      if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      next.focus();
    });
  }

  function setTabStop(tabStop) {
    for (const button of buttons) button.tabIndex = button === tabStop ? 0 : -1;
  }

  function findNext(button, key) {
    const rowIndex = rows.findIndex((row) => row.includes(button));
    const row = rows[rowIndex];
    const index = row.indexOf(button);
    if (key === "Home") return row[0];
    if (key === "End") return row.at(-1);
    const [previous, next, previousRow, nextRow] = isVertical()
      ? ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]
      : ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
    if (key === previous || key === next) {
      const isForwards = (key === next) !== isReversed(row);
      return row[index + (isForwards ? 1 : -1)];
    }
    if (key === previousRow) return nearestButton(button, rows[rowIndex - 1]);
    if (key === nextRow) return nearestButton(button, rows[rowIndex + 1]);
    return undefined;
  }

  // Whether the first button of a row is its rightmost one. The CSS direction decides, because positions mislead where rows wrap.
  function isReversed(row) {
    return !isVertical() && getComputedStyle(row[0].parentElement).direction === "rtl";
  }
}

function nearestButton(button, row) {
  if (!row) return undefined;
  const [x, y] = center(button);
  const distance = (candidate) => {
    const [candidateX, candidateY] = center(candidate);
    return Math.hypot(candidateX - x, candidateY - y);
  };
  return row.reduce((nearest, candidate) => (distance(candidate) < distance(nearest) ? candidate : nearest));
}

function center(button) {
  const { left, width, top, height } = button.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}
