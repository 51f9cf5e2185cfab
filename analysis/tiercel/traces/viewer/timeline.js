"use strict";
// Draws blocks of one trace. The data is in columns: block i is rank[i], start[i], duration[i] (ns), kind[i]...
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("canvas");
const tip = document.getElementById("tip");
const pen = canvas.getContext("2d");
const LEFT = 56, BOTTOM = 26, TOP = 6;
const whole = Math.max(data.length * 1e9, 1);
let from = 0, to = whole;
const shown = data.kinds.map(() => true);
const colours = data.kinds.map((kind) => data.colours[kind]);
const row = Math.max(6, Math.min(28, Math.floor(520 / Math.max(data.ranks.length, 1))));
const height = TOP + BOTTOM + row * Math.max(data.ranks.length, 1);
let width = 0;

// Long blocks are drawn first, so that short ones stay visible on top of them.
const order = data.start.map((_, i) => i).sort((a, b) => data.duration[b] - data.duration[a]);

function x(time) { return LEFT + (time - from) / (to - from) * (width - LEFT); }
function time(px) { return from + (px - LEFT) / (width - LEFT) * (to - from); }

function seconds(ns) {
  const s = ns / 1e9;
  if (s >= 1 || s === 0) return +s.toPrecision(6) + " s";
  if (s >= 1e-3) return +(s * 1e3).toPrecision(4) + " ms";
  return +(s * 1e6).toPrecision(4) + " µs";
}
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let n = 0;
  while (bytes >= 1024 && n < units.length - 1) { bytes /= 1024; n++; }
  return +bytes.toPrecision(4) + " " + units[n];
}

function resize() {
  width = canvas.parentElement.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw();
}

function draw() {
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  drawAxis();
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, width - LEFT, height - BOTTOM);
  pen.clip();
  for (const i of order) {
    if (!shown[data.kind[i]]) continue;
    const begin = data.start[i], end = begin + data.duration[i];
    if (end < from || begin > to) continue;
    const left = Math.max(x(begin), LEFT - 1), right = Math.min(x(end), width + 1);
    pen.fillStyle = colours[data.kind[i]];
    pen.fillRect(left, TOP + data.rank[i] * row + 1, Math.max(right - left, 0.7), row - 2);
  }
  pen.restore();
}

function drawAxis() {
  const step = niceStep((to - from) / Math.max((width - LEFT) / 110, 1));
  const digits = Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9));
  pen.textAlign = "center";
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const at = x(t);
    pen.fillStyle = "#eee";
    pen.fillRect(at, TOP, 1, height - BOTTOM - TOP);
    pen.fillStyle = "#444";
    const label = (t / 1e9).toFixed(Math.min(digits, 9)) + " s";
    if (at > LEFT + 20 && at < width - 24) pen.fillText(label, at, height - 8);
  }
  pen.textAlign = "right";
  pen.fillStyle = "#444";
  const every = Math.ceil(14 / row);
  data.ranks.forEach((rank, n) => {
    if (n % every === 0) pen.fillText(rank, LEFT - 8, TOP + n * row + row / 2 + 4);
  });
  pen.save();
  pen.translate(12, TOP + (height - BOTTOM) / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText("rank", 0, 0);
  pen.restore();
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((m) => m * power >= rough) * power;
}

function zoom(factor, px) {
  const middle = time(px);
  let span = Math.min(Math.max((to - from) * factor, 1000), whole);
  from = Math.max(0, Math.min(middle - (middle - from) / (to - from) * span, whole - span));
  to = from + span;
  draw();
}
function move(delta) {
  const span = to - from;
  from = Math.max(0, Math.min(from + delta, whole - span));
  to = from + span;
  draw();
}

function blockAt(px, py) {
  const rank = Math.floor((py - TOP) / row);
  const slack = 2 * (to - from) / (width - LEFT), t = time(px);
  for (let n = order.length - 1; n >= 0; n--) { // the topmost first
    const i = order[n];
    if (data.rank[i] !== rank || !shown[data.kind[i]]) continue;
    if (t >= data.start[i] - slack && t <= data.start[i] + data.duration[i] + slack) return i;
  }
  return -1;
}
function showTip(event) {
  const box = canvas.getBoundingClientRect();
  const i = blockAt(event.clientX - box.left, event.clientY - box.top);
  if (i < 0) { tip.style.display = "none"; return; }
  const many = data.calls[i] > 1;
  const lines = [
    `rank ${data.ranks[data.rank[i]]}: ${data.functions[data.function[i]]}` + (many ? ` (${data.calls[i]} calls)` : ""),
    `at ${seconds(data.start[i])}, ${many ? "within" : "for"} ${seconds(data.duration[i])}`,
  ];
  if (data.bytes[i]) lines.push(size(data.bytes[i]));
  if (data.file[i] >= 0) lines.push(data.files[data.file[i]] + (many ? " ..." : ""));
  tip.textContent = lines.join("\n");
  tip.style.display = "block";
  tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
}

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const px = event.clientX - canvas.getBoundingClientRect().left;
  if (event.shiftKey) move((to - from) * Math.sign(event.deltaY + event.deltaX) * 0.1);
  else zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(px, LEFT));
}, { passive: false });
let held = null;
canvas.addEventListener("pointerdown", (event) => {
  held = event.clientX;
  canvas.setPointerCapture(event.pointerId);
  canvas.classList.add("dragging");
});
canvas.addEventListener("pointermove", (event) => {
  if (held === null) { showTip(event); return; }
  move((held - event.clientX) / (width - LEFT) * (to - from));
  held = event.clientX;
});
canvas.addEventListener("pointerup", () => { held = null; canvas.classList.remove("dragging"); });
canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
canvas.addEventListener("dblclick", () => { from = 0; to = whole; draw(); });
canvas.addEventListener("keydown", (event) => {
  const middle = (LEFT + width) / 2;
  const keys = {
    ArrowLeft: () => move((from - to) * 0.2), ArrowRight: () => move((to - from) * 0.2),
    "+": () => zoom(0.6, middle), "-": () => zoom(1 / 0.6, middle), 0: () => { from = 0; to = whole; draw(); },
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

const bar = document.getElementById("bar");
data.kinds.forEach((kind, n) => {
  if (!data.kind.includes(n)) return;
  const label = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("i");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => { shown[n] = box.checked; draw(); });
  swatch.style.background = colours[n];
  label.append(box, swatch, kind);
  bar.append(label);
});
const button = document.createElement("button");
button.textContent = "whole job";
button.addEventListener("click", () => { from = 0; to = whole; draw(); });
bar.append(button);
const notes = ["Wheel: zoom. Drag or shift-wheel: move. Keys: + - 0 and arrows. Double click: whole job."];
if (data.merged) notes.push("Calls of one function that follow each other closely are drawn as one block.");
if (!data.start.length) notes.push("No event to draw.");
document.getElementById("note").textContent = notes.concat(data.warnings).join("\n");

window.addEventListener("resize", resize);
resize();
