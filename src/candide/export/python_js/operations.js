// Operations: the steps of a score expression, which give (feature, class) contributions of a row. Values
// are lists of numbers, feature by feature and within it class by class; a value by class has one number a class.

import { bytes, cholesky, logRising, numbers, product, solve, sum } from "./numbers.js";
import { COUNT_TRANSFORMS } from "./reads.js";

const LOG_2PI = Math.log(2 * Math.PI);
const MAX_QUESTIONS = 8; // of a decision table: its cells are bytes

/** The numbers of some names, undefined where there are none. */
const held = (part, ...names) => names.map((name) => part[name] && numbers(part[name]));

export const ELEMENTWISE = {
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
  divide: (a, b) => a / b,
  clip: (x, low, high) => Math.min(Math.max(x, low), high),
  square: (x, factor) => (x * factor) ** 2,
  log: Math.log,
  log1p: (factor, x) => factor * Math.log1p(x),
  exp: Math.exp,
  log_rising: logRising,
  less: (a, b) => (a < b ? 1 : 0),
  less_equal: (a, b) => (a <= b ? 1 : 0),
  equal: (a, b) => (a === b ? 1 : 0),
  is_missing: (x) => (Number.isNaN(x) ? 1 : 0),
  where: (condition, yes, no) => (condition ? yes : no),
};

/** One number of all classes, for every class. */
const overClasses = (start, reduce) => (k, x) => {
  const out = new Float64Array(x.length);
  for (let at = 0; at < x.length; at += k) {
    let total = start;
    for (let i = at; i < at + k; i += 1) total = reduce(total, x[i]);
    out.fill(total, at, at + k);
  }
  return out;
};

export const REDUCTIONS = {
  sum(k, x) {
    const out = new Float64Array(k);
    for (let i = 0; i < x.length; i += 1) out[i % k] += x[i];
    return out;
  },
  class_sum: overClasses(0, (a, b) => a + b),
  class_max: overClasses(-Infinity, Math.max),
  stack(k, a, b) {
    const out = new Float64Array(a.length + b.length);
    out.set(a);
    out.set(b, a.length);
    return out;
  },
};

/** Values by class, repeated for every feature. */
function repeated(value, n) {
  if (value.length === n) return value;
  const out = new Float64Array(n);
  for (let at = 0; at < n; at += value.length) out.set(value, at);
  return out;
}

/** An operation on each value, of one, two or three arguments. */
const elementwise = (of) => (k, a, b = a, c = a) => {
  const n = Math.max(a.length, b.length, c.length);
  const [x, y, z, out] = [repeated(a, n), repeated(b, n), repeated(c, n), new Float64Array(n)];
  for (let i = 0; i < n; i += 1) out[i] = of(x[i], y[i], z[i]);
  return out;
};

/** A function from the values of a row to (feature, class) contributions. */
export function compileScore(part, k) {
  const start = [null]; // the values of a row: first x, then constants, then those of the steps
  const places = new Map([["x", 0]]);
  const steps = part.score.map(([operation, ...names], i) => {
    const joint = JOINT[operation]?.(part, k, ...names.filter((name) => !places.has(name)));
    const compute = joint ?? REDUCTIONS[operation] ?? elementwise(ELEMENTWISE[operation]);
    for (const name of joint ? [] : names) {
      if (places.has(name)) continue;
      places.set(name, start.length);
      start.push(name in part ? numbers(part[name]) : new Float64Array(k).fill(Number(name)));
    }
    const own = names.filter((name) => places.has(name)).map((name) => places.get(name));
    places.set(`#${i}`, start.push(null) - 1);
    return { compute, joint, own, out: start.length - 1 };
  });
  const takesNumbers = steps.some(({ own }) => own.includes(0));
  return (x) => {
    const values = start.slice();
    if (takesNumbers) values[0] = Float64Array.from({ length: x.length * k }, (_, i) => x[Math.floor(i / k)]);
    for (const { compute, joint, own, out } of steps) {
      values[out] = compute(joint ? x : k, values[own[0]], values[own[1]], values[own[2]]);
    }
    return values[values.length - 1];
  };
}

export const JOINT = {
  lookup(part, k) {
    const table = numbers(part.table);
    const starts = part.sizes.map(((at) => (size) => (at += size + 1) - size - 1)(0));
    return (x) => {
      const out = new Float64Array(x.length * k);
      for (let j = 0; j < x.length; j += 1) {
        const at = (starts[j] + x[j]) * k;
        if (x[j] >= 0) for (let c = 0; c < k; c += 1) out[j * k + c] = table[at + c];
      }
      return out;
    };
  },
  cells(part, k) {
    const sets = [];
    const [odd, usual, values] = [bytes(part.odd), numbers(part.usual), numbers(part.table)];
    const table = [];
    for (let at = 0, next = 0; at < part.sets.length; at += part.order) {
      const columns = part.sets.slice(at, at + part.order);
      const first = (at / part.order) * k;
      sets.push({ columns, start: table.length / k });
      const end = table.length + k * columns.reduce((cells, j) => cells * part.sizes[j], 1);
      for (let i = table.length; i < end; i += 1) {
        const isOdd = (odd[i >> 3] >> (i & 7)) & 1;
        table.push(isOdd ? values[next++] : usual[first + (i % k)]);
      }
    }
    return (x) => {
      const out = new Float64Array(sets.length * k);
      sets.forEach(({ columns, start }, s) => {
        if (columns.some((j) => x[j] < 0 || x[j] >= part.sizes[j])) return;
        const cell = start + columns.reduce((place, j) => place * part.sizes[j] + x[j], 0);
        for (let c = 0; c < k; c += 1) out[s * k + c] = table[cell * k + c];
      });
      return out;
    };
  },
  tables,
  distance,
  conditional,
  tokens,
  polya,
};

/** Decision tables: each code of a column sets bits of the cell in every table; code 0 is missing or unseen. */
function tables(part, k) {
  const [sides, filled, data] = [bytes(part.sides), bytes(part.filled), bytes(part.values)];
  const view = new DataView(data.buffer);
  const n = part.questions.length / MAX_QUESTIONS;
  const bits = part.sizes.map((size) => Array.from({ length: size + 1 }, () => new Uint8Array(n)));
  const scores = []; // of each class in every cell
  const starts = new Uint32Array(n);
  let [side, cell, value] = [0, 0, 0];
  for (let t = 0; t < n; t += 1) {
    const columns = part.questions.slice(t * MAX_QUESTIONS, (t + 1) * MAX_QUESTIONS).filter((j) => j >= 0);
    columns.forEach((j, i) => {
      for (const own of bits[j]) {
        own[t] |= ((sides[side >> 3] >> (side & 7)) & 1) << (columns.length - 1 - i);
        side += 1;
      }
    });
    starts[t] = cell * k;
    for (const stop = cell + 2 ** columns.length; cell < stop; cell += 1) {
      const isFilled = (filled[cell >> 3] >> (cell & 7)) & 1;
      for (let c = 0; c < k; c += 1) scores.push(isFilled ? view.getFloat32(4 * value++, true) / part.chains : 0);
    }
  }
  const table = Float64Array.from(scores);
  return (x) => {
    const cells = new Uint8Array(n);
    bits.forEach((column, j) => {
      const own = column[x[j] + 1 < column.length ? x[j] + 1 : 0];
      for (let t = 0; t < n; t += 1) cells[t] |= own[t];
    });
    const out = new Float64Array(part.stops.length * k);
    let t = 0;
    part.stops.forEach((stop, segment) => {
      for (; t < stop; t += 1) {
        const at = starts[t] + cells[t] * k;
        for (let c = 0; c < k; c += 1) out[segment * k + c] += table[at + c];
      }
    });
    return out;
  };
}

/** |R x - mean|^2 of each class. */
function distance(part, k, name) {
  const [roots, means] = held(part, `${name}_roots`, `${name}_means`);
  const p = means.length / k;
  const size = (p * (p + 1)) / 2;
  const shared = roots.length === size;
  return (x) => {
    const out = new Float64Array(k);
    let z;
    for (let c = 0; c < k; c += 1) {
      if (c === 0 || !shared) z = product(roots, c * size, x);
      for (let j = 0; j < p; j += 1) out[c] += (z[j] - means[c * p + j]) ** 2;
    }
    return out;
  };
}

/** Columns of one normal or t: each given those before it that are present. */
function conditional(part, k) {
  const [loc, matrix, factor] = held(part, "loc", "matrix", "factor");
  const [df, rising] = held(part, "df", "rising");
  const p = loc.length / k;
  const size = (p * (p + 1)) / 2;
  const roots = new Map(); // by the columns that are present
  const rootsOf = (some) => {
    const key = some.join();
    if (!roots.has(key)) roots.set(key, Array.from({ length: matrix.length / size }, (_, m) => rootOf(some, m * size)));
    return roots.get(key);
  };
  const rootOf = (some, start) => {
    const unit = some.map((i) => 1 / Math.sqrt(matrix[start + (i * (i + 1)) / 2 + i]));
    const entry = (i, j) => matrix[start + (i * (i + 1)) / 2 + j];
    const scaled = some.flatMap((i, a) => some.slice(0, a + 1).map((j, b) => entry(i, j) * unit[a] * unit[b]));
    return { unit, root: cholesky(scaled, some.length) };
  };
  return (row, given) => {
    const x = Array.from({ length: p }, (_, j) => given[j * k]);
    const out = new Float64Array(p * k);
    const some = x.map((_, j) => j).filter((j) => !Number.isNaN(x[j]) && !part.constant[j]);
    const found = rootsOf(some);
    for (let c = 0; c < k; c += 1) {
      const { unit, root } = found[Math.min(c, found.length - 1)];
      const z = solve(root, some.map((j, a) => (x[j] - loc[c * p + j]) * unit[a]));
      let before = df ? df[c] : 0;
      some.forEach((j, a) => {
        const square = (z[a] * z[a]) / factor[c];
        const norm = Math.log(root[(a * (a + 3)) / 2] / unit[a]) + 0.5 * Math.log(factor[c]);
        if (before === Infinity) return (out[j * k + c] = -Infinity); // impossible by the columns before
        const density = df
          ? rising[c * p + a] - 0.5 * Math.log(Math.PI * before) - 0.5 * (df[c] + a + 1) * Math.log1p(square / before)
          : -0.5 * (LOG_2PI + square);
        out[j * k + c] = density - norm;
        before += square;
      });
    }
    return out;
  };
}

/** The known tokens of texts, with the cells of each. */
function vocabulary(part) {
  const [classes, value] = [part.classes, numbers(part.value)];
  const known = new Map();
  let start = 0;
  part.tokens.forEach((term, i) => {
    known.set(term, { i, start, stop: start + part.cells[i] });
    start += part.cells[i];
  });
  return { known, classes, value };
}

/** A sum over the tokens of a text, each with its weight; with weights the sum is divided by a power of the length. */
function tokens(part, k) {
  const { known, classes, value } = vocabulary(part);
  const [shared, unit, common, scale] = held(part, "shared", "unit", "common", "scale");
  const [constant, weights, unknown] = held(part, "constant", "token_weights", "unknown_scores");
  const weigh = COUNT_TRANSFORMS[part.count_mode];
  return ([counts]) => {
    const out = new Float64Array(k);
    if (counts === null && unknown) out.set(unknown);
    if (counts === null) return out;
    const own = new Float64Array(k);
    const met = new Float64Array(k);
    let [units, commons, length, n] = [0, 0, 0, 0];
    for (const [term, times] of counts) {
      const at = known.get(term);
      if (at === undefined) continue;
      const x = weigh(times);
      const w = weights ? x * weights[at.i] : x;
      for (let i = at.start; i < at.stop; i += 1) {
        own[classes[i]] += w * value[i];
        met[classes[i]] += 1;
      }
      units += unit ? w * unit[at.i] : w;
      commons += common ? x * common[at.i] : 0;
      length += x;
      n += 1;
    }
    const share = weights && length > 0 ? length ** -part.power : 1;
    for (let c = 0; c < k; c += 1) {
      out[c] = (own[c] + shared[c] * units) * share + (scale ? scale[c] * commons : 0) + (constant ? constant[c] : 0);
      if (unknown && n === 0) out[c] += unknown[c];
      if (part.only_known?.[c] && met[c] < n) out[c] = -Infinity;
    }
    return out;
  };
}

/** A token that occurred is likelier to occur again. */
function polya(part, k) {
  const { known, classes, value } = vocabulary(part);
  const [alpha, concentration] = held(part, "alpha", "concentration");
  return ([counts]) => {
    const out = new Float64Array(k);
    if (counts === null) return out;
    let length = 0;
    for (const [term, times] of counts) {
      const at = known.get(term);
      if (at === undefined) continue;
      const own = Float64Array.from(alpha);
      for (let i = at.start; i < at.stop; i += 1) own[classes[i]] = value[i];
      for (let c = 0; c < k; c += 1) out[c] += logRising(own[c], times);
      length += times;
    }
    for (let c = 0; c < k; c += 1) out[c] -= logRising(concentration[c], length);
    return out;
  };
}
