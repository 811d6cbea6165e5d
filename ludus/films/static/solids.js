// Geometry for the 3D views: bodies made of parts, crowds of them in one draw call, terrain of blocks.
import * as THREE from "three";

const paint = new THREE.Color();

// Materials are kept for all scenes: one that goes takes its compiled shader along, and the next scene would wait for it again.
const kept = new Map();
export function material(kind, options = {}) {
  const key = kind + JSON.stringify(options);
  if (!kept.has(key)) kept.set(key, new THREE[kind](options));
  return kept.get(key);
}

// One geometry with a colour per corner, from parts {shape, at, turn, colour}. White takes the colour of the instance.
export function solid(parts) {
  const positions = [],
    normals = [],
    colours = [];
  for (const { shape, at = [0, 0, 0], turn = [0, 0, 0], colour = "#ffffff" } of parts) {
    const flat = shape.index ? shape.toNonIndexed() : shape;
    flat.applyMatrix4(
      new THREE.Matrix4().compose(
        new THREE.Vector3(...at),
        new THREE.Quaternion().setFromEuler(new THREE.Euler(...turn)),
        new THREE.Vector3(1, 1, 1),
      ),
    );
    positions.push(...flat.attributes.position.array);
    normals.push(...flat.attributes.normal.array);
    paint.set(colour);
    for (let i = 0; i < flat.attributes.position.count; i++) colours.push(paint.r, paint.g, paint.b);
    if (flat !== shape) flat.dispose();
    shape.dispose();
  }
  const geometry = new THREE.BufferGeometry();
  for (const [name, values] of Object.entries({ position: positions, normal: normals, color: colours }))
    geometry.setAttribute(name, new THREE.Float32BufferAttribute(values, 3));
  return geometry;
}

export const box = (x, y, z) => new THREE.BoxGeometry(x, y, z);
export const ball = (r) => new THREE.SphereGeometry(r, 12, 8);
export const tube = (top, bottom, tall, sides = 16) => new THREE.CylinderGeometry(top, bottom, tall, sides);

// Many copies of a solid in one draw call.
export class Crowd {
  constructor(geometry, count, options = {}) {
    this.mesh = new THREE.InstancedMesh(
      geometry,
      material("MeshLambertMaterial", { vertexColors: true, ...options }),
      Math.max(1, count),
    );
    this.mesh.frustumCulled = false;
    this.mesh.count = count;
    this.matrix = new THREE.Matrix4();
    this.place = new THREE.Vector3();
    this.turn = new THREE.Quaternion();
    this.euler = new THREE.Euler(0, 0, 0, "YZX");
    this.size = new THREE.Vector3();
    this.colour = new THREE.Color();
    for (let i = 0; i < count; i++) this.hide(i);
  }
  // yaw turns from x towards z, as the games have it; size is one number or three
  set(i, x, y, z, yaw = 0, size = 1, roll = 0, pitch = 0) {
    const [a, b, c] = Array.isArray(size) ? size : [size, size, size];
    this.euler.set(roll, -yaw, pitch);
    this.matrix.compose(this.place.set(x, y, z), this.turn.setFromEuler(this.euler), this.size.set(a, b, c));
    this.mesh.setMatrixAt(i, this.matrix);
    this.mesh.instanceMatrix.needsUpdate = true;
  }
  tint(i, colour) {
    this.mesh.setColorAt(i, this.colour.set(colour));
    this.mesh.instanceColor.needsUpdate = true;
  }
  hide(i) {
    this.set(i, 0, -1000, 0, 0, 0.0001);
  }
}

// -- blocks -------------------------------------------------------------------------------------------------------------

const SIDES = [
  {
    way: [1, 0, 0],
    light: 0.8,
    corners: [
      [1, 0, 0],
      [1, 1, 0],
      [1, 1, 1],
      [1, 0, 1],
    ],
  },
  {
    way: [-1, 0, 0],
    light: 0.72,
    corners: [
      [0, 0, 1],
      [0, 1, 1],
      [0, 1, 0],
      [0, 0, 0],
    ],
  },
  {
    way: [0, 1, 0],
    light: 1.0,
    corners: [
      [0, 1, 1],
      [1, 1, 1],
      [1, 1, 0],
      [0, 1, 0],
    ],
  },
  {
    way: [0, 0, 1],
    light: 0.88,
    corners: [
      [0, 0, 1],
      [1, 0, 1],
      [1, 1, 1],
      [0, 1, 1],
    ],
  },
  {
    way: [0, 0, -1],
    light: 0.64,
    corners: [
      [1, 0, 0],
      [0, 0, 0],
      [0, 1, 0],
      [1, 1, 0],
    ],
  },
];

// The visible faces of columns of blocks from (x0, z0) on. `mask(x, z)` has bit y set for a block in layer y;
// `colour(x, y, z)` is [r, g, b]. Corners between blocks are darker, as if light did not reach them.
export function blocks(world, x0, z0, x1, z1, mask, colour) {
  const positions = [],
    colours = [],
    index = [];
  const full = (x, y, z) => (y < 0 ? 1 : x < 0 || z < 0 || x >= world || z >= world ? 0 : (mask(x, z) >> y) & 1);
  for (let x = x0; x < x1; x++) {
    for (let z = z0; z < z1; z++) {
      let bits = mask(x, z);
      for (let y = 0; bits; y++, bits >>>= 1) {
        if (!(bits & 1)) continue;
        let rgb = null;
        for (const {
          way: [dx, dy, dz],
          light,
          corners,
        } of SIDES) {
          if (full(x + dx, y + dy, z + dz)) continue;
          rgb ??= colour(x, y, z);
          const first = positions.length / 3;
          const shades = [];
          for (const [cx, cy, cz] of corners) {
            positions.push(x + cx, y + cy, z + cz);
            const shade = light * corner(full, x, y, z, dx, dy, dz, cx, cy, cz);
            shades.push(shade);
            colours.push(rgb[0] * shade, rgb[1] * shade, rgb[2] * shade);
          }
          // the diagonal is drawn between the brighter corners, so that dark ones stay round
          if (shades[0] + shades[2] >= shades[1] + shades[3])
            index.push(first, first + 1, first + 2, first, first + 2, first + 3);
          else index.push(first + 1, first + 2, first + 3, first + 1, first + 3, first);
        }
      }
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colours, 3));
  geometry.setIndex(index);
  return geometry;
}

function corner(full, x, y, z, dx, dy, dz, cx, cy, cz) {
  const sx = cx ? 1 : -1,
    sy = cy ? 1 : -1,
    sz = cz ? 1 : -1;
  let a, b, c;
  if (dx) [a, b, c] = [full(x + dx, y + sy, z), full(x + dx, y, z + sz), full(x + dx, y + sy, z + sz)];
  else if (dy) [a, b, c] = [full(x + sx, y + dy, z), full(x, y + dy, z + sz), full(x + sx, y + dy, z + sz)];
  else [a, b, c] = [full(x + sx, y, z + dz), full(x, y + sy, z + dz), full(x + sx, y + sy, z + dz)];
  const closed = a && b ? 3 : a + b + c;
  return 1 - 0.17 * closed;
}

// Terrain in chunks, of which only those that changed are built again.
export class Terrain {
  constructor(scene, world, colour, chunk = 16) {
    Object.assign(this, { scene, world, colour, chunk, masks: null, chunks: new Map() });
    this.material = material("MeshBasicMaterial", { vertexColors: true });
  }
  // masks: Int32Array [x, z]; marks: anything that also changes a column's colours
  update(masks, marks = masks) {
    const { world, chunk } = this;
    const mask = (x, z) => masks[x * world + z];
    for (let x0 = 0; x0 < world; x0 += chunk) {
      for (let z0 = 0; z0 < world; z0 += chunk) {
        if (this.masks && !this.changed(masks, marks, x0, z0)) continue;
        const geometry = blocks(world, x0, z0, Math.min(x0 + chunk, world), Math.min(z0 + chunk, world), mask, this.colour);
        const key = `${x0},${z0}`;
        const old = this.chunks.get(key);
        if (old) {
          old.geometry.dispose();
          old.geometry = geometry;
        } else {
          const mesh = new THREE.Mesh(geometry, this.material);
          this.chunks.set(key, mesh);
          this.scene.add(mesh);
        }
      }
    }
    this.masks = Int32Array.from(masks);
    this.marks = Int32Array.from(marks);
  }
  changed(masks, marks, x0, z0) {
    const { world, chunk } = this;
    for (let x = Math.max(0, x0 - 1); x < Math.min(world, x0 + chunk + 1); x++) {
      for (let z = Math.max(0, z0 - 1); z < Math.min(world, z0 + chunk + 1); z++) {
        const i = x * world + z;
        if (masks[i] !== this.masks[i] || marks[i] !== this.marks[i]) return true;
      }
    }
    return false;
  }
}

// Frees what a scene holds on the graphics card.
export function free(scene) {
  scene.traverse((object) => {
    object.geometry?.dispose();
    if (object.material && ![...kept.values()].includes(object.material)) object.material.dispose();
    if (object.isInstancedMesh) object.dispose();
  });
  scene.clear();
}

export const rgb = (colour) => {
  paint.set(colour);
  return [paint.r, paint.g, paint.b];
};
