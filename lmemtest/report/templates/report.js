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
const copier = (label, text) => {
  const button = make("button", { type: "button", "data-label": label, "aria-live": "polite" }, label);
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
  for (const [form, write] of Object.entries(FORMS)) tools.append(copier(`copy ${form}`, () => write(titles, visible(), right)));
  (table.closest(".scroll") ?? table).after(tools);
}

// ------------------------------------------------------------------------------------ one name, shown everywhere

function highlight(root, names) {
  const parts = new Map([...names].map((name) => [name, []]));
  const mark = (element, name) => {
    element.dataset.a = name;
    parts.get(name).push(element);
  };
  const point = (name) => {
    (root.body ?? root).classList.toggle("pointing", name !== null);
    for (const [other, elements] of parts) for (const element of elements) element.classList.toggle("on", other === name);
  };
  for (const element of root.querySelectorAll("svg [data-a]")) if (parts.has(element.dataset.a)) mark(element, element.dataset.a);
  for (const row of root.querySelectorAll("tbody tr"))
    for (const cell of row.cells) if (parts.has(words(cell))) mark(cell === row.cells[0] && cell.tagName === "TH" ? row : cell, words(cell));
  for (const [name, elements] of parts)
    for (const element of elements) {
      element.addEventListener("mouseenter", () => point(name));
      element.addEventListener("mouseleave", () => point(null));
    }
  for (const row of root.querySelectorAll(".front tbody tr[data-a]")) {
    row.tabIndex = 0;
    row.addEventListener("focus", () => point(row.dataset.a));
    row.addEventListener("blur", () => point(null));
  }
}

// ------------------------------------------------------------------------------------------------------- sections

function report(names) {
  highlight(document, names);
  const sections = [...document.querySelectorAll("details")];
  const open = () => {
    const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (section?.tagName === "DETAILS") section.open = true;
    section?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  for (const link of document.querySelectorAll('a[href^="#"]')) link.addEventListener("click", () => setTimeout(open));
  if (location.hash) open();
  let closed = [];
  addEventListener("beforeprint", () => (closed = sections.filter((section) => !section.open)).forEach((section) => (section.open = true)));
  addEventListener("afterprint", () => closed.forEach((section) => (section.open = false)));

  for (const table of document.querySelectorAll("table")) equip(table);
  const sentence = document.getElementById("sentence");
  const tools = document.querySelector(".front div:last-child .take") ?? sentence.parentElement.appendChild(make("p", { class: "take" }));
  tools.prepend(copier("copy sentence", () => [...sentence.children].map(words).join(" ")));
  const folded = document.querySelectorAll("details.section");
  if (folded.length) {
    const all = make("button", { type: "button" }, "open all");
    all.addEventListener("click", () => {
      const wanted = all.textContent === "open all";
      for (const section of folded) section.open = wanted;
      all.textContent = wanted ? "close all" : "open all";
    });
    folded[0].before(make("p", { class: "take all" }, all));
  }
}

const named = document.querySelector("script#names");
if (named) report(JSON.parse(named.textContent));
