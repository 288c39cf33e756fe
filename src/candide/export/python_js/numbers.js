// Numbers: packed lists, interpolation, and the linear algebra that scores need.

/** A list of numbers as it was written: one after another, or as the base64 of doubles. @returns {Float64Array} */
export function numbers(written) {
  if (typeof written !== "string") return Float64Array.from(written, Number);
  const data = bytes(written);
  const view = new DataView(data.buffer);
  return Float64Array.from({ length: data.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/** The bytes of base64 text. */
export const bytes = (written) => Uint8Array.from(atob(written), (letter) => letter.charCodeAt(0));

export function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

export function logSumExp(values) {
  const top = Math.max(...values);
  if (top === -Infinity) return top;
  return top + Math.log(sum(Array.from(values, (value) => Math.exp(value - top))));
}

/** Logarithms minus that of their sum, after subtracting the largest, beside which the sum would be lost. */
export function normalised(values) {
  const top = Math.max(...values);
  const moved = values.map((value) => value - top);
  const total = logSumExp(moved);
  return moved.map((value) => value - total);
}

/** The number of ascending numbers below x. */
export function below(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Linear interpolation, constant beyond the ends. */
export function interpolate(x, knots, values) {
  const last = knots.length - 1;
  if (x <= knots[0]) return values[0];
  if (x >= knots[last]) return values[last];
  const above = below(knots, x);
  if (knots[above] === x) return values[above];
  const unit = knots[last] / 4 - knots[0] / 4 < 2 ** 1020 ? 1 : 0.25; // differences of huge numbers would overflow
  const share = (x * unit - knots[above - 1] * unit) / (knots[above] * unit - knots[above - 1] * unit);
  return values[above - 1] + (values[above] - values[above - 1]) * share;
}

function stirling(a) {
  const b = 1 / (a * a);
  const tail = 1 / 1260 + b * (-1 / 1680 + b * (1 / 1188 - (b * 691) / 360360));
  return (1 / 12 + b * (-1 / 360 + b * tail)) / a;
}

/** log Gamma(a + x) / Gamma(a), by Stirling's series, with the large parts cancelled analytically. */
export function logRising(a, x) {
  if (x === 0) return 0;
  if (a === 0) return -Infinity;
  let shift = 0;
  for (; a < 16; a += 1) shift += x / a < Infinity ? Math.log1p(x / a) : Math.log(a + x) - Math.log(a);
  const end = a + x;
  return (a - 0.5) * Math.log1p(x / a) + x * (Math.log(end) - 1) + stirling(end) - stirling(a) - shift;
}

/** The Cholesky root of a positive definite matrix, given by its lower triangle. */
export function cholesky(lower, n) {
  const root = new Float64Array(lower);
  for (let i = 0; i < n; i += 1) {
    const row = (i * (i + 1)) / 2;
    for (let j = 0; j <= i; j += 1) {
      const other = (j * (j + 1)) / 2;
      let left = root[row + j];
      for (let m = 0; m < j; m += 1) left -= root[row + m] * root[other + m];
      root[row + j] = i === j ? Math.sqrt(left) : left / root[other + j];
    }
  }
  return root;
}

/** The solution of L z = x for a lower triangle. */
export function solve(root, x) {
  const z = new Float64Array(x.length);
  for (let i = 0, at = 0; i < x.length; i += 1) {
    let left = x[i];
    for (let j = 0; j < i; j += 1, at += 1) left -= root[at] * z[j];
    z[i] = left / root[at];
    at += 1;
  }
  return z;
}

/** L x of a lower triangle that begins at `start`. */
export function product(root, start, x) {
  const z = new Float64Array(x.length);
  for (let i = 0, at = start; i < x.length; i += 1) {
    let total = 0;
    for (let j = 0; j <= i; j += 1, at += 1) total += root[at] * x[j];
    z[i] = total;
  }
  return z;
}
