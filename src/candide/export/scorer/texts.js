// Texts: the tokens of a document, as in Python.

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
