// The page: what the address names is shown in <main>; leaving it frees what it held.
import { h, fill } from "ludus/dom";
import { runsPage, comparePage } from "ludus/runs";
import { runPage } from "ludus/run";
import { replayPage, watchPage, gamesPage, problem } from "ludus/watch";

const PAGES = { "": runsPage, run: runPage, compare: comparePage, replay: replayPage, watch: watchPage, games: gamesPage };
const page = document.getElementById("page");
let current = null,
  turn = 0;

async function show() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map(decodeURIComponent);
  const mine = ++turn;
  current?.close?.();
  current = null;
  page.className = name || "runs";
  document.title = ["Ludus", ...parts].join(" · ");
  const inner = h("div.inner");
  fill(page, inner);
  try {
    if (!PAGES[name]) throw new Error(`there is no page '${name}'`);
    const opened = await PAGES[name](inner, parts, new URLSearchParams(query));
    if (mine === turn) current = opened;
    else opened?.close?.();
  } catch (error) {
    console.error(error);
    if (mine === turn) fill(inner, problem(error.message));
  }
  page.dataset.ready = String(mine);
}

function theme(next) {
  const known =
    { light: "light", dark: "dark" }[next ?? localStorage.theme] ??
    (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");
  document.documentElement.dataset.theme = known;
  if (next) localStorage.theme = next;
  window.dispatchEvent(new Event("themechange"));
}

fill(
  document.getElementById("top"),
  h("a.brand", { href: "#/" }, h("img", { src: "/static/icon.svg", alt: "" }), "Ludus"),
  h("nav", {}, h("a", { href: "#/" }, "Runs"), h("a", { href: "#/games" }, "Games")),
  h("span.grow"),
  h(
    "button.icon",
    {
      title: "dark or light",
      "aria-label": "dark or light",
      onclick: () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
    },
    "◐",
  ),
);
theme();
window.addEventListener("hashchange", show);
show();
