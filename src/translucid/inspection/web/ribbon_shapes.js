// The geometry of ribbons between two lines of words.

// Return a ribbon for each weight of at least `minWeight`, { s, t, weight, from: its edges above, into: its edges below }.
//
// weights: [below][above].
// above, below: { center, size } of each word along its line.
// maxWidth: pixels of a ribbon of weight 1 at the word below; it is at most as wide as the word.
//
// The ribbons of a word are side by side, in the order of the words at their other ends, so that they do not cover each other there.
// Where many ribbons start at one word above, they are narrowed to fit into its size.
export function layOutRibbons({ weights, above, below, maxWidth, minWeight }) {
  const ribbons = [];
  weights.forEach((row, t) => {
    const total = Math.max(1, sum(row.map(Math.abs)));
    const widthPerWeight = Math.min(maxWidth, below[t].size) / total;
    row.forEach((weight, s) => {
      const size = Math.abs(weight);
      if (size >= minWeight) ribbons.push({ s, t, weight, width: size * widthPerWeight });
    });
  });
  below.forEach(({ center }, t) => {
    const ofWord = ribbons.filter((ribbon) => ribbon.t === t).sort((a, b) => above[a.s].center - above[b.s].center);
    placeSideBySide(ofWord, "into", center, 1);
  });
  above.forEach(({ center, size }, s) => {
    const ofWord = ribbons.filter((ribbon) => ribbon.s === s).sort((a, b) => below[a.t].center - below[b.t].center);
    const total = Math.max(sum(ofWord.map(({ width }) => width)), 1e-9);
    placeSideBySide(ofWord, "from", center, Math.min(1, size / total));
  });
  return ribbons;
}

// Set the two edges of each ribbon at one of its ends, "from" or "into".
function placeSideBySide(ribbons, end, center, scale) {
  const total = sum(ribbons.map(({ width }) => width));
  let edge = center - (scale * total) / 2;
  for (const ribbon of ribbons) {
    const nextEdge = edge + scale * ribbon.width;
    ribbon[end] = [edge, nextEdge];
    edge = nextEdge;
  }
}

// Return the SVG path of a ribbon across a gap, from top to bottom; from left to right if `isVertical`.
export function ribbonPath({ from, into }, gap, isVertical) {
  const middle = gap / 2;
  const point = (along, across) =>
    isVertical ? `${round(across)} ${round(along)}` : `${round(along)} ${round(across)}`;
  const curve = (start, end, across) => `${point(start, middle)}, ${point(end, middle)}, ${point(end, across)}`;
  const [firstEdge, secondEdge] = [curve(from[0], into[0], gap), curve(into[1], from[1], 0)];
  return `M${point(from[0], 0)} C${firstEdge} L${point(into[1], gap)} C${secondEdge} Z`;
}

function round(value) {
  return Math.round(10 * value) / 10;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
