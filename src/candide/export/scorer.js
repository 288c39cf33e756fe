// The scorer of an exported model, without dependencies: `load(parameters)` gives a model whose `score(row)` says what
// each voice adds to each class, and the probabilities, as Candide has them. An ES module, for browsers and Node.

/**
 * @typedef {string | number | boolean | Date | null | undefined | string[]} Value  a string[] is a text in words
 * @typedef {{[column: string]: Value}} Row  null, undefined and "" are missing
 * @typedef {string | number | boolean} Label
 * @typedef {{name: string, kind: "number" | "level" | "text" | "date" | "boolean", levels: (string | number | boolean)[],
 *   range: [number, number] | null, missing: boolean}} Column
 * @typedef {{name: string, columns: string[], contributions: number[]}} Said  nats, one a class
 * @typedef {{log_prior: number[], voices: Said[], scores: number[], probabilities: number[], label: Label}} Score
 * @typedef {{name: string, columns: string[], say: (row: Row) => number[]}} Voice
 * @typedef {{columns: Column[], classes: Label[], voices: Voice[], score: (row: Row) => Score}} Model
 */

const FORMAT = 1;
const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Python's \s
const WORDS = /[\p{L}\p{N}_]{2,}/gu; // Python's \w, two or more
const [GAP, GAPS] = [new RegExp(`[${SPACES}]+`), new RegExp(`[${SPACES}]{2,}`, "g")];
const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/;
const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?: ?(Z|UTC|[+-]\d\d(?::?\d\d)?))?)?$/;
const CLOCK = /^(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?$/;
const PERIOD = /^(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const SPAN = /^(?:(-?\d+) days?(?:,? |$))?(?:([+-])?(\d+):(\d\d):(\d\d(?:\.\d+)?))?$/;
const DAY = 86400e6; // microseconds
const MONTHS = "january february march april may june july august september october november december".split(" ");
const LOG_2PI = Math.log(2 * Math.PI);
const [ABSENT, NEW] = [-1, -2]; // of values that are no level

// Numbers

/** A list of numbers as it was written: one after another, or as the base64 of doubles. @returns {Float64Array} */
function numbers(written) {
  if (typeof written !== "string") return Float64Array.from(written, Number);
  const bytes = Uint8Array.from(atob(written), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function logSumExp(values) {
  const top = Math.max(...values);
  if (top === -Infinity) return top;
  return top + Math.log(sum(Array.from(values, (value) => Math.exp(value - top))));
}

/** How many of ascending numbers lie below x. */
function below(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Straight lines through knots, level beyond the ends. */
function interpolate(x, knots, values) {
  const last = knots.length - 1;
  if (x <= knots[0]) return values[0];
  if (x >= knots[last]) return values[last];
  const above = below(knots, x);
  if (knots[above] === x) return values[above];
  const unit = knots[last] / 4 - knots[0] / 4 < 2 ** 1020 ? 1 : 0.25; // differences of huge numbers have no room
  const share = (x * unit - knots[above - 1] * unit) / (knots[above] * unit - knots[above - 1] * unit);
  return values[above - 1] + (values[above] - values[above - 1]) * share;
}

function stirling(a) {
  const b = 1 / (a * a);
  const tail = 1 / 1260 + b * (-1 / 1680 + b * (1 / 1188 - (b * 691) / 360360));
  return (1 / 12 + b * (-1 / 360 + b * tail)) / a;
}

/** log Gamma(a + x) / Gamma(a), by Stirling's series, whose large parts are subtracted on paper. */
function logRising(a, x) {
  if (x === 0) return 0;
  if (a === 0) return -Infinity;
  let shift = 0;
  for (; a < 16; a += 1) shift += Math.log1p(x / a);
  const end = a + x;
  return (a - 0.5) * Math.log1p(x / a) + x * (Math.log(end) - 1) + stirling(end) - stirling(a) - shift;
}

/** The lower triangular root of a positive definite matrix that is given by its lower triangle. */
function cholesky(lower, n) {
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

/** What solves L z = x, of a lower triangle. */
function solve(root, x) {
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
function product(root, start, x) {
  const z = new Float64Array(x.length);
  for (let i = 0, at = start; i < x.length; i += 1) {
    let total = 0;
    for (let j = 0; j <= i; j += 1, at += 1) total += root[at] * x[j];
    z[i] = total;
  }
  return z;
}

// Values

const isMissing = (value) => value === null || value === undefined || value === "" || Number.isNaN(value);

function refused(column, value, why) {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new Error(`column ${JSON.stringify(column.name)}: ${shown} ${why}`);
}

/** Microseconds since 1970 of a date with or without a time, in UTC where there is no zone; null where it is none. */
function moment(text) {
  const found = ISO.exec(text);
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part ?? 0));
  const at = clockless(year, month, day);
  if (at === null || hour > 23 || minute > 59 || second > 59) return null;
  const zone = /^([+-])(\d\d):?(\d\d)?$/.exec(found[8] ?? "");
  const ahead = zone ? (zone[1] === "-" ? -1 : 1) * (60 * Number(zone[2]) + Number(zone[3] ?? 0)) : 0;
  return at + 1e6 * (3600 * hour + 60 * (minute - ahead) + second) + fraction(found[7]);
}

const fraction = (text) => (text ? Number(text.slice(1, 7).padEnd(6, "0")) : 0);

/** Microseconds of a midnight; null where there is no such day. */
function clockless(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const right = year >= 1 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return right ? date.getTime() * 1e3 : null;
}

/** Microseconds of a duration; null where the text spells none. */
function duration(text) {
  if (!/\d/.test(text)) return null;
  const iso = PERIOD.exec(text);
  const [, sign, days, hours, minutes, seconds] = iso ?? reordered(SPAN.exec(text)) ?? [];
  if (!iso && seconds === undefined && days === undefined) return null;
  const clock = 3600 * Number(hours ?? 0) + 60 * Number(minutes ?? 0) + Number(seconds ?? 0);
  const whole = DAY * Number(days ?? 0);
  const rest = Math.round(1e6 * clock);
  if (iso) return (sign ? -1 : 1) * (whole + rest);
  return whole + (sign === "-" ? -rest : rest);
}

const reordered = (found) => found && [found[0], found[2], found[1], found[3], found[4], found[5]];

/** What a text spells, as a key by which levels are found; null where it is but text. */
function meaning(text) {
  if (NUMBER.test(text) && text.length < 400) return Number.isFinite(Number(text)) ? `number ${Number(text)}` : null;
  if (/^(true|false)$/i.test(text)) return `truth ${text.toLowerCase()}`;
  const at = moment(text);
  if (at !== null) return `moment ${at}`;
  const clock = CLOCK.exec(text);
  if (clock && text < "24") {
    const [hour, minute, second] = clock.slice(1, 4).map((part) => Number(part ?? 0));
    return minute < 60 && second < 60 ? `duration ${1e6 * (3600 * hour + 60 * minute + second) + fraction(clock[4])}` : null;
  }
  const long = duration(text);
  return long === null ? null : `duration ${long}`;
}

/** Where the levels of a column are found, whatever a value is written as. */
class Levels {
  constructor(levels) {
    this.text = new Map(); // by their letters
    this.typed = new Map(); // those that are no text, by what they are
    this.meant = new Map(); // those that are text, by what they spell; NEW where several spell the same
    this.days = !levels.some((level) => level?.type === "moment");
    levels.forEach((level, code) => {
      if (typeof level === "string") {
        this.text.set(level, code);
        const key = meaning(level);
        if (key !== null) this.meant.set(key, this.meant.has(key) ? NEW : code);
      } else this.typed.set(keyOf(level), code);
    });
  }

  /** The place of a level; NEW where the value is none of them, ABSENT where there is no value. */
  place(value) {
    if (isMissing(value) && !(value === "" && this.text.has(""))) return ABSENT;
    if (typeof value === "string") return this.text.get(value) ?? this.alike(meaning(value));
    const key = keyOf(value instanceof Date ? { type: "moment", value: value.getTime() * 1e3 } : value);
    if (this.typed.has(key)) return this.typed.get(key);
    if (this.text.has(String(value))) return this.text.get(String(value));
    const typed = this.alike(key);
    if (typed !== NEW) return typed;
    const truth = `truth ${Boolean(value)}`; // a truth is 1 or 0 where no text is its own
    const ways = typeof value === "boolean" ? [truth, key] : value === 0 || value === 1 ? [key, truth] : [key];
    return ways.map((way) => this.meant.get(way) ?? NEW).find((code) => code !== NEW) ?? NEW;
  }

  alike(key) {
    if (key === null) return NEW;
    const plain = key.startsWith("truth ") ? `number ${Number(key === "truth true")}` : key;
    const found = this.typed.get(plain);
    if (found !== undefined || !this.days || !plain.startsWith("moment ")) return found ?? NEW;
    return this.typed.get(`moment ${DAY * Math.floor(Number(plain.slice(7)) / DAY)}`) ?? NEW; // a time of a known day
  }
}

/** A truth is the number 1 or 0 among levels that are no text, as in Python. */
function keyOf(level) {
  if (typeof level === "object") return `${level.type === "duration" ? "duration" : "moment"} ${level.value}`;
  return `number ${Number(level)}`;
}

/** The number that a value is, NaN where it is missing; days since 1970 of a date. */
function numberOf(column, value) {
  if (isMissing(value)) return NaN;
  if (value instanceof Date) return value.getTime() / 86400e3;
  let read = value;
  if (typeof value === "string") {
    read = spelled(column, value);
    if (typeof read === "string") {
      if (/^\s*[+-]?nan\s*$/i.test(read)) return NaN;
      if (!NUMBER.test(read)) throw refused(column, value, "is not a number");
      read = Number(read);
    }
  }
  read = Number(read);
  if (Number.isNaN(read)) return NaN;
  if (!Number.isFinite(read)) throw refused(column, value, "is not a finite number");
  return read;
}

/** What a text means in a column of numbers or dates: a number, NaN where it means missing, or the text itself. */
function spelled(column, text) {
  const how = column.spelled ?? {};
  const bare = text.trim();
  if ((how.missing ?? []).includes(bare.toLowerCase())) return NaN;
  if (column.kind === "date") {
    const at = dated(bare, how.date) ?? moment(bare);
    return at === null ? text : at / DAY;
  }
  if (!how.pattern || !new RegExp(`^(?:${how.pattern})$`).test(text)) return text;
  const plain = how.put.reduce((left, [old, put]) => left.replaceAll(old, put), text).trim();
  return Number(how.percent ? `${plain}e-2` : plain);
}

/** Microseconds since 1970 of a date in the form of strptime; null where it has another. */
function dated(text, form) {
  if (!form) return null;
  const names = [];
  const parts = { d: "\\d{1,2}", m: "\\d{1,2}", Y: "\\d{4}", y: "\\d\\d", H: "\\d{1,2}", I: "\\d{1,2}", M: "\\d{1,2}", S: "\\d{1,2}", p: "[ap]m", B: "[a-z]+", b: "[a-z]+" };
  const pattern = form.replace(/%(.)|([^%])/g, (_, code, letter) => {
    if (letter !== undefined) return letter === " " ? "\\s+" : letter.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    names.push(code);
    return `(${parts[code]})`;
  });
  const found = new RegExp(`^${pattern}$`, "i").exec(text);
  if (!found) return null;
  const at = Object.fromEntries(names.map((name, i) => [name, found[i + 1].toLowerCase()]));
  const short = Number(at.y);
  const year = at.Y !== undefined ? Number(at.Y) : at.y !== undefined ? short + (short < 69 ? 2000 : 1900) : 1900;
  const named = at.B ?? at.b;
  const month = named === undefined ? Number(at.m ?? 1) : 1 + MONTHS.findIndex((m) => (at.B ? m : m.slice(0, 3)) === named);
  const midnight = clockless(year, month, Number(at.d ?? 1));
  const hour = at.H !== undefined ? Number(at.H) : at.I !== undefined ? (Number(at.I) % 12) + (at.p === "pm" ? 12 : 0) : 0;
  if (midnight === null || hour > 23) return null;
  return midnight + 1e6 * (3600 * hour + 60 * Number(at.M ?? 0) + Number(at.S ?? 0));
}

// Texts

/** UTF-8 of a string; half of a pair stands for itself, as in Python. */
function utf8(text) {
  const out = [];
  for (const letter of text) {
    const code = letter.codePointAt(0);
    if (code < 0x80) out.push(code);
    else if (code < 0x800) out.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) out.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else out.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return out;
}

/** MurmurHash3 of 32 bits (Appleby), seed 0, as a signed number. */
function murmur(bytes) {
  let h = 0;
  for (let i = 0; i < bytes.length; i += 4) {
    let k = bytes[i] | ((bytes[i + 1] ?? 0) << 8) | ((bytes[i + 2] ?? 0) << 16) | ((bytes[i + 3] ?? 0) << 24);
    k = Math.imul(k, 0xcc9e2d51);
    h ^= Math.imul((k << 15) | (k >>> 17), 0x1b873593);
    if (i + 4 <= bytes.length) h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
  }
  h ^= bytes.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 0;
}

/** The terms of a text, or of one that is given in words: runs of words, of characters, or of those within a word. */
function termsIn(read, value) {
  const text = read.lowercase ? String(value).toLowerCase() : String(value);
  const within = read.analyzer === "char_wb";
  let units = Array.isArray(value) ? value.map(String) : null;
  if (!units) {
    if (read.analyzer === "char") return runs(Array.from(text.replace(GAPS, " ")), read.ngrams, "");
    units = within ? text.split(GAP).filter(Boolean) : (text.match(WORDS) ?? []);
  }
  if (within) {
    return units.flatMap((word) => {
      const found = runs(Array.from(` ${word} `), read.ngrams, "");
      return found.length ? found : [` ${word} `];
    });
  }
  const longest = read.max_token_length ?? Infinity;
  return runs(units.filter((word) => !read.stop.has(word) && Array.from(word).length <= longest), read.ngrams, " ");
}

function runs(units, [low, high], gap) {
  const out = [];
  for (let n = low; n <= Math.min(high, units.length); n += 1) {
    for (let i = 0; i + n <= units.length; i += 1) out.push(units.slice(i, i + n).join(gap));
  }
  return out;
}

/** How often each term is met in a text, by its key. @returns {Map<string, number>} */
function termsOf(read, value) {
  const counts = new Map();
  for (const term of termsIn(read, value)) {
    const key = keyOfTerm(read, term);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function keyOfTerm(read, term) {
  if (!read.bits) return term;
  const hash = murmur(utf8(term));
  const bucket = (hash < 0 ? -hash : hash) % 2 ** read.bits;
  return `${bucket}${read.signed && hash < 0 ? "-" : ""}`;
}

const MANNERS = [(n) => n, () => 1, (n) => 1 + Math.log(n)]; // plain, binary, sublinear

// How values are read: a number, a code (-1 absent, the number of levels for a new one), scores or a text

const READS = {
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
      const place = column.known.place(value);
      out.push(place === ABSENT ? -1 : (code.get(place) ?? read.levels.length));
    };
  },
  score(read, column) {
    const [values, scores] = [numbers(read.values), numbers(read.scores)];
    return (value, out) => {
      const x = numberOf(column, value);
      out.push(Number.isNaN(x) ? 0 : interpolate(x, values, scores));
    };
  },
  indicators(read, column) {
    const [yes, no] = [numbers(read.yes), numbers(read.no)];
    return (value, out) => {
      const place = column.known.place(value);
      read.levels.forEach((level, i) => out.push(place === ABSENT ? 0 : level === place ? yes[i] : no[i]));
    };
  },
  terms(read) {
    const how = { ...read, stop: new Set(read.stop_words) };
    const absent = (value) => value === null || value === undefined || Number.isNaN(value);
    return (value, out) => out.push(absent(value) ? null : termsOf(how, value));
  },
};

/** Likeness to typical rows, made unrelated: of scores that were read. */
function likeness(read) {
  const rows = numbers(read.rows);
  const p = rows.length / read.n;
  const typical = Array.from({ length: read.n }, (_, m) => rows.subarray(m * p, (m + 1) * p));
  const like = (a, b) => Math.exp((-0.5 / read.reach ** 2) * sum(a.map((one, j) => (one - b[j]) ** 2)));
  const among = typical.flatMap((a, i) => typical.slice(0, i + 1).map((b, j) => like(a, b) + (i === j ? read.blur : 0)));
  const root = cholesky(among, read.n);
  const scale = Math.sqrt(read.n);
  return (scores) => Array.from(solve(root, typical.map((one) => like(one, scores))), (one) => one * scale);
}

// The rules: each takes its numbers and the number of classes, and gives what writes (feature, class) terms

/** A rule for each column by itself: what one present number says of a class, by the place of its parameters. */
const each = (makes) => (part, k) => {
  const term = makes(part);
  return (x, out) => {
    for (let j = 0; j < x.length; j += 1) {
      if (!Number.isNaN(x[j])) for (let i = j * k; i < (j + 1) * k; i += 1) out[i] = term(x[j], i);
    }
  };
};

const RULES = {
  normal: each((part) => {
    const [loc, inverse, constant] = [part.loc, part.inverse, part.constant].map(numbers);
    return (x, i) => constant[i] - 0.5 * ((x - loc[i]) * inverse[i]) ** 2;
  }),
  student: each((part) => {
    const [loc, scale, df, constant, exponent] = [part.loc, part.scale, part.df, part.constant, part.exponent].map(numbers);
    return (x, i) => constant[i] - exponent[i] * Math.log1p(((x - loc[i]) / scale[i]) ** 2 / df[i]);
  }),
  lomax: each((part) => {
    const [constant, exponent, rate] = [part.constant, part.exponent, part.rate].map(numbers);
    return (x, i) => (x < 0 ? -Infinity : constant[i] - exponent[i] * Math.log1p(x / rate[i]));
  }),
  negative_binomial: each((part) => {
    const [shape, constant, slope] = [part.shape, part.constant, part.slope].map(numbers);
    return (x, i) => (x < 0 ? -Infinity : logRising(shape[i], x) + constant[i] - x * slope[i]);
  }),
  switch: each((part) => {
    const [no, yes] = [numbers(part.no), numbers(part.yes)];
    return (x, i) => (x > part.threshold ? yes[i] : no[i]);
  }),
  share: each((part) => {
    const [no, yes] = [numbers(part.no), numbers(part.yes)];
    return (x, i) => (x === 0 ? 0 : x * yes[i]) + (x === 1 ? 0 : (1 - x) * no[i]);
  }),
  polynomial(part, k) {
    const [constant, slope] = [numbers(part.constant), numbers(part.slope)];
    const square = part.square && numbers(part.square);
    const low = part.low ?? -Infinity;
    const term = each(() => (x, i) => {
      if (x < low || (part.open && x === low)) return -Infinity;
      return constant[i] + (x === 0 ? 0 : x * slope[i]) + (square ? x * x * square[i] : 0);
    })(part, k);
    return part.zero ? (x, out) => term(x.map((one) => (Number.isNaN(one) ? 0 : one)), out) : term;
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
    const table = numbers(part.table);
    const sets = [];
    for (let at = 0, start = 0; at < part.sets.length; at += part.order) {
      const columns = part.sets.slice(at, at + part.order);
      sets.push({ columns, start });
      start += columns.reduce((cells, j) => cells * part.sizes[j], 1);
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
    const [alpha, total] = [numbers(part.alpha), numbers(part.total)];
    return (x, out) => {
      const counts = x.map((one) => (Number.isNaN(one) ? 0 : one));
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
  const [loc, matrix, factor] = [part.loc, part.matrix, part.factor].map(numbers);
  const [df, rising] = [part.df && numbers(part.df), part.rising && numbers(part.rising)];
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
    const scaled = some.flatMap((i, a) => some.slice(0, a + 1).map((j, b) => matrix[start + (i * (i + 1)) / 2 + j] * unit[a] * unit[b]));
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
  const [means, rows, root] = [part.means, part.rows, part.root].map(numbers);
  const [centres, roots, peak, exponent] = [part.centres, part.roots, part.peak, part.exponent].map((one) => one && numbers(one));
  const p = means.length / k;
  const factor = rows.map((n) => n / (n + 1));
  const distance = (a, b, start) => {
    let total = 0;
    for (let j = 0; j < p; j += 1) total += (a[j] - b[start + j]) ** 2;
    return total;
  };
  return (x, out) => {
    const z = product(root, 0, x);
    const linear = Array.from(factor, (f, c) => (0.5 * p * Math.log(f) - 0.5 * f * distance(z, means, c * p)) / Math.sqrt(p));
    out.set(guarded(linear, rows), 0);
    if (!roots) return;
    const none = new Float64Array(p);
    const quadratic = Array.from(factor, (f, c) => {
      const away = product(roots, (c * p * (p + 1)) / 2, x.map((one, j) => one - centres[c * p + j]));
      return peak[c] - (exponent[c] * Math.log1p(f * distance(away, none, 0))) / Math.sqrt(p);
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
  const [shared, unit, common, scale, constant, heard] = ["shared", "unit", "common", "scale", "constant", "heard"].map(
    (name) => part[name] && numbers(part[name]),
  );
  const weigh = MANNERS[part.manner];
  return ([counts], out) => {
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
      if (part.only_known?.[c] && met[c] < n) out[c] = -Infinity;
    }
  };
}

/** A term that occurred is likelier to occur again. */
function polya(part, k) {
  const { known, classes, value } = vocabulary(part);
  const [alpha, concentration] = [numbers(part.alpha), numbers(part.concentration)];
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

// The model

/** What a part says: reads the columns of a row, and gives (feature, class) terms, weighted. */
function partOf(part, reads, k) {
  const own = part.reads.map((i) => reads[i]);
  const like = part.together && likeness(part.together);
  const rule = RULES[part.rule](part, k);
  const weight = part.weight && numbers(part.weight);
  return (row) => {
    let x = [];
    for (const { name, read } of own) read(valueOf(row, name), x);
    if (like) x = like(x);
    const out = new Float64Array(part.features * k);
    rule(x, out);
    if (weight) weight.forEach((w, j) => out.subarray(j * k, (j + 1) * k).forEach((t, c, some) => (some[c] = w === 0 ? 0 : t * w)));
    return out;
  };
}

const valueOf = (row, name) => (Object.hasOwn(row, name) ? row[name] : undefined);

/** Log-probabilities bent to what came true. */
function bent(curve, logs) {
  const two = logs.length === 2;
  const odds = two ? [logs[1] - logs[0]] : logs.map((log) => clipped(log - Math.log(-Math.expm1(Math.min(log, 0)))));
  const real = odds.map((one, c) => interpolate(one, curve.stated[c], curve.true[c]));
  if (two) return [real[0], -real[0]].map((one) => -logSumExp([0, one]));
  const joint = real.map((one) => -logSumExp([0, -one]));
  const total = logSumExp(joint);
  return joint.map((one) => one - total);
}

const clipped = (x) => Math.min(Math.max(x, -700), 700);

/** The first of the largest. */
const largest = (values) => values.reduce((best, value, c) => (value > values[best] ? c : best), 0);

/**
 * A model from the parameters that Candide exported.
 * @param {any} parameters
 * @returns {Model}
 */
export function load(parameters) {
  if (parameters.format !== FORMAT) throw new Error(`parameters of format ${parameters.format}, not ${FORMAT}`);
  const { classes } = parameters;
  const k = classes.length;
  const prior = Array.from(numbers(parameters.log_prior));
  const curve = parameters.curve && {
    stated: parameters.curve.stated.map(numbers),
    true: parameters.curve.true.map(numbers),
  };
  const absent = new Set(parameters.na ?? []);
  const never = new Set((parameters.na ?? []).filter((text) => NUMBER.test(text)).map(Number));
  const means = (value) => (typeof value === "number" ? never.has(value) : absent.has(value));
  const known = parameters.columns.map((column) => ({ ...column, known: new Levels(column.levels ?? []) }));
  const reads = parameters.reads.map((read) => {
    const column = known[read.column];
    const reader = READS[read.read](read, column);
    return { name: column.name, read: (value, out) => reader(means(value) ? undefined : value, out) };
  });
  const parts = parameters.parts.map((part) => partOf(part, reads, k));
  const voices = parameters.parts.flatMap((part, i) =>
    part.voices.map((voice, j) => {
      const columns = voice.columns.map((at) => String(known[at].name));
      const whole = part.voices.length === 1; // a law of all its columns may have several features
      return { name: voice.name ?? columns.join(" x "), columns, part: i, from: j * k, whole };
    }),
  );
  const said = ({ from, whole }, out) => Array.from({ length: k }, (_, c) => {
    if (!whole) return out[from + c];
    let total = 0;
    for (let at = c; at < out.length; at += k) total += out[at];
    return total;
  });
  return {
    classes,
    columns: known.map((column) => ({
      name: String(column.name),
      kind: column.kind,
      levels: (column.levels ?? []).map((level) => level?.text ?? level),
      range: column.range ?? null,
      missing: true,
    })),
    voices: voices.map((voice) => ({ name: voice.name, columns: voice.columns, say: (row) => said(voice, parts[voice.part](row)) })),
    score(row) {
      const terms = parts.map((part) => part(row));
      const spoken = voices.map((voice) => ({ name: voice.name, columns: voice.columns, contributions: said(voice, terms[voice.part]) }));
      const scores = prior.slice();
      for (const { contributions } of spoken) contributions.forEach((nats, c) => (scores[c] += nats));
      const total = logSumExp(scores);
      let logs = total === -Infinity ? prior.slice() : scores.map((score) => score - total);
      if (curve) logs = bent(curve, logs);
      const shares = logs.map(Math.exp);
      const label = classes[largest(curve || total === -Infinity ? logs : scores)];
      return { log_prior: prior.slice(), voices: spoken, scores, probabilities: shares, label };
    },
  };
}
