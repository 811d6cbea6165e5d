// Films: what happened in an env, frame by frame. Recorded ones come whole, streams grow while somebody plays.

const TYPES = { f32: Float32Array, i32: Int32Array, i16: Int16Array, i8: Int8Array, u8: Uint8Array };
const volume = (shape) => shape.reduce((a, b) => a * b, 1);

// A message of the server: a length, a header, arrays (see pack.py).
export function unpack(buffer) {
  const room = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, room)));
  const arrays = {};
  for (const [name, [type, shape, at]] of Object.entries(header.arrays)) {
    arrays[name] = { shape, data: new TYPES[type](buffer, 4 + room + at, volume(shape)) };
  }
  delete header.arrays;
  return { header, arrays };
}

class Base {
  // Of the step after which `name` has the value at t: large things that change seldom.
  version(name, t) {
    const { at } = this.rares[name];
    let low = 0;
    for (let i = 0; i < at.length && at[i] <= t; i++) low = i;
    return low;
  }
  get length() {
    return this.count;
  }
  get last() {
    return this.count - 1;
  }
  has(name) {
    return name in this.shapes;
  }
}

export class Film extends Base {
  constructor(buffer) {
    super();
    const { header, arrays } = unpack(buffer);
    this.header = header;
    this.count = header.frames;
    this.arrays = {};
    this.shapes = {};
    this.statics = {};
    this.rares = {};
    this.seens = {};
    for (const [name, array] of Object.entries(arrays)) {
      const [kind, field, part] = name.split("/");
      if (kind === "static") this.statics[field] = array;
      else if (kind === "step") {
        this.arrays[field] = array.data;
        this.shapes[field] = array.shape.slice(1);
      } else if (part === "at") (this.rares[field] ??= {}).at = array.data;
      else (this.rares[field] ??= {}).values = array;
    }
  }
  fixed(name) {
    return this.statics[name];
  }
  at(name, t) {
    const size = volume(this.shapes[name]);
    return this.arrays[name].subarray(t * size, (t + 1) * size);
  }
  rare(name, t) {
    const { values } = this.rares[name];
    const size = volume(values.shape.slice(1));
    const i = this.version(name, t);
    return { shape: values.shape.slice(1), data: values.data.subarray(i * size, (i + 1) * size), version: i };
  }
  addSeen(agent, buffer) {
    const { arrays } = unpack(buffer);
    this.seens[agent] = Object.fromEntries(Object.entries(arrays).map(([n, a]) => [n.slice(5), a]));
  }
  seen(name, agent, t) {
    const array = this.seens[agent]?.[name];
    if (!array) return null;
    const shape = array.shape.slice(1);
    const size = volume(shape);
    return { shape, data: array.data.subarray(t * size, (t + 1) * size) };
  }
}

// One episode as it is played. `push` takes the messages after its first.
export class Stream extends Base {
  constructor({ header, arrays }) {
    super();
    this.header = header;
    this.count = 0;
    this.frames = [];
    this.shapes = {};
    this.statics = {};
    this.rares = {};
    for (const [name, array] of Object.entries(arrays)) if (name.startsWith("static/")) this.statics[name.slice(7)] = array;
    this.push({ header, arrays });
  }
  push({ header, arrays }) {
    const frame = { steps: {}, seen: {}, watched: header.watched };
    for (const [name, array] of Object.entries(arrays)) {
      const kind = name.slice(0, name.indexOf("/"));
      const field = name.slice(kind.length + 1);
      if (kind === "step") {
        frame.steps[field] = array.data;
        this.shapes[field] = array.shape;
      } else if (kind === "seen") frame.seen[field] = array;
      else if (kind === "rare") {
        const rare = (this.rares[field] ??= { at: [], values: [] });
        rare.at.push(this.count);
        rare.values.push(array);
      }
    }
    this.frames.push(frame);
    this.count += 1;
    this.over = header.over;
  }
  fixed(name) {
    return this.statics[name];
  }
  at(name, t) {
    return this.frames[t].steps[name] ?? this.frames[this.last].steps[name];
  }
  rare(name, t) {
    const i = this.version(name, t);
    return { ...this.rares[name].values[i], version: i };
  }
  seen(name, agent, t) {
    const frame = this.frames[t];
    return frame.watched === agent ? frame.seen[name] : null;
  }
}

// A moment between two frames. Views read everything through it.
export class Moment {
  constructor(film, time, picked) {
    this.film = film;
    this.time = Math.max(0, Math.min(time, film.last));
    this.t = Math.floor(this.time);
    this.next = Math.min(this.t + 1, film.last);
    this.mix = this.time - this.t;
    this.picked = picked;
  }
  // of the episode: a film that goes on from the middle of one has its first frame there
  get step() {
    return this.film.at("step", this.t)[0];
  }
  get(name) {
    return this.film.at(name, this.t);
  }
  lerp(name, i) {
    const a = this.film.at(name, this.t)[i];
    return a + (this.film.at(name, this.next)[i] - a) * this.mix;
  }
  // the short way round
  angle(name, i) {
    const a = this.film.at(name, this.t)[i];
    const d = this.film.at(name, this.next)[i] - a;
    return a + Math.atan2(Math.sin(d), Math.cos(d)) * this.mix;
  }
  rare(name) {
    return this.film.rare(name, this.t);
  }
  seen(name, agent = this.picked) {
    return agent === null ? null : this.film.seen(name, agent, this.t);
  }
}
