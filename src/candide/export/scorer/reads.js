// How values are read: a number, a code (-1 missing, the number of levels if unseen), scores or a text.

import { below, cholesky, interpolate, numbers, solve } from "./numbers.js";
import { countTokens } from "./texts.js";
import { ABSENT, numberOf, placeOf, textOf } from "./values.js";

export const READS = {
  number: (read, column) => (value, out) => out.push(numberOf(column, value)),
  grid(read, column) {
    const edges = numbers(read.edges);
    return (value, out) => {
      const x = numberOf(column, value);
      out.push(Number.isNaN(x) ? -1 : below(edges, x));
    };
  },
  levels(read, column) {
    const code = new Map(read.levels.map((place, i) => [place, i]));
    return (value, out) => {
      const place = placeOf(column, value);
      out.push(place === ABSENT ? -1 : (code.get(place) ?? read.levels.length));
    };
  },
  score(read, column, shared) {
    const [values, scores] = [numbers(read.values), shared[read.scores]];
    return (value, out) => {
      const x = numberOf(column, value);
      out.push(Number.isNaN(x) ? 0 : interpolate(x, values, scores));
    };
  },
  indicators(read, column) {
    const [yes, no] = [numbers(read.yes), numbers(read.no)];
    return (value, out) => {
      const place = placeOf(column, value);
      read.levels.forEach((level, i) => out.push(place === ABSENT ? 0 : level === place ? yes[i] : no[i]));
    };
  },
  tokens(read, column) {
    const how = { ...read, stop: new Set(read.stop_words) };
    return (value, out) => {
      const text = textOf(column, value);
      out.push(text === null ? null : countTokens(how, text));
    };
  },
};

/** Similarity to prototypes, decorrelated, of scores that were read. */
export function similarity(read) {
  const rows = numbers(read.rows);
  const p = rows.length / read.n;
  const typical = Array.from({ length: read.n }, (_, m) => rows.subarray(m * p, (m + 1) * p));
  const factor = -0.5 / read.length_scale ** 2;
  const like = (a, b) => {
    let square = 0;
    for (let j = 0; j < p; j += 1) square += (a[j] - b[j]) ** 2;
    return Math.exp(factor * square);
  };
  const among = typical.flatMap((a, i) => [...typical.slice(0, i).map((b) => like(a, b)), 1 + read.ridge]);
  const root = cholesky(among, read.n);
  const scale = Math.sqrt(read.n);
  return (scores) => Array.from(solve(root, typical.map((one) => like(one, scores))), (one) => one * scale);
}
