// Beside the scene: the agents, and for the picked one what it earns, what it expects, what it is about to do, what it sees.
import { h, fill, number, css, PALETTE } from "ludus/dom";

export class Panel {
  constructor(mount, player) {
    this.player = player;
    this.agents = h("div.chips");
    this.note = h("p.note");
    this.terms = h("div.terms");
    this.chart = h("canvas.small", { title: "orange: return so far, blue: what the policy expects to come" });
    this.actions = h("div.actions");
    this.eyes = h("canvas.eyes");
    this.attention = h("canvas.small.attention", { title: "the steps it looks back to, oldest on the left; height: how much each counts" });
    this.parts = {
      terms: h("section", {}, h("h4", {}, "Reward terms"), this.terms),
      chart: h("section", {}, h("h4", {}, "Return and value"), this.chart),
      actions: h("section", {}, h("h4", {}, "Action"), this.actions),
      eyes: h("section", {}, h("h4", {}, "What it sees"), this.eyes),
      attention: h("section", {}, h("h4", {}, "Attention over the opponent's past"), this.attention),
    };
    fill(mount, this.agents, this.note, Object.values(this.parts));
    this.agent = null;
    this.pick(null);
  }
  setFilm(film) {
    this.film = film;
    this.shown = -1;
    this.scale = 1e-9;
    const names = film.header.agents.map((_, i) => this.player.nameOf(i));
    fill(
      this.agents,
      names.map((name, i) =>
        h(
          "button.chip",
          {
            title: name,
            onclick: () => this.player.pick(this.player.picked === i ? null : i),
            style: { borderColor: this.player.stage.colourOf(i) },
          },
          name,
        ),
      ),
    );
    const { replay, thinks, differs, title, note } = film.header;
    const about = [];
    if (replay?.step !== undefined && replay?.step !== null)
      about.push(
        `${replay.label ?? ""} episode at step ${Number(replay.step).toLocaleString("en")} against ${replay.against ?? "?"}.`,
      );
    else if (title) about.push(`${title}.`);
    if (differs) about.push(`The rules have changed since it was recorded: from step ${differs} on it went differently.`);
    const cast = [...new Set(film.header.players)].filter((who) => who !== "policy");
    if (cast.length) about.push(`Played by ${[...new Set(film.header.players)].join(", ")}.`);
    if (thinks) about.push(`Thoughts: ${thinks}.`);
    if (note) about.push(note);
    this.about = about.join(" ");
    this.pick(this.agent !== null && this.agent < names.length ? this.agent : null);
  }
  pick(agent) {
    this.agent = agent;
    this.shown = -1;
    [...this.agents.children].forEach((chip, i) => chip.classList.toggle("on", i === agent));
    for (const part of Object.values(this.parts)) part.hidden = agent === null;
    this.note.textContent =
      agent === null
        ? `${this.about ?? ""} Pick an agent: click it, or press 1 … 9.`
        : `${this.player.nameOf(agent)}, played by ${this.film?.header.players?.[agent] ?? "?"}. ${this.about ?? ""}`;
    if (agent === null || !this.film) return;
    const { film } = this;
    this.parts.eyes.hidden = !this.player.view.eyes || !(film.header.seen.length || film.has("observation"));
  }
  redraw() {
    this.shown = -1;
  }
  update(now) {
    if (this.agent === null || now.t === this.shown) return;
    this.shown = now.t;
    this.drawTerms(now);
    this.drawChart(now);
    this.drawActions(now);
    if (!this.parts.eyes.hidden) this.drawEyes(now);
    this.drawAttention(now);
  }
  // [terms]: weighted, summed up to t
  totals(t) {
    const { terms, weights } = this.film.header;
    const row = this.film.at("term_totals", t);
    return terms.map((name, k) => row[this.agent * terms.length + k] * weights[name]);
  }
  drawTerms(now) {
    const { terms, weights } = this.film.header;
    const sums = this.totals(now.t);
    const row = this.film.at("terms", now.t);
    this.scale = Math.max(this.scale, ...sums.map(Math.abs));
    const shown = terms
      .map((name, k) => ({
        name,
        sum: sums[k],
        now: now.t ? row[this.agent * terms.length + k] * weights[name] : 0,
        weight: weights[name],
      }))
      .filter((t, k) => t.weight !== 0 && this.film.header.earns[this.agent][k]);
    fill(
      this.terms,
      shown.map((t) =>
        h(
          `div.term${t.now ? ".now" : ""}`,
          { title: `weight ${number(t.weight)}` },
          h("span.name", {}, t.name),
          h("span.bar", {}, h(`i${t.sum < 0 ? ".minus" : ""}`, { style: { width: `${(100 * Math.abs(t.sum)) / this.scale}%` } })),
          h("span.sum", {}, number(t.sum)),
          h("span.step", {}, t.now ? (t.now > 0 ? "+" : "") + number(t.now, 2) : ""),
        ),
      ),
    );
  }
  canvas(canvas, height) {
    const ratio = Math.min(window.devicePixelRatio, 2),
      width = canvas.clientWidth || 280;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const ctx = canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    return [ctx, width, height];
  }
  drawChart(now) {
    const [ctx, w, t] = this.canvas(this.chart, 84);
    const { film, agent } = this;
    const n = film.length,
      series = [];
    const sums = new Float32Array(n);
    for (let i = 0; i < n; i++) sums[i] = film.at("episode_return", i)[agent];
    series.push([sums, PALETTE[1]]);
    if (film.has("value")) series.push([Float32Array.from({ length: n }, (_, i) => film.at("value", i)[agent]), PALETTE[0]]);
    const all = series.flatMap(([s]) => [...s]).filter(Number.isFinite);
    const low = Math.min(0, ...all),
      high = Math.max(0.001, ...all);
    const x = (i) => (i / Math.max(1, n - 1)) * w,
      y = (v) => 4 + (t - 8) * (1 - (v - low) / (high - low));
    ctx.strokeStyle = css("--line");
    line(ctx, [
      [0, y(0)],
      [w, y(0)],
    ]);
    for (const [values, colour] of series) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = 1.5;
      line(
        ctx,
        [...values].map((v, i) => [x(i), y(v)]).filter(([, v]) => Number.isFinite(v)),
      );
    }
    ctx.strokeStyle = css("--text");
    line(ctx, [
      [x(now.t), 0],
      [x(now.t), t],
    ]);
    ctx.fillStyle = css("--dim");
    ctx.font = "10px system-ui";
    ctx.fillText(number(high), 2, 11);
    ctx.fillText(number(low), 2, t - 3);
    const value = film.has("value") ? film.at("value", now.t)[agent] : NaN;
    this.parts.chart.firstChild.textContent =
      `Return ${number(sums[now.t])}` + (Number.isFinite(value) ? ` · expects ${number(value)} to come` : "");
  }
  drawActions(now) {
    const { film, agent } = this;
    const { actions, actions_by_role, agents } = film.header; // roles of envs from elsewhere may act differently
    const { continuous, binary, choices } = actions_by_role?.[agents[agent].role] ?? actions;
    const chances = film.has("chances") ? rowOf(film.at("chances", now.t), film.shapes.chances[1], agent) : null;
    const known = chances && Number.isFinite(chances[0]);
    const done = now.t < film.last ? now.t + 1 : null;
    const taken = (name, i) => (done === null ? null : film.at(name, done)[agent * film.shapes[name][1] + i]);
    const rows = [];
    let at = 0;
    continuous.forEach((name, i) => {
      const mean = known ? chances[at] : null,
        value = taken("continuous", i);
      rows.push(
        h(
          "div.action",
          {},
          h("span.name", {}, name),
          h(
            "span.axis",
            {},
            mean !== null && h("i.mean", { style: { left: `${50 + 50 * mean}%` } }),
            value !== null && h("i.took", { style: { left: `${50 + 50 * Math.max(-1, Math.min(1, value))}%` } }),
          ),
          h("span.sum", {}, value === null ? "" : number(value, 2)),
        ),
      );
      at++;
    });
    binary.forEach((name, i) => {
      const chance = known ? chances[at] : null,
        value = taken("binary", i);
      rows.push(
        h(
          `div.action${value ? ".on" : ""}`,
          {},
          h("span.name", {}, name),
          h("span.bar", {}, h("i", { style: { width: `${100 * (chance ?? (value ? 1 : 0))}%` } })),
          h("span.sum", {}, chance === null ? (value ? "yes" : "") : `${Math.round(100 * chance)}%`),
        ),
      );
      at++;
    });
    Object.entries(choices).forEach(([name, options], i) => {
      const value = taken("choices", i);
      const list = options
        .map((option, k) => ({ option, k, chance: known ? chances[at + k] : value === k ? 1 : 0 }))
        .sort((a, b) => b.chance - a.chance)
        .slice(0, known ? 6 : 1);
      rows.push(
        ...list.map(({ option, k, chance }) =>
          h(
            `div.action${k === value ? ".on" : ""}`,
            {},
            h("span.name", {}, option),
            h("span.bar", {}, h("i", { style: { width: `${100 * chance}%` } })),
            h("span.sum", {}, known ? `${Math.round(100 * chance)}%` : ""),
          ),
        ),
      );
      at += options.length;
    });
    fill(this.actions, rows);
  }
  drawEyes(now) {
    const seen = Object.fromEntries(this.film.header.seen.map((name) => [name, now.seen(name, this.agent)]));
    if (Object.values(seen).some((s) => s === null)) {
      this.player.options.wantSeen?.(this.agent);
      return;
    }
    const height = this.player.view.eyesHeight ?? 180;
    const [ctx, w] = this.canvas(this.eyes, height);
    this.player.view.eyes(ctx, w, height, seen, this.film, now, this.agent);
  }
  drawAttention(now) {
    const has = this.film.has("attention");
    const row = has ? rowOf(this.film.at("attention", now.t), this.film.shapes.attention[1], this.agent) : [NaN];
    this.parts.attention.hidden = !Number.isFinite(row[0]); // a bot or a person has none
    if (this.parts.attention.hidden) return;
    const [ctx, w, t] = this.canvas(this.attention, 60);
    const most = Math.max(...row, 1e-6);
    ctx.fillStyle = PALETTE[3];
    row.forEach((share, i) =>
      ctx.fillRect((i / row.length) * w, t - (t * share) / most, Math.max(1, w / row.length - 1), (t * share) / most),
    );
  }
  close() {
    this.film = this.player = null;
  }
}

const rowOf = (data, width, row) => data.subarray(row * width, (row + 1) * width);

function line(ctx, points) {
  ctx.beginPath();
  points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.stroke();
}

// A grey picture of bytes, as large as fits.
export function picture(ctx, w, t, { shape: [rows, columns], data }, colour = (v) => [v, v, v]) {
  const image = ctx.createImageData(columns, rows);
  data.forEach((value, i) => image.data.set([...colour(value), 255], 4 * i));
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(image, 0, 0);
  const scale = Math.min(w / columns, t / rows);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(small, (w - columns * scale) / 2, 0, columns * scale, rows * scale);
}
