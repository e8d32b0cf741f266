// Draws a scene on a canvas, or on what takes the same calls. A scene is a list of layers, each of one style.

export function draw(context, scene) {
  context.fillStyle = scene.ground;
  context.fillRect(0, 0, scene.width, scene.height);
  for (const layer of scene.layers) {
    context.save();
    if (layer.clipped) clip(context, scene.plot);
    context.globalAlpha = layer.alpha ?? 1;
    LAYERS[layer.kind](context, layer);
    context.restore();
  }
}

function clip(context, { x, y, width, height }) {
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
}

const LAYERS = {
  // Segments: `points` holds x, y, x, y of each.
  lines(context, { points, colour, width, dash }) {
    for (const [from, to] of pieces(points.length, 4))
      stroke(context, colour, width, dash, () => {
        for (let k = from; k < to; k += 4) {
          context.moveTo(points[k], points[k + 1]);
          context.lineTo(points[k + 2], points[k + 3]);
        }
      });
  },

  // The same, bent: they leave and arrive level.
  curves(context, { points, colour, width, dash }) {
    for (const [from, to] of pieces(points.length, 4))
      stroke(context, colour, width, dash, () => {
        for (let k = from; k < to; k += 4) {
          const middle = (points[k] + points[k + 2]) / 2;
          context.moveTo(points[k], points[k + 1]);
          context.bezierCurveTo(middle, points[k + 1], middle, points[k + 3], points[k + 2], points[k + 3]);
        }
      });
  },

  // One line through all points.
  path(context, { points, colour, width, dash }) {
    stroke(context, colour, width, dash, () => {
      for (let k = 0; k < points.length; k += 2)
        if (k) context.lineTo(points[k], points[k + 1]);
        else context.moveTo(points[k], points[k + 1]);
    });
  },

  area(context, { points, colour }) {
    context.fillStyle = colour;
    context.beginPath();
    for (let k = 0; k < points.length; k += 2)
      if (k) context.lineTo(points[k], points[k + 1]);
      else context.moveTo(points[k], points[k + 1]);
    context.closePath();
    context.fill();
  },

  // Marks of one shape: `points` holds x, y of each.
  marks(context, { points, shape, radius, fill, outline, width }) {
    for (const [from, to] of pieces(points.length, 2)) {
      context.beginPath();
      for (let k = from; k < to; k += 2) SHAPES[shape](context, points[k], points[k + 1], radius);
      if (fill) {
        context.fillStyle = fill;
        context.fill();
      }
      if (outline) {
        context.strokeStyle = outline;
        context.lineWidth = width ?? 1.25;
        context.stroke();
      }
    }
  },

  // `halo`: the colour around letters that lie over marks and lines.
  text(context, { items, colour, font, align, baseline, halo }) {
    context.fillStyle = colour;
    context.font = font;
    context.textAlign = align ?? "left";
    context.textBaseline = baseline ?? "middle";
    context.strokeStyle = halo;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.setLineDash([]);
    if (halo) for (const [x, y, text] of items) context.strokeText(text, x, y);
    for (const [x, y, text] of items) context.fillText(text, x, y);
  },
};

const PIECE = 200; // marks or segments of one path: what a path costs grows faster than its length

function* pieces(length, step) {
  for (let from = 0; from < length; from += PIECE * step) yield [from, Math.min(from + PIECE * step, length)];
}

function stroke(context, colour, width, dash, path) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash ?? []);
  context.beginPath();
  path();
  context.stroke();
}

const SHAPES = {
  dot(context, x, y, r) {
    context.rect(x - r, y - r, 2 * r, 2 * r);
  },
  circle(context, x, y, r) {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, 2 * Math.PI);
  },
  square: polygon(4, Math.PI / 4, 1.1),
  diamond: polygon(4, 0, 1.3),
  triangle: polygon(3, -Math.PI / 2, 1.25),
  pentagon: polygon(5, -Math.PI / 2, 1.15),
  star(context, x, y, r) {
    corners(context, x, y, 10, -Math.PI / 2, (k) => (k % 2 ? 0.75 : 1.8) * r);
  },
  plus(context, x, y, r) {
    const [a, b] = [r * 0.45, r * 1.3];
    const turns = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]];
    turns.forEach(([dx, dy], k) => (k ? context.lineTo(x + dx, y + dy) : context.moveTo(x + dx, y + dy)));
    context.closePath();
  },
  cross(context, x, y, r) {
    context.moveTo(x - r, y - r);
    context.lineTo(x + r, y + r);
    context.moveTo(x + r, y - r);
    context.lineTo(x - r, y + r);
  },
};

function polygon(sides, turn, scale) {
  return (context, x, y, r) => corners(context, x, y, sides, turn, () => scale * r);
}

function corners(context, x, y, amount, turn, radius) {
  for (let k = 0; k < amount; k += 1) {
    const angle = turn + (2 * Math.PI * k) / amount;
    const [cx, cy] = [x + radius(k) * Math.cos(angle), y + radius(k) * Math.sin(angle)];
    if (k) context.lineTo(cx, cy);
    else context.moveTo(cx, cy);
  }
  context.closePath();
}
