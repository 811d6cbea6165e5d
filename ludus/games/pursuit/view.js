// Pursuit in 2D: a square whose opposite edges meet.
export const kind = "2d";

const WORLD = 10;

export function create(stage, film) {
  const { header } = film;
  const places = header.agents.map(() => ({ x: 0, y: 0, yaw: 0 }));
  const colours = header.agents.map((_, i) => stage.colourOf(i));
  const { reach } = header.params;
  stage.frame([WORLD / 2, WORLD / 2], WORLD + 1.4, WORLD + 1.4);
  let now = null;

  // a step over the edge comes in on the other side, not across the world
  const around = (moment, i) => {
    const a = film.at("position", moment.t)[i];
    let d = film.at("position", moment.next)[i] - a;
    if (d > WORLD / 2) d -= WORLD;
    if (d < -WORLD / 2) d += WORLD;
    return (a + d * moment.mix + WORLD) % WORLD;
  };

  stage.paint = (ctx) => {
    ctx.fillStyle = "#1f2733";
    ctx.fillRect(0, 0, WORLD, WORLD);
    ctx.strokeStyle = "#ffffff12";
    ctx.lineWidth = 0.02;
    for (let i = 0; i <= WORLD; i++) {
      ctx.strokeRect(i, 0, 0, WORLD);
      ctx.strokeRect(0, i, WORLD, 0);
    }
    const alive = now.get("alive");
    places.forEach(({ x, y, yaw }, a) => {
      const chaser = header.agents[a].role === "chaser";
      if (chaser) disc(ctx, x, y, reach, "#ff6a4d22");
      if (a === now.picked) disc(ctx, x, y, 0.36, "#ffffff55");
      ctx.save();
      ctx.translate(x, y);
      ctx.rotate(yaw);
      ctx.globalAlpha = alive[a] ? 1 : 0.25;
      ctx.fillStyle = colours[a];
      ctx.beginPath();
      ctx.moveTo(0.34, 0);
      ctx.lineTo(-0.2, 0.2);
      ctx.lineTo(-0.1, 0);
      ctx.lineTo(-0.2, -0.2);
      ctx.fill();
      ctx.restore();
    });
  };

  return {
    draw(moment) {
      now = moment;
      places.forEach((place, a) =>
        Object.assign(place, { x: around(now, 2 * a), y: around(now, 2 * a + 1), yaw: now.angle("heading", a) }),
      );
    },
    hud: (moment) => [
      ["runners left", `${[...moment.get("alive")].slice(1).reduce((s, x) => s + x, 0)} of ${header.sizes.runners}`],
    ],
    place: (a) => places[a],
  };
}

function disc(ctx, x, y, r, colour) {
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.arc(x, y, r, 0, 2 * Math.PI);
  ctx.fill();
}
