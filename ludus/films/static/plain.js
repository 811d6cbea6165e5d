// The view of a game that brings none: its agents as dots where they are.
export const kind = "2d";

export function create(stage, film) {
  const width = film.has("position") ? film.shapes.position[1] : 0;
  const places = film.header.agents.map((_, a) => ({ x: a, y: 0 }));
  const points = [];
  for (let t = 0; width && t < film.length; t++)
    for (let i = 0; i < places.length; i++)
      points.push([film.at("position", t)[width * i], film.at("position", t)[width * i + width - 1]]);
  const spread = (k) => [Math.min(...points.map((p) => p[k])), Math.max(...points.map((p) => p[k]))];
  const [[x0, x1], [y0, y1]] = points.length
    ? [spread(0), spread(1)]
    : [
        [-1, places.length],
        [-1, 1],
      ];
  stage.frame([(x0 + x1) / 2, (y0 + y1) / 2], (x1 - x0 + 1) * 1.15, (y1 - y0 + 1) * 1.15);
  stage.paint = (ctx) =>
    places.forEach(({ x, y }, a) => {
      ctx.fillStyle = stage.colourOf(a);
      ctx.beginPath();
      ctx.arc(x, y, 6 / stage.scale, 0, 7);
      ctx.fill();
    });
  return {
    draw: (now) =>
      width &&
      places.forEach((p, a) =>
        Object.assign(p, { x: now.lerp("position", width * a), y: now.lerp("position", width * a + width - 1) }),
      ),
    hud: () => [["view", "this game brings no view.js: agents as dots"]],
    place: (a) => places[a],
  };
}
