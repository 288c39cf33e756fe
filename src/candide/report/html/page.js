"use strict";
// Charts of terms, drawn when they are opened, for the chosen class. All text is set as text, never as markup.
const known = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g; // characters that reverse the direction of text

function make(name, attributes = {}, ...inside) {
  const svg = ["svg", "rect", "line", "polyline", "polygon", "text", "circle", "g", "title"].includes(name);
  const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(key, value);
  node.append(...inside.map((one) => typeof one === "string" ? one.replace(TURNS, " ") : one));
  return node;
}

const signed = (odds, digits = 2) => odds ? (odds > 0 ? "+" : "\u2212") + Math.abs(odds).toFixed(digits) : "0";
const figures = (x) => Math.abs(x) >= 1e5 || (x && Math.abs(x) < 1e-3) ? x.toPrecision(3) : String(+x.toPrecision(4));

// Contributions of a term to the log-odds of a class against the others; of two classes one list serves both.
function contrast(term, c) {
  const list = known.classes.length === 2 ? term.v[0] : term.v[c];
  const sign = known.classes.length === 2 && c === 0 ? -1 : 1;
  return list.map((v) => sign * v / 100);
}

function beam(odds, most, zero = 50) {
  const width = Math.min(Math.abs(odds) / most, 1) * (100 - zero);
  const bar = make("i", { class: odds < 0 ? "minus" : "plus" });
  bar.style.cssText = `width:${width}%;left:${odds < 0 ? zero - width : zero}%`;
  return make("span", { class: zero ? "beam" : "beam plain", "aria-hidden": "true" }, bar);
}

const largest = (list) => Math.max(1e-9, ...list.map(Math.abs));

function levels(term, c) {
  const odds = contrast(term, c), most = largest(odds);
  const rows = term.n[0].map((name, i) => make("tr", {}, make("th", { scope: "row" }, name),
    make("td", { class: "n soft" }, term.o ? (term.o[i] / 100).toFixed(1) + "%" : ""),
    make("td", {}, beam(odds[i], most)), make("td", { class: "n" }, signed(odds[i]))));
  const heads = ["level", "rows", `for ${known.classes[c]}`, "log-odds"].map((t) => make("th", { scope: "col" }, t));
  return make("table", { class: "levels" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
}

function table(term, c, room, title) {
  const [down, across] = term.n, odds = contrast(term, c);
  if (term.n.length !== 2) return cells(term, odds);
  const seen = (i) => !term.o || term.o[i] > 0, most = largest(odds.filter((_, i) => seen(i)));
  const head = make("tr", {}, make("td"), ...across.map((t) => make("th", { scope: "col" }, t)));
  const rows = down.map((name, i) => make("tr", {}, make("th", { scope: "row" }, name), ...across.map((_, j) => {
    const at = i * across.length + j, value = odds[at];
    const cell = make("td", {}, seen(at) ? signed(value) : "");
    if (seen(at)) cell.style.background = shade(value / most);
    return cell;
  })));
  return scroll(make("table", { class: "heat" }, make("thead", {}, head), make("tbody", {}, ...rows)), `Contributions of ${title}`);
}

// At most 45 % of the colour: the number in a cell stays readable on it.
const shade = (part) => `color-mix(in srgb, var(${part > 0 ? "--accent" : "--against"}) ${Math.round(Math.min(Math.abs(part), 1) * 45)}%, var(--paper))`;

// With three columns or more, the combinations with the largest contributions.
function cells(term, odds) {
  const order = odds.map((v, i) => i).filter((i) => !term.o || term.o[i] > 0).sort((a, b) => Math.abs(odds[b]) - Math.abs(odds[a])).slice(0, 20);
  const most = largest(odds), rows = order.map((at) => {
    const names = [];
    for (let k = term.n.length - 1, rest = at; k >= 0; rest = Math.floor(rest / term.n[k].length), k--) names.unshift(term.n[k][rest % term.n[k].length]);
    return make("tr", {}, make("th", { scope: "row" }, names.join(", ")), make("td"), make("td", {}, beam(odds[at], most)), make("td", { class: "n" }, signed(odds[at])));
  });
  return make("table", { class: "levels" }, make("tbody", {}, ...rows));
}

function scroll(inside, label) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, inside);
}

// The line of a column of numbers as points: steps between edges, or points of a curve.
function points(term, odds, low, high) {
  if (term.s === "curve") return term.x.map((x, i) => [x, odds[i]]);
  const out = [];
  for (let i = 0; i < odds.length; i++) {
    const from = i === 0 ? low : term.x[i - 1], to = i < term.x.length ? term.x[i] : high;
    if (to > low && from < high) out.push([Math.max(from, low), odds[i]], [Math.min(to, high), odds[i]]);
  }
  return out;
}

function span(term) {
  const low = term.b ? term.b[0] : term.x[0], high = term.b ? term.b[1] : term.x[term.x.length - 1];
  return high > low ? [low, high] : [low - 1, high + 1];
}

// Round numbers between two ends, four or so of them.
function ticks(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const out = [];
  for (let x = Math.ceil(low / step) * step; x <= high; x += step) out.push(Math.abs(x) < step / 1e6 ? 0 : x);
  return out;
}

function numbers(term, c, room = 640) {
  const W = Math.max(240, Math.min(640, room)), H = 240, L = 44, B = 26, odds = contrast(term, c), [low, high] = span(term);
  const line = points(term, odds, low, high), top = Math.max(0, ...line.map((p) => p[1])), base = Math.min(0, ...line.map((p) => p[1]));
  const X = (x) => L + (x - low) / (high - low) * (W - L - 8), Y = (y) => 10 + (top - y) / Math.max(top - base, 1e-9) * (H - B - 20);
  const out = make("svg", { class: "big", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Log-odds of ${known.classes[c]} by value` });
  if (term.b) {
    const tall = Math.max(1, ...term.b[2]), w = (W - L - 8) / term.b[2].length;
    term.b[2].forEach((n, i) => { const h = Math.sqrt(n / tall) * (H - B - 10); out.append(make("rect", { class: "hist", x: L + i * w, y: H - B - h, width: w, height: h })); });
  }
  for (const y of [base, 0, top]) if (y === 0 || Math.abs(y) > 0.15 * (top - base)) out.append(make("line", { class: y ? "grid" : "zero", x1: L, x2: W - 8, y1: Y(y), y2: Y(y) }), make("text", { x: L - 6, y: Y(y) + 4, "text-anchor": "end" }, signed(y, 1)));
  out.append(make("polyline", { class: "line", points: line.map(([x, y]) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join(" ") }));
  for (const x of ticks(low, high)) out.append(make("text", { x: X(x), y: H - 8, "text-anchor": "middle" }, figures(x)));
  return out;
}

function words(term, c) {
  const order = [c, ...term.t.keys()].filter((k, i) => i === 0 || k !== c).slice(0, 8);
  return make("div", { class: "word-lists" }, ...order.map((k) => {
    const most = largest(term.t[k].map((t) => t[1]));
    const rows = term.t[k].map(([word, odds]) => make("tr", {}, make("th", { scope: "row" }, word), make("td", {}, beam(odds, most, 0)), make("td", { class: "n" }, signed(odds / 100))));
    return make("table", { class: "class-words" }, make("caption", {}, `for ${known.classes[k]}`), make("tbody", {}, ...rows));
  }));
}

const DRAW = { levels, table, words, steps: numbers, curve: numbers };
const chosen = document.getElementById("positive");
chosen?.append(...known.classes.map((label, c) => make("option", { value: c }, label)));
if (chosen) chosen.value = String(known.positive);
const positive = () => chosen ? +chosen.value : known.positive;

function open(details) {
  const term = known.terms[+details.dataset.at], body = details.querySelector(".body");
  body.querySelector(".drawn")?.remove();
  if (term) body.append(make("div", { class: "drawn" }, DRAW[term.s](term, positive(), body.clientWidth - 20, details.querySelector(".name").textContent)));
}

// Redraw the thumbnails for another class.
function small(details) {
  const term = known.terms[+details.dataset.at], place = details.querySelector(".small");
  if (!term || term.s === "words") return;
  const W = 150, H = 40, odds = contrast(term, positive()), svg = make("svg", { class: "spark", viewBox: `0 0 ${W} ${H}`, "aria-hidden": "true" });
  const top = Math.max(0, ...odds), base = Math.min(0, ...odds), Y = (y) => 2 + (top - y) / Math.max(top - base, 1e-9) * (H - 4);
  const block = (x, y, w, h, v, depth) => svg.append(make("rect", { class: v > 0 ? "for" : "against", x, y, width: w, height: h, "fill-opacity": depth }));
  if (term.s === "levels") {
    const some = odds.slice(0, 40), w = W / some.length;
    some.forEach((v, i) => block(i * w + w * .14, Math.min(Y(0), Y(v)), w * .72, Math.max(Math.abs(Y(v) - Y(0)), .4), v));
  } else if (term.s === "table") {
    if (term.n.length !== 2) return;
    const [down, across] = term.n, w = W / Math.min(down.length, 24), h = H / Math.min(across.length, 24), most = largest(odds);
    odds.forEach((v, at) => { const i = Math.floor(at / across.length), j = at % across.length; if (i < 24 && j < 24 && (!term.o || term.o[at])) block(i * w, H - (j + 1) * h, w, h, v, Math.abs(v) / most); });
  } else {
    const [low, high] = span(term), X = (x) => (x - low) / (high - low) * W;
    if (term.b) { const tall = Math.max(1, ...term.b[2]), w = W / term.b[2].length; term.b[2].forEach((n, i) => { const h = Math.sqrt(n / tall) * H; svg.append(make("rect", { class: "hist", x: i * w, y: H - h, width: w, height: h })); }); }
    svg.append(make("polyline", { class: "line", points: points(term, odds, low, high).map(([x, y]) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join(" ") }));
  }
  place.replaceChildren(svg);
}

// Redraw the performance curves for another class, in thousandths; points with weights are dots.
function curves(c) {
  if (!known.curves.length) return; // with two classes the curves of one serve both
  const S = 240, mine = known.curves[c], none = document.getElementById("uncurved");
  document.querySelector(".figures").hidden = !mine;
  if (none) none.hidden = !!mine;
  if (!mine) { none.textContent = `The curves of ${known.classes[c]} are not on this page.`; return; }
  document.querySelectorAll("[data-curve]").forEach((figure, i) => {
    const old = figure.querySelector("svg"), [x, y, weight] = mine[i] || [[], []], top = i === 2 ? Math.max(1000, ...y) : 1000;
    old.querySelectorAll("polyline, .dot").forEach((one) => one.remove());
    old.setAttribute("aria-label", `${figure.querySelector("strong").textContent} of ${known.classes[c]}`);
    old.querySelector(".top").textContent = figures(top / 1000);
    const at = (k) => [x[k] / 1000 * S, S - y[k] / top * S];
    if (weight) old.append(...x.map((_, k) => make("circle", { class: "dot", cx: at(k)[0], cy: at(k)[1], r: 3 + 7 * Math.sqrt(weight[k] / 100) })));
    else old.append(make("polyline", { class: "line", points: x.map((_, k) => at(k).map((v) => v.toFixed(1)).join()).join(" ") }));
  });
}

// Confusions of many classes, most rows first: a matrix of them could not be read.
document.getElementById("confusions")?.addEventListener("toggle", ({ target }) => {
  const rows = [], list = known.confusions;
  for (let i = 0; i < list.length; i += 3) rows.push(make("tr", {}, make("th", { scope: "row" }, known.classes[list[i]]), make("td", {}, known.classes[list[i + 1]]), make("td", { class: "n" }, String(list[i + 2]))));
  const heads = ["class", "predicted", "rows"].map((t, i) => make("th", { scope: "col", class: i === 2 ? "n" : undefined }, t));
  const rest = known.rarer ? [make("p", { class: "soft" }, `And ${known.rarer} with fewer rows: candide evaluate MODEL DATA --json lists all.`)] : [];
  target.querySelector(".body").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)), ...rest);
}, { once: true });

const terms = [...document.querySelectorAll("details.term")];
const listen = (one) => one.addEventListener("toggle", () => one.open && open(one));
terms.forEach(listen);

// A term that the page as written does not list.
function listed([title, label, importance, sentence], at) {
  const bar = make("span", { class: "bar" });
  bar.style.width = `${100 * importance / known.most}%`;
  const head = make("summary", {}, make("span", { class: "name" }, title), " ", make("span", { class: "kind" }, label),
    make("span", { class: "importance" }, bar), make("span", { class: "n" }, importance.toFixed(3)), make("span", { class: "small" }));
  const out = make("details", { class: "term", "data-at": at }, head, make("div", { class: "body" }, make("p", {}, sentence)));
  listen(out);
  small(out);
  return out;
}

const more = document.getElementById("more");
if (more) {
  more.hidden = false;
  more.addEventListener("click", () => {
    const first = terms.length;
    terms.push(...known.more.map((one, i) => listed(one, first + i)));
    document.getElementById("terms").append(...terms.slice(first));
    more.closest("p").remove();
    terms[first].querySelector("summary").focus();
  });
}
if (chosen) {
  chosen.closest(".choose").hidden = false;
  chosen.addEventListener("change", () => {
    terms.forEach((one) => { small(one); if (one.open) open(one); });
    curves(positive());
  });
}
