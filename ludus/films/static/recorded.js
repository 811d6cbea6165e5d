// Envs of other libraries, as they were recorded: their own pictures where they drew any, else what they showed over time.
import { css, number, PALETTE } from "ludus/dom";

export const kind = "2d";
export const camera = false; // there is nothing to turn or follow
export const eyesHeight = 200;
const LINES = 12; // more entries than this are shown as a map

// Pictures are decoded before the player starts, so that every moment can be drawn at once.
export async function prepare(film) {
  const [bytes, ends, steps] = ["pictures", "picture_end", "picture_step"].map((name) => film.fixed(name)?.data);
  film.pictures = [];
  if (!bytes) return;
  const decode = (end, i) => createImageBitmap(new Blob([bytes.slice(i ? ends[i - 1] : 0, end)], { type: "image/jpeg" }));
  const decoded = await Promise.allSettled([...ends].map(decode));
  decoded.forEach(({ value }, i) => value && film.pictures.push({ step: steps[i], image: value })); // a damaged one is left out
}

export function create(stage, film) {
  let now = null;
  stage.frame([0, 0], 1, 1);
  stage.paint = (ctx) => {
    ctx.setTransform(stage.ratio, 0, 0, stage.ratio, 0, 0);
    if (film.pictures.length) drawPicture(ctx, stage, latest(film.pictures, now.t).image);
    else drawCharts(ctx, stage, film, now);
  };
  return {
    draw: (moment) => (now = moment),
    hud: (moment) => (film.pictures.length ? facts(film, moment) : []),
    place: () => ({ x: -1e6, y: -1e6 }), // nobody can be pointed at
    close: () => film.pictures.forEach(({ image }) => image.close()),
  };
}

const latest = (pictures, t) => pictures.findLast(({ step }) => step <= t) ?? pictures[0];

function facts(film, moment) {
  const sum = (name) => moment.get(name).reduce((a, b) => a + b, 0) / film.header.agents.length;
  return [["return", number(sum("episode_return"))], ["reward", number(sum("reward"))]];
}

function drawPicture(ctx, { width, height, zoom }, image) {
  const scale = Math.min(width / image.width, height / image.height) * zoom;
  const [w, h] = [image.width * scale, image.height * scale];
  ctx.imageSmoothingQuality = "high";
  ctx.drawImage(image, (width - w) / 2, (height - h) / 2, w, h);
}

// Observation, action and reward of the picked agent (or the first), one below the other.
function drawCharts(ctx, stage, film, now) {
  ctx.fillStyle = css("--panel");
  ctx.fillRect(0, 0, stage.width, stage.height);
  const agent = now.picked ?? 0;
  const seen = film.has("observation") ? series(film, "observation", agent) : [];
  const names = entryNames(film, agent);
  const rows = [["action", actionSeries(film, agent)], ["reward", series(film, "reward", agent)]];
  if (seen.length) rows.unshift(["observation", seen, names]);
  const each = (stage.height - 16) / rows.length;
  rows.forEach(([title, lines, labels], i) => {
    const box = { x: 14, y: 10 + i * each, width: stage.width - 28, height: each - 14 };
    (lines.length > LINES ? drawMap : drawLines)(ctx, box, title, lines, labels, now.t);
  });
}

// What the picked agent observes: in the panel, where the scene shows pictures.
export function eyes(ctx, width, height, seen, film, now, agent) {
  const lines = series(film, "observation", agent);
  const box = { x: 0, y: 2, width, height: height - 6 };
  (lines.length > LINES ? drawMap : drawLines)(ctx, box, "", lines, entryNames(film, agent), now.t);
}

const entryNames = ({ header }, agent) => header.observation_by_role[header.agents[agent].role];

// One line per entry of an agent, over all frames. Of entries that only others have, none. Made once: an episode stays as it is.
function series(film, name, agent, limit = Infinity) {
  film.lines ??= new Map();
  const key = `${name} ${agent}`;
  if (!film.lines.has(key)) film.lines.set(key, readSeries(film, name, agent, limit));
  return film.lines.get(key);
}

function readSeries(film, name, agent, limit) {
  const width = film.shapes[name].length > 1 ? film.shapes[name][1] : 1;
  const own = name === "observation" ? entryNames(film, agent).length || width : width;
  return Array.from({ length: Math.min(own, limit) }, (_, i) =>
    Float32Array.from({ length: film.length }, (_, t) => film.at(name, t)[agent * width + i]),
  );
}

function actionSeries(film, agent) {
  const { continuous, binary, choices } = film.header.actions_by_role[film.header.agents[agent].role];
  return [
    ...series(film, "continuous", agent, continuous.length),
    ...series(film, "binary", agent, binary.length),
    ...series(film, "choices", agent, Object.keys(choices).length),
  ];
}

function drawLines(ctx, { x, y, width, height }, title, lines, labels, t) {
  const values = lines.flatMap((line) => [...line]);
  const low = Math.min(...values),
    high = Math.max(...values);
  const at = (i) => x + (i / Math.max(1, lines[0].length - 1)) * width;
  const up = (v) => y + height - 4 - ((v - low) / (high - low || 1)) * (height - 22);
  frame(ctx, { x, y, width, height }, title);
  lines.forEach((line, k) => {
    ctx.strokeStyle = PALETTE[k % PALETTE.length];
    ctx.lineWidth = 1.4;
    ctx.beginPath();
    line.forEach((v, i) => (i ? ctx.lineTo(at(i), up(v)) : ctx.moveTo(at(i), up(v))));
    ctx.stroke();
  });
  ctx.font = "10px system-ui";
  ctx.fillStyle = css("--dim");
  ctx.textAlign = "left";
  ctx.fillText(number(high), x + 2, y + 24);
  ctx.fillText(number(low), x + 2, y + height - 3);
  let right = x + width;
  ctx.textAlign = "right";
  [...lines].reverse().forEach((line, i) => {
    const k = lines.length - 1 - i;
    const words = `${labels?.[k] ? `${labels[k]} ` : ""}${number(line[t])}`;
    ctx.fillStyle = PALETTE[k % PALETTE.length];
    if (right - ctx.measureText(words).width > x + 70) ctx.fillText(words, right, y + 10);
    right -= ctx.measureText(words).width + 8;
  });
  cursor(ctx, at(t), y, height);
}

// Many entries: one row each, bright where an entry is near its own largest value.
function drawMap(ctx, { x, y, width, height }, title, lines, labels, t) {
  frame(ctx, { x, y, width, height }, title || `${lines.length} entries`);
  const frames = lines[0].length;
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage((lines.drawn ??= mapOf(lines, frames)), x, y + 16, width, height - 16);
  cursor(ctx, x + (t / Math.max(1, frames - 1)) * width, y, height);
}

function mapOf(lines, frames) {
  const image = new ImageData(frames, lines.length);
  lines.forEach((line, k) => {
    const low = Math.min(...line),
      span = Math.max(...line) - low || 1;
    line.forEach((v, i) => image.data.set([74, 168, 255, 20 + (235 * (v - low)) / span], 4 * (k * frames + i)));
  });
  const small = new OffscreenCanvas(frames, lines.length);
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

function frame(ctx, { x, y, width, height }, title) {
  ctx.strokeStyle = css("--line");
  ctx.lineWidth = 1;
  ctx.strokeRect(x, y + 14, width, height - 14);
  ctx.fillStyle = css("--text");
  ctx.font = "600 11px system-ui";
  ctx.textAlign = "left";
  ctx.fillText(title, x, y + 10);
}

function cursor(ctx, x, y, height) {
  ctx.strokeStyle = css("--text");
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x, y + 14);
  ctx.lineTo(x, y + height);
  ctx.stroke();
}
