// The list of runs, and what two of them have in common side by side.
import { h, fill, ask, count, compact, duration, number } from "ludus/dom";
import { sparkline } from "ludus/charts";
import { curves } from "ludus/run";

export async function runsPage(page) {
  const ticked = new Set();
  const compare = h("a.button.accent", { hidden: true }, "Compare");
  const body = h("div");
  fill(page, h("div.bar", {}, h("h1", {}, "Runs"), compare), fill(body, h("p.wait", {}, "Reading the runs …")));
  let drawn = "";
  const refresh = async () => {
    const { runs, root } = await (await ask("/api/runs")).json();
    const text = JSON.stringify(runs);
    if (text === drawn) return;
    drawn = text;
    fill(body, runs.length ? table(runs, ticked, compare) : empty(root));
  };
  await refresh();
  const timer = setInterval(() => refresh().catch(() => {}), 5000);
  return { close: () => clearInterval(timer) };
}

function table(runs, ticked, compare) {
  const tick = (name, on) => {
    on ? ticked.add(name) : ticked.delete(name);
    compare.hidden = ticked.size !== 2;
    compare.href = `#/compare/${[...ticked].map(encodeURIComponent).join("/")}`;
  };
  const heads = ["", "run", "game", "state", "verdict", "", "agent-steps", "time", "replays"];
  return h(
    "table.list",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((t) => h("th", {}, t)),
      ),
    ),
    h(
      "tbody",
      {},
      runs.map((run) => {
        const address = `#/run/${encodeURIComponent(run.name)}`;
        if (run.error) return h("tr", {}, h("td"), h("td", {}, run.name), h("td.bad", { colSpan: 7 }, run.error));
        const last = run.curve.values.at(-1);
        return h(
          "tr",
          { ondblclick: () => (location.hash = address) },
          h(
            "td",
            {},
            h("input", {
              type: "checkbox",
              checked: ticked.has(run.name),
              "aria-label": `compare ${run.name}`,
              onchange: (e) => tick(run.name, e.target.checked),
            }),
          ),
          h("td", {}, h("a", { href: address }, run.name)),
          h("td", {}, run.game),
          h("td", {}, h(`span.state.${run.state}`, { title: run.reason }, run.state)),
          h("td", {}, verdict(run.verdict)),
          h(
            "td",
            { title: run.curve.metric },
            h(
              "div.headline",
              {},
              sparkline(run.curve.values),
              h("small", {}, last === undefined ? "" : `${run.curve.metric.split("/").slice(-2).join(" ")} ${number(last, 2)}`),
            ),
          ),
          h("td.number", {}, compact(run.agent_steps)),
          h("td.number", {}, duration(run.seconds)),
          h("td.number", {}, count(run.replays)),
        );
      }),
    ),
  );
}

export const verdict = (text) => h(`span.verdict.${text}`, {}, text.replaceAll("_", " "));

function empty(root) {
  return h(
    "div.empty",
    {},
    h("h2", {}, "No runs yet"),
    h("p", {}, root ? `There is no run folder under ${root}.` : "No run folder was named."),
    h("p", {}, "Train one, and it appears here while it learns:"),
    h("pre", {}, "ludus train hide_and_seek --train.total-seconds 180"),
    h(
      "p",
      {},
      "Runs elsewhere: ",
      h("code", {}, "ludus view --root FOLDER"),
      ". Or watch ",
      h("a", { href: "#/games" }, "bots play"),
      " first.",
    ),
  );
}

export async function comparePage(page, [a, b]) {
  fill(page, h("p.wait", {}, "Reading both runs …"));
  const runs = await Promise.all([a, b].map(async (name) => (await ask(`/api/run/${encodeURIComponent(name)}`)).json()));
  const [first, second] = runs;
  const differing = [...new Set([...Object.keys(first.config), ...Object.keys(second.config)])]
    .sort()
    .map((key) => [key, ...runs.map((r) => JSON.stringify(r.config[key]?.[0] ?? null))])
    .filter(([, x, y]) => x !== y);
  const charts = curves(runs);
  fill(
    page,
    h("h1", {}, `${first.name} and ${second.name}`),
    h("p.note", {}, "solid: the first, dashed: the second"),
    h("div.grid", {}, charts),
    h("h2", {}, "What differs in the configuration"),
    differing.length
      ? h(
          "table.pairs",
          {},
          h("tr", {}, h("th", {}, "key"), h("th", {}, first.name), h("th", {}, second.name)),
          differing.map((row) =>
            h(
              "tr",
              {},
              row.map((cell) => h("td", {}, cell)),
            ),
          ),
        )
      : h("p", {}, "Nothing."),
  );
  return { close: () => charts.forEach((c) => c.close()) };
}
