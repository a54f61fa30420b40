// The explorer: a state is the query of the address; Python answers it, and this draws the answer with what report.js has
// for it. Texts come as they are written, numbers give places alone.

function diagram({ means, texts, groups, ticks, turned, what }, levels) {
  const shown = levels.map((_, i) => i).filter((i) => means[i] !== null);
  if (shown.length < 2) return null;
  const values = shown.map((i) => means[i]);
  const place = scaleOf(values, 0, 1), x = (value) => 125 + 190 * (turned ? 1 - place(value) : place(value));
  const bars = groups.map((group) => group.filter((i) => means[i] !== null)).filter((group) => group.length > 1);
  const names = short(levels, 108), half = Math.ceil(shown.length / 2), top = 34, first = top + 18 + 7 * bars.length;
  const drawn = [line(125, top, 315, top, INK)];
  for (const [at, text] of ticks) drawn.push(line(x(at), top - 5, x(at), top, INK), label(x(at), top - 9, text, "middle", MUTED, "small"));
  bars.forEach((group, i) => {
    const ends = group.map((one) => x(means[one])), y = top + 10 + 7 * i;
    drawn.push(line(Math.min(...ends) - 3, y, Math.max(...ends) + 3, y, INK, 3.5));
  });
  shown.forEach((i, order) => {
    const left = order < half, y = first + 18 * (left ? order : shown.length - 1 - order), at = x(means[i]);
    const group = svg("g", { "data-a": levels[i] }, svg("title", {}, `${levels[i]}: mean ${texts[i]}`));
    add(group, svg("path", { d: `M${at} ${top}V${y}H${left ? 117 : 323}`, fill: "none", stroke: MUTED }), svg("circle", { cx: at, cy: top, r: 2.6, fill: INK }));
    drawn.push(add(group, label(left ? 113 : 327, y + 4, names[i], left ? "end" : "start")));
  });
  const alt = `${what}: ${shown.map((i) => `${levels[i]} ${texts[i]}`).join(", ")}. Not distinguishable: ${bars.map((group) => group.map((i) => levels[i]).join(", ")).join("; ") || "none"}.`;
  return figure(first + 18 * half, alt, `${what}, the best at the left. Bars join what is not distinguishable.`, drawn);
}

function matrix({ codes, p, tips }, levels) {
  const names = short(levels, 116), top = 22;
  const left = 36 + Math.max(...names.map(wide)), size = Math.min(44, (WIDTH - 2 - left) / levels.length);
  const told = new Map(tips.flatMap(([a, b, tip]) => [[`${a} ${b}`, tip], [`${b} ${a}`, tip]]));
  const chance = new Map(p.flatMap(([a, b, text]) => [[`${a} ${b}`, text], [`${b} ${a}`, text]]));
  const signs = { 1: "+", "-1": "−", 0: "·", 2: "≈", 3: "?" };
  const drawn = levels.map((name, i) => label(left + size * (i + 0.5), 15, `${i + 1}`, "middle", MUTED, "small"));
  levels.forEach((name, i) => {
    const y = top + Math.min(size, 26) * i, height = Math.min(size, 26);
    const row = svg("g", { "data-a": name }, label(left - 28, y + height / 2 + 4, names[i], "end"), label(left - 7, y + height / 2 + 4, `${i + 1}`, "end", MUTED, "small"));
    levels.forEach((_, j) => {
      if (i === j) return;
      const code = codes[i][j], kind = { 1: "win", "-1": "loss" }[code] ?? "even";
      const cell = svg("g", {}, svg("title", {}, told.get(`${i} ${j}`) ?? "no test"));
      add(cell, svg("rect", { x: left + size * j + 1, y: y + 1, width: size - 2, height: height - 2, class: kind }));
      const text = size > 38 && code !== 3 ? chance.get(`${i} ${j}`) ?? "?" : signs[code] ?? "?";
      row.append(add(cell, label(left + size * (j + 0.5), y + height / 2 + 4, text, "middle", INK, "small")));
    });
    drawn.push(row);
  });
  const caption = "Row against column. Blue: the row is better. Grey: it is worse. Framed: not distinguishable; ?: no test.";
  return figure(top + Math.min(size, 26) * levels.length + 6, `Verdicts on all pairs: ${tips.map(([, , tip]) => tip).join(" ")}`, caption, drawn);
}

// ------------------------------------------------------------------------------------------------------ controls

function controls(form, answer, change) {
  const { columns, titles, choices, roles, role_names: names, direction, algorithms, alpha, formula, formula_planned: planned, reference } = answer.controls;
  const chooser = (title, key, values, now, first, send = (value) => [[key, value]]) => {
    const select = make("select", { name: key });
    const named = values.map((value) => (Array.isArray(value) ? value : [value, value])).filter(([, text]) => text !== first);
    for (const [value, text] of [...(first === null ? [] : [["", first]]), ...named]) select.append(make("option", { value }, text));
    select.value = now ?? "";
    // another score has a direction of its own
    select.addEventListener("change", () => change(select.value === "score" ? [key, "direction"] : [key], select.value === "" ? [] : send(select.value)));
    return add(make("label", {}, title), " ", select);
  };
  const typed = (title, key, now, attributes) => {
    const input = make("input", { name: key, ...attributes });
    input.defaultValue = now; // another value is being typed
    input.addEventListener("change", () => {
      input.defaultValue = input.value;
      change([key], input.value.trim() === "" ? [] : [[key, input.value.trim()]]);
    });
    return add(make("label", {}, title), input);
  };
  const group = (...parts) => add(make("fieldset"), ...parts);
  const boxes = columns.map(({ column, role, levels, count, more }) => {
    const inputs = levels.map(([text, kept]) => {
      const input = make("input", { type: "checkbox", name: `${role}.${column}`, value: text });
      input.checked = kept;
      return input;
    });
    const hint = make("span", { class: "note" }, " Choose one at least.");
    const send = () => {
      hint.hidden = inputs.some((input) => input.checked);
      if (!hint.hidden) return; // none is where a choice of a few begins
      const [on, off] = [inputs.filter((input) => input.checked), inputs.filter((input) => !input.checked)];
      const fewer = off.length > on.length && on.length ? ["only", on] : ["without", off];
      change([`without.${column}`, `only.${column}`], fewer[1].map((input) => [`${fewer[0]}.${column}`, input.value]));
    };
    const list = add(make("div", { class: "boxes" }), ...inputs.map((input) => add(make("label"), input, make("span", {}, input.value))));
    list.addEventListener("change", send);
    hint.hidden = true;
    const [all, none] = [true, false].map((checked) => {
      const button = make("button", { type: "button", name: column, value: checked }, checked ? "all" : "none");
      button.addEventListener("click", () => (inputs.forEach((input) => (input.checked = checked)), send()));
      return button;
    });
    const title = `${role === column ? role : `${role}: ${column}`} (${levels.length ? `${levels.filter(([, kept]) => kept).length} of ` : ""}${count})`;
    const whole = make("details", { "data-column": column });
    whole.open = role !== "seed" && count <= 12;
    return add(whole, make("summary", {}, title), group(...(more ? [make("p", { class: "note" }, more)] : [list, all, " ", none, hint])));
  });
  const opened = new Map([...form.querySelectorAll("details")].map((one) => [one.dataset.column, one.open]));
  const focused = form.getRootNode().activeElement;
  const every = () => [...form.querySelectorAll("input, select, button, summary")];
  const keyOf = ({ name, type, value, parentElement }) => (type === undefined ? parentElement.dataset.column : `${name} ${["checkbox", "button"].includes(type) ? value : ""}`);
  const held = every().includes(focused) ? keyOf(focused) : null;
  const typing = held && ["text", "number"].includes(focused.type) && focused.value !== focused.defaultValue ? focused.value : null;
  const scrolls = new Map([...form.querySelectorAll("details")].map((one) => [one.dataset.column, one.querySelector(".boxes")?.scrollTop ?? 0]));
  const rest = make("details", { "data-column": "…roles" });
  const fixed = make("p", { class: "note" }, "The scores were prepared for these roles; give others when the table is read.");
  add(rest, make("summary", {}, "roles of the columns"), group(...(roles.length ? roles.map(([column, role]) => chooser(column, `role.${column}`, names, role, null)) : [fixed])));
  rest.open = Boolean(answer.doubts);
  if (roles.length) rest.lastChild.append(chooser(titles.direction, "direction", ["minimize", "maximize"], direction, null));
  const used = answer.used ?? {}; // what is recommended is known with an answer
  const of = (...names) => choices.filter(({ name }) => names.includes(name)).map(({ name, usual, values, now: chosen }) =>
    chooser(titles[name], name, values, chosen, usual === "recommended" && !chosen && used[name] ? `recommended: ${used[name]}` : usual));
  const tests = make("details", { "data-column": "…tests" });
  add(tests, make("summary", {}, "model and tests"), group(...of("adjust", "vcov", "ddf"),
    typed(titles.formula, "formula", formula, { type: "text", placeholder: planned || "as recommended", spellcheck: "false" })));
  tests.open = Boolean(formula) || choices.some(({ name, now }) => now && ["adjust", "vcov", "ddf"].includes(name));
  form.replaceChildren(
    group(
      ...of("scale", "population", "curves"),
      typed(titles.alpha, "alpha", alpha, { type: "number", min: "0", max: "1", step: "any", inputmode: "decimal" }),
      chooser(titles.reference, "reference", algorithms, reference, "the best")),
    ...boxes, tests, rest);
  for (const one of form.querySelectorAll("details")) {
    if (opened.has(one.dataset.column)) one.open = opened.get(one.dataset.column);
    if (one.querySelector(".boxes")) one.querySelector(".boxes").scrollTop = scrolls.get(one.dataset.column) ?? 0;
  }
  const same = held && every().find((one) => keyOf(one) === held);
  if (!same) return;
  if (typing !== null) same.value = typing;
  same.focus({ preventScroll: true });
}

// -------------------------------------------------------------------------------------------------------- the page

const CHECKED_AFTER = 300, WORKING_AFTER = 150; // milliseconds: without a new question; before a slow one is told

function explorer(root, ask, { state = "", remember = () => {} } = {}) {
  const form = make("form", { class: "controls", "aria-label": "What is varied" });
  const panel = add(make("details", { class: "panel" }), make("summary", {}, "What is compared, and how"), form);
  panel.open = root.clientWidth > 768;
  const [plan, caveat] = [make("p", { class: "plan" }), make("p", { class: "exploratory" })];
  const again = make("button", { type: "button", class: "again" }, "back to the plan");
  const live = make("div", { class: "sentence", "aria-live": "polite" });
  const status = make("p", { class: "status", role: "status" });
  const trouble = make("div", { role: "alert" });
  const [results, checks, codes] = [make("div", { class: "results" }), make("section", { "aria-label": "Checks" }), make("section", { "aria-label": "The same as code" })];
  const answer = add(make("section", { class: "answer", "aria-label": "The answer" }), plan, trouble, live, caveat, status);
  add(root, add(make("div", { class: "explorer" }), panel, add(make("div"), answer, results, checks, codes)));
  form.addEventListener("submit", (event) => event.preventDefault());
  highlight(results);
  let [newest, fields, varied, exported] = [0, [...new URLSearchParams(state)], false, ""];
  const callout = (severity, title, text) =>
    add(make("div", { class: `callout callout-${severity}` }), add(make("p", { class: "callout-title" }), make("span", { class: "tag" }, severity), ` ${title}`), make("p", {}, text));

  const go = (wanted) => {
    fields = wanted;
    const query = `${new URLSearchParams(fields)}`;
    remember(query);
    look(query);
  };
  const change = (dropped, added) => go([...fields.filter(([name]) => !dropped.includes(name)), ...added]);
  again.addEventListener("click", () => {
    const roles = fields.filter(([name]) => name === "direction" || name.startsWith("role."));
    go(roles.length < fields.length ? roles : []);
  });

  async function look(query) {
    const number = ++newest;
    const begun = Date.now();
    const slow = setTimeout(() => {
      status.textContent = "working …";
      results.classList.add("stale");
    }, WORKING_AFTER);
    const clock = setInterval(() => number === newest && (status.textContent = `working … ${Math.round((Date.now() - begun) / 1000)} s`), 1000);
    let found;
    try {
      found = await ask("answer", query);
    } catch {
      const more = query && ` For this variant, add to it: ?${query}`;
      found = { error: `The explorer has been closed. Start it again where it was started, and open the address that it prints.${more}` };
    }
    clearTimeout(slow);
    clearInterval(clock);
    if (number !== newest) return; // a newer question has been asked
    status.textContent = "";
    trouble.replaceChildren(...(found.problems ?? []).map((text) => callout("warning", "The address", text)));
    if (found.doubts) trouble.append(callout("warning", "What the columns are", found.doubts));
    for (const part of [live, caveat, results, checks, codes]) part.classList.toggle("stale", Boolean(found.error));
    if (found.controls) controls(form, found, change);
    if (found.error) {
      if (fields.length) plan.append(again);
      return void trouble.append(callout("error", "No answer", found.error));
    }
    fields = found.state;
    show(found);
    await new Promise((done) => setTimeout(done, CHECKED_AFTER));
    if (number !== newest) return;
    status.textContent = "checking the table …";
    const more = await ask("checks", query).catch(() => ({ error: "The explorer has been closed." }));
    if (number !== newest) return;
    status.textContent = "";
    showChecks(more);
  }

  const showPlan = (texts) => plan.replaceChildren(...(varied ? [`As planned: ${plainly(texts)} `, again] : ["This is the analysis as planned."]));

  function show(found) {
    const counted = `${found.looked} ${found.looked === 1 ? "variant" : "variants"} looked at`;
    [varied, exported] = [found.changes.length > 0, found.exported];
    showPlan(found.plan);
    caveat.replaceChildren(varied ? exploratory(found.changes, counted) : found.looked ? `${counted} beside the plan.` : "");
    live.replaceChildren(...found.verdict.map((parts) => paragraph(parts)));
    const [table, listed] = ranking(found.ranking);
    const drawn = [diagram(found.diagram, found.levels), matrix(found.matrix, found.levels)].filter(Boolean);
    results.replaceChildren(
      add(make("div", { class: "front" }), add(make("div"), forest(found.forest)), listed),
      add(make("div", { class: "tiles" }), ...drawn),
      ...(found.left_out ? [make("p", { class: "note" }, found.left_out)] : []),
      add(make("p", { class: "note" }, "Model: "), make("code", {}, found.formula)),
      ...found.notes.map((note) => make("p", { class: "note" }, note)),
    );
    equip(table);
    listed.querySelector(".take").prepend(copier("copy sentence", () => exported));
    mark(results, found.levels);
    checks.replaceChildren();
    codes.replaceChildren(
      ...[["as Python", found.code.python, ""], ["as command", found.code.command, found.code.why]].map(([title, text, why]) => {
        const whole = make("details", { class: "code" });
        if (!text) return add(whole, make("summary", {}, title), make("p", { class: "note" }, why));
        return add(whole, make("summary", {}, title), add(make("pre", { tabindex: "0" }), make("code", {}, text)), add(make("p", { class: "take" }), copier(`copy ${title}`, () => text)));
      }),
    );
  }

  function showChecks(more) {
    if (more.error) return checks.replaceChildren(callout("error", "No checks", more.error));
    exported = more.exported;
    showPlan(more.plan);
    live.replaceChildren(...more.verdict.map((parts) => paragraph(parts)));
    checks.replaceChildren(
      make("h2", {}, "Checks"),
      add(make("ul", { class: "badges" }), ...more.badges.map(([text, severity]) => add(make("li"), make("span", { class: `flag badge-${severity}` }, text)))),
      ...more.problems_of_table.map(({ severity, title, text }) => callout(severity, title, text)),
      ...more.cautions.map((text) => callout("note", "", text)),
      make("p", { class: "note" }, more.overview),
    );
  }

  look(state);
  return (query) => {
    fields = [...new URLSearchParams(query)];
    look(query);
  };
}

function inBrowser() {
  const place = location.pathname;
  const ask = async (what, query) => {
    const reply = await fetch(`${place}${what}?${query}`, { headers: { Accept: "application/json" } });
    return reply.ok ? reply.json() : { error: (await reply.text()).trim(), problems: [] };
  };
  const remember = (query) => query !== location.search.slice(1) && history.pushState(null, "", `${place}${query ? `?${query}` : ""}`);
  const back = explorer(document.getElementById("explorer"), ask, { state: location.search.slice(1), remember });
  addEventListener("popstate", () => back(location.search.slice(1)));
}

function inNotebook({ model, el }) {
  const page = make("div", { class: "page" });
  add(el.attachShadow({ mode: "open" }), make("style", {}, model.get("style_text")), add(page, make("h1", {}, model.get("title"))));
  const places = { answer: ["state", "answer"], checks: ["wanted", "checks"] };
  const ask = (what, query) =>
    new Promise((done) => {
      const [key, place] = places[what];
      const take = () => {
        if (model.get(place).query !== query) return;
        model.off(`change:${place}`, take);
        done(model.get(place));
      };
      model.on(`change:${place}`, take);
      model.set(key, query);
      model.save_changes();
      take();
    });
  let last = model.get("state");
  const remember = (query) => (last = query);
  const back = explorer(page, ask, { state: last, remember });
  model.on("change:state", () => model.get("state") !== last && back((last = model.get("state")))); // set in Python
}
