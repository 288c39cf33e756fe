// The rules: each takes its numbers and the number of classes, and gives what writes (feature, class) terms.

import { bytes, cholesky, logRising, numbers, product, solve, sum } from "./numbers.js";
import { MANNERS } from "./texts.js";

const LOG_2PI = Math.log(2 * Math.PI);
const LARGEST = 1e290; // of amounts: larger ones count as this, for log x! of them is not finite

/** The numbers of some names, undefined where there are none. */
const held = (part, ...names) => names.map((name) => part[name] && numbers(part[name]));

/** A rule for each column by itself: what one present number says of a class, by the place of its parameters. */
const each = (makes) => (part, k) => {
  const term = makes(part);
  return (x, out) => {
    for (let j = 0; j < x.length; j += 1) {
      if (!Number.isNaN(x[j])) for (let i = j * k; i < (j + 1) * k; i += 1) out[i] = term(x[j], i);
    }
  };
};

export const RULES = {
  normal: each((part) => {
    const [loc, inverse, constant] = held(part, "loc", "inverse", "constant");
    return (x, i) => constant[i] - 0.5 * ((x - loc[i]) * inverse[i]) ** 2;
  }),
  student: each((part) => {
    const [loc, scale, df, constant, exponent] = held(part, "loc", "scale", "df", "constant", "exponent");
    return (x, i) => constant[i] - exponent[i] * Math.log1p(((x - loc[i]) / scale[i]) ** 2 / df[i]);
  }),
  lomax: each((part) => {
    const [constant, exponent, rate] = held(part, "constant", "exponent", "rate");
    return (x, i) => (x < 0 ? -Infinity : constant[i] - exponent[i] * Math.log1p(x / rate[i]));
  }),
  negative_binomial: each((part) => {
    const [shape, constant, slope] = held(part, "shape", "constant", "slope");
    return (given, i) => {
      const x = Math.min(given, LARGEST);
      return x < 0 ? -Infinity : logRising(shape[i], x) + constant[i] - x * slope[i];
    };
  }),
  switch: each((part) => {
    const [no, yes] = held(part, "no", "yes");
    return (x, i) => (x > part.threshold ? yes[i] : no[i]);
  }),
  share: each((part) => {
    const [no, yes] = held(part, "no", "yes");
    return (x, i) => (x === 0 ? 0 : x * yes[i]) + (x === 1 ? 0 : (1 - x) * no[i]);
  }),
  polynomial(part, k) {
    const [constant, slope] = held(part, "constant", "slope");
    const square = part.square && numbers(part.square);
    const low = part.low ?? -Infinity;
    const term = each(() => (x, i) => {
      if (x < low || (part.open && x === low)) return -Infinity;
      return constant[i] + (x === 0 ? 0 : x * slope[i]) + (square ? x * x * square[i] : 0);
    })(part, k);
    if (part.zero) return (x, out) => term(x.map((one) => (Number.isNaN(one) ? 0 : Math.min(one, LARGEST))), out);
    return part.low === undefined ? term : (x, out) => term(x.map((one) => Math.min(one, LARGEST)), out);
  },
  log(part, k) {
    const of = RULES[part.of.rule](part.of, k);
    return (x, out) => {
      of(x.map((one) => (one > 0 ? Math.log(one) : NaN)), out);
      for (let j = 0; j < x.length; j += 1) {
        if (x[j] <= 0) out.fill(-Infinity, j * k, (j + 1) * k);
      }
    };
  },
  levels(part, k) {
    const table = numbers(part.table);
    const starts = part.sizes.map(((at) => (size) => (at += size + 1) - size - 1)(0));
    return (x, out) => {
      for (let j = 0; j < x.length; j += 1) {
        const at = (starts[j] + x[j]) * k;
        if (x[j] >= 0) for (let c = 0; c < k; c += 1) out[j * k + c] = table[at + c];
      }
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
    return (x, out) => {
      sets.forEach(({ columns, start }, s) => {
        if (columns.some((j) => x[j] < 0 || x[j] >= part.sizes[j])) return;
        const cell = start + columns.reduce((place, j) => place * part.sizes[j] + x[j], 0);
        for (let c = 0; c < k; c += 1) out[s * k + c] = table[cell * k + c];
      });
    };
  },
  dirichlet_multinomial(part, k) {
    const [alpha, total] = held(part, "alpha", "total");
    return (x, out) => {
      const counts = x.map((one) => (Number.isNaN(one) ? 0 : Math.min(one, LARGEST)));
      const length = sum(counts);
      for (let c = 0; c < k; c += 1) {
        const norm = logRising(total[c], length);
        counts.forEach((n, j) => {
          out[j * k + c] = logRising(alpha[j * k + c], n) - (length ? (norm * n) / length : 0);
        });
      }
    };
  },
  together,
  discriminants,
  terms,
  polya,
};

/** Columns of one normal or t: what each says given those before it that are present. */
function together(part, k) {
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
  return (x, out) => {
    const some = x.map((_, j) => j).filter((j) => !Number.isNaN(x[j]) && !part.constant[j]);
    const found = rootsOf(some);
    for (let c = 0; c < k; c += 1) {
      const { unit, root } = found[Math.min(c, found.length - 1)];
      const z = solve(root, some.map((j, a) => (x[j] - loc[c * p + j]) * unit[a]));
      let before = df ? df[c] : 0;
      some.forEach((j, a) => {
        const square = (z[a] * z[a]) / factor[c];
        const norm = Math.log(root[(a * (a + 3)) / 2] / unit[a]) + 0.5 * Math.log(factor[c]);
        if (before === Infinity) return (out[j * k + c] = -Infinity); // the columns before say that the row cannot be
        const density = df
          ? rising[c * p + a] - 0.5 * Math.log(Math.PI * before) - 0.5 * (df[c] + a + 1) * Math.log1p(square / before)
          : -0.5 * (LOG_2PI + square);
        out[j * k + c] = density - norm;
        before += square;
      });
    }
  };
}

/** Scores under normal laws of one covariance, and of one a class. */
function discriminants(part, k) {
  const [means, rows, root] = held(part, "means", "rows", "root");
  const [centres, roots, peak, exponent] = held(part, "centres", "roots", "peak", "exponent");
  const p = means.length / k;
  const factor = rows.map((n) => n / (n + 1));
  const distance = (a, b, start) => {
    let total = 0;
    for (let j = 0; j < p; j += 1) total += (a[j] - b[start + j]) ** 2;
    return total;
  };
  return (x, out) => {
    const z = product(root, 0, x);
    const away = (c) => distance(z, means, c * p);
    const linear = Array.from(factor, (f, c) => (0.5 * p * Math.log(f) - 0.5 * f * away(c)) / Math.sqrt(p));
    out.set(guarded(linear, rows), 0);
    if (!roots) return;
    const none = new Float64Array(p);
    const quadratic = Array.from(factor, (f, c) => {
      const y = product(roots, (c * p * (p + 1)) / 2, x.map((one, j) => one - centres[c * p + j]));
      return peak[c] - (exponent[c] * Math.log1p(f * distance(y, none, 0))) / Math.sqrt(p);
    });
    out.set(guarded(quadratic, rows), k);
  };
}

/** Terms where the next row may be unlike all rows before: once in rows + 1, and then it is as a row of any class. */
function guarded(terms, rows) {
  const top = Math.max(...terms);
  const shares = terms.map((term, c) => rows[c] * Math.exp(term - top));
  const any = sum(shares) / sum(rows);
  return shares.map((share, c) => Math.log((share + any) / (rows[c] + 1)) + top);
}

/** The known terms of texts, with the cells of each. */
function vocabulary(part) {
  const [classes, value] = [part.classes, numbers(part.value)];
  const known = new Map();
  let start = 0;
  part.terms.forEach((term, i) => {
    known.set(term, { i, start, stop: start + part.cells[i] });
    start += part.cells[i];
  });
  return { known, classes, value };
}

/** A sum over the terms of a text; each with a weight of its own, and less in a longer text, where terms are heard. */
function terms(part, k) {
  const { known, classes, value } = vocabulary(part);
  const [shared, unit, common, scale] = held(part, "shared", "unit", "common", "scale");
  const [constant, heard, silent] = held(part, "constant", "heard", "silent");
  const weigh = MANNERS[part.manner];
  return ([counts], out) => {
    if (counts === null && silent) out.set(silent);
    if (counts === null) return;
    const own = new Float64Array(k);
    const met = new Float64Array(k);
    let [units, commons, length, n] = [0, 0, 0, 0];
    for (const [term, times] of counts) {
      const at = known.get(term);
      if (at === undefined) continue;
      const x = weigh(times);
      const w = heard ? x * heard[at.i] : x;
      for (let i = at.start; i < at.stop; i += 1) {
        own[classes[i]] += w * value[i];
        met[classes[i]] += 1;
      }
      units += unit ? w * unit[at.i] : w;
      commons += common ? x * common[at.i] : 0;
      length += x;
      n += 1;
    }
    const share = heard && length > 0 ? length ** -part.power : 1;
    for (let c = 0; c < k; c += 1) {
      out[c] = (own[c] + shared[c] * units) * share + (scale ? scale[c] * commons : 0) + (constant ? constant[c] : 0);
      if (silent && n === 0) out[c] += silent[c];
      if (part.only_known?.[c] && met[c] < n) out[c] = -Infinity;
    }
  };
}

/** A term that occurred is likelier to occur again. */
function polya(part, k) {
  const { known, classes, value } = vocabulary(part);
  const [alpha, concentration] = held(part, "alpha", "concentration");
  return ([counts], out) => {
    if (counts === null) return;
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
  };
}
