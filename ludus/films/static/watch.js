// Replays, live games and playing: fetches frames, loads the game's view, hands both to the player.
import { h, fill, ask } from "ludus/dom";
import { Film, Stream, unpack } from "ludus/frames";
import { Player } from "ludus/player";

const SLOW = "Opening … (a game's rules are compiled the first time they are needed: up to a minute)";

export async function loadView(name) {
  return import(["plain", "recorded"].includes(name) ? `ludus/${name}` : `game/${name}`);
}

export function needsWebGL() {
  return h(
    "div.empty",
    {},
    h("h2", {}, "This browser shows no 3D"),
    h(
      "p",
      {},
      "WebGL is off or missing. Turn on hardware acceleration in the browser's settings and reload, or use another browser (a current Firefox, Chromium or Safari).",
    ),
    h("p", {}, "Everything else works: ", h("a", { href: "#/" }, "runs"), ", curves, findings and the 2D games."),
  );
}

function open(mount, film, view, options) {
  try {
    const player = new Player(mount, film, view, options);
    window.ludusPlayer = player; // for scripts and tests
    return player;
  } catch (error) {
    if (!/webgl/i.test(String(error))) throw error;
    fill(mount, needsWebGL());
    return null;
  }
}

export async function replayPage(page, [run, file], query) {
  fill(page, h("p.wait", {}, SLOW));
  const address = `/api/run/${encodeURIComponent(run)}/replay/${encodeURIComponent(file)}`;
  const began = performance.now();
  const film = new Film(await (await ask(address)).arrayBuffer());
  const view = await loadView(film.header.view);
  await view.prepare?.(film);
  const asked = new Set();
  const options = {
    onplay: (agent, t) =>
      (location.hash = `#/watch?run=${encodeURIComponent(run)}&replay=${encodeURIComponent(file)}&at=${t}&take=${agent}`),
    onpick: (agent) => options.wantSeen(agent),
    async wantSeen(agent) {
      if (asked.has(agent) || !film.header.seen.length) return;
      asked.add(agent);
      film.addSeen(agent, await (await ask(`${address}/seen/${agent}`)).arrayBuffer());
      if (player?.film === film) {
        player.panel.redraw();
        player.dirty = true;
      }
    },
    actions: [
      h("a.button", { href: `${address}/export`, download: "", title: "this replay as one HTML file" }, "export"),
      h("a.button", { href: `#/run/${encodeURIComponent(run)}`, title: "back to the run" }, "run"),
    ],
  };
  const player = open(page, film, view, options);
  if (player) {
    player.opened = performance.now() - began;
    if (query.get("at")) player.seek(Number(query.get("at")) || 0);
    if (film.header.view === "recorded" && film.header.agents.length === 1) player.pick(0);
    if (query.get("agent")) player.pick(Math.min(film.header.agents.length - 1, Number(query.get("agent")) || 0));
  }
  return { close: () => player?.close() };
}

// A game played now: ?game= or ?run=, agents=, take=, replay= and at= to go on from a moment.
export async function watchPage(page, _, query) {
  fill(page, h("p.wait", {}, SLOW));
  const socket = new WebSocket(`ws://${location.host}/ws/stage?${query}`);
  socket.binaryType = "arraybuffer";
  let player = null,
    closed = false,
    film = null,
    waiting = Promise.resolve();
  const say = (message) => socket.readyState === 1 && socket.send(JSON.stringify(message));
  const back = query.get("run") ? [h("a.button", { href: `#/run/${encodeURIComponent(query.get("run"))}` }, "run")] : [];
  const restart = h("button", { title: "a new episode", onclick: () => say({ restart: true }) }, "new game");
  const take = async (message) => {
    if (closed) return;
    if (message.header.kind === "episode") {
      film = new Stream(message);
      const view = await loadView(film.header.view);
      if (closed) return;
      if (player) player.setFilm(film);
      else {
        player = open(page, film, view, { live: true, say, actions: [restart, ...back] });
        if (!player) socket.close();
        else if (film.header.human !== null) {
          player.setMode(view.kind === "2d" ? "overview" : "follow");
          player.say(film.header.controls.map(([k, w]) => `${k} ${w}`).join("   "), 8);
        }
      }
    } else if (film) film.push(message);
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") fail(JSON.parse(data).error);
    else waiting = waiting.then(() => take(unpack(data)));
  };
  const fail = (reason) => {
    closed = true;
    player?.close();
    player = null;
    fill(page, problem(reason));
  };
  socket.onclose = () => {
    if (closed) return;
    if (player) player.say("The viewer has gone: start `ludus view` again and reload.", 1e6);
    else fail("the viewer closed the connection");
  };
  return {
    close() {
      closed = true;
      socket.close();
      player?.close();
    },
  };
}

export const problem = (reason) =>
  h(
    "div.empty",
    {},
    h("h2", {}, "That did not work"),
    h("p", {}, reason),
    h("p", {}, h("a", { href: "#/" }, "Back to the runs")),
  );

export async function gamesPage(page) {
  fill(page, h("p.wait", {}, "Reading the games …"));
  const { games } = await (await ask("/api/games")).json();
  fill(
    page,
    h("h1", {}, "Games"),
    h("p.note", {}, "Watch bots play before training anything, with the reward terms they earn; or take a place yourself."),
    h("div.cards", {}, games.map(card)),
  );
}

function card({ source, summary, bots, presets }) {
  const preset = h(
    "select",
    {},
    ["", ...presets].map((p) => h("option", { value: p }, p || "as it is")),
  );
  const casts = Object.entries(bots).map(([role, names]) => [
    role,
    h(
      "select",
      {},
      names
        .filter((n) => !["still", "random"].includes(n))
        .concat("random", "still")
        .map((n) => h("option", { value: n }, `bot:${n}`)),
    ),
  ]);
  const go = (take) => {
    const query = new URLSearchParams({ game: source + (preset.value ? `:${preset.value}` : "") });
    casts.forEach(([role, select]) => query.append("agents", `${role}=bot:${select.value}`));
    if (take) query.append("take", "0");
    location.hash = `#/watch?${query}`;
  };
  return h(
    "div.card",
    {},
    h("h3", {}, source),
    h("p", {}, summary),
    casts.map(([role, select]) => h("label", {}, role, select)),
    presets.length ? h("label", {}, "preset", preset) : [],
    h("div.bar", {}, h("button.accent", { onclick: () => go(false) }, "watch"), h("button", { onclick: () => go(true) }, "play")),
  );
}
