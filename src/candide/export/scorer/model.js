// The scorer of an exported model, without dependencies: `load(parameters)` gives a model whose `score(row)` says what
// each voice adds to each class, and the probabilities, as Candide has them. An ES module, for browsers and Node.

/**
 * @typedef {string | number | bigint | boolean | Date | null | undefined | string[]} Value  a string[] is a text in words
 * @typedef {{[column: string]: Value}} Row  null, undefined and "" are missing
 * @typedef {string | number | boolean} Label
 * @typedef {"number" | "level" | "text" | "date" | "time" | "boolean"} Kind
 * @typedef {{name: string, kind: Kind, levels: Label[], range: [number, number] | null, missing: boolean}} Column
 * @typedef {{name: string, columns: string[], contributions: number[]}} Said  nats, one a class
 * @typedef {{log_prior: number[], voices: Said[], scores: number[], probabilities: number[], label: Label | null}} Score
 *   label is null where the policy of the model leaves the row to a person
 * @typedef {{name: string, columns: string[], say: (row: Row) => number[]}} Voice
 * @typedef {{columns: Column[], classes: Label[], voices: Voice[], score: (row: Row) => Score}} Model
 */

import { interpolate, logSumExp, normalised, numbers } from "./numbers.js";
import { decision, largest } from "./policy.js";
import { likeness, READS } from "./reads.js";
import { compileScore } from "./operations.js";
import { Levels, NUMBER } from "./values.js";

const FORMAT = 2;

/** What a part says: reads the columns of a row, and gives (feature, class) terms, weighted. */
function partOf(part, reads, k) {
  const own = part.reads.map((i) => reads[i]);
  const like = part.together && likeness(part.together);
  const score = compileScore(part, k);
  const weight = part.weight && numbers(part.weight);
  return (row) => {
    let x = [];
    for (const { name, read } of own) read(valueOf(row, name), x);
    if (like) x = like(x);
    const out = score(x);
    const weighed = (term, w) => (w === 0 ? 0 : term * w);
    return weight ? out.map((term, i) => weighed(term, weight[Math.floor(i / k)])) : out;
  };
}

const valueOf = (row, name) => (Object.hasOwn(row, name) ? row[name] : undefined);

/** Log-probabilities bent to what came true. */
function bent(curve, logs) {
  const two = logs.length === 2;
  const odds = two ? [logs[1] - logs[0]] : logs.map((log) => clipped(log - Math.log(-Math.expm1(Math.min(log, 0)))));
  const real = odds.map((one, c) => interpolate(one, curve.stated[c], curve.true[c]));
  const joint = (two ? [-real[0], real[0]] : real).map((one) => -logSumExp([0, -one]));
  if (curve.shift) curve.shift.forEach((nats, c) => (joint[c] += nats));
  else if (two) return joint;
  return normalised(joint);
}

const clipped = (x) => Math.min(Math.max(x, -700), 700);

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
    shift: parameters.curve.shift && numbers(parameters.curve.shift),
  };
  const decide = parameters.policy && decision(parameters.policy);
  const absent = new Set(parameters.na ?? []);
  const never = new Set((parameters.na ?? []).filter((text) => NUMBER.test(text)).map(Number));
  const means = (value) => (typeof value === "number" ? never.has(value) : absent.has(value));
  const known = parameters.columns.map((column) => ({ ...column, known: new Levels(column.levels ?? []) }));
  const shared = parameters.scores.map(numbers);
  const reads = parameters.reads.map((read) => {
    const column = known[read.column];
    const reader = READS[read.read](read, column, shared);
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
    voices: voices.map((voice) => {
      const { name, columns, part } = voice;
      return { name, columns, say: (row) => said(voice, parts[part](row)) };
    }),
    score(row) {
      const terms = parts.map((part) => part(row));
      const spoken = voices.map((voice) => {
        const { name, columns, part } = voice;
        return { name, columns, contributions: said(voice, terms[part]) };
      });
      const scores = prior.slice();
      for (const { contributions } of spoken) contributions.forEach((nats, c) => (scores[c] += nats));
      const impossible = Math.max(...scores) === -Infinity; // under every class
      let logs = impossible ? prior.slice() : normalised(scores);
      if (curve) logs = bent(curve, logs);
      const shares = logs.map(Math.exp);
      const given = decide ? decide(logs) : largest(curve || impossible ? logs : scores);
      const label = classes[given] ?? null;
      return { log_prior: prior.slice(), voices: spoken, scores, probabilities: shares, label };
    },
  };
}
