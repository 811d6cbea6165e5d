// Hide-and-seek in 3D: terrain of blocks, seekers and hiders, and what the picked one sees.
import * as THREE from "three";
import { Crowd, Terrain, solid, box, ball, tube, rgb, material } from "ludus/solids";

export const kind = "3d";
export const eyesHeight = 150;

const [TREE] = [1]; // of the plan, see terrain.py
const COLOURS = {
  grass: "#6fae4e",
  dirt: "#8a6a48",
  stone: "#8f949c",
  sand: "#dcc98e",
  log: "#75522f",
  leaves: "#3f7d3a",
  placed: "#e0a94a",
};
const RGB = Object.fromEntries(Object.entries(COLOURS).map(([name, colour]) => [name, rgb(colour)]));
const EYE = 1.4;
const RAY_COLOURS = { foe: "#ff3b3b", mate: "#3ecf8e", air: "#bcd4ff", block: "#ffe08a" };

export function create(stage, film) {
  const { scene } = stage;
  const { header } = film;
  const world = header.sizes.world,
    agents = header.agents.length;
  const ground = film.fixed("ground").data,
    plan = film.fixed("plan").data;
  const [across] = film.fixed("facts").data;
  const cells = world * world;
  let masks = film.rare("masks", 0).data,
    version = -1;

  const madeOf = (x, y, z) => {
    const i = x * world + z,
      bit = 1 << y,
      top = ground[i];
    const grain = 0.94 + 0.06 * (((x * 7 + z * 13 + y * 5) % 8) / 7);
    let what = "stone";
    if (masks[2 * cells + i] & bit) what = "placed";
    else if (y >= top) what = !(masks[cells + i] & bit) ? "leaves" : plan[i] === TREE ? "log" : "stone";
    else if (y === top - 1) what = top <= 2 ? "sand" : "grass";
    else if (y >= top - 3) what = "dirt";
    return RGB[what].map((c) => c * grain);
  };
  const terrain = new Terrain(scene, world, madeOf);

  const bodies = new Crowd(
    solid([
      { shape: box(0.46, 0.62, 0.5), at: [0, 0.72, 0] },
      { shape: ball(0.27), at: [0.02, 1.28, 0] },
      { shape: box(0.16, 0.42, 0.17), at: [0, 0.21, 0.13], colour: "#5b6070" },
      { shape: box(0.16, 0.42, 0.17), at: [0, 0.21, -0.13], colour: "#5b6070" },
      { shape: box(0.14, 0.46, 0.13), at: [0.05, 0.74, 0.32], colour: "#d0d4dc" },
      { shape: box(0.14, 0.46, 0.13), at: [0.05, 0.74, -0.32], colour: "#d0d4dc" },
      { shape: box(0.1, 0.12, 0.36), at: [0.23, 1.32, 0], colour: "#1b2030" },
    ]),
    agents,
  );
  const shadows = new Crowd(solid([{ shape: tube(0.42, 0.42, 0.02), colour: "#000000" }]), agents, {
    transparent: true,
    opacity: 0.28,
  });
  const ring = new THREE.Mesh(
    new THREE.RingGeometry(0.5, 0.66, 40).rotateX(-Math.PI / 2),
    material("MeshBasicMaterial", { color: "#ffffff", transparent: true, opacity: 0.9 }),
  );
  const cone = new THREE.Mesh(
    wedge(across, 9),
    material("MeshBasicMaterial", {
      color: "#fff2b0",
      transparent: true,
      opacity: 0.13,
      side: THREE.DoubleSide,
      depthWrite: false,
    }),
  );
  const rays = new THREE.LineSegments(
    new THREE.BufferGeometry(),
    material("LineBasicMaterial", { vertexColors: true, transparent: true, opacity: 0.75 }),
  );
  rays.geometry.setAttribute("position", new THREE.Float32BufferAttribute(new Float32Array(64 * 6), 3));
  rays.geometry.setAttribute("color", new THREE.Float32BufferAttribute(new Float32Array(64 * 6), 3));
  rays.frustumCulled = false;
  const sights = new THREE.LineSegments(new THREE.BufferGeometry(), material("LineBasicMaterial", { color: "#ff4d4d" }));
  sights.geometry.setAttribute("position", new THREE.Float32BufferAttribute(new Float32Array(agents * agents * 6), 3));
  sights.frustumCulled = false;
  const water = new THREE.Mesh(
    new THREE.PlaneGeometry(world * 3, world * 3).rotateX(-Math.PI / 2).translate(world / 2, -0.02, world / 2),
    material("MeshBasicMaterial", { color: "#24405a" }),
  );
  scene.add(bodies.mesh, shadows.mesh, ring, cone, rays, sights, water);
  stage.frame([world / 2, 1.5, world / 2], world * 1.12, { behind: 5.5, up: 2.9, pitch: 0.72 });

  const places = header.agents.map(() => ({ x: 0, y: 0, z: 0, yaw: 0 }));
  const colours = header.agents.map((_, i) => stage.colourOf(i));

  const floor = (x, z) => {
    const mask = masks[Math.min(world - 1, Math.max(0, Math.floor(x))) * world + Math.min(world - 1, Math.max(0, Math.floor(z)))];
    return mask ? 32 - Math.clz32(mask & 0x7fffffff) : 0;
  };

  function draw(now) {
    const found = now.rare("masks");
    if (found.version !== version) {
      version = found.version;
      masks = found.data;
      terrain.update(masks.subarray(0, cells), masks.subarray(2 * cells));
    }
    const alive = now.get("alive"),
      idle = now.get("idle");
    for (let a = 0; a < agents; a++) {
      const [x, y, z] = [0, 1, 2].map((k) => now.lerp("position", 3 * a + k));
      const yaw = now.angle("yaw", a);
      Object.assign(places[a], { x, y, z, yaw });
      if (!alive[a]) {
        bodies.set(a, x, y + 0.25, z, yaw, 1, Math.PI / 2);
        bodies.tint(a, "#70757f");
      } else {
        const step = now.mix * Math.PI * 2 + now.t * 2.2;
        bodies.set(a, x, y + 0.03 * Math.sin(step), z, yaw);
        bodies.tint(a, idle[a] ? "#c9a9a2" : colours[a]);
      }
      shadows.set(a, x, floor(x, z) <= y + 2.5 ? Math.max(0.02, Math.min(y, floor(x, z)) + 0.015) : y + 0.015, z);
    }
    drawSight(now, alive);
  }

  function drawSight(now, alive) {
    const who = now.picked;
    ring.visible = cone.visible = who !== null;
    const seen = now.seen("rays");
    rays.visible = Boolean(seen) && !stage.quiet;
    if (who !== null) {
      const { x, y, z, yaw } = places[who];
      ring.position.set(x, y + 0.06, z);
      cone.position.set(x, y + EYE * 0.5, z);
      cone.rotation.y = -yaw;
      cone.visible = Boolean(alive[who]) && !stage.quiet;
      if (seen) drawRays(now, seen.data, places[who], now.angle("pitch", who));
    }
    // a red line for everyone that is seen
    const visible = now.get("visible"),
      points = sights.geometry.attributes.position;
    let n = 0;
    for (let a = 0; a < agents; a++) {
      for (let b = 0; b < agents; b++) {
        if (!visible[a * agents + b] || header.agents[a].role !== header.agents[0].role) continue;
        points.setXYZ(n++, places[a].x, places[a].y + EYE, places[a].z);
        points.setXYZ(n++, places[b].x, places[b].y + 0.9, places[b].z);
      }
    }
    points.needsUpdate = true;
    sights.geometry.setDrawRange(0, n);
  }

  function drawRays(now, data, body, pitch) {
    const points = rays.geometry.attributes.position,
      colours = rays.geometry.attributes.color;
    const up = film.fixed("facts").data[1];
    for (let r = 0; r < 64; r++) {
      const yaw = body.yaw + (((r % 8) + 0.5) / 8) * across - across / 2;
      const tilt = pitch + up / 2 - ((Math.floor(r / 8) + 0.5) / 8) * up;
      const what = data[2 * r + 1],
        far = what === 0 ? Math.min(5, data[2 * r]) : data[2 * r];
      points.setXYZ(2 * r, body.x, body.y + EYE, body.z);
      points.setXYZ(
        2 * r + 1,
        body.x + Math.cos(yaw) * Math.cos(tilt) * far,
        body.y + EYE + Math.sin(tilt) * far,
        body.z + Math.sin(yaw) * Math.cos(tilt) * far,
      );
      const [red, green, blue] = rgb(rayColour(what));
      for (const end of [0, 1]) colours.setXYZ(2 * r + end, red, green, blue);
    }
    points.needsUpdate = colours.needsUpdate = true;
  }

  function hud(now) {
    const alive = now.get("alive"),
      hidden = film.fixed("facts").data[3];
    const hiders = header.agents
      .map((a, i) => [a.role, i])
      .filter(([role]) => role === "hider")
      .map(([, i]) => i);
    const left = hiders.filter((i) => alive[i]).length;
    return [
      ["phase", now.step < hidden ? `hiding, ${hidden - now.step} steps left` : "seeking"],
      ["hiders left", `${left} of ${hiders.length}`],
      ["steps left", String(Math.max(0, header.params.max_steps - now.step))],
    ];
  }
  return { draw, hud, place: (a) => ({ ...places[a], y: places[a].y + 0.75, top: 1.25 }) };
}

const rayColour = (what) =>
  what > 0.95 ? RAY_COLOURS.foe : what < -0.5 ? RAY_COLOURS.mate : what === 0 ? RAY_COLOURS.air : RAY_COLOURS.block;

function wedge(angle, far) {
  const shape = new THREE.Shape();
  shape.moveTo(0, 0);
  for (let i = 0; i <= 24; i++)
    shape.lineTo(far * Math.cos(-angle / 2 + (i / 24) * angle), far * Math.sin(-angle / 2 + (i / 24) * angle));
  return new THREE.ShapeGeometry(shape).rotateX(Math.PI / 2);
}

// The 8 x 8 rays as a picture: near is bright, red is a foe.
export function eyes(ctx, w, t, { rays }) {
  const s = Math.min(w / 8, t / 8),
    left = (w - 8 * s) / 2;
  for (let r = 0; r < 64; r++) {
    const near = Math.max(0.12, 1 - rays.data[2 * r] / 32);
    ctx.globalAlpha = near;
    ctx.fillStyle = rayColour(rays.data[2 * r + 1]);
    ctx.fillRect(left + (r % 8) * s, Math.floor(r / 8) * s, s - 1, s - 1);
  }
  ctx.globalAlpha = 1;
}
