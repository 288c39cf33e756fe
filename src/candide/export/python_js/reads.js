// How values are read: a number, a code (-1 missing, the number of levels if unseen), scores or a text.

import { below, cholesky, interpolate, numbers, solve } from "./numbers.js";
import { ABSENT, numberOf, placeOf, textOf } from "./values.js";

const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Python's \s
const WORDS = /[\p{L}\p{N}_]{2,}/gu; // Python's \w, two or more
const [GAP, GAPS] = [new RegExp(`[${SPACES}]+`), new RegExp(`[${SPACES}]{2,}`, "g")];

/** UTF-8 of a string; half of a surrogate pair stands for itself, as in Python. */
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

/** The tokens of a text or of a list of words: n-grams of words, of characters, or of characters within words. */
function tokensIn(read, value) {
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

/** How often each token occurs in a text, by its key. @returns {Map<string, number>} */
export function countTokens(read, value) {
  const counts = new Map();
  for (const term of tokensIn(read, value)) {
    const key = keyOfToken(read, term);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function keyOfToken(read, term) {
  if (!read.bits) return term;
  const hash = murmur(utf8(term));
  const bucket = (hash < 0 ? -hash : hash) % 2 ** read.bits;
  return `${bucket}${read.signed && hash < 0 ? "-" : ""}`;
}

export const COUNT_TRANSFORMS = [(n) => n, () => 1, (n) => 1 + Math.log(n)]; // plain, binary, sublinear

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
