// Elements from code. Text is only ever set as text: nothing a run holds can become markup.

export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((c) => c !== undefined && c !== null && c !== false)
      .map((c) => (c instanceof Node ? c : String(c))),
  );
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((c) => c instanceof Node || (c !== undefined && c !== null && c !== false)),
  );
  return element;
}

export const number = (x, digits = 3) =>
  x === null || x === undefined || Number.isNaN(x)
    ? "–"
    : Math.abs(x) >= 1e5
      ? x.toLocaleString("en", { maximumFractionDigits: 0 })
      : String(Number(x.toPrecision(digits)));
export const count = (x) => Number(x || 0).toLocaleString("en");
export function duration(seconds) {
  const s = Math.round(seconds || 0);
  return s < 60
    ? `${s} s`
    : s < 3600
      ? `${Math.floor(s / 60)} min ${s % 60} s`
      : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}
export const compact = (x) =>
  x >= 1e9 ? `${number(x / 1e9)} G` : x >= 1e6 ? `${number(x / 1e6)} M` : x >= 1e3 ? `${number(x / 1e3)} k` : String(x || 0);
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export async function ask(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || `the viewer answered ${answer.status}`);
  return answer;
}

export const PALETTE = [
  "#4aa8ff",
  "#ff8a3d",
  "#3ecf8e",
  "#d86bff",
  "#ffd23f",
  "#ff5d73",
  "#35d0d0",
  "#a5b1c2",
  "#9a7bff",
  "#8bc34a",
  "#f48fb1",
  "#c69c6d",
];
