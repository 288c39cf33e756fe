// Values: numbers, dates and levels, however they are written.

export const NUMBER = /^[\t-\r ]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?[\t-\r ]*$/; // of a level
const FIGURES = "\\d+(?:_\\d+)*";
const FLOAT = new RegExp(`^[+-]?(?:${FIGURES}\\.?(?:${FIGURES})?|\\.${FIGURES})(?:[eE][+-]?${FIGURES})?$`); // as Python's
const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?: ?(Z|UTC|[+-]\d\d(?::?\d\d)?))?)?$/;
const CLOCK = /^(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?$/;
const MISSING = ["", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", ".", "#n/a", "#na"];
const TRUTHS = [["true", "false"], ["yes", "no"], ["y", "n"], ["t", "f"], ["on", "off"]];
const PERIOD = /^(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const SPAN = /^(?:(-?\d+) days?(?:,? |$))?(?:([+-])?(\d+):(\d\d):(\d\d(?:\.\d+)?))?$/;
const DAY = 86400e6; // microseconds
const COMPACT = "%Y%m%d"; // the format of dates of eight digits
const MONTHS = "january february march april may june july august september october november december".split(" ");
export const [ABSENT, NEW] = [-1, -2]; // of values that are not levels

const isAbsent = (value) => (value ?? null) === null || Number.isNaN(value instanceof Date ? value.getTime() : value);
const isMissing = (value) => isAbsent(value) || value === "";

/** The error for a value that cannot be used; it has `column`, `value` and `remedy`. */
function refused(column, value, why, remedy) {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  const told = shown.length < 100 ? shown : `${shown.slice(0, 97)}...`;
  const error = new Error(`column ${JSON.stringify(column.name)}: ${told} ${why}; ${remedy}`);
  return Object.assign(error, { column: column.name, value, remedy });
}

/** The number that a text represents, or undefined. */
function numberIn(text) {
  const bare = text.replace(/^[\t-\r \u00a0\u202f]+|[\t-\r \u00a0\u202f]+$/g, "");
  if (/^[+-]?nan$/i.test(bare)) return NaN;
  if (/^[+-]?inf(inity)?$/i.test(bare)) return Infinity;
  return FLOAT.test(bare) ? Number(bare.replaceAll("_", "")) : undefined;
}

/** Microseconds since 1970 of a date with or without a time, in UTC where there is no zone; null for other text. */
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

/** Microseconds of a midnight; null where the day does not exist. */
function clockless(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const right = year >= 1 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return right ? date.getTime() * 1e3 : null;
}

/** Microseconds of a duration; null for other text. */
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

/** What a text represents, as a key of levels; null for other text. */
function meaning(text) {
  if (NUMBER.test(text) && text.length < 400) {
    if (/^\s*[+-]?\d+\s*$/.test(text)) return numberKey(BigInt(text.trim()));
    return Number.isFinite(Number(text)) ? numberKey(Number(text)) : null;
  }
  if (/^(true|false)$/i.test(text)) return `boolean ${text.toLowerCase()}`;
  const at = moment(text);
  if (at !== null) return `moment ${at}`;
  const clock = CLOCK.exec(text);
  if (clock && text < "24") {
    const [hour, minute, second] = clock.slice(1, 4).map((part) => Number(part ?? 0));
    const since = 1e6 * (3600 * hour + 60 * minute + second) + fraction(clock[4]);
    return minute < 60 && second < 60 ? `duration ${since}` : null;
  }
  const long = duration(text);
  return long === null ? null : `duration ${long}`;
}

/** The boolean that a word stands for; undefined where it is another word. */
function parseBoolean(text) {
  const word = text.toLowerCase();
  const pair = TRUTHS.find((words) => words.includes(word));
  return pair && pair[0] === word;
}

/** The booleans that levels stand for: words of a pair of which both occur, or that are the only levels. */
function booleanLevels(texts) {
  const words = new Set(texts.map((text) => text.toLowerCase()));
  const known = TRUTHS.filter((pair) => pair.every((word) => words.has(word)) || [...words].every((word) => pair.includes(word)));
  return new Map(texts.filter((text) => known.flat().includes(text.toLowerCase())).map((text) => [text, parseBoolean(text)]));
}

/** Looks up the levels of a column, however a value is written. */
export class Levels {
  constructor(levels) {
    this.text = new Map(); // by their letters
    this.typed = new Map(); // levels that are not text, by value
    this.meant = new Map(); // levels that are text, by what they represent; NEW if several do
    this.days = !levels.some((level) => level?.type === "moment");
    this.booleans = levels.some((level) => typeof level === "boolean");
    const words = booleanLevels(levels.filter((level) => typeof level === "string"));
    levels.forEach((level, code) => {
      if (typeof level === "string") {
        this.text.set(level, code);
        const key = words.has(level) ? `boolean ${words.get(level)}` : meaning(level);
        if (key !== null) this.meant.set(key, this.meant.has(key) ? NEW : code);
      } else this.typed.set(keyOf(level), code);
    });
  }

  /** The index of a level; NEW where the value is unseen, ABSENT where it is missing. */
  place(value) {
    if (isMissing(value) && !(value === "" && this.text.has(""))) return ABSENT;
    if (typeof value === "string") return this.text.get(value) ?? this.alike(meaning(value) ?? this.word(value));
    const key = keyOf(value instanceof Date ? { type: "moment", value: value.getTime() * 1e3 } : value);
    if (this.typed.has(key)) return this.typed.get(key);
    if (this.text.has(String(value))) return this.text.get(String(value));
    const typed = this.alike(key);
    if (typed !== NEW) return typed;
    const boolean = `boolean ${Boolean(value)}`; // a boolean is 1 or 0 where no level is its text
    const ways = typeof value === "boolean" ? [boolean, key] : value === 0 || value === 1 ? [key, boolean] : [key];
    return ways.map((way) => this.meant.get(way) ?? NEW).find((code) => code !== NEW) ?? NEW;
  }

  /** What a word means among levels that are booleans. */
  word(text) {
    const means = this.booleans ? parseBoolean(text) : undefined;
    return means === undefined ? null : `boolean ${means}`;
  }

  alike(key) {
    if (key === null) return NEW;
    const plain = key.startsWith("boolean ") ? `number ${Number(key === "boolean true")}` : key;
    const found = this.typed.get(plain);
    if (found !== undefined || !this.days || !plain.startsWith("moment ")) return found ?? NEW;
    return this.typed.get(`moment ${DAY * Math.floor(Number(plain.slice(7)) / DAY)}`) ?? NEW; // a time of a known day
  }
}

/** A number as a key: an integer with all its digits, which a double lacks beyond 2 ** 53. */
function numberKey(number) {
  const exact = typeof number === "number" && Number.isInteger(number) ? BigInt(number) : number;
  return `number ${exact}`;
}

/** A boolean is the number 1 or 0 among levels that are not text, as in Python. */
function keyOf(level) {
  if (level?.type === "integer") return numberKey(BigInt(level.text));
  if (typeof level === "object") return `${level.type === "duration" ? "duration" : "moment"} ${level.value}`;
  return numberKey(typeof level === "bigint" ? level : Number(level));
}

/** The number of a value, NaN where it is missing; for a date the days since 1970. */
export function numberOf(column, value) {
  if (isMissing(value)) return NaN;
  if (["date", "time"].includes(column.kind)) return daysOf(column, value);
  if (value instanceof Date) return value.getTime() / 86400e3;
  let read = typeof value === "string" ? spelled(column, value) : value;
  if (typeof read === "string") read = numberIn(read);
  if (typeof read === "boolean" || typeof read === "bigint") read = Number(read);
  if (typeof read !== "number") {
    throw refused(column, value, "is not a number", "pass a number, or null where it is missing");
  }
  const infinite = read === Infinity || read === -Infinity;
  if (infinite) throw refused(column, value, "is not a finite number", "pass null where it is missing");
  return read;
}

/** The days of a date since 1970, of a time of day or of a duration; other values are an error. */
function daysOf(column, value) {
  const isDate = column.kind === "date";
  if (isDate && value instanceof Date) return value.getTime() / 86400e3;
  const isWhole = isDate && column.text_formats?.date === COMPACT && Number.isInteger(value);
  const read = typeof value === "string" || isWhole ? spelled(column, String(value)) : undefined;
  if (typeof read === "number") return read;
  const [what, how] = isDate ? ["date", "2024-12-31"] : ["time of day or duration", "13:05:30 or 1 day 02:00:00"];
  throw refused(column, value, `is not a ${what}`, `write it as ${how}, or pass null where it is missing`);
}

/** The index of a value among the levels of its column. */
export function placeOf(column, value) {
  if (value !== null && !(value instanceof Date) && ["object", "function", "symbol"].includes(typeof value)) {
    const remedy = "pass text, a number, a boolean or a Date, or null where it is missing";
    throw refused(column, value, "is not a level", remedy);
  }
  return column.known.place(value);
}

/** The text of a value, or its list of words; null where it is missing. */
export function textOf(column, value) {
  if (typeof value === "string" || Array.isArray(value)) return value;
  if (isAbsent(value)) return null;
  throw refused(column, value, "is not a text", "pass text, or a list of words, or null where it is missing");
}

/** The value of a text in a column of numbers or dates: a number, NaN if missing, the text itself if plain, or null. */
function spelled(column, text) {
  const how = column.text_formats ?? {};
  const bare = text.trim();
  if ([...MISSING, ...(how.missing ?? [])].includes(bare.toLowerCase())) return NaN;
  if (column.kind === "time") {
    const key = meaning(bare) ?? "";
    return key.startsWith("duration ") ? Number(key.slice(9)) / DAY : text;
  }
  if (column.kind === "date") {
    const isCompact = how.date === COMPACT && !/^[1-9]\d{7}$/.test(bare);
    const at = dated(bare, isCompact ? "%Y-%m-%d" : how.date || "%Y-%m-%d") ?? moment(bare);
    return at === null ? text : at / DAY;
  }
  if (!how.pattern) return text;
  if (!new RegExp(`^(?:${how.pattern})$`).test(text)) return null; // in another format, which may be another unit
  const plain = how.put.reduce((left, [old, put]) => left.replaceAll(old, put), text).trim();
  return Number(how.percent ? `${plain}e-2` : plain);
}

/** Microseconds since 1970 of a date in a strptime format; null in another format. */
function dated(text, form) {
  const names = [];
  const parts = { Y: "\\d{4}", y: "\\d\\d", p: "[ap]m", B: "[a-z]+", b: "[a-z]+" }; // else one or two figures
  const pattern = form.replace(/%(.)|([^%])/g, (_, code, letter) => {
    if (letter !== undefined) return letter === " " ? "\\s+" : letter.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    names.push(code);
    return `(${parts[code] ?? "\\d{1,2}"})`;
  });
  const found = new RegExp(`^${pattern}$`, "i").exec(text);
  if (!found) return null;
  const at = Object.fromEntries(names.map((name, i) => [name, found[i + 1].toLowerCase()]));
  const short = Number(at.y);
  const year = at.Y !== undefined ? Number(at.Y) : at.y !== undefined ? short + (short < 69 ? 2000 : 1900) : 1900;
  const named = at.B ?? at.b;
  const place = MONTHS.findIndex((month) => (at.B ? month : month.slice(0, 3)) === named);
  const month = named === undefined ? Number(at.m ?? 1) : 1 + place;
  const midnight = clockless(year, month, Number(at.d ?? 1));
  const hour = at.I === undefined ? Number(at.H ?? 0) : (Number(at.I) % 12) + (at.p === "pm" ? 12 : 0);
  if (midnight === null || hour > 23) return null;
  return midnight + 1e6 * (3600 * hour + 60 * Number(at.M ?? 0) + Number(at.S ?? 0));
}
