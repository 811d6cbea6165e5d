// Mechs in 3D: a world of voxels that breaks, two teams, beams, missiles, shells, smoke and the zone.
import * as THREE from "three";
import { Crowd, Terrain, solid, box, ball, tube, rgb, material } from "ludus/solids";
import { picture } from "ludus/panel";

export const kind = "3d";
export const eyesHeight = 170;

const RGB = Object.fromEntries(
  Object.entries({
    rock: "#8b8478",
    grass: "#7f9a58",
    wall: "#a9a39a",
    debris: "#5d5650",
    glass: "#9fd3e6",
    leaves: "#47773f",
  }).map(([n, c]) => [n, rgb(c)]),
);
const [WET, MOLTEN] = [1, 2]; // of the floor
const NAMES = ["scout", "light", "medium", "heavy"];

export function create(stage, film) {
  const { scene } = stage;
  const { header } = film;
  const world = header.sizes.world,
    agents = header.agents.length;
  const fixed = (name) => film.fixed(name).data;
  const [solids, opaque, breakable, floors, ground] = ["solid", "opaque", "breakable", "floor", "ground"].map(fixed);
  const [zoneX, zoneZ, zoneR] = fixed("zone"),
    bodyOf = fixed("bodies"),
    [smokeRadius] = fixed("facts");
  const masks = new Int32Array(world * world),
    debris = new Int32Array(world * world);

  const madeOf = (x, y, z) => {
    const i = x * world + z,
      bit = 1 << y;
    const grain = 0.93 + 0.07 * (((x * 7 + z * 13 + y * 5) % 8) / 7);
    let what = "rock";
    if (!(solids[i] & bit)) what = "leaves";
    else if (!(opaque[i] & bit)) what = "glass";
    else if (debris[i] & bit) what = "debris";
    else if (breakable[i] & bit) what = "wall";
    else if (y === ground[i] - 1) what = "grass";
    return RGB[what].map((c) => c * grain);
  };
  const terrain = new Terrain(scene, world, madeOf);
  pools(scene, world, floors, ground);

  const bodies = NAMES.map((_, k) => new Crowd(mech(k), agents));
  const guns = new Crowd(
    solid([{ shape: tube(0.1, 0.1, 1).rotateZ(-Math.PI / 2), at: [0.5, 0, 0], colour: "#2a2e36" }]),
    agents * 2,
  );
  const bars = new Crowd(solid([{ shape: box(1, 0.14, 0.05) }]), agents * 2, { emissive: "#333333" });
  const missiles = new Crowd(
    solid([
      { shape: tube(0.05, 0.16, 0.9).rotateZ(-Math.PI / 2), colour: "#f0f0f0" },
      { shape: ball(0.16), at: [-0.5, 0, 0], colour: "#ff9a3d" },
    ]),
    agents,
  );
  const shells = new Crowd(solid([{ shape: ball(0.2), colour: "#ffd23f" }]), agents, { emissive: "#aa7700" });
  const bursts = new Crowd(solid([{ shape: ball(1), colour: "#ff8a3d" }]), agents * 2, {
    transparent: true,
    opacity: 0.65,
    emissive: "#aa4400",
  });
  const clouds = new Crowd(solid([{ shape: ball(1), colour: "#cfd4da" }]), agents, {
    transparent: true,
    opacity: 0.5,
    depthWrite: false,
  });
  const beams = new THREE.LineSegments(new THREE.BufferGeometry(), material("LineBasicMaterial", { vertexColors: true }));
  for (const name of ["position", "color"])
    beams.geometry.setAttribute(name, new THREE.Float32BufferAttribute(new Float32Array(agents * 6), 3));
  beams.frustumCulled = false;
  const zone = new THREE.Mesh(
    tube(zoneR, zoneR, 7, 48),
    material("MeshBasicMaterial", {
      color: "#ffffff",
      transparent: true,
      opacity: 0.14,
      side: THREE.DoubleSide,
      depthWrite: false,
    }),
  );
  zone.geometry.translate(0, 3.5, 0);
  zone.position.set(zoneX, ground[Math.floor(zoneX) * world + Math.floor(zoneZ)] ?? 1, zoneZ);
  const ring = new THREE.Mesh(
    new THREE.RingGeometry(0.9, 1.08, 40).rotateX(-Math.PI / 2),
    material("MeshBasicMaterial", { color: "#ffffff" }),
  );
  scene.add(
    ...bodies.map((b) => b.mesh),
    guns.mesh,
    bars.mesh,
    missiles.mesh,
    shells.mesh,
    bursts.mesh,
    clouds.mesh,
    beams,
    zone,
    ring,
  );
  stage.frame([world / 2, 2, world / 2], world * 1.05, { behind: 11, up: 6, pitch: 0.78 });

  const places = header.agents.map(() => ({ x: 0, y: 0, z: 0, yaw: 0 }));
  let version = -1;

  function crumble({ data }) {
    for (let i = 0; i < masks.length; i++) masks[i] = solids[i] | opaque[i];
    debris.fill(0);
    for (let p = 0; p < data.length; p += 5) {
      if (data[p] < 0) continue;
      const i = data[p] * world + data[p + 1];
      masks[i] = data[p + 2] | data[p + 3];
      debris[i] = data[p + 4];
    }
    terrain.update(masks, debris);
  }

  function draw(now) {
    const found = now.rare("patches");
    if (found.version !== version) (crumble(found), (version = found.version));
    const hp = now.get("hp"),
      wreck = now.get("wreck"),
      heat = now.get("heat"),
      down = now.get("down"),
      shut = now.get("shut");
    for (let a = 0; a < agents; a++) {
      const [what, half, tall, most, cap] = bodyOf.subarray(5 * a, 5 * a + 5);
      const [x, y, z] = [0, 1, 2].map((k) => now.lerp("position", 3 * a + k));
      const yaw = now.angle("yaw", a);
      Object.assign(places[a], { x, y, z, yaw, tall });
      bodies.forEach((crowd, k) => k !== what && crowd.hide(a));
      bodies[what].set(a, x, y, z, yaw, 1, wreck[a] ? 1.3 : 0, down[a] > 0 ? -0.5 : 0);
      bodies[what].tint(a, wreck[a] ? "#3a3a3a" : shut[a] ? "#8f8f9c" : stage.colourOf(a));
      [-1, 1].forEach((side, i) => {
        const g = 2 * a + i,
          r = side * (half * 0.9);
        if (wreck[a]) guns.hide(g);
        else guns.set(g, x - Math.sin(yaw) * r, y + tall * 0.7, z + Math.cos(yaw) * r, yaw, [half * 1.5, 1 + half, 1 + half]);
      });
      drawBars(a, x, y + tall + 0.6, z, hp[a] / most, heat[a] / cap, wreck[a]);
    }
    drawShots(now);
    const tick = now.get("tick");
    zone.material.color.set(tick[0] > tick[1] ? stage.colourOf(0) : tick[1] > tick[0] ? stage.colourOf(agents - 1) : "#ffffff");
    ring.visible = now.picked !== null;
    if (ring.visible) {
      const { x, y, z, tall } = places[now.picked];
      ring.position.set(x, y + 0.1, z);
      ring.scale.setScalar(0.5 + tall * 0.45);
    }
  }

  function drawBars(a, x, y, z, health, heat, wreck) {
    const yaw = Math.atan2(stage.camera.position.z - z, stage.camera.position.x - x) + Math.PI / 2;
    [
      [health, 0, health > 0.5 ? "#5fe07a" : health > 0.25 ? "#ffd23f" : "#ff5d5d"],
      [heat, 0.2, "#ff9a3d"],
    ].forEach(([share, up, colour], i) => {
      if (wreck || share <= 0) bars.hide(2 * a + i);
      else bars.set(2 * a + i, x, y - up, z, yaw, [2 * Math.min(1, share), i ? 0.6 : 1, 1]);
      bars.tint(2 * a + i, colour);
    });
  }

  function drawShots(now) {
    const flown = now.get("missile_left"),
      shot = now.get("shell_left"),
      live = now.get("burst_live"),
      burst = now.get("burst"),
      smoky = now.get("smoke_left"),
      smoke = now.get("smoke");
    const hit = now.get("hit"),
      target = now.get("target"),
      ends = beams.geometry.attributes.position,
      colours = beams.geometry.attributes.color;
    for (let a = 0; a < agents; a++) {
      if (flown[a] > 0) {
        const [x, y, z] = [0, 1, 2].map((k) => now.lerp("missile", 3 * a + k));
        const [dx, dy, dz] = [0, 1, 2].map((k) => film.at("missile", now.next)[3 * a + k] - now.get("missile")[3 * a + k]);
        missiles.set(a, x, y, z, Math.atan2(dz, dx), 1, 0, Math.atan2(dy, Math.hypot(dx, dz)));
      } else missiles.hide(a);
      if (shot[a] > 0) shells.set(a, ...[0, 1, 2].map((k) => now.lerp("shell", 6 * a + k)));
      else shells.hide(a);
      for (const k of [0, 1]) {
        if (live[2 * a + k])
          bursts.set(2 * a + k, ...burst.subarray(6 * a + 3 * k, 6 * a + 3 * k + 3), 0, (0.4 + 0.6 * now.mix) * (k ? 2 : 3));
        else bursts.hide(2 * a + k);
      }
      if (smoky[a] > 0) clouds.set(a, ...smoke.subarray(3 * a, 3 * a + 3), 0, smokeRadius);
      else clouds.hide(a);
      // hit: damage, shake, scorch, suppress, paint
      const foe = target[a],
        hits = foe >= 0 && (hit[6 * a] > 0 || hit[6 * a + 4] > 0);
      const from = places[a],
        to = hits ? places[foe] : from;
      ends.setXYZ(2 * a, from.x, from.y + from.tall * 0.75, from.z);
      ends.setXYZ(2 * a + 1, to.x, to.y + to.tall * (hits ? 0.5 : 0.75), to.z);
      const colour = rgb(hit[6 * a] > 0 ? (hit[6 * a + 2] > 0 ? "#ff4d4d" : "#ffe066") : "#7dff9a");
      for (const end of [0, 1]) colours.setXYZ(2 * a + end, ...colour);
    }
    ends.needsUpdate = colours.needsUpdate = true;
  }

  function hud(now) {
    const score = now.get("score"),
      wreck = now.get("wreck"),
      half = agents / 2;
    const left = (team) => [...wreck].slice(team * half, (team + 1) * half).filter((w) => !w).length;
    const rows = [0, 1].map((team) => [
      `team ${team}`,
      `${score[team].toFixed(1)} points, ${left(team)} of ${half} left`,
      stage.colourOf(team * half),
    ]);
    if (now.picked === null) return rows;
    const a = now.picked,
      [what, , , most, cap] = bodyOf.subarray(5 * a, 5 * a + 5);
    return [
      ...rows,
      [
        NAMES[what],
        `${Math.round(now.get("hp")[a])} of ${most} hit points, heat ${Math.round((100 * now.get("heat")[a]) / cap)}%`,
      ],
    ];
  }
  return {
    draw,
    hud,
    place: (a) => ({ ...places[a], y: places[a].y + (places[a].tall ?? 2) / 2, top: (places[a].tall ?? 2) / 2 + 1.3 }),
  };
}

// A body of each class: legs, torso, head; white takes the team's colour.
function mech(k) {
  const half = [0.6, 0.75, 1.25, 1.75][k],
    tall = [1.8, 2, 3, 4][k],
    leg = tall * 0.45;
  const parts = [-1, 1].flatMap((side) => [
    { shape: box(half * 0.5, leg, half * 0.42), at: [0, leg / 2, side * half * 0.5], colour: "#4a4f5a" },
    {
      shape: box(half * 0.95, 0.16 * tall * 0.5, half * 0.55),
      at: [half * 0.12, 0.04 * tall, side * half * 0.5],
      colour: "#343842",
    },
    { shape: box(half * 0.6, tall * 0.22, half * 0.35), at: [0, tall * 0.74, side * half * 0.86], colour: "#c8ccd4" },
  ]);
  parts.push({ shape: box(half * 1.1, tall * 0.36, half * 1.35), at: [0, leg + tall * 0.18, 0] });
  parts.push({ shape: box(half * 0.55, tall * 0.16, half * 0.6), at: [half * 0.2, tall * 0.89, 0] });
  parts.push({ shape: box(half * 0.1, tall * 0.07, half * 0.5), at: [half * 0.48, tall * 0.9, 0], colour: "#ffe9a0" });
  return solid(parts);
}

function pools(scene, world, floors, ground) {
  for (const [what, colour] of [
    [WET, "#3f78a8"],
    [MOLTEN, "#e0562a"],
  ]) {
    const cells = [...floors.keys()].filter((i) => floors[i] === what);
    const crowd = new Crowd(
      solid([{ shape: box(1, 0.5, 1), at: [0.5, 0.25, 0.5], colour }]),
      cells.length,
      what === MOLTEN ? { emissive: "#882200" } : {},
    );
    cells.forEach((i, n) => crowd.set(n, Math.floor(i / world), ground[i], i % world));
    scene.add(crowd.mesh);
  }
}

// The map of 11 x 11 cells around it; ahead is up.
export function eyes(ctx, w, t, { occupancy }) {
  const colours = { 0: [70, 80, 96], 64: [70, 130, 180], 128: [90, 140, 80], 192: [220, 90, 50], 255: [210, 205, 195] };
  picture(ctx, w, t, occupancy, (v) => colours[v] ?? [v, v, v]);
}
