// The whole program of an exported replay: frames are in the page itself.
import { h, fill } from "ludus/dom";
import { Film } from "ludus/frames";
import { Player } from "ludus/player";
import * as view from "game/view";

async function inflate(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
const page = document.getElementById("page");
try {
  const film = new Film(await inflate(document.getElementById("film")));
  for (const seen of document.querySelectorAll("[data-agent]")) film.addSeen(Number(seen.dataset.agent), await inflate(seen));
  await view.prepare?.(film);
  window.ludusPlayer = new Player(page, film, view, { still: location.hash.includes("still") });
} catch (error) {
  const words = /webgl/i.test(String(error))
    ? "This browser shows no 3D: turn on hardware acceleration, or open this file in another one."
    : `This file cannot be shown: ${error.message}`;
  fill(page, h("div.empty", {}, h("h2", {}, "That did not work"), h("p", {}, words)));
  throw error;
}
