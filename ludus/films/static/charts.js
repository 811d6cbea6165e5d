// Curves with uPlot, sparklines and stacked areas; findings marked at their step.
import uPlot from "uplot";
import { h, css, compact, number, PALETTE } from "ludus/dom";

const SEVERITY = { critical: "--bad", warning: "--warn", info: "--dim" };

export function sparkline(values, width = 140, height = 30) {
  const canvas = h("canvas.spark", {
    width: width * 2,
    height: height * 2,
    style: { width: `${width}px`, height: `${height}px` },
  });
  const known = values.filter(Number.isFinite);
  if (known.length < 2) return canvas;
  const low = Math.min(...known),
    high = Math.max(...known),
    ctx = canvas.getContext("2d");
  ctx.scale(2, 2);
  const points = known.map((v, i) => [
    2 + (i / (known.length - 1)) * (width - 6),
    3 + (height - 6) * (1 - (v - low) / (high - low || 1)),
  ]);
  ctx.strokeStyle = css("--accent");
  ctx.lineWidth = 1.6;
  ctx.lineJoin = "round";
  ctx.beginPath();
  points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.stroke();
  const [x, y] = points.at(-1);
  ctx.fillStyle = css("--accent");
  ctx.beginPath();
  ctx.arc(x, y, 2.4, 0, 7);
  ctx.fill();
  return canvas;
}

// series: [{label, values, low, high, colour, dash}] over x; stacked: drawn on top of each other; marks: findings
export function chart(title, x, series, { stacked = false, marks = [], height = 190, share = false } = {}) {
  const mount = h("div.chart", {}, h("h4", {}, title));
  const shown = series.filter((s) => s.values.some((v) => v !== null && v !== undefined));
  if (!shown.length) return null;
  const data = [x],
    specs = [{ label: "agent-steps", value: (_, v) => (v === null ? "" : compact(v)) }],
    bands = [];
  const format = (_, v) => (v === null || v === undefined ? "–" : share ? `${(100 * v).toFixed(1)}%` : number(v));
  const tops = stacked ? stack(shown, x.length) : null;
  shown.forEach((s, i) => {
    const colour = s.colour ?? PALETTE[i % PALETTE.length];
    const plain = {
      label: s.label,
      stroke: colour,
      width: 1.6,
      dash: s.dash,
      spanGaps: true,
      points: { show: s.values.filter((v) => v !== null).length < 40, size: 4, fill: colour },
    };
    if (stacked) {
      data.push(tops[i]);
      specs.push({
        ...plain,
        fill: `${colour}66`,
        points: { show: false },
        value: (_, v, k, at) => format(_, at === null || at === undefined ? null : s.values[at]),
      });
    } else {
      data.push(s.values);
      specs.push({ ...plain, value: format });
      if (s.low) {
        data.push(s.low, s.high);
        const n = data.length - 1;
        for (const label of ["low", "high"])
          specs.push({ label, show: true, stroke: "transparent", points: { show: false }, spanGaps: true, class: "hidden" });
        bands.push({ series: [n, n - 1], fill: `${colour}26` });
      }
    }
  });
  if (stacked) {
    // the last is the highest: it is drawn first, so that each covers the one above it
    data.splice(1, Infinity, ...data.slice(1).reverse());
    specs.splice(1, Infinity, ...specs.slice(1).reverse());
  }
  const axis = {
    stroke: () => css("--dim"),
    grid: { stroke: () => css("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  const plot = new uPlot(
    {
      width: 480,
      height,
      series: specs,
      bands,
      legend: { live: true },
      scales: { x: { time: false } },
      cursor: { points: { size: 6 } },
      axes: [
        { ...axis, size: 28, values: (_, v) => v.map(compact) },
        { ...axis, size: 54, values: (_, v) => v.map((n) => (share ? `${Math.round(100 * n)}%` : number(n))) },
      ],
      hooks: { draw: [(u) => markFindings(u, marks)] },
    },
    data,
    mount,
  );
  mount.querySelectorAll(".hidden").forEach((e) => (e.hidden = true));
  const fit = new ResizeObserver(() => mount.clientWidth && plot.setSize({ width: mount.clientWidth, height }));
  fit.observe(mount);
  mount.close = () => {
    fit.disconnect();
    plot.destroy();
  };
  return mount;
}

// Each series on top of those before; positive and negative parts pile up on their own side of zero.
function stack(series, length) {
  const up = new Float64Array(length),
    down = new Float64Array(length);
  return series.map(({ values }) =>
    values.map((v, i) => {
      if (v === null || v === undefined) return null;
      const side = series.some((s) => (s.values[i] ?? 0) > 0) && v >= 0 ? up : v < 0 ? down : up;
      side[i] += v;
      return side[i];
    }),
  );
}

function markFindings(u, marks) {
  const { ctx, bbox } = u;
  for (const mark of marks) {
    const at = u.valToPos(mark.step, "x", true);
    if (!(at >= bbox.left && at <= bbox.left + bbox.width)) continue;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css(SEVERITY[mark.severity] ?? "--dim");
    ctx.setLineDash([4, 4]);
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(at - 5 * devicePixelRatio, bbox.top);
    ctx.lineTo(at + 5 * devicePixelRatio, bbox.top);
    ctx.lineTo(at, bbox.top + 8 * devicePixelRatio);
    ctx.fill();
    ctx.restore();
  }
}
