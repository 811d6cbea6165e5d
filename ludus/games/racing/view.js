// Racing in 3D: the road as a ribbon along the centre line, the car, its lidar, its trace.
import * as THREE from "three";
import { Crowd, solid, box, tube, material } from "ludus/solids";
import { picture } from "ludus/panel";

export const kind = "3d";
export const eyesHeight = 190;

const [X, Y, HEADING, AHEAD, LEFT, , STEER] = [0, 1, 2, 3, 4, 5, 6];
const CAR = 7;
const BEAMS = 19;
const FLAT = { depthWrite: false, depthTest: false };

export function create(stage, film) {
  const { scene } = stage;
  const line = film.fixed("line").data,
    points = film.fixed("line").shape[0];
  const [half, length, walled] = film.fixed("road").data;
  const at = (i) => {
    const k = 5 * (((i % points) + points) % points);
    return { x: line[k], z: -line[k + 1], dx: line[k + 2], dz: -line[k + 3] };
  };
  // [across from, across to, height, colour]: strips that follow the line; left is positive
  const strip = (from, to, y, colour, dashed) => ribbon(at, points, from, to, y, colour, dashed);
  const parts = [
    strip(-half, half, 0.02, "#4a4e57"),
    strip(half - 0.5, half, 0.04, "#f4f4f4"),
    strip(-half, -half + 0.5, 0.04, "#f4f4f4"),
    strip(-0.12, 0.12, 0.04, "#c9b458", 3),
  ];
  if (walled) parts.push(wall(at, points, half + 1.5), wall(at, points, -half - 1.5));
  const ground = new THREE.Mesh(
    new THREE.PlaneGeometry(1400, 1400).rotateX(-Math.PI / 2),
    material("MeshLambertMaterial", { color: "#5f8f4a", ...FLAT }),
  );
  [ground, ...parts.slice(0, 4)].forEach(lay);
  scene.add(ground, ...parts, finish(at(0), half));
  plant(scene, at, points, half);

  const body = new Crowd(
    solid([
      { shape: box(4.0, 0.5, 1.7), at: [0, 0.55, 0] },
      { shape: box(1.9, 0.45, 1.4), at: [-0.3, 1.0, 0], colour: "#20242c" },
      { shape: box(0.35, 0.12, 1.9), at: [2.0, 0.4, 0], colour: "#333842" },
      { shape: box(0.3, 0.1, 1.8), at: [-1.95, 1.05, 0], colour: "#333842" },
    ]),
    1,
  );
  const wheels = new Crowd(solid([{ shape: tube(0.36, 0.36, 0.3, 14).rotateX(Math.PI / 2), colour: "#15171b" }]), 4);
  const beams = new THREE.LineSegments(
    new THREE.BufferGeometry(),
    material("LineBasicMaterial", { color: "#ffe45e", transparent: true, opacity: 0.8 }),
  );
  beams.geometry.setAttribute("position", new THREE.Float32BufferAttribute(new Float32Array(BEAMS * 6), 3));
  beams.frustumCulled = false;
  const trace = new THREE.Line(new THREE.BufferGeometry(), material("LineBasicMaterial", { color: "#ff8a3d" }));
  trace.frustumCulled = false;
  trace.renderOrder = -1;
  scene.add(body.mesh, wheels.mesh, beams, trace);
  body.tint(0, stage.colourOf(0));

  const middle = [...Array(points).keys()].reduce(([x, z], i) => [x + at(i).x / points, z + at(i).z / points], [0, 0]);
  const far = Math.max(...[...Array(points).keys()].map((i) => Math.hypot(at(i).x - middle[0], at(i).z - middle[1])));
  stage.frame([middle[0], 0, middle[1]], far * 2.45, { behind: 9, up: 4.2, near: 0.5, pitch: 0.95, yaw: Math.PI / 2 });

  const place = { x: 0, y: 0, z: 0, yaw: 0 };
  let traced = -1;

  function draw(now) {
    const heading = now.angle("car", HEADING);
    Object.assign(place, { x: now.lerp("car", X), y: 0, z: -now.lerp("car", Y), yaw: -heading });
    const steer = now.lerp("car", STEER);
    const slip = now.lerp("car", LEFT) / Math.max(5, Math.abs(now.lerp("car", AHEAD)));
    body.set(0, place.x, 0, place.z, place.yaw, 1, 0.06 * Math.max(-1, Math.min(1, slip * 4)));
    [
      [1.3, 0.85],
      [1.3, -0.85],
      [-1.4, 0.85],
      [-1.4, -0.85],
    ].forEach(([a, r], i) => {
      const c = Math.cos(place.yaw),
        s = Math.sin(place.yaw);
      wheels.set(i, place.x + a * c - r * s, 0.36, place.z + a * s + r * c, place.yaw - (i < 2 ? steer : 0));
    });
    if (now.t !== traced) drawTrace((traced = now.t));
    drawBeams(now.seen("beams"));
  }
  function drawTrace(t) {
    const from = Math.max(0, t - 400),
      path = [];
    for (let i = from; i <= t; i++) path.push(film.at("car", i)[X], 0.08, -film.at("car", i)[Y]);
    trace.geometry.dispose();
    trace.geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.Float32BufferAttribute(path, 3));
  }
  function drawBeams(felt) {
    beams.visible = Boolean(felt?.data.length);
    if (!beams.visible) return;
    const ends = beams.geometry.attributes.position;
    felt.data.forEach((metres, i) => {
      const yaw = place.yaw - Math.PI * (0.5 - i / (BEAMS - 1)),
        d = Math.abs(metres);
      ends.setXYZ(2 * i, place.x, 0.6, place.z);
      ends.setXYZ(2 * i + 1, place.x + Math.cos(yaw) * d, 0.3, place.z + Math.sin(yaw) * d);
    });
    ends.needsUpdate = true;
  }
  const hud = (now) => [
    ["speed", `${Math.round(Math.hypot(now.lerp("car", AHEAD), now.lerp("car", LEFT)) * 3.6)} km/h`],
    ["lap", `${Math.round(Math.max(0, Math.min(1, now.get("along")[0] / length)) * 100)}% of ${Math.round(length)} m`],
    ["beside the line", `${now.lerp("across", 0).toFixed(1)} m`],
  ];
  return { draw, hud, place: () => ({ ...place, y: 1, top: 2.5 }) };
}

// Flat things at the same height are drawn in their order: depth cannot tell them apart from far away.
function lay(mesh, order) {
  mesh.renderOrder = order - 10;
}

function ribbon(at, points, from, to, y, colour, dashed = 0) {
  const positions = [],
    index = [];
  for (let i = 0; i <= points; i++) {
    const { x, z, dx, dz } = at(i);
    // left of the direction (dx, dz) on the screen's ground is (dz, -dx)
    for (const across of [from, to]) positions.push(x + dz * across, y, z - dx * across);
    if (i < points && !(dashed && Math.floor(i / dashed) % 2)) {
      const k = 2 * i;
      index.push(k, k + 2, k + 1, k + 1, k + 2, k + 3);
    }
  }
  const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setIndex(index);
  return new THREE.Mesh(geometry, material("MeshBasicMaterial", { color: colour, side: THREE.DoubleSide, ...FLAT }));
}

function wall(at, points, across) {
  const positions = [],
    index = [];
  for (let i = 0; i <= points; i++) {
    const { x, z, dx, dz } = at(i);
    for (const y of [0, 0.9]) positions.push(x + dz * across, y, z - dx * across);
    if (i < points) index.push(2 * i, 2 * i + 1, 2 * i + 2, 2 * i + 1, 2 * i + 3, 2 * i + 2);
  }
  const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setIndex(index);
  return new THREE.Mesh(geometry, material("MeshBasicMaterial", { color: "#c4453c", side: THREE.DoubleSide }));
}

function finish({ x, z, dx, dz }, half) {
  const squares = new Crowd(solid([{ shape: box(1, 0.02, 1) }]), 2 * Math.ceil(2 * half));
  for (let i = 0; i < squares.mesh.count; i++) {
    const across = -half + 0.5 + Math.floor(i / 2),
      along = (i % 2) - 0.5;
    squares.set(i, x + dz * across + dx * along, 0.06, z - dx * across + dz * along, Math.atan2(dz, dx));
    squares.tint(i, (Math.floor(i / 2) + i) % 2 ? "#ffffff" : "#16181c");
  }
  return squares.mesh;
}

// Trees beside the road, so that speed can be seen. Always the same for a track.
function plant(scene, at, points, half) {
  const trees = new Crowd(
    solid([
      { shape: tube(0.25, 0.35, 2), at: [0, 1, 0], colour: "#6b4a2b" },
      { shape: tube(0, 1.9, 4.4, 7), at: [0, 4, 0], colour: "#ffffff" },
    ]),
    128,
  );
  for (let i = 0; i < 128; i++) {
    const { x, z, dx, dz } = at(i * 4);
    const side = i % 2 ? 1 : -1,
      away = side * (half + 6 + ((i * 37) % 23));
    const [tx, tz] = [x + dz * away, z - dx * away];
    let clear = true;
    for (let k = 0; k < points; k += 4) clear &&= Math.hypot(at(k).x - tx, at(k).z - tz) > half + 4;
    if (clear) trees.set(i, tx, 0, tz, i, 0.8 + ((i * 13) % 7) / 10);
    trees.tint(i, ["#2f6b3a", "#3d7d3f", "#4b8a3c"][i % 3]);
  }
  scene.add(trees.mesh);
}

export function eyes(ctx, w, t, { camera, beams }) {
  if (camera.data.length) picture(ctx, w, t, camera);
  else if (beams.data.length) {
    ctx.translate(w / 2, t - 8);
    beams.data.forEach((metres, i) => {
      const yaw = Math.PI * (0.5 - i / (BEAMS - 1)),
        d = (Math.abs(metres) / 100) * (t - 14);
      ctx.strokeStyle = metres < 0 ? "#ff5d73" : "#ffe45e";
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.moveTo(0, 0);
      ctx.lineTo(-Math.sin(yaw) * d, -Math.cos(yaw) * d);
      ctx.stroke();
    });
  }
}
