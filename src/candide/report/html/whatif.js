// What if: every column with its total effect on one scale of log-odds, and live probabilities. The scorer is that of the exported model, so
// the probabilities are those of `predict_proba`. The state is in the fragment of the address, so that a row can be shared.

const pane = document.getElementById("try");
const model = globalThis.candide.load(JSON.parse(document.getElementById("parameters").textContent));
const MOST = 40; // terms that are shown at first
const WIDE = 420, TALL = 30, LOW = 22; // of an axis, and of the curve of a numeric column
const LONG = 60; // characters of a name that always fit
const DAY = 86400e3;
const columns = new Map(model.columns.map((one) => [one.name, one]));
const key = (name, of) => JSON.stringify([name, ...of]);
const byTitle = new Map(model.terms.map((one) => [key(one.name, one.columns), one]));
const used = known.titles.map(([name, ...of]) => byTitle.get(key(name, of.length ? of : [name]))).filter(Boolean);
const joint = used.filter((one) => one.columns.length > 1), alone = used.filter((one) => one.columns.length === 1);
const own = new Set(used.filter((one) => one.columns.length === 1).map((one) => one.columns[0]));
const others = new Set(used.flatMap((one) => one.columns).filter((name) => !own.has(name))); // used in joint terms only
const row = Object.create(null); // a column may be called __proto__
let rows = [], scale = 1, shown = MOST;

// What is effects for a class against the mean of the others: of two classes their difference.
function effect(odds, c) {
  let rest = 0;
  odds.forEach((v, d) => { if (d !== c && known.proportions[d]) rest += known.proportions[d] / (1 - known.proportions[c]) * v; });
  const found = odds[c] - rest;
  return Number.isNaN(found) ? 0 : Math.max(-50, Math.min(50, found));
}

const days = (value) => Math.round(Date.parse(value) / DAY);
const date = (value) => new Date(value * DAY).toISOString().slice(0, 10);
const isNumber = (column) => column.kind === "number" || column.kind === "date";
const missing = (value) => value === null || value === undefined || value === "";

// The total effect of a value of a column, over all terms that it is in; null where its own term is all of it.
function total(column, value, c) {
  if (!Object.hasOwn(known.totals, column.name)) return null;
  if (missing(value)) return 0;
  const { s, v, x } = known.totals[column.name], two = known.proportions.length === 2, odds = two ? v[0] : v[c];
  const sign = two && c === 0 ? -0.01 : 0.01, at = column.kind === "date" ? days(value) : +value;
  if (s === "levels") return sign * (odds[column.levels.indexOf(value)] ?? 0);
  let k = x.findIndex((end) => at <= end);
  if (s === "steps") return sign * odds[k < 0 ? x.length : k];
  if (k <= 0) return sign * odds[k < 0 ? x.length - 1 : 0];
  const part = (at - x[k - 1]) / (x[k] - x[k - 1]);
  return sign * (odds[k - 1] + part * (odds[k] - odds[k - 1]));
}

// Along an axis: of levels a tick each, of numbers points of a curve.
function along(term, column, c) {
  const say = (value) => total(column, value, c) ?? effect(term.contributions({ [column.name]: value }), c);
  if (isNumber(column)) {
    const [low, high] = column.range || [0, 1], n = 60;
    return Array.from({ length: n + 1 }, (_, k) => low + (high - low) * k / n).map((x) => ({ value: column.kind === "date" ? date(x) : x, at: say(column.kind === "date" ? date(x) : x), x }));
  }
  return column.kind === "text" ? [] : column.levels.map((level) => ({ value: level, at: say(level) }));
}

// The control of a column: a list of levels, a slider with its number, or a text. Each knows "missing".
function control(column) {
  const name = column.name, parts = [];
  const put = (value) => { row[name] = value; update(); };
  let show;
  if (column.kind === "text") {
    const box = make("textarea", { rows: 3, "aria-label": name, placeholder: "missing" });
    box.addEventListener("input", () => put(box.value === "" ? null : box.value));
    show = (value) => { if (box.value !== (value ?? "")) box.value = value ?? ""; };
    parts.push(box);
  } else if (isNumber(column)) {
    const [low, high] = column.range || [0, 1], step = known.whole.includes(name) || column.kind === "date" ? 1 : (high - low) / 200;
    const slide = make("input", { type: "range", min: low, max: high, step: "any", "aria-label": name });
    const box = make("input", { type: column.kind === "date" ? "date" : "number", step: "any", "aria-label": `${name}, as a value` });
    const none = make("button", { type: "button", "aria-pressed": "false", title: `${name} is missing` }, "missing");
    const value = (x) => column.kind === "date" ? date(Math.round(x)) : step === 1 ? Math.round(x) : +x.toPrecision(4);
    slide.addEventListener("input", () => put(value(+slide.value)));
    slide.addEventListener("keydown", (event) => {
      const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (!way) return;
      event.preventDefault();
      put(value(Math.max(low, Math.min(high, +slide.value + way * step))));
    });
    box.addEventListener("input", () => put(box.value === "" ? null : column.kind === "date" ? box.value : +box.value));
    none.addEventListener("click", () => put(missing(row[name]) ? value((low + high) / 2) : null));
    show = (now) => {
      none.setAttribute("aria-pressed", String(missing(now)));
      slide.classList.toggle("none", missing(now));
      if (!missing(now)) slide.value = column.kind === "date" ? days(now) : now;
      slide.setAttribute("aria-valuetext", missing(now) ? "missing" : String(now));
      if (document.activeElement !== box) box.value = missing(now) ? "" : now;
    };
    const curve = make("svg", { class: "fold", viewBox: `0 0 ${WIDE} ${LOW}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    drag(curve, (part) => put(value(low + (high - low) * part)));
    parts.push(make("span", { class: "slide" }, curve, slide), make("span", { class: "pair" }, box, none));
    return { node: make("div", { class: "control" }, ...parts), show, curve, part: (now) => missing(now) ? null : ((column.kind === "date" ? days(now) : now) - low) / (high - low) };
  } else {
    const list = make("select", { "aria-label": name }, make("option", { value: "" }, "missing"), ...column.levels.map((level, i) => make("option", { value: i }, String(level))));
    list.addEventListener("change", () => put(list.value === "" ? null : column.levels[+list.value]));
    show = (value) => { const at = column.levels.indexOf(value); list.value = at < 0 ? "" : String(at); };
    parts.push(list);
  }
  return { node: make("div", { class: "control" }, ...parts), show };
}

// The name of a term; a long one is cut to three lines, with all of it as a tooltip.
const named = ({ name }) => make("span", { class: "name", title: name.length > LONG ? name : undefined }, name);

// One column: its name, its axis on the common scale, how it is set, and what it contributes now.
function line(term) {
  const column = columns.get(term.columns[0]);
  if (!term.contributions) return withoutAxis(term, column);
  const axis = make("svg", { class: "axis", viewBox: `0 0 ${WIDE} ${TALL}`, "aria-hidden": "true" });
  const shownValue = make("span", { class: "n" }), set = control(column);
  const out = { term, column, axis, shownValue, set, node: make("div", { class: "line" }, named(term), axis, set.node, shownValue) };
  if (column.levels.length && !isNumber(column)) drag(axis, (part) => nearest(out, part));
  return out;
}

// A column that is used in joint terms only: it can be set, and has no axis.
function withoutAxis(term, column) {
  const set = control(column);
  set.curve?.remove();
  return { column, set: { show: set.show }, node: make("div", { class: "line" }, named(term), make("span", { class: "soft" }, "not used on its own"), set.node, make("span")) };
}

// Follow a pointer that is dragged along a chart, as a part of its width.
function drag(node, take) {
  const at = (event) => { const box = node.getBoundingClientRect(); take(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width))); };
  node.addEventListener("pointerdown", (event) => { node.setPointerCapture(event.pointerId); at(event); });
  node.addEventListener("pointermove", (event) => { if (node.hasPointerCapture(event.pointerId)) at(event); });
}

// On an axis of levels, take the level whose effect is nearest.
function nearest(one, part) {
  const odds = (part - 0.5) * WIDE / (WIDE / 2 - 6) * scale;
  row[one.column.name] = one.points.reduce((a, b) => Math.abs(b.at - odds) < Math.abs(a.at - odds) ? b : a).value;
  update();
}

const X = (odds) => WIDE / 2 + odds / scale * (WIDE / 2 - 6);

// The static part of an axis: its range, ticks of levels, and the curve of a numeric column.
function draw(one) {
  const still = [make("line", { class: "zero", x1: WIDE / 2, x2: WIDE / 2, y1: 2, y2: TALL - 2 })];
  if (one.points.length) {
    const ends = one.points.map((p) => X(p.at));
    still.push(make("line", { class: "base", x1: Math.min(...ends), x2: Math.max(...ends), y1: TALL / 2, y2: TALL / 2 }));
  }
  if (one.set?.curve) {
    const top = Math.max(0, ...one.points.map((p) => p.at)), base = Math.min(0, ...one.points.map((p) => p.at)), n = one.points.length - 1;
    const Y = (odds) => 2 + (top - odds) / Math.max(top - base, 1e-9) * (LOW - 4);
    one.mark = make("line", { class: "mark", y1: 0, y2: LOW });
    one.set.curve.replaceChildren(make("line", { class: "zero", x1: 0, x2: WIDE, y1: Y(0), y2: Y(0) }), make("polyline", { class: "line", points: one.points.map((p, k) => `${(k / n * WIDE).toFixed(1)},${Y(p.at).toFixed(1)}`).join(" ") }), one.mark);
  } else for (const p of one.points) still.push(make("line", { class: "tick", x1: X(p.at), x2: X(p.at), y1: 6, y2: TALL - 6 }, make("title", {}, `${p.value} ${signed(p.at)}`)));
  one.bar = make("rect", { class: "for", y: TALL / 2 - 4, height: 8, rx: 2 });
  one.dot = make("circle", { class: "knob", cy: TALL / 2, r: 5 });
  one.axis.replaceChildren(...still, one.bar, one.dot);
}

function place(one, odds) {
  const x = X(odds), from = X(0);
  one.bar.setAttribute("class", odds < 0 ? "against" : "for");
  one.bar.setAttribute("x", Math.min(x, from));
  one.bar.setAttribute("width", Math.abs(x - from));
  one.dot.setAttribute("cx", x);
  one.shownValue.textContent = signed(odds);
  const part = one.mark && one.set.part(row[one.column.name]);
  if (one.mark) one.mark.setAttribute("visibility", part === null ? "hidden" : "visible");
  if (one.mark && part !== null) for (const end of ["x1", "x2"]) one.mark.setAttribute(end, part * WIDE);
}

const meters = model.classes.map((label, c) => {
  const bar = make("span", { class: "bar" }), text = make("span", { class: "n" });
  const node = make("div", { class: "meter" }, make("span", { class: "label" }, known.classes[c]), make("span", { class: "importance" }, bar), text);
  return { node, bar, text };
});
const announced = make("p", { class: known.policy ? "decision" : "announced", role: "status" });

function percent(p) {
  const rest = Math.min(p, 1 - p) * 100;
  return (100 * p).toFixed(rest > 0 && rest < 1 ? Math.min(6, 1 - Math.floor(Math.log10(rest))) : 1) + "%";
}

// Score the current row and update everything; the address last, and not while a pointer moves.
let later = 0;
function update() {
  let found;
  try { found = model.score(row); } catch (error) { announced.textContent = error.message; return; }
  const c = positive();
  found.probabilities.forEach((p, k) => {
    meters[k].node.dataset.p = p;
    meters[k].bar.style.width = `${100 * p}%`;
    meters[k].text.textContent = percent(p);
  });
  const effects = new Map(model.terms.map((term, i) => [term, effect(found.terms[i].contributions, c)]));
  let left = 0; // of joint terms, without the parts that are in the total effects of columns
  for (const term of joint) left += effects.get(term);
  for (const term of alone) {
    const column = columns.get(term.columns[0]), whole = total(column, row[column.name], c);
    if (whole === null) continue;
    left += effects.get(term) - whole;
    effects.set(term, whole);
  }
  rest.shownValue.textContent = signed(left);
  const most = Math.max(...rows.map((one) => one.term ? Math.abs(effects.get(one.term)) : 0));
  if (most > scale) {
    scale = most * 1.04;
    rows.filter((one) => one.term).forEach(draw);
  }
  for (const one of rows) {
    one.set?.show(row[one.column.name]);
    if (one.term) place(one, effects.get(one.term));
  }
  prior.shownValue.textContent = signed(effect(found.log_prior, c));
  sum.textContent = signed(effect(found.scores, c));
  const given = model.classes.indexOf(found.label);
  if (known.policy) announced.replaceChildren("Decision: ", make("strong", {}, given < 0 ? "abstain" : known.classes[given]), make("span", { class: "soft" }, `, by policy: ${known.policy}`));
  else announced.textContent = `${known.classes[given]}, ${percent(found.probabilities[given])}`;
  announced.dataset.label = String(given);
  clearTimeout(later);
  later = setTimeout(remember, 250);
}

function remember() {
  const shownValue = Object.fromEntries(Object.entries(row).filter(([, value]) => !missing(value)));
  history.replaceState(null, "", "#row=" + encodeURIComponent(JSON.stringify([positive(), shownValue])));
}

// The state of an address: the class that is looked at, and a value for each column that is not missing.
function recall() {
  if (!location.hash.startsWith("#row=")) return false;
  try {
    const [c, shownValue] = JSON.parse(decodeURIComponent(location.hash.slice(5)));
    if (model.classes[c] !== undefined) chosen.value = other.value = String(c);
    set(shownValue);
    return true;
  } catch { return false; }
}

function set(values) {
  for (const name of Object.keys(row)) delete row[name];
  for (const name of columns.keys()) if (Object.hasOwn(values, name)) row[name] = values[name];
}

// The axes for a class. The scale is that of all of them, so that lengths can be compared.
function build() {
  const c = positive();
  rows = [...alone, ...[...others].map((name) => ({ name, columns: [name] }))].slice(0, shown).map(line);
  for (const one of rows) one.points = one.column && one.term ? along(one.term, one.column, c) : [];
  scale = Math.max(0.5, ...rows.flatMap((one) => one.points.map((p) => Math.abs(p.at))).filter((v) => v < 50)) * 1.04;
  rows.filter((one) => one.term).forEach(draw);
  const left = alone.length + others.size - rows.length;
  const button = make("button", { type: "button" }, `Show ${left} more`);
  button.addEventListener("click", () => { shown = Infinity; build(); update(); });
  const head = make("div", { class: "line head" }, make("span", {}, "column"), make("span", { class: "ends" }, make("span", {}, `\u2190 against ${known.classes[c]}`), make("span", {}, `for ${known.classes[c]} \u2192`)), make("span", {}, "value"), make("span", { class: "n" }, "log-odds"));
  axes.replaceChildren(head, ...rows.map((one) => one.node), ...(joint.length ? [rest.node] : []), prior.node, whole, ...(left > 0 ? [button] : []));
}

const prior = { shownValue: make("span", { class: "n" }) };
prior.node = make("div", { class: "line" }, make("span", { class: "name" }, "class prior and intercept"), make("span"), make("span"), prior.shownValue);
const rest = { shownValue: make("span", { class: "n" }) };
const of = joint.length === 1 ? "of 1 joint term" : `of ${joint.length} joint terms`;
rest.node = make("div", { class: "line joint" }, make("span", { class: "name" }, `remainder ${of}`), make("span"), make("span", { class: "soft" }, "beyond the effects of single columns"), rest.shownValue);
const sum = make("span", { class: "n" });
const whole = make("div", { class: "line total" }, make("span", { class: "name" }, "total"), make("span"), make("span"), sum);
const axes = make("div", { class: "axes" });
const other = chosen.cloneNode(true);
other.removeAttribute("id");
other.value = chosen.value;
const again = make("button", { type: "button" }, "typical row"), empty = make("button", { type: "button" }, "all missing");
again.addEventListener("click", () => { set(known.typical); update(); });
empty.addEventListener("click", () => { set({}); update(); });
other.addEventListener("change", () => { chosen.value = other.value; chosen.dispatchEvent(new Event("change")); });
chosen.addEventListener("change", () => { other.value = chosen.value; build(); update(); });
const head = make("div", { class: "answer" }, ...meters.map((one) => one.node), announced);
pane.querySelector(".live").replaceChildren(head, make("p", { class: "choose" }, make("label", {}, "Axes show the log-odds of ", other), " ", again, " ", empty), axes);
pane.hidden = false;
if (!recall()) set(known.typical);
build();
update();
clearTimeout(later);
window.addEventListener("hashchange", () => { if (recall()) { build(); update(); } });
Object.assign(globalThis.candide, { model, set: (values) => { set(values); update(); }, probabilities: () => meters.map((one) => +one.node.dataset.p), decision: () => +announced.dataset.label });
