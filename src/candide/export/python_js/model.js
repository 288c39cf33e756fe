// The scorer of an exported model, without dependencies: `load(parameters)` gives a model whose `score(row)` gives
// the contribution of each term to each class, and the probabilities, as Candide computes them. An ES module, for browsers and Node.

/**
 * @typedef {string | number | bigint | boolean | Date | null | undefined | string[]} Value  a string[] is a text in words
 * @typedef {{[column: string]: Value}} Row  null, undefined and "" are missing
 * @typedef {string | number | boolean} Label
 * @typedef {"number" | "level" | "text" | "date" | "time" | "boolean"} Kind
 * @typedef {{name: string, kind: Kind, levels: Label[], range: [number, number] | null, missing: boolean}} Column
 * @typedef {{name: string, columns: string[], contributions: number[]}} Contribution  to the score of each class
 * @typedef {{log_prior: number[], terms: Contribution[], scores: number[], probabilities: number[], label: Label | null}} Score
 *   label is null where the model abstains
 * @typedef {{name: string, columns: string[], contributions: (row: Row) => number[]}} Term
 * @typedef {{columns: Column[], classes: Label[], terms: Term[], score: (row: Row) => Score}} Model
 */

import { interpolate, logSumExp, normalised, numbers, sum } from "./numbers.js";
import { READS, similarity } from "./reads.js";
import { compileScore } from "./operations.js";
import { Levels, NUMBER } from "./values.js";

const FORMAT = 2;

/** The first of the largest. */
const largest = (values) => values.reduce((best, value, c) => (value > values[best] ? c : best), 0);

/** A function from log-probabilities to the index of a class, -1 where the model abstains. */
function decision(policy) {
  const costs = policy.costs && numbers(policy.costs);
  const { positive } = policy;
  const [abstainCost, least] = [Number(policy.abstain_cost ?? Infinity), Number(policy.log_abstain ?? -Infinity)];
  const given = (logs) => {
    if (costs) {
      const k = logs.length;
      const spared = logs.map((_, c) => -sum(logs.map((log, truth) => Math.exp(log) * costs[truth * k + c])));
      const best = largest(spared);
      return -spared[best] > abstainCost ? -1 : best;
    }
    if (positive === undefined) return largest(logs);
    const rest = logs.map((log, c) => (c === positive ? -Infinity : log));
    return logs[positive] - logSumExp(rest) >= Number(policy.log_odds) ? positive : largest(rest);
  };
  return (logs) => (Math.max(...logs) < least ? -1 : given(logs));
}

/** The weighted (feature, class) contributions of a part to the scores of a row. */
function partOf(part, reads, k) {
  const own = part.reads.map((i) => reads[i]);
  const compare = part.prototypes && similarity(part.prototypes);
  const score = compileScore(part, k);
  const weight = part.weight && numbers(part.weight);
  return (row) => {
    let x = [];
    for (const { name, read } of own) read(valueOf(row, name), x);
    if (compare) x = compare(x);
    const out = score(x);
    const weigh = (value, w) => (w === 0 ? 0 : value * w);
    return weight ? out.map((value, i) => weigh(value, weight[Math.floor(i / k)])) : out;
  };
}

const valueOf = (row, name) => (Object.hasOwn(row, name) ? row[name] : undefined);

/** Log-probabilities, calibrated on held-out rows. */
function calibrate(calibrator, logs) {
  const two = logs.length === 2;
  const odds = two ? [logs[1] - logs[0]] : logs.map((log) => clipped(log - Math.log(-Math.expm1(Math.min(log, 0)))));
  const real = odds.map((one, c) => interpolate(one, calibrator.stated[c], calibrator.true[c]));
  const joint = (two ? [-real[0], real[0]] : real).map((one) => -logSumExp([0, -one]));
  if (calibrator.shift) calibrator.shift.forEach((nats, c) => (joint[c] += nats));
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
  const calibrator = parameters.calibrator && {
    stated: parameters.calibrator.stated.map(numbers),
    true: parameters.calibrator.true.map(numbers),
    shift: parameters.calibrator.shift && numbers(parameters.calibrator.shift),
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
  const terms = parameters.parts.flatMap((part, i) =>
    part.terms.map((term, j) => {
      const columns = term.columns.map((at) => String(known[at].name));
      const whole = part.terms.length === 1; // a joint distribution may have several features
      return { name: term.name ?? columns.join(" x "), columns, part: i, from: j * k, whole };
    }),
  );
  const select = ({ from, whole }, out) => Array.from({ length: k }, (_, c) => {
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
    terms: terms.map((term) => {
      const { name, columns, part } = term;
      return { name, columns, contributions: (row) => select(term, parts[part](row)) };
    }),
    score(row) {
      const found = parts.map((part) => part(row));
      const explained = terms.map((term) => {
        const { name, columns, part } = term;
        return { name, columns, contributions: select(term, found[part]) };
      });
      const scores = prior.slice();
      for (const { contributions } of explained) contributions.forEach((one, c) => (scores[c] += one));
      const impossible = Math.max(...scores) === -Infinity; // under every class
      let logs = impossible ? prior.slice() : normalised(scores);
      if (calibrator) logs = calibrate(calibrator, logs);
      const probabilities = logs.map(Math.exp);
      const given = decide ? decide(logs) : largest(calibrator || impossible ? logs : scores);
      const label = classes[given] ?? null;
      return { log_prior: prior.slice(), terms: explained, scores, probabilities, label };
    },
  };
}
