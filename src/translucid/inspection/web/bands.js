// The shapes of ribbons between two lines of words.
//
// weights: [below][above]; above, below: for each word { at, size } along the line. A ribbon is as wide as its weight where it comes
// to the word below, `most` for a weight of 1; side by side, in the order of the words above, they do not cover each other there.
// Where many come from one word above they are pressed together to its size.

export function bands(weights, above, below, most, least) {
  const found = [];
  weights.forEach((row, t) => {
    const total = Math.max(1, sum(row.map(Math.abs)));
    const unit = Math.min(most, below[t].size) / total;
    row.forEach((weight, s) => { if (Math.abs(weight) >= least) found.push({ s, t, weight, wide: Math.abs(weight) * unit }); });
  });
  place(found, below, "t", "into", (band) => above[band.s].at, false);
  place(found, above, "s", "from", (band) => below[band.t].at, true);
  return found;
}

// Give each band its two edges at its word, side by side.
function place(found, words, side, end, order, press) {
  words.forEach(({ at, size }, i) => {
    const own = found.filter((band) => band[side] === i).sort((a, b) => order(a) - order(b));
    const total = sum(own.map((band) => band.wide));
    const scale = press ? Math.min(1, size / Math.max(total, 1e-9)) : 1;
    let edge = at - (scale * total) / 2;
    for (const band of own) {
      band[end] = [edge, edge + scale * band.wide];
      edge += scale * band.wide;
    }
  });
}

// The outline of a band across a gap, downwards or, `upright`, from left to right.
export function outline({ from, into }, gap, upright) {
  const point = (along, across) => (upright ? `${round(across)} ${round(along)}` : `${round(along)} ${round(across)}`);
  const curve = (a, b, start, end) => `${point(a, (start + end) / 2)}, ${point(b, (start + end) / 2)}, ${point(b, end)}`;
  return `M${point(from[0], 0)} C${curve(from[0], into[0], 0, gap)} L${point(into[1], gap)} C${curve(into[1], from[1], gap, 0)} Z`;
}

function round(value) {
  return Math.round(10 * value) / 10;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
