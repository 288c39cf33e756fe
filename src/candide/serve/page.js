// The form is made of the model's columns; every change of it asks the server again.
const known = JSON.parse(document.getElementById("known").textContent);
const at = (id) => document.getElementById(id);
const SHOWN = 10; // answers that are kept in sight
const WAIT = 150; // milliseconds after the last change, before the server is asked

const made = (name, attributes = {}, ...inside) => {
  const one = Object.assign(document.createElement(name), attributes);
  one.append(...inside);
  return one;
};

const option = (value, index) => made("option", { value: String(index) }, String(value));

// Each field gives its value, null where it is missing.
const reads = {
  number(field) {
    const text = made("input", { type: "number", step: "any", value: field.value ?? "" });
    const parts = [text];
    if (field.high > field.low) {
      const slider = made("input", { type: "range", min: field.low, max: field.high, step: "any", value: text.value });
      slider.setAttribute("aria-label", field.name);
      slider.addEventListener("input", () => { text.value = Number(Number(slider.value).toPrecision(4)); });
      text.addEventListener("input", () => { slider.value = text.value; });
      parts.push(slider);
    }
    return [parts, () => (text.value === "" ? null : Number(text.value)), (value) => {
      text.value = value ?? "";
      text.dispatchEvent(new Event("input", { bubbles: true }));
    }];
  },
  level(field) {
    const choice = made("select", {}, made("option", { value: "" }, "(missing)"), ...field.levels.map(option));
    const usual = field.levels.indexOf(field.value);
    choice.value = usual < 0 ? "" : String(usual);
    return [[choice], () => (choice.value === "" ? null : field.levels[Number(choice.value)]), (value) => {
      choice.value = String(field.levels.indexOf(value));
      choice.dispatchEvent(new Event("input", { bubbles: true }));
    }];
  },
  text(field, type = "textarea") {
    const text = made(type, type === "input" ? { type: "date", value: field.value ?? "" } : { rows: 3 });
    return [[text], () => text.value || null, (value) => {
      text.value = value ?? "";
      text.dispatchEvent(new Event("input", { bubbles: true }));
    }];
  },
  date(field) { return reads.text(field, "input"); },
};

const gets = {}, sets = {};
for (const field of known.fields) {
  const [parts, get, set] = reads[field.kind](field);
  gets[field.name] = get;
  sets[field.name] = set;
  at("form").append(made("label", {}, field.name, made("br"), ...parts));
}
const row = () => Object.fromEntries(Object.entries(gets).map(([name, get]) => [name, get()]));

async function ask(path, body, headers = {}) {
  const answer = await fetch(path, {
    method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.detail);
  return told;
}

const line = (...cells) => made("tr", {}, ...cells.map((cell) => made("td", {}, cell)));
const bar = (share, less = false) => {
  const one = made("span", { className: less ? "bar less" : "bar" });
  one.style.width = `${10 * Math.min(1, share)}rem`;
  return one;
};
const told = (value) => (value === null ? "missing" : !Array.isArray(value) ? String(value) : value.length > 3 ? "" : value.join(", "));
const percent = (p) => `${(100 * p).toFixed(1)} %`;

let asked = 0;
async function show() {
  const number = ++asked, sent = row();
  try {
    const [said, why] = await Promise.all([ask("predict", sent), known.classes.length > 1 ? ask("explain", sent) : null]);
    if (number !== asked) return; // another change has come since
    const label = known.classes.indexOf(said.prediction), given = said[`p_${known.names[label] ?? said.prediction}`];
    const p = Object.entries(said).filter(([name]) => name.startsWith("p_")).map(([name, value]) => [name.slice(2), value]);
    p.sort((a, b) => b[1] - a[1]);
    at("problem").textContent = (said.warnings ?? []).map((one) => one.text).join("; ");
    at("answer").textContent = said.prediction === null ? "It leaves this row open" : said.prediction + (given === undefined ? "" : `, ${percent(given)}`);
    at("classes").replaceChildren(...p.map(([name, value]) => line(name, percent(value), bar(value))));
    const most = Math.max(1e-9, ...(why?.columns ?? []).map((one) => Math.abs(one.nats)));
    at("why").replaceChildren(...(why?.columns ?? []).slice(0, 12).map((one) =>
      line(one.voice || String(one.column), told(one.value), one.nats.toFixed(2), bar(Math.abs(one.nats) / most, one.nats < 0))));
    at("last").prepend(line(at("answer").textContent, JSON.stringify(sent)));
    while (at("last").rows.length > SHOWN) at("last").deleteRow(-1);
    at("right").value = String(known.classes.map(String).findIndex((one) => one !== String(said.prediction)));
  } catch (error) {
    at("problem").textContent = error.message;
  }
}

let soon;
at("form").addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(show, WAIT); });
at("form").addEventListener("submit", (event) => event.preventDefault());

if (known.target !== null) {
  at("teaching").hidden = false;
  at("right").append(...known.classes.map(option));
  at("teach").addEventListener("click", async () => {
    const label = known.classes[Number(at("right").value)], token = at("token").value;
    try {
      const told = await ask("learn", { ...row(), [known.target]: label }, token ? { authorization: `Bearer ${token}` } : {});
      at("taught").textContent = `Learned as ${label}: the model has counted ${told.model_rows} rows.`;
      await show();
    } catch (error) {
      at("taught").textContent = error.message;
    }
  });
}
globalThis.candide = { row, sets, show };
show();
