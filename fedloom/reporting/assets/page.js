"use strict";

// Sorting: numbers by their unrounded value, text by the alphabet; missing values stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.querySelectorAll("th").forEach((head, place) => {
    head.querySelector("button").addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const now = head.getAttribute("aria-sort");
      const first = numeric ? "descending" : "ascending";
      const other = numeric ? "ascending" : "descending";
      const order = now === first ? other : first;
      table.tHead.querySelectorAll("th").forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      for (const body of table.tBodies) {
        body.append(...[...body.rows].sort((a, b) => compare(a.cells[place], b.cells[place], numeric, sign)));
      }
    });
  });
}

function compare(a, b, numeric, sign) {
  if (!numeric) return sign * a.textContent.localeCompare(b.textContent);
  const x = value(a), y = value(b);
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return sign * (x - y);
}

function value(cell) {
  return parseFloat(cell.dataset.value ?? cell.textContent.replace("\u2212", "-"));
}

// Reading values: the pointer picks the nearest x, every line tells its value there.
for (const figure of document.querySelectorAll("figure.chart[data-x]")) {
  const lines = JSON.parse(figure.querySelector("script").textContent);
  const all = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  if (!all.length) continue;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  for (const svg of figure.querySelectorAll("svg.plot")) {
    svg.addEventListener("pointermove", (event) => show(figure, svg, tip, lines, all, event));
    svg.addEventListener("pointerleave", () => hide(svg, tip));
  }
}

function nearest(values, x) {
  return values.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best));
}

function show(figure, svg, tip, lines, all, event) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal, data = svg.dataset;
  const scale = view.width / box.width;
  const left = +data.left, right = view.width - data.right, low = +data.low, high = +data.high;
  const at = low + (((event.clientX - box.left) * scale - left) / (right - left)) * (high - low);
  const x = nearest(all, at);
  const across = left + ((x - low) / (high - low)) * (right - left);
  svg.querySelector(".cursor")?.setAttribute("d", `M${across} ${data.top}V${view.height - data.bottom}`);
  const title = document.createElement("b");
  title.textContent = figure.dataset.x === "round" ? `round ${x}` : `${+x.toPrecision(4)} ${figure.dataset.x}`;
  const reach = (high - low) * 0.02;
  const rows = lines
    .map((line) => ({ line, x: nearest(line.x, x) }))
    .filter((row) => Math.abs(row.x - x) <= (figure.dataset.x === "round" ? 0 : reach))
    .map((row) => ({ ...row, place: row.line.x.indexOf(row.x) }))
    .filter((row) => row.line.mean[row.place] !== null)
    .sort((a, b) => b.line.mean[b.place] - a.line.mean[a.place])
    .map((row) => entry(row.line, row.place, +figure.dataset.digits));
  tip.replaceChildren(title, ...rows);
  tip.hidden = false;
  const frame = figure.getBoundingClientRect();
  const place = box.left - frame.left + across / scale;
  const flip = place + tip.offsetWidth + 24 > frame.width;
  tip.style.left = `${Math.max(0, flip ? place - tip.offsetWidth - 14 : place + 14)}px`;
  tip.style.top = `${box.bottom - frame.top - 6}px`;
}

function entry(line, place, digits) {
  const row = document.createElement("div"), name = document.createElement("span");
  const dot = document.createElement("i"), number = document.createElement("span");
  dot.className = line.tag;
  name.append(dot, line.name);
  const [mean, low, high] = ["mean", "low", "high"].map((side) => line[side][place].toFixed(digits));
  number.textContent = line.n > 1 ? `${mean}  (${low} to ${high})` : mean;
  row.append(name, number);
  return row;
}

function hide(svg, tip) {
  tip.hidden = true;
  svg.querySelector(".cursor")?.setAttribute("d", "");
}

// Copying a table; browsers allow it only in some places, so the button shows where it works.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.nextElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
}
