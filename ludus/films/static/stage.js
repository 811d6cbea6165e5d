// Where a view draws: a 3D scene with a camera to orbit, follow or fly, or a 2D canvas with a world to look at.
import * as THREE from "three";
import { css } from "ludus/dom";
import { free, material } from "ludus/solids";

let shared = null; // one renderer for the whole page: browsers allow few, and each holds memory

export function webgl() {
  if (shared) return shared;
  const renderer = new THREE.WebGLRenderer({
    antialias: true,
    alpha: true,
    powerPreference: "low-power",
    preserveDrawingBuffer: true,
  });
  renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
  shared = renderer;
  return renderer;
}

export class Stage3D {
  kind = "3d";
  constructor(mount) {
    this.renderer = webgl(); // throws where there is no WebGL
    this.mount = mount;
    this.canvas = this.renderer.domElement;
    this.canvas.className = "scene";
    mount.append(this.canvas);
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(50, 1, 0.1, 2000);
    this.target = new THREE.Vector3();
    this.orbit = { yaw: 0.8, pitch: 0.8, distance: 40 };
    this.mode = "overview";
    this.held = new Set();
    this.light();
    this.listen();
  }
  light() {
    this.sun = new THREE.DirectionalLight("#fff4e0", 2.0);
    this.sun.position.set(0.5, 1, 0.3);
    this.ambient = new THREE.HemisphereLight("#dfeaff", "#6b6558", 1.7);
    this.scene.add(this.sun, this.ambient);
    this.background();
  }
  background() {} // the page's own sky shows through
  // A dot above every agent, seen through everything: where are they?
  mark(places, hidden) {
    if (!this.dots) {
      const geometry = new THREE.BufferGeometry();
      for (const name of ["position", "color"])
        geometry.setAttribute(name, new THREE.Float32BufferAttribute(new Float32Array(3 * places.length), 3));
      this.dots = new THREE.Points(
        geometry,
        material("PointsMaterial", { size: 7, sizeAttenuation: false, vertexColors: true, depthTest: false, transparent: true }),
      );
      Object.assign(this.dots, { frustumCulled: false, renderOrder: 10 });
      const colour = new THREE.Color();
      places.forEach((_, i) => geometry.attributes.color.setXYZ(i, ...colour.set(this.colourOf(i)).toArray()));
      this.scene.add(this.dots);
    }
    const { position } = this.dots.geometry.attributes;
    places.forEach(({ x, y, z, top = 1.6 }, i) => position.setXYZ(i, x, hidden(i) ? -1e4 : y + top, z));
    position.needsUpdate = true;
  }
  // What a view tells once: where the middle of things is and how far away to look from.
  frame([x, y, z], distance, { yaw = 0.8, pitch = 0.75, behind = 7, up = 3.4, near = 0.1 } = {}) {
    this.home = { x, y, z, distance, yaw, pitch };
    this.behind = behind;
    this.up = up;
    this.camera.near = near;
    this.camera.far = distance * 12;
    this.reset();
  }
  reset() {
    const { x, y, z, distance, yaw, pitch } = this.home;
    this.target.set(x, y, z);
    Object.assign(this.orbit, { yaw, pitch, distance });
    this.swing = 0;
    this.lift = 0;
    this.zoom = 1;
  }
  setMode(mode) {
    if (mode === "overview") this.reset();
    if (mode === "fly" && this.mode !== "fly") {
      const look = new THREE.Vector3();
      this.camera.getWorldDirection(look);
      this.flight = { yaw: Math.atan2(look.z, look.x), pitch: Math.asin(Math.max(-1, Math.min(1, look.y))) };
    }
    this.mode = mode;
    this.fresh = true;
  }
  listen() {
    const signal = (this.stop = new AbortController()).signal;
    let drag = null;
    this.canvas.addEventListener(
      "pointerdown",
      (e) => {
        drag = { x: e.clientX, y: e.clientY, moved: 0, pan: e.button === 2 || e.shiftKey };
        this.canvas.setPointerCapture(e.pointerId);
      },
      { signal },
    );
    this.canvas.addEventListener(
      "pointermove",
      (e) => {
        if (!drag) return;
        const dx = e.clientX - drag.x,
          dy = e.clientY - drag.y;
        Object.assign(drag, { x: e.clientX, y: e.clientY, moved: drag.moved + Math.abs(dx) + Math.abs(dy) });
        this.drag(dx, dy, drag.pan);
      },
      { signal },
    );
    this.canvas.addEventListener(
      "pointerup",
      (e) => {
        if (drag && drag.moved < 5) this.onpick?.(e.offsetX, e.offsetY);
        drag = null;
      },
      { signal },
    );
    this.canvas.addEventListener("contextmenu", (e) => e.preventDefault(), { signal });
    this.canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        const factor = Math.exp(e.deltaY * 0.001);
        if (this.mode === "follow") this.zoom = Math.max(0.3, Math.min(4, this.zoom * factor));
        else this.orbit.distance = Math.max(1, Math.min(this.home.distance * 4, this.orbit.distance * factor));
        this.onchange?.();
      },
      { signal, passive: false },
    );
  }
  drag(dx, dy, pan) {
    if (this.mode === "fly") {
      this.flight.yaw += dx * 0.004;
      this.flight.pitch = Math.max(-1.5, Math.min(1.5, this.flight.pitch - dy * 0.004));
    } else if (this.mode === "follow") {
      this.swing += dx * 0.006;
      this.lift = Math.max(-0.6, Math.min(1.2, this.lift + dy * 0.004));
    } else if (pan) {
      const s = this.orbit.distance / 900,
        { yaw } = this.orbit;
      this.target.x += (dx * Math.sin(yaw) + dy * Math.cos(yaw)) * -s;
      this.target.z += (-dx * Math.cos(yaw) + dy * Math.sin(yaw)) * -s;
    } else {
      this.orbit.yaw += dx * 0.006;
      this.orbit.pitch = Math.max(0.05, Math.min(1.55, this.orbit.pitch + dy * 0.005));
    }
    this.onchange?.();
  }
  // The camera for this picture. `body` is where the followed agent is: {x, y, z, yaw}.
  aim(body, seconds) {
    const eye = this.camera.position;
    if (this.mode === "follow" && body) {
      const yaw = body.yaw + this.swing,
        far = this.behind * this.zoom;
      const want = new THREE.Vector3(
        body.x - Math.cos(yaw) * far,
        body.y + this.up * this.zoom + this.lift * far,
        body.z - Math.sin(yaw) * far,
      );
      const ease = this.fresh ? 1 : 1 - Math.exp(-8 * seconds);
      eye.lerp(want, ease);
      this.looking ??= new THREE.Vector3();
      this.looking.lerp(new THREE.Vector3(body.x, body.y + this.up * 0.3, body.z), this.fresh ? 1 : 1 - Math.exp(-14 * seconds));
      this.camera.lookAt(this.looking);
      this.fresh = false;
    } else if (this.mode === "fly") {
      const { yaw, pitch } = this.flight;
      const look = new THREE.Vector3(Math.cos(yaw) * Math.cos(pitch), Math.sin(pitch), Math.sin(yaw) * Math.cos(pitch));
      const pace = this.home.distance * 0.5 * seconds * (this.held.has("ShiftLeft") ? 3 : 1);
      const ahead = this.held.has("KeyW") - this.held.has("KeyS"),
        right = this.held.has("KeyD") - this.held.has("KeyA");
      eye.addScaledVector(look, ahead * pace);
      eye.x -= Math.sin(yaw) * right * pace;
      eye.z += Math.cos(yaw) * right * pace;
      eye.y += (this.held.has("KeyE") - this.held.has("KeyQ")) * pace;
      this.camera.lookAt(eye.x + look.x, eye.y + look.y, eye.z + look.z);
    } else {
      const { yaw, pitch, distance } = this.orbit;
      eye.set(
        this.target.x - Math.cos(yaw) * Math.cos(pitch) * distance,
        this.target.y + Math.sin(pitch) * distance,
        this.target.z - Math.sin(yaw) * Math.cos(pitch) * distance,
      );
      this.camera.lookAt(this.target);
    }
  }
  size() {
    const { clientWidth: w, clientHeight: t } = this.mount;
    if (w && t && (w !== this.width || t !== this.height)) {
      Object.assign(this, { width: w, height: t });
      this.renderer.setSize(w, t);
      this.camera.aspect = w / t;
    }
    this.camera.updateProjectionMatrix();
  }
  render() {
    this.size();
    this.renderer.render(this.scene, this.camera);
  }
  // Where a point of the world is on the screen, or null behind the camera.
  project({ x, y, z }) {
    this.camera.updateMatrixWorld();
    const p = new THREE.Vector3(x, y, z).project(this.camera);
    return p.z > 1 ? null : { x: ((p.x + 1) / 2) * this.width, y: ((1 - p.y) / 2) * this.height };
  }
  facts() {
    const { render, memory } = this.renderer.info;
    return {
      calls: render.calls,
      triangles: render.triangles,
      lines: render.lines,
      geometries: memory.geometries,
      textures: memory.textures,
    };
  }
  close() {
    this.stop.abort();
    free(this.scene);
    this.renderer.renderLists.dispose();
    this.canvas.remove();
  }
}

// A canvas over a world of metres, y up. Views draw with ctx in metres.
export class Stage2D {
  kind = "2d";
  constructor(mount) {
    this.mount = mount;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "scene";
    mount.append(this.canvas);
    this.ctx = this.canvas.getContext("2d");
    this.mode = "overview";
    this.zoom = 1;
    this.held = new Set();
    this.stop = new AbortController();
    const signal = this.stop.signal;
    this.canvas.addEventListener("pointerup", (e) => this.onpick?.(e.offsetX, e.offsetY), { signal });
    this.canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        this.zoom = Math.max(0.5, Math.min(6, this.zoom * Math.exp(-e.deltaY * 0.001)));
        this.onchange?.();
      },
      { signal, passive: false },
    );
  }
  background() {}
  frame([x, y], width, height) {
    this.home = { x, y, width, height };
  }
  setMode(mode) {
    this.mode = mode === "fly" ? "overview" : mode;
    if (mode === "overview") this.zoom = 1;
  }
  aim(body) {
    this.middle = this.mode === "follow" && body ? { x: body.x, y: body.y } : this.home;
    this.closer = (this.mode === "follow" ? 1.8 : 1) * this.zoom;
  }
  size() {
    const ratio = Math.min(window.devicePixelRatio, 2);
    const { clientWidth: w, clientHeight: t } = this.mount;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(t * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(t * ratio);
      this.canvas.style.width = `${w}px`;
      this.canvas.style.height = `${t}px`;
    }
    Object.assign(this, { width: w, height: t, ratio });
  }
  render() {
    this.size();
    const { ctx, home, middle } = this;
    this.scale = Math.min(this.width / home.width, this.height / home.height) * this.closer;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = css("--sky");
    ctx.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const s = this.scale * this.ratio;
    ctx.setTransform(s, 0, 0, -s, (this.width / 2) * this.ratio - middle.x * s, (this.height / 2) * this.ratio + middle.y * s);
    this.paint?.(ctx);
  }
  // Text upright, its size in pixels.
  text(words, x, y, { size = 12, colour = "#fff", align = "center", weight = 500 } = {}) {
    const { ctx } = this;
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(1 / this.scale, -1 / this.scale);
    ctx.font = `${weight} ${size}px system-ui, sans-serif`;
    ctx.textAlign = align;
    ctx.fillStyle = colour;
    ctx.fillText(words, 0, 0);
    ctx.restore();
  }
  project({ x, y }) {
    return { x: this.width / 2 + (x - this.middle.x) * this.scale, y: this.height / 2 - (y - this.middle.y) * this.scale };
  }
  facts() {
    return { calls: 1, triangles: 0, lines: 0, geometries: 0, textures: 0 };
  }
  close() {
    this.stop.abort();
    this.canvas.remove();
  }
}
