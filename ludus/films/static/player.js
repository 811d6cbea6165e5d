// The player around every game's view: transport, keyboard, camera, picking, and what the picked agent earns and thinks.
import { h, fill, PALETTE } from "ludus/dom";
import { Moment } from "ludus/frames";
import { Stage2D, Stage3D } from "ludus/stage";
import { Panel } from "ludus/panel";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const MODES = ["overview", "follow", "fly"];
const HELP = [
  ["Space", "play, pause"],
  ["← →", "one step back, on (with Shift: ten)"],
  ["Home End", "to the start, the end"],
  ["- +", "slower, faster"],
  ["1 … 9", "pick an agent"],
  ["N", "pick the next agent"],
  ["Esc", "pick nobody; stop playing"],
  ["C", "camera: overview, follow, fly"],
  ["W A S D Q E", "move while flying"],
  ["P", "play this agent yourself"],
  ["?", "this help"],
  ["mouse", "click an agent, drag to turn, wheel to zoom"],
];

export const colourOf = (header, agent) => {
  const { role, team } = header.agents[agent];
  const teams = Math.max(...header.agents.map((a) => a.team)) + 1;
  if (teams > 1) return PALETTE[team];
  const roles = [...new Set(header.agents.map((a) => a.role))];
  if (roles.length > 1) return ["#ff6a4d", "#38b6ff", "#ffd23f", "#3ecf8e"][roles.indexOf(role) % 4];
  return PALETTE[agent % PALETTE.length];
};

export class Player {
  // options: live (frames keep coming), say(message) to the session, onplay(agent, t), actions (buttons)
  constructor(mount, film, view, options = {}) {
    Object.assign(this, {
      mount,
      view,
      options,
      time: 0,
      speed: 1,
      playing: !options.still,
      picked: null,
      taken: null,
      down: new Set(),
    });
    this.build();
    this.setFilm(film);
    this.listen();
    this.last = performance.now();
    this.tick = (now) => {
      this.loop = requestAnimationFrame(this.tick);
      this.advance(now);
    };
    this.loop = requestAnimationFrame(this.tick);
  }

  // -- the page ----------------------------------------------------------------------------------------------------------
  build() {
    const icon = (text, title, act) => h("button.icon", { title, "aria-label": title, onclick: act }, text);
    this.scene = h("div.viewport");
    this.hud = h("div.hud");
    this.tag = h("div.tag", { hidden: true });
    this.help = h("div.help", { hidden: true, onclick: () => this.showHelp(false) });
    this.toast = h("div.toast", { hidden: true });
    this.slider = h("input.scrub", {
      type: "range",
      min: 0,
      max: 1,
      step: "any",
      "aria-label": "time",
      oninput: () => this.seek(Number(this.slider.value)),
    });
    this.playButton = icon("❚❚", "play, pause (Space)", () => this.toggle());
    this.clock = h("span.clock");
    this.speedButton = h(
      "button",
      { title: "speed (- +)", onclick: () => this.setSpeed(SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length]) },
      "1×",
    );
    this.modeButton = h("button", { title: "camera (C)", onclick: () => this.nextMode() }, "overview");
    this.takeButton = h("button.accent", { title: "play this agent yourself (P)", onclick: () => this.take() }, "play");
    this.side = h("aside.side");
    fill(
      this.mount,
      h(
        "div.player",
        {},
        h(
          "div.left",
          {},
          h("div.frame", {}, this.scene, this.hud, this.tag, this.toast, this.help),
          h(
            "div.transport",
            {},
            icon("«", "to the start (Home)", () => this.seek(0)),
            icon("‹", "one step back (←)", () => this.step(-1)),
            this.playButton,
            icon("›", "one step on (→)", () => this.step(1)),
            this.slider,
            this.clock,
            this.speedButton,
            this.modeButton,
            this.takeButton,
            this.options.actions ?? [],
            icon("?", "keyboard help (?)", () => this.showHelp()),
          ),
        ),
        this.side,
      ),
    );
  }
  setFilm(film) {
    const first = !this.film || this.film.header.view !== film.header.view;
    const mode = this.stage?.mode ?? "overview";
    this.film = film;
    this.time = 0;
    this.over = false;
    this.stage?.close();
    this.stage = this.view.kind === "2d" ? new Stage2D(this.scene) : new Stage3D(this.scene);
    this.stage.colourOf = (agent) => colourOf(film.header, agent);
    this.actor = this.view.create(this.stage, film);
    this.stage.onpick = (x, y) => this.pickAt(x, y);
    this.stage.onchange = () => (this.dirty = true);
    if (!first && mode !== "overview") this.stage.setMode(mode);
    this.panel ??= new Panel(this.side, this);
    this.panel.setFilm(film);
    this.modeButton.hidden = this.view.camera === false;
    this.takeButton.hidden = !film.header.playable || !(this.options.say || this.options.onplay);
    if (this.options.live && first) this.taken = film.header.human ?? null; // later only this page decides
    if (this.taken !== null) this.pick(this.taken);
    this.showTaken();
    this.dirty = true;
  }
  showTaken() {
    this.takeButton.textContent = this.taken === null ? "play" : "let go";
    this.mount.classList.toggle("taken", this.taken !== null);
    this.stage.quiet = this.taken !== null; // a person looks for themselves
  }
  say(words, seconds = 4) {
    this.toast.textContent = words;
    this.toast.hidden = false;
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => (this.toast.hidden = true), seconds * 1000);
  }
  showHelp(open = this.help.hidden) {
    const rows = (list) => list.map(([keys, what]) => h("tr", {}, h("td", {}, h("kbd", {}, keys)), h("td", {}, what)));
    const { controls } = this.film.header;
    fill(
      this.help,
      h(
        "div.card",
        {},
        h("h3", {}, "Keys"),
        h("table", {}, rows(HELP)),
        controls.length ? [h("h3", {}, "While you play"), h("table", {}, rows(controls))] : [],
      ),
    );
    this.help.hidden = !open;
  }

  // -- time --------------------------------------------------------------------------------------------------------------
  advance(now) {
    const seconds = Math.max(0, Math.min((now - this.last) / 1000, 0.25));
    this.last = now;
    const rate = this.speed / this.film.header.step_seconds;
    if (this.playing && this.time < this.film.last) {
      this.time = Math.min(this.film.last, this.time + seconds * rate);
      if (this.options.live && this.film.last - this.time > 4) this.time = this.film.last - 1;
      this.dirty = true;
    } else if (this.playing && !this.options.live) this.setPlaying(false);
    if (this.stage.mode === "fly" && this.stage.held.size) this.dirty = true;
    if (this.stage.mode === "follow" && this.settle > 0) this.dirty = true;
    if (this.taken !== null) this.readPad();
    if (this.dirty) this.draw(seconds);
  }
  draw(seconds = 0) {
    this.settle = this.playing ? 30 : Math.max(0, (this.settle ?? 0) - 1);
    this.dirty = false;
    const now = new Moment(this.film, this.time, this.picked);
    this.now = now;
    this.actor.draw(now);
    if (this.stage.mark) {
      const alive = now.get("alive");
      this.stage.mark(
        this.film.header.agents.map((_, a) => this.actor.place(a)),
        (a) => !alive[a] || (a === this.picked && this.stage.mode === "follow"),
      );
    }
    this.stage.aim(this.picked === null ? null : this.actor.place(this.picked), seconds);
    this.stage.render();
    this.tell(now);
    this.drawn = (this.drawn ?? 0) + 1;
  }
  tell(now) {
    const { film } = this;
    this.slider.max = film.last;
    this.slider.value = this.time;
    const s = film.header.step_seconds,
      before = now.step - now.t; // steps of the episode before the film's first frame
    this.clock.textContent = `${now.step} / ${before + film.last}  ·  ${((before + now.time) * s).toFixed(1)} s`;
    fill(
      this.hud,
      (this.actor.hud?.(now) ?? []).map(([name, value, colour]) =>
        h("div", {}, h("span", {}, name), h("b", { style: colour ? { color: colour } : {} }, value)),
      ),
    );
    const at = this.picked === null ? null : this.stage.project(this.actor.place(this.picked));
    this.tag.hidden =
      !at || this.stage.mode === "follow" || at.x < 0 || at.y < 0 || at.x > this.stage.width || at.y > this.stage.height;
    if (!this.tag.hidden) {
      this.tag.textContent = this.nameOf(this.picked);
      this.tag.style.transform = `translate(${at.x}px, ${at.y}px) translate(-50%, -220%)`;
      this.tag.style.borderColor = this.stage.colourOf(this.picked);
    }
    this.panel.update(now);
  }
  seek(time) {
    this.time = Math.max(0, Math.min(this.film.last, time));
    if (this.options.live) this.setPlaying(false);
    this.dirty = true;
    this.settle = 30;
  }
  step(by) {
    this.setPlaying(false);
    this.seek(Math.round(this.time) + by);
  }
  toggle() {
    if (!this.playing && !this.options.live && this.time >= this.film.last) this.time = 0;
    if (!this.playing && this.options.live) this.time = this.film.last;
    this.setPlaying(!this.playing);
  }
  setPlaying(on) {
    if (this.playing !== on) this.options.say?.({ paused: !on });
    this.playing = on;
    this.playButton.textContent = on ? "❚❚" : "▶";
  }
  setSpeed(speed) {
    this.speed = speed;
    this.speedButton.textContent = `${speed}×`;
    this.options.say?.({ speed });
  }

  // -- agents ------------------------------------------------------------------------------------------------------------
  nameOf(agent) {
    const { agents } = this.film.header;
    const { role, team, number } = agents[agent];
    const teams = agents.some((a) => a.team > 0);
    const alone = agents.filter((a) => a.role === role && a.team === team).length === 1;
    const name = teams
      ? `${role} ${team}${alone ? "" : `.${number % agents.filter((a) => a.team === 0 && a.role === role).length}`}`
      : alone
        ? role
        : `${role} ${number}`;
    return this.taken === agent ? `you: ${name}` : name;
  }
  pick(agent) {
    this.picked = agent;
    if (agent !== null) {
      this.options.say?.({ watch: agent });
      this.options.onpick?.(agent);
    } else if (this.stage.mode === "follow") this.setMode("overview");
    this.panel.pick(agent);
    this.dirty = true;
    this.settle = 30;
  }
  pickAt(x, y) {
    let best = null,
      nearest = 46;
    for (let agent = 0; agent < this.film.header.agents.length; agent++) {
      const at = this.stage.project(this.actor.place(agent));
      const d = at ? Math.hypot(at.x - x, at.y - y) : Infinity;
      if (d < nearest) [best, nearest] = [agent, d];
    }
    if (this.taken === null) this.pick(best);
    return best;
  }
  setMode(mode) {
    if (mode === "follow" && this.picked === null) this.pick(0);
    this.stage.setMode(mode);
    this.modeButton.textContent = this.stage.mode;
    this.dirty = true;
    this.settle = 30;
  }
  nextMode() {
    const modes = this.view.kind === "2d" ? MODES.slice(0, 2) : MODES;
    this.setMode(modes[(modes.indexOf(this.stage.mode) + 1) % modes.length]);
  }
  take() {
    if (this.taken !== null) {
      this.release();
      return;
    }
    const agent = this.picked ?? 0;
    if (this.options.onplay) {
      this.options.onplay(agent, Math.min(Math.floor(this.time), this.film.last - 1));
      return;
    }
    this.options.say({ take: agent });
    this.taken = agent;
    this.pick(agent);
    this.setPlaying(true);
    this.setMode(this.view.kind === "2d" ? "overview" : "follow");
    this.showTaken();
    this.say(this.film.header.controls.map(([k, w]) => `${k} ${w}`).join("   "), 8);
  }
  release() {
    this.taken = null;
    this.down.clear();
    this.options.say?.({ keys: [], take: null });
    this.showTaken();
  }

  // -- keys --------------------------------------------------------------------------------------------------------------
  listen() {
    this.stop = new AbortController();
    const { signal } = this.stop;
    window.addEventListener("keydown", (e) => this.key(e, true), { signal });
    window.addEventListener("keyup", (e) => this.key(e, false), { signal });
    window.addEventListener("blur", () => this.letGo(), { signal });
    window.addEventListener("resize", () => (this.dirty = true), { signal });
    window.addEventListener(
      "themechange",
      () => {
        this.stage.background();
        this.panel.redraw();
        this.dirty = true;
      },
      { signal },
    );
  }
  letGo() {
    this.stage.held.clear();
    if (this.taken !== null && this.down.size) {
      this.down.clear();
      this.options.say({ keys: [] });
    }
  }
  key(e, down) {
    if (
      e.ctrlKey ||
      e.metaKey ||
      e.altKey ||
      ["TEXTAREA", "SELECT"].includes(e.target.tagName) ||
      (e.target.tagName === "INPUT" && e.target.type === "text")
    )
      return;
    if (this.taken !== null && e.key !== "?" && e.key !== "Escape") {
      e.preventDefault();
      if (e.repeat) return;
      if (down) this.down.add(e.code);
      else this.down.delete(e.code);
      this.options.say({ keys: [...this.down].slice(0, 32) });
      return;
    }
    if (this.stage.mode === "fly" && /^Key[WASDQE]$|^Shift/.test(e.code)) {
      if (down) this.stage.held.add(e.code);
      else this.stage.held.delete(e.code);
      return;
    }
    if (down && this.command(e)) e.preventDefault();
  }
  command(e) {
    const jump = e.shiftKey ? 10 : 1;
    const at = SPEEDS.indexOf(this.speed);
    if (e.key === "?") this.showHelp();
    else if (e.key === "Escape")
      this.help.hidden ? (this.taken !== null ? this.release() : this.pick(null)) : this.showHelp(false);
    else if (e.code === "Space") this.toggle();
    else if (e.code === "ArrowLeft") this.step(-jump);
    else if (e.code === "ArrowRight") this.step(jump);
    else if (e.code === "Home") this.seek(0);
    else if (e.code === "End") this.seek(this.film.last);
    else if (e.key === "-") this.setSpeed(SPEEDS[Math.max(0, at - 1)]);
    else if (e.key === "+" || e.key === "=") this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, at + 1)]);
    else if (/^[1-9]$/.test(e.key) && Number(e.key) <= this.film.header.agents.length) this.pick(Number(e.key) - 1);
    else if (e.code === "KeyN") this.pick(((this.picked ?? -1) + 1) % this.film.header.agents.length);
    else if (e.code === "KeyC" && !this.modeButton.hidden) this.nextMode();
    else if (e.code === "KeyP" && !this.takeButton.hidden) this.take();
    else return false;
    return true;
  }
  // A gamepad presses keys: sticks the letters and arrows, buttons what the game lists.
  readPad() {
    const pad = navigator.getGamepads?.().find((p) => p);
    if (!pad) return;
    const keys = new Set();
    const stick = (value, less, more) => (value < -0.4 ? keys.add(less) : value > 0.4 && keys.add(more));
    stick(pad.axes[0], "KeyA", "KeyD");
    stick(pad.axes[1], "KeyW", "KeyS");
    stick(pad.axes[2] ?? 0, "ArrowLeft", "ArrowRight");
    stick(pad.axes[3] ?? 0, "ArrowUp", "ArrowDown");
    this.film.header.pad.forEach((code, i) => pad.buttons[i]?.pressed && keys.add(code));
    const text = [...keys].sort().join();
    if (text !== this.padded) this.options.say({ keys: [...new Set([...keys, ...this.down])] });
    this.padded = text;
  }
  // What tests and scripts look at.
  state() {
    const { film, time, picked, taken, playing, speed } = this;
    return {
      time,
      last: film.last,
      picked,
      taken,
      playing,
      speed,
      mode: this.stage.mode,
      drawn: this.drawn ?? 0,
      view: film.header.view,
      ...this.stage.facts(),
    };
  }
  close() {
    cancelAnimationFrame(this.loop);
    clearTimeout(this.toasting);
    this.stop.abort();
    this.stage.close();
    this.actor.close?.();
    this.panel.close();
    this.film = this.actor = null;
    fill(this.mount);
  }
}
