// Brawl in 2D: the stage with its pit and platform, two fighters, their hit boxes, weapons, damage and stocks.
export const kind = "2d";

// see state.py, movement.py, combat.py
const MOTION = 5,
  STATUS = 17;
const [X, Y, , , DAMAGE] = [0, 1, 2, 3, 4];
const [MODE, , FACING, , , , , , SAFE, WEAPON, MOVE, MOVE_FRAME, , STOCKS] = Array.from({ length: 17 }, (_, i) => i);
const MODES = [
  "standing",
  "walking",
  "dashing",
  "backdashing",
  "sprinting",
  "airborne",
  "fast falling",
  "dodging",
  "taunting",
  "winding up",
  "striking",
  "stunned",
  "out",
];
const [DODGING, WINDING_UP, STRIKING, STUNNED, OUT] = [7, 9, 10, 11, 12];
const HALF_WIDTH = 0.435,
  HALF_HEIGHT = 0.5;
const INNER = 2,
  OUTER = 7,
  LEFT_TOP = -2,
  RIGHT_TOP = 0,
  EDGE_X = 14,
  EDGE_Y = 8,
  PERIOD = 120;
const WEAPONS = ["", "#e6c35c", "#c0c7d2"];

export function create(stage, film) {
  const hits = film.fixed("hits");
  const [, perMove, perHit] = hits.shape;
  const places = [0, 1].map(() => ({ x: 0, y: 0, yaw: 0 }));
  const colours = [0, 1].map((i) => stage.colourOf(i));
  stage.frame([0, -0.6], 2 * OUTER + 5.5, 12.5);
  let now = null;
  const status = (a, i) => now.get("status")[STATUS * a + i];

  function ground(ctx, x0, x1, top) {
    const fillTo = -EDGE_Y;
    const shade = ctx.createLinearGradient(0, top, 0, fillTo);
    shade.addColorStop(0, "#6b5a74");
    shade.addColorStop(1, "#2a2433");
    ctx.fillStyle = shade;
    ctx.fillRect(x0, fillTo, x1 - x0, top - fillTo);
    ctx.fillStyle = "#8fd36b";
    ctx.fillRect(x0, top - 0.18, x1 - x0, 0.18);
    ctx.fillStyle = "#ffffff14";
    for (let x = x0 + 0.3; x < x1 - 0.2; x += 0.8)
      for (let y = top - 0.8; y > fillTo; y -= 0.7) ctx.fillRect(x + (Math.round(y * 10) % 2) * 0.2, y, 0.42, 0.22);
  }

  function sky(ctx) {
    const shade = ctx.createLinearGradient(0, EDGE_Y, 0, -EDGE_Y);
    shade.addColorStop(0, "#26395c");
    shade.addColorStop(0.6, "#7c5a86");
    shade.addColorStop(1, "#d98b6a");
    ctx.fillStyle = shade;
    ctx.fillRect(-40, -30, 80, 60);
    ctx.fillStyle = "#ffffff10";
    for (let i = 0; i < 7; i++) {
      ctx.beginPath();
      ctx.ellipse(-12 + i * 4.1, 2.5 + ((i * 29) % 5), 1.8 + (i % 3) * 0.6, 0.35, 0, 0, 7);
      ctx.fill();
    }
    ctx.strokeStyle = "#ffffff30";
    ctx.setLineDash([0.4, 0.4]);
    ctx.lineWidth = 0.05;
    ctx.strokeRect(-EDGE_X, -EDGE_Y, 2 * EDGE_X, 2 * EDGE_Y);
    ctx.setLineDash([]);
  }

  function platform(ctx) {
    const a = now.get("stage")[0],
      d = (((film.at("stage", now.next)[0] - a) % PERIOD) + PERIOD) % PERIOD;
    const frame = (a + d * now.mix) % PERIOD,
      half = PERIOD / 2;
    const x = (frame < half ? frame : PERIOD - frame) * (2 / half) - 1;
    const top = (LEFT_TOP + RIGHT_TOP) / 2 + (x * (RIGHT_TOP - LEFT_TOP)) / 2;
    ctx.fillStyle = "#c9b07a";
    ctx.fillRect(x - 1, top - 0.25, 2, 0.25);
    ctx.fillStyle = "#8a7348";
    ctx.fillRect(x - 1, top - 0.32, 2, 0.08);
  }

  function weapon(ctx, kind, x, y, facing, angle) {
    if (!kind) return;
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(facing, 1);
    ctx.rotate(angle);
    ctx.fillStyle = "#6d4c2c";
    ctx.fillRect(-0.2, -0.05, kind === 1 ? 1.4 : 0.95, 0.1);
    ctx.fillStyle = WEAPONS[kind];
    if (kind === 1) {
      ctx.beginPath();
      ctx.moveTo(1.2, 0.13);
      ctx.lineTo(1.6, 0);
      ctx.lineTo(1.2, -0.13);
      ctx.fill();
    } else ctx.fillRect(0.68, -0.28, 0.42, 0.56);
    ctx.restore();
  }

  function fighter(ctx, a) {
    const { x, y } = places[a],
      mode = status(a, MODE),
      facing = status(a, FACING);
    if (mode === OUT) return;
    if (a === now.picked) {
      ctx.strokeStyle = "#ffffffb0";
      ctx.lineWidth = 0.05;
      ctx.beginPath();
      ctx.ellipse(x, y - HALF_HEIGHT, 0.7, 0.16, 0, 0, 7);
      ctx.stroke();
    }
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(facing, 1);
    ctx.globalAlpha = status(a, SAFE) > 0 && now.t % 2 ? 0.45 : mode === DODGING ? 0.6 : 1;
    const lean =
      mode === STUNNED ? -0.5 : mode === WINDING_UP ? -0.15 : mode === STRIKING ? 0.25 : mode >= 2 && mode <= 4 ? 0.2 : 0;
    ctx.rotate(-lean);
    const swing = Math.sin(x * 4) * (mode >= 1 && mode <= 4 ? 0.16 : 0.04);
    ctx.fillStyle = "#2c3040";
    ctx.fillRect(-0.2 + swing, -HALF_HEIGHT, 0.16, 0.4);
    ctx.fillRect(0.04 - swing, -HALF_HEIGHT, 0.16, 0.4);
    ctx.fillStyle = colours[a];
    ctx.beginPath();
    ctx.roundRect(-0.27, -0.2, 0.54, 0.46, 0.12);
    ctx.fill();
    ctx.fillStyle = "#f3d3b3";
    ctx.beginPath();
    ctx.arc(0.03, 0.42, 0.21, 0, 7);
    ctx.fill();
    ctx.fillStyle = colours[a];
    ctx.fillRect(-0.2, 0.46, 0.46, 0.1);
    ctx.fillStyle = "#1b1f2a";
    ctx.fillRect(0.12, 0.38, 0.06, 0.08);
    ctx.fillStyle = "#f3d3b3";
    const reach = mode === STRIKING ? 0.42 : mode === WINDING_UP ? -0.2 : 0.12;
    ctx.fillRect(reach - 0.08, 0.02, 0.3, 0.13);
    ctx.restore();
    ctx.globalAlpha = 1;
    weapon(
      ctx,
      status(a, WEAPON),
      x + facing * 0.25,
      y + 0.08,
      facing,
      mode === WINDING_UP ? 1.2 : mode === STRIKING ? -0.1 : 0.6,
    );
    boxes(ctx, a, x, y, facing);
  }

  // where the move hits right now
  function boxes(ctx, a, x, y, facing) {
    const move = status(a, MOVE),
      frame = status(a, MOVE_FRAME);
    if (move < 0) return;
    for (let k = 0; k < perMove; k++) {
      const [first, last, ahead, up, wide, tall] = hits.data.subarray(
        (move * perMove + k) * perHit,
        (move * perMove + k + 1) * perHit,
      );
      if (!last || frame < first || frame - 3 > last) continue;
      ctx.fillStyle = "#ff4d4d55";
      ctx.strokeStyle = "#ff4d4dcc";
      ctx.lineWidth = 0.04;
      ctx.beginPath();
      ctx.roundRect(x + facing * ahead - wide, y + up - tall, 2 * wide, 2 * tall, 0.15);
      ctx.fill();
      ctx.stroke();
    }
  }

  stage.paint = (ctx) => {
    sky(ctx);
    ground(ctx, -OUTER, -INNER, LEFT_TOP);
    ground(ctx, INNER, OUTER, RIGHT_TOP);
    platform(ctx);
    [-3.5, 3.5].forEach((x, place) =>
      weapon(ctx, now.get("stage")[1 + place], x - 0.5, (place ? RIGHT_TOP : LEFT_TOP) + 0.25, 1, 0.15),
    );
    for (const a of [1, 0]) fighter(ctx, a);
    for (const a of [0, 1]) {
      const { x, y } = places[a];
      if (status(a, MODE) !== OUT)
        stage.text(`${Math.round(now.get("motion")[MOTION * a + DAMAGE])}%`, x, y + 0.95, {
          size: 13,
          weight: 700,
          colour: colours[a],
        });
    }
  };
  return {
    draw(moment) {
      now = moment;
      for (const a of [0, 1]) {
        const jump = Math.abs(film.at("motion", now.next)[MOTION * a + X] - now.get("motion")[MOTION * a + X]) > 4; // brought back
        const at = (i) => (jump ? now.get("motion")[MOTION * a + i] : now.lerp("motion", MOTION * a + i));
        Object.assign(places[a], { x: at(X), y: at(Y) });
      }
    },
    hud: (moment) =>
      [0, 1].map((a) => [
        `fighter ${a}`,
        `${"●".repeat(moment.get("status")[STATUS * a + STOCKS])} ${Math.round(moment.get("motion")[MOTION * a + DAMAGE])}% ${MODES[moment.get("status")[STATUS * a + MODE]]}`,
        colours[a],
      ]),
    place: (a) => places[a],
  };
}
