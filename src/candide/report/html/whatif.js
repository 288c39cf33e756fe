// A case to try: every column with its total effect on one scale of nats, and the probabilities live. The scorer is the exported model's own, so
// what stands here is what `predict_proba` gives. The state is in the fragment of the address: a case can be sent.

// The scorer, its parameters and their numbers as the page was made with them: five letters are four bytes, deflated. Of
// the numbers all first bytes may stand before all second ones.
async function unpacked(text) {
  const [size, script, names, apart, letters] = text.split(" "), value = new Map([..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_`{|}~"].map((letter, i) => [letter, i]));
  const bytes = new DataView(new ArrayBuffer(letters.length / 5 * 4));
  for (let i = 0; i < letters.length; i += 5) {
    let whole = 0;
    for (let k = 0; k < 5; k++) whole = whole * 85 + value.get(letters[i + k]);
    bytes.setUint32(i / 5 * 4, whole);
  }
  const stream = new Blob([bytes.buffer.slice(0, +size)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = new Uint8Array(await new Response(stream).arrayBuffer()), read = (from, to) => new TextDecoder().decode(whole.subarray(from, to));
  const planes = whole.subarray(+script + +names), n = planes.length / apart, numbers = new Uint8Array(planes.length);
  planes.forEach((byte, i) => { numbers[i % n * apart + Math.floor(i / n)] = byte; });
  const doubles = Float64Array.from({ length: planes.length / 8 }, (_, i) => new DataView(numbers.buffer).getFloat64(8 * i, true));
  return [read(0, +script), JSON.parse(read(+script, +script + +names), (_, value) => value?.$ ? doubles.subarray(...value.$) : value)];
}

const pane = document.getElementById("try");
if (!globalThis.DecompressionStream) { // browsers before 2023
  pane.hidden = false;
  pane.querySelector(".live").textContent = "This browser is too old to unpack the model: open the page in a newer one.";
  await new Promise(() => {});
}
const [scorer, parameters] = await unpacked(document.getElementById("case").textContent);
document.head.append(make("script", {}, scorer));
const model = globalThis.candide.load(parameters);
const MOST = 40; // voices that are shown at first
const WIDE = 420, TALL = 30, LOW = 22; // of an axis, and of the curve of a number
const LONG = 60; // letters of a name that have room for certain
const DAY = 86400e3;
const columns = new Map(model.columns.map((one) => [one.name, one]));
const key = (name, of) => JSON.stringify([name, ...of]);
const speakers = new Map(model.voices.map((one) => [key(one.name, one.columns), one]));
const heard = known.titles.map(([name, ...of]) => speakers.get(key(name, of.length ? of : [name]))).filter(Boolean);
const joint = heard.filter((one) => one.columns.length > 1), alone = heard.filter((one) => one.columns.length === 1);
const own = new Set(heard.filter((one) => one.columns.length === 1).map((one) => one.columns[0]));
const others = new Set(heard.flatMap((one) => one.columns).filter((name) => !own.has(name))); // heard with others alone
const row = Object.create(null); // a column may be called __proto__
let rows = [], scale = 1, shown = MOST;

// What is said for a class against the mean of the others: of two classes their difference.
function effect(nats, c) {
  let rest = 0;
  nats.forEach((v, d) => { if (d !== c && known.shares[d]) rest += known.shares[d] / (1 - known.shares[c]) * v; });
  const found = nats[c] - rest;
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
  const { s, v, x } = known.totals[column.name], two = known.shares.length === 2, nats = two ? v[0] : v[c];
  const sign = two && c === 0 ? -0.01 : 0.01, at = column.kind === "date" ? days(value) : +value;
  if (s === "levels") return sign * (nats[column.levels.indexOf(value)] ?? 0);
  let k = x.findIndex((end) => at <= end);
  if (s === "steps") return sign * nats[k < 0 ? x.length : k];
  if (k <= 0) return sign * nats[k < 0 ? x.length - 1 : 0];
  const part = (at - x[k - 1]) / (x[k] - x[k - 1]);
  return sign * (nats[k - 1] + part * (nats[k] - nats[k - 1]));
}

// Along an axis: of levels a tick each, of numbers points of a curve.
function along(voice, column, c) {
  const say = (value) => total(column, value, c) ?? effect(voice.say({ [column.name]: value }), c);
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

// The name of a voice; of a long one three lines are shown, and all of it where it is pointed at.
const named = ({ name }) => make("span", { class: "name", title: name.length > LONG ? name : undefined }, name);

// One column: its name, its axis on the common scale, how it is set, and what it contributes now.
function line(voice) {
  const column = columns.get(voice.columns[0]);
  if (!voice.say) return silent(voice, column);
  const axis = make("svg", { class: "axis", viewBox: `0 0 ${WIDE} ${TALL}`, "aria-hidden": "true" });
  const told = make("span", { class: "n" }), set = control(column);
  const out = { voice, column, axis, told, set, node: make("div", { class: "line" }, named(voice), axis, set.node, told) };
  if (column.levels.length && !isNumber(column)) drag(axis, (part) => nearest(out, part));
  return out;
}

// A column that is heard together with others alone: it can be set, and has no axis.
function silent(voice, column) {
  const set = control(column);
  set.curve?.remove();
  return { column, set: { show: set.show }, node: make("div", { class: "line" }, named(voice), make("span", { class: "soft" }, "no voice of its own"), set.node, make("span")) };
}

// What is done while a finger or a mouse is drawn along a picture, by the part of its width.
function drag(node, take) {
  const at = (event) => { const box = node.getBoundingClientRect(); take(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width))); };
  node.addEventListener("pointerdown", (event) => { node.setPointerCapture(event.pointerId); at(event); });
  node.addEventListener("pointermove", (event) => { if (node.hasPointerCapture(event.pointerId)) at(event); });
}

// Along an axis of levels it is the level that says about as much.
function nearest(one, part) {
  const nats = (part - 0.5) * WIDE / (WIDE / 2 - 6) * scale;
  row[one.column.name] = one.points.reduce((a, b) => Math.abs(b.at - nats) < Math.abs(a.at - nats) ? b : a).value;
  update();
}

const X = (nats) => WIDE / 2 + nats / scale * (WIDE / 2 - 6);

// The still part of an axis, from the least that is said to the most, with ticks of levels; and the curve of a number.
function draw(one) {
  const still = [make("line", { class: "zero", x1: WIDE / 2, x2: WIDE / 2, y1: 2, y2: TALL - 2 })];
  if (one.points.length) {
    const ends = one.points.map((p) => X(p.at));
    still.push(make("line", { class: "base", x1: Math.min(...ends), x2: Math.max(...ends), y1: TALL / 2, y2: TALL / 2 }));
  }
  if (one.set?.curve) {
    const top = Math.max(0, ...one.points.map((p) => p.at)), base = Math.min(0, ...one.points.map((p) => p.at)), n = one.points.length - 1;
    const Y = (nats) => 2 + (top - nats) / Math.max(top - base, 1e-9) * (LOW - 4);
    one.mark = make("line", { class: "mark", y1: 0, y2: LOW });
    one.set.curve.replaceChildren(make("line", { class: "zero", x1: 0, x2: WIDE, y1: Y(0), y2: Y(0) }), make("polyline", { class: "line", points: one.points.map((p, k) => `${(k / n * WIDE).toFixed(1)},${Y(p.at).toFixed(1)}`).join(" ") }), one.mark);
  } else for (const p of one.points) still.push(make("line", { class: "tick", x1: X(p.at), x2: X(p.at), y1: 6, y2: TALL - 6 }, make("title", {}, `${p.value} ${signed(p.at)}`)));
  one.bar = make("rect", { class: "for", y: TALL / 2 - 4, height: 8, rx: 2 });
  one.dot = make("circle", { class: "knob", cy: TALL / 2, r: 5 });
  one.axis.replaceChildren(...still, one.bar, one.dot);
}

function place(one, nats) {
  const x = X(nats), from = X(0);
  one.bar.setAttribute("class", nats < 0 ? "against" : "for");
  one.bar.setAttribute("x", Math.min(x, from));
  one.bar.setAttribute("width", Math.abs(x - from));
  one.dot.setAttribute("cx", x);
  one.told.textContent = signed(nats);
  const part = one.mark && one.set.part(row[one.column.name]);
  if (one.mark) one.mark.setAttribute("visibility", part === null ? "hidden" : "visible");
  if (one.mark && part !== null) for (const end of ["x1", "x2"]) one.mark.setAttribute(end, part * WIDE);
}

const meters = model.classes.map((label, c) => {
  const bar = make("span", { class: "bar" }), text = make("span", { class: "n" });
  const node = make("div", { class: "meter" }, make("span", { class: "label" }, known.classes[c]), make("span", { class: "strength" }, bar), text);
  return { node, bar, text };
});
const spoken = make("p", { class: known.policy ? "decision" : "spoken", role: "status" });

function percent(p) {
  const rest = Math.min(p, 1 - p) * 100;
  return (100 * p).toFixed(rest > 0 && rest < 1 ? Math.min(6, 1 - Math.floor(Math.log10(rest))) : 1) + "%";
}

// All again for the row as it is now; the address last, and not while a finger moves.
let later = 0;
function update() {
  let found;
  try { found = model.score(row); } catch (error) { spoken.textContent = error.message; return; }
  const c = towards();
  found.probabilities.forEach((p, k) => {
    meters[k].node.dataset.p = p;
    meters[k].bar.style.width = `${100 * p}%`;
    meters[k].text.textContent = percent(p);
  });
  const said = new Map(model.voices.map((voice, i) => [voice, effect(found.voices[i].contributions, c)]));
  let left = 0; // of joint terms, without the parts that are in the total effects of columns
  for (const voice of joint) left += said.get(voice);
  for (const voice of alone) {
    const column = columns.get(voice.columns[0]), whole = total(column, row[column.name], c);
    if (whole === null) continue;
    left += said.get(voice) - whole;
    said.set(voice, whole);
  }
  rest.told.textContent = signed(left);
  const most = Math.max(...rows.map((one) => one.voice ? Math.abs(said.get(one.voice)) : 0));
  if (most > scale) {
    scale = most * 1.04;
    rows.filter((one) => one.voice).forEach(draw);
  }
  for (const one of rows) {
    one.set?.show(row[one.column.name]);
    if (one.voice) place(one, said.get(one.voice));
  }
  prior.told.textContent = signed(effect(found.log_prior, c));
  sum.textContent = signed(effect(found.scores, c));
  const given = model.classes.indexOf(found.label);
  if (known.policy) spoken.replaceChildren("Decision: ", make("strong", {}, given < 0 ? "left to a person" : known.classes[given]), make("span", { class: "soft" }, `, by a rule: ${known.policy}`));
  else spoken.textContent = `${known.classes[given]}, ${percent(found.probabilities[given])}`;
  spoken.dataset.label = String(given);
  clearTimeout(later);
  later = setTimeout(remember, 250);
}

function remember() {
  const told = Object.fromEntries(Object.entries(row).filter(([, value]) => !missing(value)));
  history.replaceState(null, "", "#row=" + encodeURIComponent(JSON.stringify([towards(), told])));
}

// The state of an address: the class that is looked at, and a value for each column that is not missing.
function recall() {
  if (!location.hash.startsWith("#row=")) return false;
  try {
    const [c, told] = JSON.parse(decodeURIComponent(location.hash.slice(5)));
    if (model.classes[c] !== undefined) chosen.value = other.value = String(c);
    set(told);
    return true;
  } catch { return false; }
}

function set(values) {
  for (const name of Object.keys(row)) delete row[name];
  for (const name of columns.keys()) if (Object.hasOwn(values, name)) row[name] = values[name];
}

// The axes for a class. The scale is that of all of them, so that lengths can be compared.
function build() {
  const c = towards();
  rows = [...alone, ...[...others].map((name) => ({ name, columns: [name] }))].slice(0, shown).map(line);
  for (const one of rows) one.points = one.column && one.voice ? along(one.voice, one.column, c) : [];
  scale = Math.max(0.5, ...rows.flatMap((one) => one.points.map((p) => Math.abs(p.at))).filter((v) => v < 50)) * 1.04;
  rows.filter((one) => one.voice).forEach(draw);
  const left = alone.length + others.size - rows.length;
  const button = make("button", { type: "button" }, `Show ${left} more`);
  button.addEventListener("click", () => { shown = Infinity; build(); update(); });
  const head = make("div", { class: "line head" }, make("span", {}, "column"), make("span", { class: "ends" }, make("span", {}, `\u2190 against ${known.classes[c]}`), make("span", {}, `for ${known.classes[c]} \u2192`)), make("span", {}, "value"), make("span", { class: "n" }, "nats"));
  axes.replaceChildren(head, ...rows.map((one) => one.node), ...(joint.length ? [rest.node] : []), prior.node, whole, ...(left > 0 ? [button] : []));
}

const prior = { told: make("span", { class: "n" }) };
prior.node = make("div", { class: "line" }, make("span", { class: "name" }, "class shares and bias"), make("span"), make("span"), prior.told);
const rest = { told: make("span", { class: "n" }) };
const of = joint.length === 1 ? "of 1 joint term" : `of ${joint.length} joint terms`;
rest.node = make("div", { class: "line joint" }, make("span", { class: "name" }, `what is left ${of}`), make("span"), make("span", { class: "soft" }, "beyond the columns one by one"), rest.told);
const sum = make("span", { class: "n" });
const whole = make("div", { class: "line total" }, make("span", { class: "name" }, "together"), make("span"), make("span"), sum);
const axes = make("div", { class: "axes" });
const other = chosen.cloneNode(true);
other.removeAttribute("id");
other.value = chosen.value;
const again = make("button", { type: "button" }, "a typical row"), empty = make("button", { type: "button" }, "all missing");
again.addEventListener("click", () => { set(known.typical); update(); });
empty.addEventListener("click", () => { set({}); update(); });
other.addEventListener("change", () => { chosen.value = other.value; chosen.dispatchEvent(new Event("change")); });
chosen.addEventListener("change", () => { other.value = chosen.value; build(); update(); });
const head = make("div", { class: "answer" }, ...meters.map((one) => one.node), spoken);
pane.querySelector(".live").replaceChildren(head, make("p", { class: "choose" }, make("label", {}, "Axes speak for ", other), " ", again, " ", empty), axes);
pane.hidden = false;
if (!recall()) set(known.typical);
build();
update();
clearTimeout(later);
window.addEventListener("hashchange", () => { if (recall()) { build(); update(); } });
Object.assign(globalThis.candide, { model, set: (values) => { set(values); update(); }, probabilities: () => meters.map((one) => +one.node.dataset.p), decision: () => +spoken.dataset.label });
