// One run: curves with findings, reward by term, time by phase, league, replays, configuration, the game as received.
import { h, fill, ask, count, duration, number, PALETTE } from "ludus/dom";
import { chart } from "ludus/charts";
import { verdict } from "ludus/runs";

const HIDDEN = /(_low|_high|_greedy|\/length)$/;
const GROUPS = [
  ["Evaluation, held-out seeds", (k) => k.startsWith("eval/") && !HIDDEN.test(k) && !/(return|draw_rate|loss_rate)$/.test(k), {}],
  ["Goal metrics while training", (k) => k.startsWith("goal/"), {}],
  ["Game values that change", (k) => k.startsWith("game/"), {}],
  ["Return per role", (k) => /^episode\/[^/]+\/return$/.test(k), {}],
  ["Episode length", (k) => /^episode\/[^/]+\/length$/.test(k), {}],
  ["Entropy, share of the most possible", (k) => k.endsWith("/entropy_share"), { share: true }],
  ["KL of an update", (k) => k.endsWith("/approx_kl"), {}],
  ["Explained variance", (k) => k.endsWith("/explained_variance"), {}],
  ["Loss of values", (k) => k.endsWith("/value_loss"), {}],
  ["Values, in units of reward", (k) => /\/(value_mean|q_mean)$/.test(k), {}],
  ["Gradient norm", (k) => k.endsWith("/grad_norm"), {}],
  ["Strategy vectors", (k) => /strategy/.test(k), {}],
  ["Agent-steps per second", (k) => k === "speed/agent_steps_per_s", {}],
];
// win_rate beside a goal metric win that says the same
const repeats = (name, metrics) => {
  const other = name.replace(/_rate$/, "");
  return other !== name && metrics[other] && String(metrics[other]) === String(metrics[name]);
};
const against = (name) => {
  const [, opponent, ...what] = name.split("/");
  return opponent === "self" ? what.join(" ") : `${what.join(" ")} against ${opponent}`;
};
const short = (name) => name.replace(/^(eval|goal|episode|learner)\//, "").replace(/\/return$/, "");

// Charts of one run, or of several over each other.
export function curves(runs) {
  const out = [];
  for (const [title, chosen, options] of GROUPS) {
    const own = (r) => Object.keys(r.metrics).filter((k) => chosen(k) && !repeats(k, r.metrics));
    const names = [...new Set(runs.flatMap(own))].sort().slice(0, 12);
    if (!names.length) continue;
    if (runs.length === 1) {
      const { metrics, findings } = runs[0];
      const marks = findings.filter((f) => f.first_step !== null).map((f) => ({ step: f.first_step, severity: f.severity }));
      const series = names.map((n) => ({
        label: short(n),
        values: metrics[n],
        low: metrics[`${n}_low`],
        high: metrics[`${n}_high`],
      }));
      out.push(chart(title, metrics["progress/agent_steps"], series, { marks, ...options }));
    } else {
      const x = [...new Set(runs.flatMap((r) => r.metrics["progress/agent_steps"] ?? []))].sort((a, b) => a - b);
      const series = runs.flatMap((r, k) =>
        names
          .filter((n) => r.metrics[n])
          .map((n) => {
            const known = new Map(r.metrics["progress/agent_steps"].map((s, i) => [s, r.metrics[n][i]]));
            return {
              label: `${short(n)} (${k + 1})`,
              values: x.map((s) => known.get(s) ?? null),
              colour: PALETTE[names.indexOf(n) % PALETTE.length],
              dash: k ? [5, 4] : undefined,
            };
          }),
      );
      out.push(chart(title, x, series, options));
    }
  }
  return out.filter(Boolean);
}

function breakdown({ metrics, effective, findings }) {
  const x = metrics["progress/agent_steps"] ?? [],
    weights = effective.rewards ?? {};
  const marks = findings.filter((f) => f.first_step !== null).map((f) => ({ step: f.first_step, severity: f.severity }));
  const roles = [
    ...new Set(
      Object.keys(metrics)
        .filter((k) => /^episode\/.+\/term\//.test(k))
        .map((k) => k.split("/")[1]),
    ),
  ];
  const charts = roles.map((role) => {
    const terms = Object.keys(metrics).filter((k) => k.startsWith(`episode/${role}/term/`));
    const series = terms
      .map((k) => {
        const name = k.split("/").at(-1),
          weight = typeof weights[name] === "number" ? weights[name] : 1;
        return { label: name, values: metrics[k].map((v) => (v === null ? null : v * weight)) };
      })
      .filter((s) => s.values.some((v) => v));
    return series.length ? chart(`Reward of ${role} by term, per episode`, x, series, { stacked: true, marks }) : null;
  });
  const phases = Object.keys(metrics)
    .filter((k) => k.startsWith("speed/share/"))
    .map((k) => ({ label: k.split("/").at(-1), values: metrics[k] }));
  return [...charts, chart("Time by phase", x, phases, { stacked: true, share: true })].filter(Boolean);
}

export async function runPage(page, [name]) {
  const address = `/api/run/${encodeURIComponent(name)}`;
  fill(page, h("p.wait", {}, "Reading the run …"));
  let charts = [],
    seen = -1;
  const draw = (run) => {
    charts.forEach((c) => c.close());
    charts = [...curves([run]), ...breakdown(run)];
    fill(
      page,
      head(run),
      findings(run),
      replays(run),
      h("h2", {}, "Curves"),
      charts.length
        ? h("div.grid", {}, charts)
        : h("p.empty", {}, "No iteration is finished yet: curves appear here by themselves."),
      leagueParts(run),
      analysisParts(run),
      tables(run),
    );
  };
  const refresh = async () => {
    const run = await (await ask(address)).json();
    if (run.agent_steps !== seen) draw(run);
    seen = run.agent_steps;
    return run;
  };
  let run = await refresh();
  const timer = setInterval(async () => run.state === "training" && (run = await refresh().catch(() => run)), 5000);
  return {
    close() {
      clearInterval(timer);
      charts.forEach((c) => c.close());
    },
  };
}

function head(run) {
  const link = (text, to) => h("a.button", { href: to }, text);
  const id = encodeURIComponent(run.name);
  return [
    h(
      "div.bar",
      {},
      h("h1", {}, run.name),
      h(`span.state.${run.state}`, { title: run.reason }, run.state),
      verdict(run.verdict),
      h("span.grow"),
      // envs of other libraries are not loaded by the viewer: what was recorded of them is below
      !run.foreign && link(run.state === "training" ? "Watch it live" : "Watch it play", `#/watch?run=${id}`),
      !run.foreign && link("Play against it", `#/watch?run=${id}&take=0`),
    ),
    h(
      "p.facts",
      {},
      `${[run.game, run.algorithm].filter(Boolean).join(" · ")} · ${count(run.agent_steps)} agent-steps in ${duration(run.seconds)}`,
    ),
    run.reason ? h("p.facts", {}, `${run.state}: ${run.reason}`) : null,
    run.headline ? h("p.facts", {}, h("b", {}, headline(run.headline))) : null,
  ];
}

function headline({ metric, value, low, high, step }) {
  const interval = low === null ? "" : ` [${number(low)}, ${number(high)}]`;
  return `${against(metric)}: ${number(value)}${interval} at step ${count(step)}`;
}

function findings({ findings, doctor, verdict }) {
  if (doctor) return h("p.note", {}, doctor);
  const few = findings.find((f) => f.check === verdict);
  if (few) return h("p.note", {}, `Too little data to judge: ${few.evidence}.`);
  const shown = findings.filter((f) => f.severity !== "info");
  if (!shown.length) return h("p.fine", {}, "The doctor sees nothing wrong.");
  return h(
    "div.findings",
    {},
    shown.map((f) =>
      h(
        `details.finding.${f.severity}`,
        { open: f.severity === "critical" },
        h(
          "summary",
          {},
          h("b", {}, f.check.replaceAll("_", " ")),
          ` ${f.cause}`,
          f.first_step !== null ? h("small", {}, ` from step ${count(f.first_step)}`) : null,
        ),
        h("p", {}, f.evidence),
        h("p", {}, h("b", {}, "Fix: "), f.fix),
        h("small", {}, `confidence ${Math.round(100 * f.confidence)}%`),
      ),
    ),
  );
}

function replays(run) {
  if (!run.replay_list.length)
    return [h("h2", {}, "Replays"), h("p.note", {}, "None yet: every evaluation stores a few (--eval.every-agent-steps).")];
  const groups = new Map(run.replay_list.map((r) => [r.step, run.replay_list.filter((other) => other.step === r.step)]));
  return [
    h("h2", {}, "Replays"),
    h(
      "div.replays",
      {},
      [...groups].slice(0, 8).map(([step, list]) =>
        h(
          "div.batch",
          {},
          h("b", {}, step ? `step ${count(step)}` : "others"),
          list.map((r) =>
            h(
              "a.chip",
              { href: `#/replay/${encodeURIComponent(run.name)}/${encodeURIComponent(r.file)}` },
              r.step ? `${r.role} against ${r.against.replace("_", ":")}: ${r.label}` : r.label,
            ),
          ),
        ),
      ),
    ),
  ];
}

function analysisParts({ name, pictures }) {
  if (!pictures?.length) return [];
  const source = (file) => `/api/run/${name.split("/").map(encodeURIComponent).join("/")}/analysis/${encodeURIComponent(file)}`;
  return [h("h2", {}, "Strategy vectors"), h("img.analysis", { src: source(pictures[0]), alt: pictures[0] })];
}

function leagueParts({ league }) {
  if (league.error) return h("p.note", {}, league.error);
  const parts = [];
  const ratings = Object.entries(league.ratings ?? {});
  if (ratings.length)
    parts.push(
      h("h3", {}, "Ratings"),
      h(
        "table.pairs",
        {},
        h(
          "tr",
          {},
          ["player", "rating", "95%", "games"].map((t) => h("th", {}, t)),
        ),
        ratings
          .slice(0, 20)
          .map(([n, r]) =>
            h(
              "tr",
              {},
              h("td", {}, n),
              h("td.number", {}, number(r.mean)),
              h("td", {}, `${number(r.low)} to ${number(r.high)}`),
              h("td.number", {}, count(r.games)),
            ),
          ),
      ),
    );
  for (const [side, opponents] of Object.entries(league.win_rates ?? {}))
    parts.push(
      h("h3", {}, `Win rate ${side ? `of ${side} ` : ""}per opponent`),
      h(
        "div.rates",
        {},
        Object.entries(opponents)
          .slice(0, 24)
          .map(([n, w]) =>
            h(
              "div.action",
              {},
              h("span.name", {}, n),
              h("span.bar", {}, h("i", { style: { width: `${100 * w.win_rate}%` } })),
              h("span.sum", {}, `${Math.round(100 * w.win_rate)}%`),
            ),
          ),
      ),
    );
  for (const [role, table] of Object.entries(league.payoff?.tables ?? {}))
    parts.push(h("h3", {}, `Payoff${role ? ` of ${role}` : ""}: row against column`), payoff(table));
  return parts.length ? [h("h2", {}, "League"), h("div.league", {}, parts)] : [];
}

function payoff(table) {
  const columns = [...new Set(Object.values(table).flatMap((row) => Object.keys(row)))];
  const shade = (w) => ({ background: `color-mix(in srgb, var(--good) ${Math.round(100 * w)}%, var(--bad))`, color: "#fff" });
  return h(
    "div.scroll",
    {},
    h(
      "table.payoff",
      {},
      h(
        "tr",
        {},
        h("th"),
        columns.map((c) => h("th", {}, c)),
      ),
      Object.entries(table).map(([name, row]) =>
        h(
          "tr",
          {},
          h("th", {}, name),
          columns.map((c) =>
            row[c]
              ? h("td", { style: shade(row[c].win_rate), title: `${name} against ${c}` }, Math.round(100 * row[c].win_rate))
              : h("td"),
          ),
        ),
      ),
    ),
  );
}

function tables(run) {
  const config = Object.entries(run.config).map(([key, [value, origin]]) =>
    h(
      `tr.${origin === "default" ? "default" : "set"}`,
      {},
      h("td", {}, key),
      h("td", {}, JSON.stringify(value)),
      h("td", {}, origin),
    ),
  );
  const game = run.effective;
  const rows = ["sizes", "params", "rewards"].flatMap((part) =>
    Object.entries(game[part] ?? {}).map(([key, value]) =>
      h(
        "tr",
        {},
        h("td", {}, part === "rewards" ? `reward.${key}` : key),
        h("td", {}, typeof value === "number" ? number(value, 6) : JSON.stringify(value)),
        h("td", {}, part),
      ),
    ),
  );
  return [
    h(
      "details",
      {},
      h("summary", {}, h("h2", {}, "Configuration")),
      h(
        "table.pairs",
        {},
        h(
          "tr",
          {},
          ["key", "value", "from"].map((t) => h("th", {}, t)),
        ),
        config,
      ),
    ),
    h(
      "details",
      {},
      h("summary", {}, h("h2", {}, "The game as the simulator received it")),
      h("p.note", {}, `${game.game ?? ""}${game.preset ? `:${game.preset}` : ""} · fingerprint ${game.fingerprint ?? "?"}`),
      h("table.pairs", {}, rows),
    ),
  ];
}
