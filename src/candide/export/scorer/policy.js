// Policies: which class a row is given, where that is not the most probable one.

import { logSumExp, numbers, sum } from "./numbers.js";

/** The first of the largest. */
export const largest = (values) => values.reduce((best, value, c) => (value > values[best] ? c : best), 0);

/** What makes the place of a class of log-probabilities; -1 where a row is left to a person. */
export function decision(policy) {
  const costs = policy.costs && numbers(policy.costs);
  const { positive } = policy;
  const [referral, least] = [Number(policy.referral ?? Infinity), Number(policy.log_abstain ?? -Infinity)];
  const given = (logs) => {
    if (costs) {
      const k = logs.length;
      const spared = logs.map((_, c) => -sum(logs.map((log, truth) => Math.exp(log) * costs[truth * k + c])));
      const best = largest(spared);
      return -spared[best] > referral ? -1 : best;
    }
    if (positive === undefined) return largest(logs);
    const rest = logs.map((log, c) => (c === positive ? -Infinity : log));
    return logs[positive] - logSumExp(rest) >= Number(policy.log_odds) ? positive : largest(rest);
  };
  return (logs) => (Math.max(...logs) < least ? -1 : given(logs));
}
