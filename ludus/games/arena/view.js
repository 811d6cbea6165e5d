// The arena in 3D: a map of cells with walls, blocks, converters and agents that carry things.
import * as THREE from "three";
import { Crowd, solid, box, ball, tube, material } from "ludus/solids";

export const kind = "3d";
export const eyesHeight = 190;

const [WALL, BLOCK] = [2, 3]; // of the grid, see world.py
const KIND_COLOURS = ["#8d7a66", "#4f8fe0", "#d94f70", "#6f7f95", "#c05fe0"];
const ITEM_COLOURS = ["#b08a5a", "#5fd0ff", "#a8b4c4", "#e08cff", "#ff4f7b"];
const ITEMS = ["ore", "batteries", "armor", "lasers", "hearts"];
const RADIUS = 5;
const YAWS = [-Math.PI / 2, 0, Math.PI / 2, Math.PI]; // north, east, south, west

export function create(stage, film) {
  const { scene } = stage;
  const { header } = film;
  const side = header.sizes.side,
    agents = header.agents.length;
  const count = film.fixed("converter_count").data[0];
  const [kinds, rows, columns] = ["kind", "row", "column"].map((n) => film.fixed(`converter_${n}`).data);
  const inner = header.params.rooms * header.params.room;

  const floor = new THREE.Mesh(
    new THREE.PlaneGeometry(inner, inner).rotateX(-Math.PI / 2).translate(6 + inner / 2, 0, 6 + inner / 2),
    material("MeshLambertMaterial", { color: "#58606e" }),
  );
  const lines = new THREE.GridHelper(inner, inner, "#6a7383", "#626b7a");
  lines.position.set(6 + inner / 2, 0.01, 6 + inner / 2);
  const walls = new Crowd(solid([{ shape: box(1, 1, 1), at: [0.5, 0.5, 0.5] }]), side * side);
  const crates = new Crowd(
    solid([
      { shape: box(0.86, 0.7, 0.86), at: [0.5, 0.35, 0.5] },
      { shape: box(0.9, 0.1, 0.2), at: [0.5, 0.68, 0.5], colour: "#8a6a3a" },
      { shape: box(0.2, 0.1, 0.9), at: [0.5, 0.68, 0.5], colour: "#8a6a3a" },
    ]),
    side * side,
  );
  const machines = new Crowd(
    solid([
      { shape: tube(0.32, 0.46, 0.75, 6), at: [0, 0.37, 0] },
      { shape: tube(0.36, 0.36, 0.08, 6), at: [0, 0.78, 0], colour: "#e8ebf0" },
    ]),
    count,
  );
  const stocks = new Crowd(solid([{ shape: ball(0.17) }]), count * 5, { emissive: "#222222" });
  const glow = new Crowd(solid([{ shape: tube(0.5, 0.5, 0.03, 24) }]), count, { transparent: true, opacity: 0.45 });
  const bodies = new Crowd(
    solid([
      { shape: tube(0.26, 0.34, 0.5, 12), at: [0, 0.3, 0] },
      { shape: ball(0.25), at: [0, 0.68, 0] },
      { shape: box(0.12, 0.14, 0.34), at: [0.2, 0.7, 0], colour: "#12161e" },
      { shape: box(0.34, 0.1, 0.1), at: [0.26, 0.36, 0.2], colour: "#cfd6e2" },
      { shape: box(0.34, 0.1, 0.1), at: [0.26, 0.36, -0.2], colour: "#cfd6e2" },
    ]),
    agents,
  );
  const carried = new Crowd(solid([{ shape: ball(0.11) }]), agents * 5, { emissive: "#222222" });
  const sight = new THREE.Mesh(
    new THREE.PlaneGeometry(2 * RADIUS + 1, 2 * RADIUS + 1).rotateX(-Math.PI / 2),
    material("MeshBasicMaterial", { color: "#fff2b0", transparent: true, opacity: 0.16, depthWrite: false }),
  );
  const ring = new THREE.Mesh(
    new THREE.RingGeometry(0.45, 0.56, 32).rotateX(-Math.PI / 2),
    material("MeshBasicMaterial", { color: "#ffffff" }),
  );
  scene.add(floor, lines, walls.mesh, crates.mesh, machines.mesh, stocks.mesh, glow.mesh, bodies.mesh, carried.mesh, sight, ring);
  for (let c = 0; c < count; c++) {
    machines.set(c, columns[c] + 0.5, 0, rows[c] + 0.5);
    machines.tint(c, KIND_COLOURS[kinds[c]]);
    glow.tint(c, KIND_COLOURS[kinds[c]]);
  }
  stage.frame([6 + inner / 2, 0, 6 + inner / 2], inner * 1.22, { behind: 6, up: 4.4, pitch: 0.95, yaw: -Math.PI / 2 });

  const places = header.agents.map(() => ({ x: 0, y: 0, z: 0, yaw: 0 }));
  let version = -1;

  function drawThings({ data }) {
    let w = 0,
      b = 0;
    for (let r = 0; r < side; r++) {
      for (let c = 0; c < side; c++) {
        const what = data[r * side + c];
        if (what === WALL) {
          walls.set(w, c, 0, r, 0, [1, 0.8, 1]);
          walls.tint(w++, (r + c) % 2 ? "#343b47" : "#38404d");
        } else if (what === BLOCK) {
          crates.set(b, c, 0, r);
          crates.tint(b++, "#c2a06a");
        }
      }
    }
    walls.mesh.count = w;
    crates.mesh.count = b;
  }

  function draw(now) {
    const found = now.rare("things");
    if (found.version !== version) (drawThings(found), (version = found.version));
    const stock = now.get("stock"),
      converting = now.get("converting");
    for (let c = 0; c < count; c++) {
      for (let k = 0; k < 5; k++) {
        const a = (k / 5) * 2 * Math.PI;
        if (k < stock[c]) stocks.set(5 * c + k, columns[c] + 0.5 + 0.2 * Math.cos(a), 0.98, rows[c] + 0.5 + 0.2 * Math.sin(a));
        else stocks.hide(5 * c + k);
        stocks.tint(5 * c + k, ITEM_COLOURS[[0, 1, 4, 2, 3][kinds[c]]]);
      }
      if (converting[c]) glow.set(c, columns[c] + 0.5, 0.03, rows[c] + 0.5);
      else glow.hide(c);
    }
    const facing = now.get("facing"),
      next = film.at("facing", now.next),
      held = now.get("held"),
      frozen = now.get("frozen");
    for (let a = 0; a < agents; a++) {
      const turn = Math.atan2(Math.sin(YAWS[next[a]] - YAWS[facing[a]]), Math.cos(YAWS[next[a]] - YAWS[facing[a]]));
      const place = Object.assign(places[a], {
        x: now.lerp("column", a) + 0.5,
        z: now.lerp("row", a) + 0.5,
        yaw: YAWS[facing[a]] + turn * now.mix,
      });
      bodies.set(a, place.x, 0, place.z, place.yaw);
      bodies.tint(a, frozen[a] ? "#9fd8ff" : stage.colourOf(a));
      let n = 0;
      for (let item = 0; item < 5; item++) {
        if (held[5 * a + item] > 0)
          carried.set(5 * a + item, place.x, 1.1 + 0.24 * n++, place.z, 0, 0.8 + 0.08 * Math.min(8, held[5 * a + item]));
        else carried.hide(5 * a + item);
        carried.tint(5 * a + item, ITEM_COLOURS[item]);
      }
    }
    sight.visible = ring.visible = now.picked !== null;
    if (now.picked !== null) {
      const { x, z } = places[now.picked];
      sight.position.set(x, 0.04, z);
      ring.position.set(x, 0.05, z);
    }
  }
  function hud(now) {
    const held = now.get("held"),
      who = now.picked;
    const sum = (item) =>
      who === null ? [...Array(agents).keys()].reduce((s, a) => s + held[5 * a + item], 0) : held[5 * who + item];
    return ITEMS.map((name, item) => [name, String(sum(item)), ITEM_COLOURS[item]]).filter(
      ([, n], item) => n !== "0" || (item !== 2 && item !== 3),
    );
  }
  return { draw, hud, place: (a) => ({ ...places[a], y: 0.5, top: 1 }) };
}

// The 11 x 11 cells around it that show something, as its tokens tell.
export function eyes(ctx, w, t, { tokens }) {
  const s = Math.min(w, t) / 11,
    left = (w - 11 * s) / 2;
  ctx.fillStyle = "#8884";
  ctx.fillRect(left, 0, 11 * s, 11 * s);
  for (let i = 0; i < tokens.shape[0]; i++) {
    const [cell, feature, amount] = tokens.data.subarray(3 * i, 3 * i + 3);
    if (!amount || cell >= 121) continue;
    ctx.fillStyle = `hsl(${(feature * 47) % 360} 70% 60%)`;
    ctx.fillRect(left + (cell % 11) * s + 1, Math.floor(cell / 11) * s + 1, s - 2, s - 2);
  }
  ctx.fillStyle = "#fff";
  ctx.fillRect(left + 5.3 * s, 5.3 * s, 0.4 * s, 0.4 * s);
}
