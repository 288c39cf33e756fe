// The form is built from the model's columns; every change sends the row to the server again.
const settings = JSON.parse(document.getElementById("settings").textContent);
const element = (id) => document.getElementById(id);
const MAX_SHOWN = 10; // predictions in the list
const DELAY = 150; // milliseconds after the last change

const make = (name, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(name), attributes);
  node.append(...children);
  return node;
};

const option = (value, index) => make("option", { value: String(index) }, String(value));
const notify = (node) => node.dispatchEvent(new Event("input", { bubbles: true }));

// Each kind of field returns its nodes, a function that gives its value (null if missing), and one that sets it.
const makers = {
  number(field) {
    const text = make("input", { type: "number", step: "any", value: field.value ?? "" });
    const nodes = [text];
    if (field.high > field.low) {
      const slider = make("input", { type: "range", min: field.low, max: field.high, step: "any", value: text.value });
      slider.setAttribute("aria-label", field.name);
      slider.addEventListener("input", () => { text.value = Number(Number(slider.value).toPrecision(4)); });
      text.addEventListener("input", () => { slider.value = text.value; });
      nodes.push(slider);
    }
    return [nodes, () => (text.value === "" ? null : Number(text.value)), (value) => { text.value = value ?? ""; notify(text); }];
  },
  level(field) {
    const choice = make("select", {}, make("option", { value: "" }, "(missing)"), ...field.levels.map(option));
    const index = field.levels.indexOf(field.value);
    choice.value = index < 0 ? "" : String(index);
    return [[choice], () => (choice.value === "" ? null : field.levels[Number(choice.value)]), (value) => {
      choice.value = String(field.levels.indexOf(value));
      notify(choice);
    }];
  },
  text(field, type = "textarea") {
    const text = make(type, type === "input" ? { type: "date", value: field.value ?? "" } : { rows: 3 });
    return [[text], () => text.value || null, (value) => { text.value = value ?? ""; notify(text); }];
  },
  date(field) { return makers.text(field, "input"); },
};

const gets = {}, sets = {};
for (const field of settings.fields) {
  const [nodes, get, set] = makers[field.kind](field);
  gets[field.name] = get;
  sets[field.name] = set;
  element("form").append(make("label", {}, field.name, make("br"), ...nodes));
}
const row = () => Object.fromEntries(Object.entries(gets).map(([name, get]) => [name, get()]));

async function post(path, body, headers = {}) {
  const response = await fetch(path, {
    method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body),
  });
  const result = await response.json();
  if (!response.ok) throw new Error(result.detail);
  return result;
}

const line = (...cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));
const bar = (fraction, negative = false) => {
  const node = make("span", { className: negative ? "bar less" : "bar" });
  node.style.width = `${10 * Math.min(1, fraction)}rem`;
  return node;
};
const format = (value) => (value === null ? "missing" : !Array.isArray(value) ? String(value) : value.length > 3 ? "" : value.join(", "));
const percent = (p) => `${(100 * p).toFixed(1)}%`;

let requests = 0;
async function show() {
  const number = ++requests, sent = row();
  try {
    const [scored, why] = await Promise.all([post("predict", sent), settings.classes.length > 1 ? post("explain", sent) : null]);
    if (number !== requests) return; // the form has changed since
    const label = settings.classes.indexOf(scored.prediction), p = scored[`p_${settings.names[label] ?? scored.prediction}`];
    const classes = Object.entries(scored).filter(([name]) => name.startsWith("p_")).map(([name, value]) => [name.slice(2), value]);
    classes.sort((a, b) => b[1] - a[1]);
    element("problem").textContent = (scored.warnings ?? []).map((warning) => warning.text).join("; ");
    element("answer").textContent = scored.prediction === null ? "The model abstains" : scored.prediction + (p === undefined ? "" : `, ${percent(p)}`);
    element("classes").replaceChildren(...classes.map(([name, value]) => line(name, percent(value), bar(value))));
    const contributions = why?.contributions ?? [], largest = Math.max(1e-9, ...contributions.map((each) => Math.abs(each.log_odds)));
    element("why").replaceChildren(...contributions.slice(0, 12).map((each) =>
      line(each.term || String(each.column), format(each.value), each.log_odds.toFixed(2), bar(Math.abs(each.log_odds) / largest, each.log_odds < 0))));
    element("last").prepend(line(element("answer").textContent, JSON.stringify(sent)));
    while (element("last").rows.length > MAX_SHOWN) element("last").deleteRow(-1);
    element("right").value = String(settings.classes.map(String).findIndex((name) => name !== String(scored.prediction)));
  } catch (error) {
    element("problem").textContent = error.message;
  }
}

let timer;
element("form").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(show, DELAY); });
element("form").addEventListener("submit", (event) => event.preventDefault());

if (settings.target !== null) {
  element("correction").hidden = false;
  element("right").append(...settings.classes.map(option));
  element("teach").addEventListener("click", async () => {
    const label = settings.classes[Number(element("right").value)], token = element("token").value;
    try {
      const outcome = await post("learn", { ...row(), [settings.target]: label }, token ? { authorization: `Bearer ${token}` } : {});
      element("learned").textContent = `Learned as ${label}. The model has counted ${outcome.model_rows} rows.`;
      await show();
    } catch (error) {
      element("learned").textContent = error.message;
    }
  });
}
globalThis.candide = { row, sets, show };
show();
