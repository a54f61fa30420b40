// The page without this script says everything; with it tables sort, filter and copy, and names are shown everywhere.
// Only text nodes are made, numbers stay as they were written, and nothing is asked of the network.

const make = (tag, attributes = {}, text = "") => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(text);
  return element;
};
const rowsOf = (table) => [...table.tBodies].flatMap((body) => [...body.rows]);
const words = (cell) => cell.textContent.trim().replace(/\s+/g, " ");

// ------------------------------------------------------------------------------------------------- copied as text

const csvCell = (text) => {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text; // nothing that a spreadsheet would evaluate
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const markdownCell = (text) => text.replace(/[\\`*_|[\]<>~$]/g, "\\$&");
const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$", "−": "$-$", "–": "--", "∞": "$\\infty$", "●": "$\\bullet$", "○": "$\\circ$", "▲": "$\\triangle$" };
const latexCell = (text) => text.replace(/[\\~^<>−–∞●○▲]|[&%$#_{}]/g, (mark) => LATEX[mark] ?? `\\${mark}`);

const FORMS = {
  CSV: (head, rows) => [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n",
  Markdown: (head, rows, right) => {
    const line = (cells) => `| ${cells.join(" | ")} |`;
    const rule = right.map((is) => (is ? "---:" : ":---"));
    return [line(head.map(markdownCell)), line(rule), ...rows.map((row) => line(row.map(markdownCell)))].join("\n") + "\n";
  },
  LaTeX: (head, rows, right) => {
    const line = (cells) => `${cells.map(latexCell).join(" & ")} \\\\`;
    const columns = right.map((is) => (is ? "r" : "l")).join("");
    const body = [line(head), "\\midrule", ...rows.map(line)];
    return ["% \\usepackage{booktabs}", `\\begin{tabular}{${columns}}`, "\\toprule", ...body, "\\bottomrule", "\\end{tabular}"].join("\n") + "\n";
  },
};

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { "aria-hidden": "true", class: "away" }, text); // pages without a secure origin
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const label = button.dataset.label;
  button.textContent = done ? "copied" : "not copied: select the text";
  setTimeout(() => (button.textContent = label), 1500);
}
const copier = (label, text, of) => {
  const button = make("button", { type: "button", "data-label": label, "aria-live": "polite", ...(of && { title: of }) }, label);
  button.addEventListener("click", () => copy(text(), button));
  return button;
};

// ---------------------------------------------------------------------------------------- tables sort and filter

const number = (text) => {
  const match = /^[<>≈~]?\s*([-−+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?)/.exec(text);
  return match ? Number(match[1].replaceAll(",", "").replace("−", "-")) : NaN;
};

function sort(table, column, button) {
  const head = button.closest("th");
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const sign = down ? -1 : 1;
  const keyed = rowsOf(table).map((row) => [words(row.cells[column]), row]);
  const numeric = keyed.some(([text]) => !Number.isNaN(number(text))) && head.classList.contains("lt-num");
  const order = ([a], [b]) => {
    if (!numeric) return sign * (a < b ? -1 : a > b ? 1 : 0);
    const [x, y] = [number(a), number(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // what has no number is last
    return sign * (x - y);
  };
  keyed.sort(order);
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function equip(table) {
  const head = [...table.tHead.rows[0].cells];
  const [titles, right] = [head.map(words), head.map((cell) => cell.classList.contains("lt-num"))];
  const title = table.caption ? words(table.caption) : "table";
  if (rowsOf(table).length > 1)
    head.forEach((cell, column) => {
      const button = make("button", { type: "button", class: "sort" }, titles[column] || "\u200b");
      button.addEventListener("click", () => sort(table, column, button));
      cell.replaceChildren(button);
    });
  const tools = make("p", { class: "take" });
  if (rowsOf(table).length > 12) {
    const input = make("input", { type: "search", placeholder: "filter rows", "aria-label": `Filter rows of: ${title}` });
    input.addEventListener("input", () => {
      const sought = input.value.toLowerCase();
      for (const row of rowsOf(table)) row.hidden = !words(row).toLowerCase().includes(sought);
    });
    tools.append(input);
  }
  const visible = () => rowsOf(table).filter((row) => !row.hidden).map((row) => [...row.cells].map(words));
  for (const [form, write] of Object.entries(FORMS)) tools.append(copier(`copy ${form}`, () => write(titles, visible(), right), title));
  (table.closest(".scroll") ?? table).after(tools);
}

// ------------------------------------------------------------------------------------ one name, shown everywhere

const namesOf = (element) => [element.dataset.a, element.dataset.b].filter((name) => name !== undefined);

function mark(root, names) { // what belongs to an algorithm, or to a pair of them
  const known = new Set(names);
  for (const element of root.querySelectorAll("svg [data-a]")) if (!namesOf(element).every((name) => known.has(name))) delete element.dataset.a;
  for (const row of root.querySelectorAll("tbody tr"))
    for (const cell of row.cells) if (known.has(words(cell))) (cell === row.cells[0] && cell.tagName === "TH" ? row : cell).dataset.a = words(cell);
  for (const row of root.querySelectorAll(".front tbody tr[data-a]")) row.tabIndex = 0;
}

function highlight(root) { // a pair shows both of it, and of the other pairs none
  let [now, marked] = ["", root.body ?? root];
  const point = (names) => {
    if (now === (now = JSON.stringify(names))) return;
    marked.classList.toggle("pointing", names.length > 0);
    for (const element of marked.querySelectorAll("[data-a]")) {
      const own = namesOf(element);
      element.classList.toggle("on", own.some((name) => names.includes(name)) && (names.length < 2 || own.every((name) => names.includes(name))));
    }
  };
  const at = (event) => { const found = event.target.closest?.("[data-a]"); point(found ? namesOf(found) : []); };
  for (const kind of ["mouseover", "focusin"]) marked.addEventListener(kind, at);
  for (const kind of ["mouseleave", "focusout"]) marked.addEventListener(kind, () => point([]));
}

// ------------------------------------------------------- an analysis: verdict, ranking and differences to one of them

const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const add = (parent, ...children) => (parent.append(...children), parent);
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const wide = (text) => ruler.measureText(text).width;
const short = (names, room) => { // to the part that no other one has, within so many units of a figure; else with their places
  const most = (count, cut) => { while (count > 0 && wide(cut(count)) > room) count--; return cut(count); };
  const ending = (letters, before) => most(letters.length - 1, (kept) => `${before}…${letters.slice(letters.length - kept).join("")}`);
  const cuts = names.map((name) => {
    if (wide(name) <= room) return name;
    const letters = [...name], of = (start, end) => letters.slice(start, end).join("");
    const head = most(letters.length - 1, (kept) => `${of(0, kept)}…`), tail = ending(letters, "");
    const alike = names.filter((other) => other.startsWith(head.slice(0, -1)));
    if (alike.length === 1) return head;
    if (names.filter((other) => other.endsWith(tail.slice(1))).length === 1) return tail;
    const from = letters.findIndex((letter, i) => alike.some((other) => [...other][i] !== letter));
    return most(letters.length - from, (kept) => `…${of(from, from + kept)}…`);
  });
  return cuts.map((cut, place) => (cuts.filter((other) => other === cut).length > 1 ? ending([...names[place]], `${place + 1}: `) : cut));
};
const paragraph = (parts, attributes = {}) =>
  add(make("p", attributes), ...parts.map((part) => (Array.isArray(part) ? make(part[1] === "link" ? "span" : part[1], {}, part[0]) : part)));
const plainly = (texts) => texts.map((parts) => parts.map((part) => (Array.isArray(part) ? part[0] : part)).join("")).join(" ");

const INK = "#1a1a1a", MUTED = "#5f5f5f", FAINT = "#d9d9d9", PAPER = "#ffffff", WIDTH = 440;
const line = (x1, y1, x2, y2, stroke, width = 1) => svg("line", { x1, y1, x2, y2, stroke, "stroke-width": width });
const label = (x, y, text, anchor = "start", fill = INK, kind = "") => svg("text", { x, y, "text-anchor": anchor, fill, class: kind }, text);
const figure = (height, alt, caption, drawn) => {
  const plate = make("div", { class: "plate", role: "img", "aria-label": alt });
  plate.append(svg("svg", { viewBox: `0 0 ${WIDTH} ${height}` }, ...drawn));
  return add(make("figure"), plate, make("figcaption", {}, caption));
};
const scaleOf = (values, left, right) => {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (value) => (high > low ? left + ((right - left) * (value - low)) / (high - low) : (left + right) / 2);
};

function forest({ rows, ticks, what, reference }) {
  const names = short(rows.map((row) => row.name), 122);
  const values = rows.flatMap((row) => row.ends).filter((value) => value !== null);
  const [x, bottom] = [scaleOf([0, ...values], 140, WIDTH - 18), 16 + 26 * rows.length];
  const drawn = [line(x(0), 4, x(0), bottom, INK), line(140, bottom, WIDTH - 18, bottom, MUTED)];
  for (const [at, text] of ticks) drawn.push(line(x(at), bottom, x(at), bottom + 4, MUTED), label(x(at), bottom + 17, text, "middle", MUTED, "small"));
  rows.forEach((row, i) => {
    const [at, low, high] = row.ends, y = 18 + 26 * i;
    const differs = row.code === 1 || row.code === -1;
    const group = svg("g", { "data-a": row.name }, svg("title", {}, `${row.name}: ${row.name === reference ? "the reference" : row.text}`));
    add(group, svg("rect", { x: 0, y: y - 13, width: WIDTH, height: 26, fill: "transparent" }), label(128, y + 4, names[i], "end"));
    if (low !== null) group.append(line(x(low), y, x(high), y, INK, 1.6));
    if (at === null) group.append(label(148, y + 4, "no test", "start", MUTED));
    else group.append(svg("circle", { cx: x(at), cy: y, r: 4.5, fill: differs || row.name === reference ? INK : PAPER, stroke: INK, "stroke-width": 1.6 }));
    drawn.push(group);
  });
  const caption = `${what}. Filled: differs from ${reference}. Hollow: not distinguishable from it.`;
  return figure(bottom + 24, `${what}: ${rows.map((row) => `${row.name} ${row.text}`).join("; ")}.`, caption, drawn);
}

function ranking({ title, columns, right, rows, notes }) {
  const kind = (i) => (right[i] ? { class: "lt-num" } : {});
  const table = make("table", { class: "lt-table" });
  const head = add(make("tr"), ...columns.map((name, i) => make("th", { scope: "col", ...kind(i) }, name)));
  const body = rows.map((row) => add(make("tr"), ...row.map((cell, i) => (i === 0 && !right[0] ? make("th", { scope: "row" }, cell) : make("td", kind(i), cell)))));
  add(table, make("caption", {}, title), add(make("thead"), head), add(make("tbody"), ...body));
  const region = add(make("div", { class: "scroll", role: "region", "aria-label": title, tabindex: "0" }), table);
  return [table, add(make("div"), region, ...notes.map((note) => make("p", { class: "note" }, note)))];
}

const exploratory = (changes, counted) => `Exploratory: ${changes.join(", ")}. ${counted}; the level holds for one analysis that was stated beforehand.`;

// ------------------------------------------------------------- variants that were computed when the page was written

function variants(source, planned, names) {
  const pages = new Map(JSON.parse(source.textContent).map((page) => [page.query, page]));
  const section = source.parentElement, picture = section.querySelector("table"), looked = new Set();
  const select = add(make("select"), make("option", { value: "" }, "as planned"));
  for (const kind of new Set([...pages.values()].map((page) => page.kind))) {
    const offered = [...pages.values()].filter((page) => page.kind === kind);
    select.append(add(make("optgroup", { label: kind }), ...offered.map((page) => make("option", { value: page.query }, page.name))));
  }
  const shown = make("div", { class: "variant", "aria-live": "polite" });
  (picture.closest(".scroll") ?? picture).before(add(make("p", { class: "take" }), add(make("label"), "Look at a variant: ", select)), shown);
  const go = (query) => (location.hash = query ? `variant=${encodeURIComponent(query)}` : section.id);
  select.addEventListener("change", () => go(select.value));
  const rows = rowsOf(picture);
  for (const { row, query } of pages.values()) {
    const cell = rows[row].cells[0], button = make("button", { type: "button", class: "choose" }, words(cell));
    button.addEventListener("click", () => (go(query), select.focus()));
    cell.replaceChildren(button);
    rows[row].dataset.query = query;
  }
  return (query) => {
    const page = pages.get(query);
    for (const row of rows) row.classList.toggle("chosen", Boolean(page) && row.dataset.query === query);
    select.value = page ? query : "";
    if (!page) return void shown.replaceChildren(...(query ? [make("p", { class: "exploratory" }, `This file has no variant ${query}: choose one of the list.`)] : []));
    looked.add(query);
    const said = exploratory(page.changes, `${looked.size} of the ${pages.size} variants in this report ${looked.size === 1 ? "was" : "were"} looked at`);
    const [table, listed] = ranking(page.ranking);
    shown.replaceChildren(
      make("p", { class: "plan" }, `As planned: ${planned()}`),
      add(make("div", { class: "sentence" }), ...page.verdict.map((parts) => paragraph(parts))),
      make("p", { class: "exploratory" }, said),
      add(make("div", { class: "front" }), add(make("div"), forest(page.forest)), listed),
      ...(page.left_out ? [make("p", { class: "note" }, page.left_out)] : []),
    );
    equip(table);
    listed.querySelector(".take").prepend(copier("copy sentence", () => `${plainly(page.verdict)} ${said}`));
    mark(shown, names);
  };
}

// ------------------------------------------------------------------------------------------------------- sections

function report(names) {
  mark(document, names);
  highlight(document);
  const sections = [...document.querySelectorAll("details")];
  const [sentence, source] = [document.getElementById("sentence"), document.querySelector("script.pages")];
  const said = () => [...sentence.children].map(words).join(" ");
  const show = source && variants(source, said, names);
  const open = () => {
    const place = new URLSearchParams(location.hash.slice(1)), query = place.get("variant");
    const section = query === null ? document.getElementById([...place.keys()].join()) : source?.parentElement;
    if (section?.tagName === "DETAILS") section.open = true;
    if (query !== null || section === source?.parentElement) show?.(query);
    section?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  for (const link of document.querySelectorAll('a[href^="#"]')) link.addEventListener("click", () => setTimeout(open));
  let closed = [];
  const printed = (section) => !section.open && !section.classList.contains("long");
  addEventListener("beforeprint", () => (closed = sections.filter(printed)).forEach((section) => (section.open = true)));
  addEventListener("afterprint", () => closed.forEach((section) => (section.open = false)));

  for (const table of document.querySelectorAll("table")) equip(table);
  const tools = document.querySelector(".front div:last-child .take") ?? sentence.parentElement.appendChild(make("p", { class: "take" }));
  tools.prepend(copier("copy sentence", said));
  const folded = document.querySelectorAll("details.section");
  if (folded.length) {
    const all = make("button", { type: "button" }, "open all");
    all.addEventListener("click", () => {
      const wanted = all.textContent === "open all";
      for (const section of folded) section.open = wanted;
      all.textContent = wanted ? "close all" : "open all";
    });
    document.querySelector(".section").before(make("p", { class: "take all" }, all));
  }
  if (location.hash) open();
}

const named = document.querySelector("script#names");
if (named) report(JSON.parse(named.textContent));
