// Trains a game that runs here: connects to `ludus train remote:PORT`, steps envs when told, reports what came of it.
//
//   new LudusClient({
//     url: "ws://localhost:8770/?token=…",                        // as `ludus train` printed it when it started
//     game: "catch", envs: 8,
//     observation: ["ball_x", "ball_y", "paddle_x"],
//     action: { choices: { move: ["left", "stay", "right"] } },   // also: continuous: [...], binary: [...]
//     make: (i) => env,                                           // env.reset(seed) → observation
//   }).start();                                                   // env.step(action) → { observation, reward, terminated, truncated }
//
// With `agents: ["seeker", "hider_0"]` observations, rewards and ends are lists, one entry for each agent, and so are actions.
// With `masks: true` reset and step also give `mask`. No dependencies; the protocol is described in docs/remote.md.
// Where url has no token, that of the page's own address is used (http://localhost:8000/?token=…), in node LUDUS_TOKEN.
"use strict";

const LUDUS_PROTOCOL = 1;
const LONGEST_WAIT = 10000; // ms between attempts to connect

class LudusClient {
  constructor(options) {
    this.url = LudusClient.address(options.url || `ws://${globalThis.location?.host || "localhost:8770"}/`);
    this.game = options.game || "nameless";
    this.agents = options.agents || ["agent"];
    this.single = !options.agents;
    this.observation = options.observation;
    this.action = options.action;
    this.masks = Boolean(options.masks);
    this.envs = Array.from({ length: options.envs || 1 }, (_, i) => options.make(i));
    this.onStep = options.onStep || (() => {}); // (results, message) after each step: to draw
    this.onStatus = options.onStatus || (() => {}); // (text): to tell the user
    this.wait = 250;
    this.stopped = false;
  }

  start() {
    if (this.stopped) return this;
    this.refusal = null;
    this.socket = new WebSocket(this.url);
    this.socket.onopen = () => this.say({ type: "hello", protocol: LUDUS_PROTOCOL, game: this.game, envs: this.envs.length,
      agents: this.agents, observation: this.observation, action: this.action, masks: this.masks });
    this.socket.onmessage = (event) => this.hear(JSON.parse(event.data));
    let over = false; // some engines tell a failure only as an error, others also as a close
    this.socket.onerror = this.socket.onclose = () => {
      if (!over) this.reconnect();
      over = true;
    };
    return this;
  }

  stop() {
    this.stopped = true;
    this.socket?.close();
  }

  say(message) {
    this.socket.send(JSON.stringify(message));
  }

  reconnect() {
    if (this.stopped) return;
    this.onStatus(`${this.refusal ? `refused: ${this.refusal}` : `no connection to ${this.url.split("?")[0]}`}; trying again`);
    setTimeout(() => this.start(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }

  hear(message) {
    if (message.type === "welcome") {
      this.wait = 250;
      this.onStatus("connected");
    } else if (message.type === "refused") {
      this.refusal = message.reason; // shown when the connection closes, which is next
    } else if (message.type === "step") {
      try {
        this.answer(message);
      } catch (error) {
        this.say({ type: "error", message: String(error) });
        throw error;
      }
    }
  }

  answer(message) {
    const results = this.envs.map((env, i) => (message.reset[i] ? this.begin(env, message.seed[i]) : env.step(this.actionOf(message, i))));
    const each = (pick) => results.map((result) => (this.single ? [pick(result)] : pick(result)));
    const reply = { type: "result", step: message.step, observation: each((r) => r.observation), reward: each((r) => r.reward),
      terminated: each((r) => r.terminated), truncated: each((r) => r.truncated) };
    if (this.masks) reply.mask = each((r) => r.mask);
    const memory = LudusClient.memory();
    if (memory !== undefined) reply.memory_mb = memory;
    this.say(reply);
    this.onStep(results, message);
  }

  begin(env, seed) {
    const first = env.reset(seed);
    const shown = first.observation !== undefined ? first : { observation: first };
    const none = (value) => (this.single ? value : this.agents.map(() => value));
    return { ...shown, reward: none(0), terminated: none(false), truncated: none(false) };
  }

  actionOf(message, i) {
    const names = Object.entries(this.action.choices || {});
    const actions = this.agents.map((_, a) => ({
      continuous: message.continuous?.[i][a] ?? [],
      binary: message.binary?.[i][a] ?? [],
      choices: Object.fromEntries(names.map(([name, options], k) => [name, options[message.choices[i][a][k]]])),
    }));
    return this.single ? actions[0] : actions;
  }

  static address(url) { // with a token, wherever one is found
    const found = new URL(url);
    const token = new URLSearchParams(globalThis.location?.search).get("token") || globalThis.process?.env?.LUDUS_TOKEN;
    if (token && !found.searchParams.get("token")) found.searchParams.set("token", token);
    return found.href;
  }

  static memory() {
    const bytes = globalThis.performance?.memory?.usedJSHeapSize ?? globalThis.process?.memoryUsage?.().heapUsed;
    return bytes === undefined ? undefined : bytes / 1e6;
  }
}

if (typeof module !== "undefined") module.exports = { LudusClient };
