// The live page. State arrives as server-sent events: [kind, key, object or null], kept in one Map per kind. A view
// draws what it needs at most four times per second. Long lists are virtual: only the rows in sight exist.
// Names and messages are other people's text: they are only ever set as textContent or as attributes of elements
// that do not interpret them; there is no innerHTML in this file.
"use strict";

const $ = id => document.getElementById(id);
const state = { model: new Map(), schedule: new Map(), pod: new Map(), node: new Map(), service: new Map(), config: new Map(),
  health: new Map() };
const decisions = [];                  // newest first
const DECISIONS_MAX = 500;
const POD_FIELDS = ["pod", "node", "used", "limit", "request", "desired", "need", "guaranteed", "throttling", "weight", "price",
  "mode", "phase", "problems"];      // as market.c writes them
let selected = null;                 // {kind, key}: what the panel shows

// ---- elements

// Controls of the writing direction would reorder the text around them.
const clean = text => String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
const SVG = "http://www.w3.org/2000/svg";
function make(ns, tag, attributes, children) {
  const e = ns ? document.createElementNS(ns, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value != null) e.setAttribute(name, value);
  for (const child of children.flat(9))
    if (child != null && child !== false) e.append(child instanceof Node ? child : clean(child));
  return e;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const s = (tag, attributes, ...children) => make(SVG, tag, attributes, children);

// ---- numbers

const num = (v, digits = 0) => v == null ? "–" : v.toFixed(digits);
const percent = (v, digits = 0) => v == null ? "–" : (v * 100).toFixed(digits) + " %";
const cpu = v => v == null ? "–" : v >= 1000 ? (v / 1000).toFixed(2) : Math.round(v) + "m";
const nsOf = key => key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
const nameOf = key => key.slice(key.indexOf("/") + 1);
const clock = t => t ? t.slice(11, 19) : "";
const byKey = (a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
const sorted = map => [...map].sort(byKey);
const sum = (list, of) => list.reduce((total, v) => total + (of(v) || 0), 0);
const EXPLAIN = { VariantAutoscaling: "va", SmartHorizontalPodAutoscaler: "shpa", PodAllocation: "podallocation",
  AIMService: "aimservice", AIMModel: "aimmodel", AIMClusterModel: "aimmodel", AIMServiceTemplate: "aimtemplate",
  AIMClusterServiceTemplate: "aimtemplate", AIMRuntimeConfig: "aimconfig", AIMClusterRuntimeConfig: "aimconfig",
  AIMTemplateCache: "aimcache", HorizontalPodAutoscaler: "hpa", Pod: "pod" };
const OBJECT = { model: "VariantAutoscaling", schedule: "SmartHorizontalPodAutoscaler", pod: "PodAllocation",
  service: "AIMService", config: "AIMRuntimeConfig" };
const VIEW_OF = { VariantAutoscaling: "model", SmartHorizontalPodAutoscaler: "schedule", PodAllocation: "pod",
  AIMService: "service", AIMRuntimeConfig: "config", AIMClusterRuntimeConfig: "config" };

// Commands are pasted into a shell: anything that is not a plain name is quoted.
const quote = word => /^[\w.\/-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
const explainCommand = (kind, ns, name) =>
  "flyball explain " + (EXPLAIN[kind] || kind.toLowerCase()) + " " + quote(name) + (ns ? " -n " + quote(ns) : "");

function copyButton(text) {
  const b = h("button", { type: "button", title: text, onclick: async e => {
    e.stopPropagation();
    try { await navigator.clipboard.writeText(text); b.textContent = "Copied"; }
    catch { getSelection().selectAllChildren(b.previousElementSibling || b); b.textContent = "Press Ctrl+C"; }
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return b;
}

// ---- a virtual list. columns: [{title, width, class, cell(item) -> text, Node or [text, class]}]

class List {
  constructor(label, columns, open) {
    this.columns = columns;
    this.open = open;
    this.items = [];
    this.at = -1;
    this.rows = new Map();
    this.style = columns.map(c => c.width).join(" ");
    this.head = this.row("head");
    this.head.setAttribute("role", "row");
    columns.forEach((c, i) => { const e = this.head.children[i]; e.textContent = c.title; e.setAttribute("role", "columnheader"); });
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.empty = h("div", { class: "empty", hidden: true });
    this.element = h("div", { class: "list", role: "grid", "aria-label": label, tabindex: 0, onscroll: () => this.draw(),
      onkeydown: e => this.key(e) }, this.head, this.space, this.empty);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }
  row(name) {
    const row = h("div", { class: "row " + name }, this.columns.map(c => h("span", { class: c.class || "" })));
    row.style.gridTemplateColumns = this.visible();
    return row;
  }
  visible() { // phones leave out columns of class opt
    const narrow = matchMedia("(max-width: 760px)").matches;
    return this.columns.filter(c => !narrow || !(c.class || "").includes("opt")).map(c => c.width).join(" ");
  }
  set(items, empty) {
    this.items = items;
    if (this.atKey != null) this.at = items.findIndex(i => i.key === this.atKey); // rows move as others come
    this.element.setAttribute("aria-rowcount", items.length + 1);
    this.element.classList.toggle("short", items.length < 8);
    this.space.style.height = items.length * 34 + "px";
    this.empty.hidden = items.length > 0;
    this.empty.textContent = empty || "Nothing yet.";
    this.draw();
  }
  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / 34) - 4);
    const last = Math.min(this.items.length, first + Math.ceil((this.element.clientHeight || 600) / 34) + 10);
    for (const [i, row] of this.rows)
      if (i < first || i >= last) { row.remove(); this.rows.delete(i); }
    const visible = this.visible();
    this.head.style.gridTemplateColumns = visible;
    for (let i = first; i < last; i++) this.fill(i, visible);
  }
  fill(i, visible) {
    const item = this.items[i];
    let row = this.rows.get(i);
    if (!row) {
      row = this.row("");
      row.setAttribute("role", "row");
      row.style.top = i * 34 + "px";
      row.addEventListener("click", () => { this.at = i; this.choose(); });
      for (const cell of row.children) cell.setAttribute("role", "gridcell");
      this.rows.set(i, row);
      this.space.append(row);
    }
    row.id = this.id(i);
    row.className = item.group ? "row group" : "row";
    row.setAttribute("aria-rowindex", i + 2);
    row.setAttribute("aria-selected", !item.group && selected && item.key === selected.key && item.kind === selected.kind || i === this.at);
    row.style.gridTemplateColumns = item.group ? "1fr" : visible;
    this.columns.forEach((c, k) => {
      const cell = row.children[k];
      let value = item.group ? (k ? "" : item.group) : c.cell(item), name = item.group ? "" : c.class || "";
      if (Array.isArray(value)) { name += " " + value[1]; value = value[0]; }
      cell.hidden = !!item.group && k > 0;
      if (cell.className !== name) cell.className = name;
      if (value instanceof Node) cell.replaceChildren(value);
      else if (cell.textContent !== clean(value)) { cell.textContent = clean(value); cell.title = clean(value); }
    });
  }
  id(i) { return "r" + this.columns[0].title + i; }
  choose() { const item = this.items[this.at]; this.atKey = item && item.key; if (item && !item.group) this.open(item); this.draw(); }
  key(e) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[e.key];
    if (e.key === "Enter" || e.key === " ") { this.choose(); e.preventDefault(); return; }
    if (!step || e.target !== this.element) return;
    e.preventDefault();
    this.at = Math.max(0, Math.min(this.items.length - 1, this.at + step));
    this.atKey = this.items.length ? this.items[this.at].key : null;
    const top = this.at * 34, box = this.element;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + 34 + 28 > box.scrollTop + box.clientHeight) box.scrollTop = top + 62 - box.clientHeight;
    this.draw();
    box.setAttribute("aria-activedescendant", this.id(this.at));
  }
}

// ---- plots: lines over time. lines: [{name, values, unit}]; null is a gap.

function plot(title, times, lines, step) {
  const W = 520, H = 150, L = 40, R = 8, T = 10, B = 20;
  const all = lines.flatMap(l => l.values).filter(v => v != null);
  if (times.length < 2 || !all.length) return h("p", { class: "dim" }, title + ": no data yet.");
  const top = nice(Math.max(...all, 1e-3)), t0 = times[0], t1 = times[times.length - 1] || t0 + 1;
  const x = t => L + (t - t0) / Math.max(1, t1 - t0) * (W - L - R), y = v => H - B - v / top * (H - T - B);
  const text = (v, attributes) => s("text", attributes, v);
  const parts = [0, top / 2, top].map(v => [s("line", { class: "grid", x1: L, x2: W - R, y1: y(v), y2: y(v) }),
    text(+v.toPrecision(3), { x: L - 5, y: y(v) + 4, "text-anchor": "end" })]);
  const at = t => new Date(t * 1000).toISOString().slice(11, 16);
  parts.push(text(at(t0), { x: L, y: H - 5 }), text(at(t1) + " UTC", { x: W - R, y: H - 5, "text-anchor": "end" }));
  lines.forEach((l, k) => {
    let d = "", pen = false, last = 0;
    l.values.forEach((v, i) => {
      if (v == null) { pen = false; return; }
      const X = x(times[i]).toFixed(1), Y = y(v).toFixed(1);
      d += (pen ? (step ? "H" + X + "V" + Y : "L" + X + " " + Y) : "M" + X + " " + Y);
      pen = true; last = v;
    });
    parts.push(s("path", { class: "l" + k, d }));
    l.last = last;
  });
  const cursor = s("line", { class: "now", y1: T, y2: H - B, x1: -9, x2: -9 });
  const legend = h("p", { class: "legend" });
  const show = i => legend.replaceChildren(...lines.map((l, k) => h("span", {}, h("i", { class: "key k" + k }),
    l.name + ": " + (i == null ? num(l.last, l.digits || 0) : num(l.values[i], l.digits || 0)) + (l.unit || ""))),
    h("span", {}, i == null ? "" : at(times[i])));
  const move = e => {
    const box = svg.getBoundingClientRect(), t = t0 + ((e.clientX - box.left) / box.width * W - L) / (W - L - R) * (t1 - t0);
    let i = times.findIndex(v => v >= t);
    if (i < 0) i = times.length - 1;
    cursor.setAttribute("x1", x(times[i])); cursor.setAttribute("x2", x(times[i]));
    show(i);
  };
  const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title + ": " + lines.map(l => l.name + " " +
    num(l.last, l.digits || 0) + (l.unit || "")).join(", "), onpointermove: move, onpointerleave: () => {
    cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); show(null); } }, parts, cursor);
  show(null);
  return h("section", {}, h("h3", {}, title), svg, legend);
}
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 2.5, 5, 10].find(m => m * p >= v * 0.999) * p;
}

// ---- the week of a schedule, as `flyball schedule` draws it

function week(d) {
  const W = 520, L = 70, row = 22, T = 18, H = T + 7 * row + 6, day = 86400;
  const x = second => L + second / day * (W - L - 8), parts = [];
  for (let hour = 0; hour <= 24; hour += 3) {
    parts.push(s("line", { class: "grid", x1: x(hour * 3600), x2: x(hour * 3600), y1: T, y2: H - 4 }));
    if (hour < 24) parts.push(s("text", { x: x(hour * 3600), y: 12 }, hour));
  }
  for (let i = 0; i < 7; i++) {
    const date = new Date((d.from + d.offset + i * day) * 1000);
    parts.push(s("text", { x: 4, y: T + i * row + 15 }, date.toUTCString().slice(0, 3) + " " + date.toISOString().slice(5, 10)));
  }
  for (const [from, to, trigger, start, bounds, name] of d.periods)
    for (let i = 0; i < 7; i++) {
      const a = Math.max(from, d.from + i * day), b = Math.min(to, d.from + (i + 1) * day);
      if (a >= b || trigger < 0) continue;
      parts.push(s("rect", { class: "t" + trigger % 6 + (start ? "" : " after"), x: x(a - d.from - i * day), y: T + i * row + 2,
        width: Math.max(1, x(b - a) - L), height: row - 4 },
        s("title", {}, (start ? "" : "after ") + name + ": " + bounds + ", " + local(a, d) + " to " + local(b, d))));
    }
  const nowRow = Math.floor((d.now - d.from) / day), X = x((d.now - d.from) % day);
  if (nowRow >= 0 && nowRow < 7) parts.push(s("line", { class: "now", x1: X, x2: X, y1: T + nowRow * row, y2: T + (nowRow + 1) * row }));
  const names = new Map();
  for (const [, , trigger, start, bounds, name] of d.periods)
    if (trigger >= 0) names.set(trigger + "-" + start, [trigger, start, name, bounds]);
  return [s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "The week from " + local(d.from, d) }, parts),
    h("ul", { class: "plain" }, [...names.values()].map(([trigger, start, name, bounds]) => h("li", {},
      s("svg", { viewBox: "0 0 12 12", class: "swatch", width: 12, height: 12, "aria-hidden": true },
        s("rect", { class: "t" + trigger % 6 + (start ? "" : " after"), width: 12, height: 12 })),
      (start ? " " : " after ") + name + ": " + bounds))),
    h("p", { class: "dim" }, "Times are local to " + d.zone + ". The line is now.")];
}
const local = (t, d) => new Date((t + d.offset) * 1000).toISOString().slice(5, 16).replace("T", " ");

// ---- views. Each has build() -> elements, once, and draw(), as often as something changed.

const isFalse = c => c[1] === "False" && !/^(Failure|Progressing|Contended|Error|ResourceConstrained)$/.test(c[0]) ||
  c[1] === "True" && /^(Failure|Contended|Error|RouteConflict)$/.test(c[0]);
const troubles = o => (o.conditions || []).filter(isFalse).map(c => c[0] + ": " + c[2]);
const flag = list => list.length ? [list.join(", "), "bad"] : ["ok", "good"];
const open = (kind, key) => { selected = { kind, key, fresh: true }; showDetail(true); draw(); };
const opener = kind => item => open(kind, item.key);
const bars = (used, limit, need, width) => {
  const scale = Math.max(used || 0, limit || 0, need || 0, 1), at = v => (v || 0) / scale * width;
  return s("svg", { viewBox: `0 0 ${width} 20`, preserveAspectRatio: "none", "aria-hidden": true },
    s("rect", { class: "limit", width: at(limit), height: 14, y: 3 }), s("rect", { class: "used", width: at(used), height: 8, y: 6 }),
    need == null ? null : tick(at(need), width));
};
const tick = (x, end) => { const X = Math.min(x, end - 1); return s("line", { class: "need", x1: X, x2: X, y1: 1, y2: 19 }); };

const views = {
  Models: {
    count: () => state.model.size,
    build() {
      this.list = new List("Models", [
        { title: "Variant", width: "minmax(84px,2fr)", cell: i => nameOf(i.key) },
        { title: "Accelerator", width: "minmax(88px,1fr)", class: "opt", cell: i => i.v.accelerator },
        { title: "Replicas", width: "minmax(90px,1fr)", class: "num", cell: i => [num(i.v.current) + (i.v.desired !== i.v.current ?
          " → " + num(i.v.desired) : "") + (i.v.pending ? " (" + i.v.pending + " pending)" : ""), i.v.desired !== i.v.current ? "warn" : ""] },
        { title: "KV cache", width: "minmax(62px,.7fr)", class: "num", cell: i => [percent(i.v.kv), i.v.kv >= .8 ? "bad" : ""] },
        { title: "Queue", width: "minmax(46px,.6fr)", class: "num", cell: i => [num(i.v.queue), i.v.queue >= 5 ? "bad" : ""] },
        { title: "Cost/h", width: "minmax(64px,.7fr)", class: "num opt", cell: i => num(i.v.current == null ? null : i.v.current * i.v.cost, 2) },
        { title: "Why", width: "4fr", class: "opt", cell: i => i.v.asleep ? "scaled to zero" : i.v.reason },
      ], opener("model"));
      return [this.list.element];
    },
    draw() {
      const groups = new Map();
      for (const [key, v] of sorted(state.model)) {
        const id = nsOf(key) + " / " + (v.model || "no model");
        if (!groups.has(id)) groups.set(id, []);
        groups.get(id).push({ key, kind: "model", v });
      }
      const items = [];
      for (const [id, list] of groups) {
        const v = list[0].v;
        items.push({ key: id, group: id + "  ·  " + [
          v.demand == null ? null : "demand " + num(v.demand, 2) + " of " + num(v.capacity, 2) + " busy replicas",
          v.slo == null ? null : "SLO " + percent(v.slo, 1),
          list.some(i => i.v.current == null) ? null : num(sum(list, i => i.v.current * i.v.cost), 2) + " per hour"].filter(Boolean).join("  ·  ") }, ...list);
      }
      this.list.set(items, "No VariantAutoscaling. Run flyball up --testbed llm to see some.");
    },
  },
  Schedules: {
    count: () => state.schedule.size,
    build() {
      this.list = new List("Schedules", [
        { title: "Schedule", width: "minmax(110px,1.5fr)", cell: i => i.key },
        { title: "Bounds", width: "minmax(70px,.8fr)", class: "num", cell: i => i.v.currentConfig ?
          num(i.v.currentConfig.minReplicas) + "–" + num(i.v.currentConfig.maxReplicas) : "–" },
        { title: "Governed by", width: "1.2fr", cell: i => i.v.source || "none" },
        { title: "HPA", width: "1.2fr", class: "opt", cell: i => i.v.HPAObjectRef ? i.v.HPAObjectRef.namespace + "/" + i.v.HPAObjectRef.name : "" },
        { title: "Next change", width: "1.4fr", class: "opt", cell: i => (i.v.nextTransitionTime || "").replace("T", " ") },
        { title: "State", width: "1fr", cell: i => flag(troubles(i.v)) },
      ], opener("schedule"));
      return [this.list.element];
    },
    draw() {
      this.list.set(sorted(state.schedule).map(([key, v]) => ({ key, kind: "schedule", v })), "No SmartHorizontalPodAutoscaler.");
      if (state.schedule.size === 1 && !selected) open("schedule", [...state.schedule.keys()][0]);
    },
  },
  Market: {
    count: () => state.pod.size,
    node: "",
    build() {
      this.nodes = new List("Nodes", [
        { title: "Node", width: "minmax(84px,1fr)", cell: i => i.key },
        { title: "Used, limit, need", width: "minmax(60px,4fr)", cell: i => this.nodeBar(i.key) },
        { title: "Used / limit", width: "minmax(90px,1fr)", class: "num", cell: i => cpu(i.v.used) + " / " + cpu(i.v.limit) },
        { title: "Need", width: "minmax(48px,.6fr)", class: "num opt", cell: i => cpu(i.v.need) },
        { title: "Price", width: "minmax(48px,.6fr)", class: "num", cell: i => num(i.v.price, 3) },
        { title: "Pods", width: ".5fr", class: "num opt", cell: i => i.v.pods },
      ], item => { this.node = item.key; open("node", item.key); });
      this.pods = new List("Pods", [
        { title: "Pod", width: "minmax(120px,2.5fr)", cell: i => nsOf(i.key) + "/" + i.v.pod },
        { title: "Node", width: "1fr", class: "opt", cell: i => i.v.node },
        { title: "CPU", width: "minmax(60px,1.5fr)", cell: i => bars(i.v.used, i.v.limit, i.v.need, 100) },
        { title: "Used / limit", width: "minmax(112px,1fr)", class: "num", cell: i => cpu(i.v.used) + " / " + cpu(i.v.limit) },
        { title: "Need", width: "minmax(48px,.6fr)", class: "num opt", cell: i => cpu(i.v.need) },
        { title: "Throttled", width: "minmax(66px,.6fr)", class: "num opt", cell: i => [percent(i.v.throttling), i.v.throttling > .1 ? "bad" : ""] },
        { title: "Status", width: "minmax(66px,.7fr)", class: "opt", cell: i => [i.v.phase || "–", i.v.phase === "Failed" ? "bad" : ""] },
      ], opener("pod"));
      this.search = h("input", { type: "search", placeholder: "Filter pods", "aria-label": "Filter pods by name", oninput: () => draw() });
      this.all = h("button", { type: "button", onclick: () => { this.node = ""; draw(); } }, "All nodes");
      return [this.nodes.element, h("div", { class: "bar" }, this.search, this.all), this.pods.element];
    },
    nodeBar(name) {
      const pods = this.byNode.get(name) || [], W = 400, total = Math.max(1, sum(pods, p => Math.max(p.limit || 0, p.used || 0)));
      let x = 0;
      return s("svg", { viewBox: `0 0 ${W} 20`, preserveAspectRatio: "none", role: "img", "aria-label": pods.length + " pods" }, pods.slice(0, 200).map(p => {
        const width = Math.max(p.limit || 0, p.used || 0) / total * W, at = x;
        x += width;
        return [s("rect", { class: "limit", x: at, width: Math.max(.5, width - 1), height: 14, y: 3 },
          s("title", {}, p.pod + ": " + cpu(p.used) + " of " + cpu(p.limit))),
          s("rect", { class: "used", x: at, width: (p.used || 0) / total * W, height: 8, y: 6 }),
          p.need == null ? null : tick(at + p.need / total * W, x - 1)];
      }));
    },
    draw() {
      this.byNode = new Map();
      for (const v of state.pod.values()) {
        if (!this.byNode.has(v.node)) this.byNode.set(v.node, []);
        this.byNode.get(v.node).push(v);
      }
      this.nodes.set(sorted(state.node).map(([key, v]) => ({ key, kind: "node", v })), "No node has pods in the market.");
      const text = this.search.value.toLowerCase();
      const pods = sorted(state.pod).filter(([key, v]) => (!this.node || v.node === this.node) && (!text || key.toLowerCase().includes(text)));
      this.all.hidden = !this.node;
      this.pods.set(pods.map(([key, v]) => ({ key, kind: "pod", v })), "No pod.");
    },
  },
  Services: {
    count: () => state.service.size,
    build() {
      this.services = new List("Services", [
        { title: "Service", width: "minmax(110px,1.5fr)", cell: i => i.key },
        { title: "Status", width: "minmax(70px,.7fr)", cell: i => [i.v.status || "–", i.v.status === "Running" ? "good" : "warn"] },
        { title: "Configuration", width: "1.2fr", class: "opt", cell: i => configOf(i.v) },
        { title: "Hash", width: "minmax(76px,.7fr)", class: "opt", cell: i => hashOf(i.v).slice(0, 8) },
        { title: "Path", width: "1.6fr", cell: i => i.v.routing && i.v.routing.path || "–" },
        { title: "Conditions", width: "1.2fr", class: "opt", cell: i => flag(troubles(i.v)) },
      ], opener("service"));
      this.configs = new List("Configurations", [
        { title: "Configuration", width: "minmax(110px,2fr)", cell: i => i.key },
        { title: "Scope", width: "minmax(80px,.7fr)", class: "opt", cell: i => nsOf(i.key) ? "namespace" : "cluster" },
        { title: "Hash", width: "minmax(80px,.8fr)", cell: i => (i.v.hash || "–").slice(0, 8) },
        { title: "Used by", width: "minmax(60px,.6fr)", class: "num", cell: i => i.v.consumers ? i.v.consumers.total : "–" },
        { title: "Failing", width: ".6fr", class: "num opt", cell: i => i.v.consumers ? [i.v.consumers.failing, i.v.consumers.failing ? "bad" : ""] : "–" },
        { title: "Conditions", width: "1.4fr", class: "opt", cell: i => flag(troubles(i.v)) },
      ], opener("config"));
      return [this.services.element, this.configs.element];
    },
    draw() {
      this.services.set(sorted(state.service).map(([key, v]) => ({ key, kind: "service", v })), "No AIMService.");
      this.configs.set(sorted(state.config).map(([key, v]) => ({ key, kind: "config", v })), "No AIMRuntimeConfig.");
    },
  },
  Decisions: {
    count: () => decisions.length,
    paused: null,
    build() {
      const again = () => draw();
      this.ns = h("select", { "aria-label": "Namespace", onchange: again });
      this.kind = h("select", { "aria-label": "Kind", onchange: again });
      this.text = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter by text", oninput: again });
      this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
        this.paused = this.paused ? null : decisions.slice();
        this.pause.setAttribute("aria-pressed", !!this.paused);
        this.pause.textContent = this.paused ? "Resume" : "Pause";
        draw();
      } }, this.paused ? "Resume" : "Pause");
      this.note = h("span", { class: "dim" });
      this.list = new List("Decisions", [
        { title: "Time", width: "72px", cell: i => clock(i.v.time) },
        { title: "Object", width: "minmax(110px,1.6fr)", cell: i => (i.v.ns ? i.v.ns + "/" : "") + i.v.name },
        { title: "Kind", width: "1.1fr", class: "opt", cell: i => i.v.kind },
        { title: "Reason", width: "minmax(90px,1.1fr)", cell: i => [i.v.reason, i.v.warning ? "bad" : ""] },
        { title: "Message", width: "4fr", class: "opt", cell: i => i.v.message },
      ], item => { selected = { kind: "decision", key: item.key, v: item.v, fresh: true }; showDetail(true); draw(); });
      return [h("div", { class: "bar" }, this.ns, this.kind, this.text, this.pause, this.note), this.list.element];
    },
    options(select, all, values) {
      const now = select.value, names = [...values].sort();
      if (select.dataset.names === names.join("\n")) return;
      select.dataset.names = names.join("\n");
      select.replaceChildren(h("option", { value: "" }, all), ...names.map(v => h("option", { value: v }, v)));
      select.value = names.includes(now) ? now : "";
    },
    draw() {
      const list = this.paused || decisions, text = this.text.value.toLowerCase();
      this.options(this.ns, "All namespaces", new Set(list.map(d => d[1].ns).filter(Boolean)));
      this.options(this.kind, "All kinds", new Set(list.map(d => d[1].kind)));
      const shown = list.filter(([, v]) => (!this.ns.value || v.ns === this.ns.value) && (!this.kind.value || v.kind === this.kind.value) &&
        (!text || (v.ns + "/" + v.name + " " + v.kind + " " + v.reason + " " + v.message).toLowerCase().includes(text)));
      const missed = this.paused ? decisions.findIndex(d => !this.paused.length || d[0] === this.paused[0][0]) : 0;
      this.note.textContent = this.paused ? (missed < 0 ? decisions.length : missed) + " new" : "";
      this.list.set(shown.map(([key, v]) => ({ key, kind: "decision", v })), "No decision yet.");
    },
  },
  Health: {
    build() { this.box = h("div", { class: "cards" }); return [this.box]; },
    draw() {
      const v = state.health.get("flyball");
      if (!v) { this.box.replaceChildren(h("p", { class: "dim" }, "No data yet.")); return; }
      const pairs = rows => h("dl", {}, rows.map(([name, value, level]) => [h("dt", {}, name), h("dd", { class: level || "" }, value)]));
      const table = (title, names, rows) => h("section", { class: "card" }, h("h3", {}, title), rows.length ? h("table", {},
        h("thead", {}, h("tr", {}, names.map(n => h("th", { scope: "col" }, n)))),
        h("tbody", {}, rows.map(row => h("tr", {}, row.map(c => h("td", { class: typeof c === "number" ? "num" : "" }, c)))))) : h("p", { class: "dim" }, "none"));
      const failures = new Map(v.failures), errors = new Map(v.errors), m = v.metrics;
      const caches = [...v.caches.reduce((all, [name, n]) => all.set(name, (all.get(name) || 0) + n), new Map())];
      this.box.replaceChildren(
        h("section", { class: "card" }, h("h3", {}, "Process"), pairs([
          ["Leader", v.leader ? "yes" : "no: another replica decides", v.leader ? "good" : "warn"],
          ["Ready", v.ready ? "yes" + (v.why ? "; not started: " + v.why : "") : v.why, v.ready ? "good" : "bad"],
          ["API server", v.server ? "reachable" : "unreachable; retrying", v.server ? "good" : "bad"],
          ["Requests", v.requests + ", " + v.failed + " of them not successful"],
          ["Metrics", !m ? "not collected" : !m.models ? "no model" : m.failing ? m.failing + " of " + m.models + " models failing: " + m.failure :
            (m.prometheus ? "Prometheus" : "pods") + " answered for " + m.models + (m.models === 1 ? " model" : " models"), m && m.failing ? "bad" : "good"],
          ["Clock", v.time], ["Identity", v.identity], ["Version", v.version], ["Open pages", v.clients]])),
        table("Queues", ["Controller", "Waiting", "Errors"], v.queues.map(([name, n]) => [name, n, errors.get(name) || 0])),
        table("Caches", ["Resource", "Objects", "Failures"], caches.sort(byKey).map(([name, n]) => [name, n, failures.get(name) || 0])));
    },
  },
};
const configOf = v => v.resolvedRuntimeConfig ? (v.resolvedRuntimeConfig.namespace ? v.resolvedRuntimeConfig.namespace + "/" : "") +
  v.resolvedRuntimeConfig.name : v.configName || "–";
const hashOf = v => v.effectiveRuntimeConfig && v.effectiveRuntimeConfig.hash || "–";

// ---- details of the selected object

const get = async path => {
  const r = await fetch(path);
  if (!r.ok) throw new Error(r.status);
  return r.json();
};
const query = (kind, key) => "?kind=" + kind + "&key=" + encodeURIComponent(key);
const pairs = rows => h("dl", {}, rows.filter(r => r[1] != null).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
const conditions = status => status && status.conditions ? [h("h3", {}, "Conditions"), h("table", {}, h("tbody", {}, status.conditions.map(c =>
  h("tr", {}, h("td", { class: isFalse([c.type, c.status]) ? "bad" : "" }, c.type), h("td", {}, c.status), h("td", {}, c.reason + ": " + c.message)))))] : [];
const log = (kind, key) => {
  const list = decisions.filter(([, v]) => v.kind === kind && v.ns + "/" + v.name === key).slice(0, 20);
  return [h("h3", {}, "Last decisions"), list.length ? list.map(([, v]) => h("details", {}, h("summary", { class: v.warning ? "bad" : "" },
    clock(v.time) + "  " + v.reason), h("p", {}, v.message))) : h("p", { class: "dim" }, "none since this page's server started")];
};
const command = (kind, key) => { const text = explainCommand(kind, nsOf(key), nameOf(key)); return [h("pre", {}, text), copyButton(text)]; };
const series = (d, k, scale, name, unit, digits) => ({ name, unit, digits, values: (d.n[k] || []).map(v => v == null ? null : v * scale) });

const details = {
  async model(key, v) {
    const [d, p] = await Promise.all([get("/detail" + query("model", key)), get("/series" + query("model", key))]);
    return [pairs([["Model", v.model], ["Accelerator", v.accelerator], ["Workload", v.target], ["Replicas", num(v.current) + " now, " +
      num(v.desired) + " desired" + (v.pending ? ", " + v.pending + " pending" : "")], ["KV cache", percent(v.kv, 1)], ["Queue", num(v.queue)],
      ["Demand", v.demand == null ? null : num(v.demand, 2) + " of " + num(v.capacity, 2) + " busy replicas"],
      ["SLO attainment", v.slo == null ? null : percent(v.slo, 2)], ["Cost", num(v.cost, 2) + " per replica and hour"], ["Why", d.reason || v.reason]]),
      plot("Replicas", p.t, [series(p, 0, 1, "current"), series(p, 1, 1, "desired")], true),
      plot("KV cache", p.t, [series(p, 2, .1, "in use", " %", 1)]), plot("Queue", p.t, [series(p, 3, 1, "waiting requests")]),
      log(v.kind, key), conditions(d.status)];
  },
  async schedule(key, v) {
    const d = await get("/detail" + query("schedule", key));
    return [pairs([["Bounds in force", v.currentConfig ? v.currentConfig.minReplicas + " to " + v.currentConfig.maxReplicas + " replicas" : "–"],
      ["Governed by", v.source], ["Next change", v.nextTransitionTime], ["Problems", troubles(v).join(", ") || null]]),
      h("h3", {}, "Week"), d.periods ? week(d) : null, h("h3", {}, "Why"), h("pre", {}, d.text || ""), log(OBJECT.schedule, key), conditions(d.status)];
  },
  async pod(key, v) {
    const [d, p] = await Promise.all([get("/detail" + query("pod", key)), get("/series" + query("pod", key))]), st = d.status || {};
    return [pairs([["Node", v.node], ["Used", cpu(v.used)], ["Limit", cpu(v.limit) + (v.desired !== v.limit ? ", desired " + cpu(v.desired) : "")],
      ["Request", cpu(v.request)], ["Need", cpu(v.need)], ["Guaranteed", cpu(v.guaranteed)], ["Throttling", percent(v.throttling, 1)], ["Weight", num(v.weight, 2)],
      ["Price", num(v.price, 3) + (v.mode ? " (" + v.mode + ")" : "")], ["Status", (st.phase || "–") + (st.message ? ": " + st.message : "")],
      ["Last resize", st.lastAppliedTime], ["Problems", (st.problems || []).join("; ") || null]]),
      plot("CPU", p.t, [series(p, 0, 1, "used", "m"), series(p, 1, 1, "limit", "m")]), log(OBJECT.pod, key)];
  },
  async node(key, v) {
    const p = await get("/series" + query("node", key));
    return [pairs([["Pods in the market", v.pods], ["Used", cpu(v.used)], ["Limits", cpu(v.limit)], ["Need", cpu(v.need)], ["Price", num(v.price, 3)]]),
      plot("Price", p.t, [series(p, 0, .001, "price", "", 3)]),
      plot("CPU", p.t, [series(p, 1, 10, "used", "m"), series(p, 2, 10, "limit", "m")])];
  },
  async service(key, v) {
    const d = await get("/detail" + query("service", key)), r = v.routing || {};
    const rivals = [...state.service].filter(([k, o]) => k !== key && r.path && o.routing && o.routing.path === r.path && o.routing.gateway === r.gateway);
    return [pairs([["Status", v.status], ["Configuration", configOf(v)], ["Hash", hashOf(v)], ["Path", r.path], ["URL", r.url], ["Gateway", r.gateway],
      ["Template", v.resolvedTemplate && v.resolvedTemplate.name], ["Model", v.resolvedModel && v.resolvedModel.name],
      ["Same path", rivals.map(x => x[0]).join(", ") || null]]), log(OBJECT.service, key), conditions(d.status)];
  },
  async config(key, v) {
    const d = await get("/detail" + query("config", key)), c = v.consumers || {};
    const used = sorted(state.service).filter(([, o]) => configOf(o) === key);
    return [pairs([["Hash", v.hash], ["Used by", Object.entries(c.byKind || {}).map(([k, n]) => n + " " + k).join(", ") || "nothing"], ["Failing", c.failing]]),
      h("h3", {}, "Services with this configuration"), used.length ? h("ul", {}, used.map(([k, o]) => h("li", {}, k + " (" + (o.status || "–") + ")"))) :
      h("p", { class: "dim" }, "none"), conditions(d.status)];
  },
  async decision(key, v) {
    const view = VIEW_OF[v.kind], there = view && state[view].has((v.ns ? v.ns + "/" : "") + v.name);
    return [pairs([["Time", v.time], ["Kind", v.kind], ["Namespace", v.ns || null], ["Name", v.name], ["Reason", v.reason]]), h("p", {}, v.message),
      there ? h("button", { type: "button", onclick: () => open(view, (v.ns ? v.ns + "/" : "") + v.name) }, "Open the object") : null];
  },
};

let detailFor = "", detailAt = 0, detailBusy = false;
async function showDetail(focus) {
  const panel = $("detail");
  panel.hidden = !selected;
  if (!selected) { detailFor = ""; panel.replaceChildren(); return; }
  const { kind, key } = selected, v = kind === "decision" ? selected.v : state[kind].get(key), id = kind + "\n" + key;
  if (detailBusy && detailFor === id) return;
  detailFor = id; detailAt = Date.now(); detailBusy = true;
  const title = h("h2", {}, kind === "decision" ? v.reason : kind === "pod" && v ? nsOf(key) + "/" + v.pod : key);
  const close = h("button", { type: "button", class: "close", onclick: () => closeDetail() }, "Close");
  let body;
  try { body = v ? await details[kind](key, v) : [h("p", { class: "dim" }, "This object no longer exists.")]; }
  catch { body = [h("p", { class: "bad" }, "The details cannot be loaded now.")]; }
  detailBusy = false;
  if (detailFor !== id || !selected) return;
  const what = kind === "decision" ? v && explainCommand(v.kind, v.ns, v.name) : null;
  const tail = what ? [h("pre", {}, what), copyButton(what)] : OBJECT[kind] && v ? command(kind === "model" ? v.kind : kind === "config" && !nsOf(key) ?
    "AIMClusterRuntimeConfig" : OBJECT[kind], key) : [];
  const opened = [...panel.querySelectorAll("details[open] > summary")].map(e => e.textContent);
  const active = document.activeElement, held = active !== panel && panel.contains(active);
  panel.replaceChildren(close, title, ...body.flat(9).filter(Boolean), h("h3", {}, "In a terminal"), ...tail);
  for (const e of panel.querySelectorAll("summary")) if (opened.includes(e.textContent)) e.parentElement.open = true;
  // What had the focus was replaced by its like.
  const next = focus ? panel : held && ([...panel.querySelectorAll(active.tagName)].find(e => e.textContent === active.textContent) || panel);
  if (next) next.focus({ preventScroll: true });
}
function closeDetail() { selected = null; showDetail(); draw(); const list = document.querySelector("main .list"); if (list) list.focus(); }

// ---- routing and drawing

let current = "";
function route() {
  const name = Object.keys(views).find(v => "#" + v.toLowerCase() === location.hash) || "Models";
  if (name === current) return;
  if (current) { selected = null; showDetail(); }
  current = name;
  document.title = name + " – flyball";
  $("main").replaceChildren(h("h2", { class: "skip" }, name), ...views[name].build());
  draw();
}

let due = false, drawn = 0;
function draw() {
  if (due) return;
  due = true;
  setTimeout(() => requestAnimationFrame(() => {
    due = false;
    drawn = Date.now();
    if (!current || document.body.dataset.login) return;
    views[current].draw();
    $("nav").replaceChildren(...Object.keys(views).map(name => h("a", { href: "#" + name.toLowerCase(), "aria-current": name === current ? "page" : null },
      name, views[name].count ? h("small", {}, " " + views[name].count()) : null)));
    // The panel follows its object, but not while the user reads or copies text in it.
    if (selected && selected.kind !== "decision" && Date.now() - detailAt > 1000 && getSelection().isCollapsed &&
        !document.querySelector("#detail svg:hover")) showDetail();
  }), Math.max(0, 250 - (Date.now() - drawn)));
}

// ---- the stream

function live(text, level) { $("live").textContent = text; $("live").className = level; }

// A decision that is already in the list comes again when the stream begins again in the same process.
function addDecision(id, v) { if (!decisions.some(d => d[0] === id)) decisions.unshift([id, v]); }

let source = null;
function connect() {
  source = new EventSource("/events");
  source.onopen = () => live("live", "good");
  source.addEventListener("reset", () => { for (const map of Object.values(state)) map.clear(); });
  source.onmessage = e => {
    for (const [kind, key, v] of JSON.parse(e.data))
      if (kind === "decision") addDecision(key + "@" + v.time, v);
      else if (v) state[kind].set(key, kind === "pod" ? Object.fromEntries(POD_FIELDS.map((name, i) => [name, v[i]])) : v);
      else state[kind].delete(key);
    if (decisions.length > DECISIONS_MAX) decisions.length = DECISIONS_MAX;
    const health = state.health.get("flyball");
    if (health) live("live · " + clock(health.time) + (health.leader ? "" : " · not the leader"), health.leader ? "good" : "warn");
    draw();
  };
  source.onerror = async () => {
    live("reconnecting", "warn");
    if (source.readyState !== EventSource.CLOSED) return; // the browser retries by itself
    let status = 0;
    try { status = (await fetch("/detail")).status; } catch { /* the server is away */ }
    if (status === 401 || status === 403) login(status);
    else setTimeout(connect, 2000);
  };
}

function login(status) {
  document.body.dataset.login = "1";
  live("not logged in", "bad");
  const input = h("input", { type: "password", autocomplete: "off", id: "token" }), note = h("p", { class: "bad", role: "alert" });
  if (status === 403) note.textContent = "This user may not see the page.";
  $("main").replaceChildren(h("div", { class: "card" }, h("h2", {}, "Log in"),
    h("p", {}, "flyball up: open the link that it prints, or the one in the file page.url of its data directory."),
    h("p", {}, "A cluster: paste a token, for example the output of kubectl create token NAME."),
    h("form", { onsubmit: async e => {
      e.preventDefault();
      let r = null;
      try { r = await fetch("/login", { headers: { authorization: "Bearer " + input.value.trim() } }); } catch { /* shown below */ }
      if (r && r.ok) { delete document.body.dataset.login; current = ""; route(); connect(); }
      else note.textContent = r ? await r.text() : "The server cannot be reached.";
    } }, h("label", { for: "token" }, "Token "), input, " ", h("button", {}, "Log in")), note));
  input.focus();
}

addEventListener("hashchange", route);
addEventListener("keydown", e => {
  if (e.key === "Escape" && selected) closeDetail();
  const n = +e.key, typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  if (!typing && !e.ctrlKey && !e.altKey && !e.metaKey && n >= 1 && n <= 6) location.hash = Object.keys(views)[n - 1].toLowerCase();
});
route();
connect();
