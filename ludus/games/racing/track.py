"""The tracks: a bank of closed curves, built once per batch and shared by all its envs.

A circuit is a closed Catmull-Rom spline through knots at jittered angles and radii; the oval is two
straights and two half circles. Either becomes POINTS points at equal distances along the centre
line, and a map: bytes on a grid that say how far the nearest centre line is. Interpolated between
its nodes, the map gives road edges far sharper than its grid, for one camera pixel or one step of a
lidar beam at the cost of four bytes read.

Everything is in metres; a circuit is driven either way round, the oval anticlockwise. Left is
positive.
"""

import math

from ludus.sim import float32, geometry, phase, random

CIRCUIT, OVAL = 0, 1  # values of the size `shape`

POINTS = 512  # along every centre line, whatever its length
POINT_X, POINT_Y, TANGENT_X, TANGENT_Y, CURVATURE = range(5)
POINT = 5  # entries of a point

KNOTS = 12
NEAREST_KNOT, FARTHEST_KNOT = 90.0, 200.0  # metres from the middle
KNOT_JITTER = 0.3  # of the angle between two knots
NARROWEST, WIDEST = 6.0, 7.0  # half the width of the road
SHARPEST = 14.0  # the smallest radius of a curve
LONGEST = 1500.0  # bounds what progress can earn
DRAWS = 24  # each draw that is too sharp makes the next one rounder; the last is a circle
SAMPLES = 64  # of a spline between two knots, to measure its length

OVAL_STRAIGHT, OVAL_RADIUS, OVAL_HALF_WIDTH = 160.0, 50.0, 6.5

TEXEL = 2.0  # metres between nodes of the map
TEXELS = 240  # nodes along a side, the middle of the world in the middle
REACH = 12.75  # the map knows distances up to this

RADIUS, ANGLE, WIDTH, WAY = 1, 2, 3, 4  # streams of randomness


# -- curves ----------------------------------------------------------------------------------------


def spline(bank_knots, track, axis, t):
    """One coordinate of the closed Catmull-Rom spline; t runs from 0 to KNOTS."""
    k = geometry.floor_int(t)
    f = t - float32(k)
    a, b = bank_knots[track, (k + KNOTS - 1) % KNOTS, axis], bank_knots[track, k % KNOTS, axis]
    c, d = bank_knots[track, (k + 1) % KNOTS, axis], bank_knots[track, (k + 2) % KNOTS, axis]
    return b + 0.5 * f * (
        c - a + f * (2.0 * a - 5.0 * b + 4.0 * c - d + f * (3.0 * (b - c) + d - a))
    )


def oval_at(s):
    """(x, y) at s metres along the oval, from the middle of its lower straight on."""
    bend = math.pi * OVAL_RADIUS
    half = 0.5 * OVAL_STRAIGHT
    if s < half:
        return s, float32(-OVAL_RADIUS)
    if s < half + bend:
        angle = (s - half) / OVAL_RADIUS - 0.5 * math.pi
        return half + OVAL_RADIUS * math.cos(angle), OVAL_RADIUS * math.sin(angle)
    if s < 3.0 * half + bend:
        return 2.0 * half + bend - s, float32(OVAL_RADIUS)
    if s < 3.0 * half + 2.0 * bend:
        angle = (s - 3.0 * half - bend) / OVAL_RADIUS + 0.5 * math.pi
        return OVAL_RADIUS * math.cos(angle) - half, OVAL_RADIUS * math.sin(angle)
    return s - 4.0 * half - 2.0 * bend, float32(-OVAL_RADIUS)


def draw_knots(key, draw, bank_knots, track):
    """Knots of a circuit. The later the draw, the nearer they are to a circle."""
    wild = 1.0 - float32(draw) / float32(DRAWS - 1)
    middle = 0.5 * (NEAREST_KNOT + FARTHEST_KNOT)
    way = 1.0 if random.integer(key, WAY, 0, 2) == 0 else -1.0
    for k in range(KNOTS):
        lane = draw * KNOTS + k
        radius = middle + wild * (
            random.between(key, RADIUS, lane, NEAREST_KNOT, FARTHEST_KNOT) - middle
        )
        jitter = wild * random.between(key, ANGLE, lane, -KNOT_JITTER, KNOT_JITTER)
        angle = 2.0 * math.pi * (float32(k) + jitter) / float32(KNOTS)
        bank_knots[track, k, 0] = radius * math.cos(angle)
        bank_knots[track, k, 1] = way * radius * math.sin(angle)


def measure_spline(bank_knots, bank_samples, track):
    """Fills the length up to every sample of the spline; returns the length of the whole."""
    length = float32(0.0)
    x, y = bank_knots[track, 0, 0], bank_knots[track, 0, 1]
    for i in range(KNOTS * SAMPLES):
        bank_samples[track, i] = length
        t = float32(i + 1) / float32(SAMPLES)
        next_x, next_y = spline(bank_knots, track, 0, t), spline(bank_knots, track, 1, t)
        length += math.sqrt((next_x - x) * (next_x - x) + (next_y - y) * (next_y - y))
        x, y = next_x, next_y
    return length


def space_points(bank_knots, bank_samples, bank_line, track, length):
    """Points at equal distances along the spline."""
    sample = 0
    for i in range(POINTS):
        s = length * float32(i) / float32(POINTS)
        while sample + 1 < KNOTS * SAMPLES and bank_samples[track, sample + 1] <= s:
            sample += 1
        end = bank_samples[track, sample + 1] if sample + 1 < KNOTS * SAMPLES else length
        t = (
            float32(sample)
            + (s - bank_samples[track, sample]) / (end - bank_samples[track, sample])
        ) / float32(SAMPLES)
        bank_line[track, i, POINT_X] = spline(bank_knots, track, 0, t)
        bank_line[track, i, POINT_Y] = spline(bank_knots, track, 1, t)


def bend_points(bank_line, track, length):
    """Fills tangents and curvatures (left positive); returns the largest curvature."""
    sharpest = float32(0.0)
    for i in range(POINTS):
        before, after = (i + POINTS - 1) % POINTS, (i + 1) % POINTS
        in_x = bank_line[track, i, POINT_X] - bank_line[track, before, POINT_X]
        in_y = bank_line[track, i, POINT_Y] - bank_line[track, before, POINT_Y]
        out_x = bank_line[track, after, POINT_X] - bank_line[track, i, POINT_X]
        out_y = bank_line[track, after, POINT_Y] - bank_line[track, i, POINT_Y]
        norm = math.sqrt((in_x + out_x) * (in_x + out_x) + (in_y + out_y) * (in_y + out_y))
        bank_line[track, i, TANGENT_X] = (in_x + out_x) / norm
        bank_line[track, i, TANGENT_Y] = (in_y + out_y) / norm
        turn = math.atan2(in_x * out_y - in_y * out_x, in_x * out_x + in_y * out_y)
        curvature = turn * float32(POINTS) / length
        bank_line[track, i, CURVATURE] = curvature
        sharpest = max(sharpest, abs(curvature))
    return sharpest


@phase(
    lanes="tracks",
    writes=("bank_knots", "bank_samples", "bank_line", "bank_length", "bank_half_width"),
)
def lay_out(
    env,
    track,
    shape,
    first_track,
    bank_knots,
    bank_samples,
    bank_line,
    bank_length,
    bank_half_width,
):
    """The centre line of every track of the bank."""
    if shape == OVAL:
        bank_half_width[track] = OVAL_HALF_WIDTH
        bank_length[track] = 2.0 * OVAL_STRAIGHT + 2.0 * math.pi * OVAL_RADIUS
        for i in range(POINTS):
            x, y = oval_at(bank_length[track] * float32(i) / float32(POINTS))
            bank_line[track, i, POINT_X] = x
            bank_line[track, i, POINT_Y] = y
        bend_points(bank_line, track, bank_length[track])
        return
    key = random.key(first_track + track, 0, 0, 0)
    bank_half_width[track] = random.between(key, WIDTH, 0, NARROWEST, WIDEST)
    for draw in range(DRAWS):
        draw_knots(key, draw, bank_knots, track)
        bank_length[track] = measure_spline(bank_knots, bank_samples, track)
        if bank_length[track] > LONGEST:
            continue
        space_points(bank_knots, bank_samples, bank_line, track, bank_length[track])
        if bend_points(bank_line, track, bank_length[track]) <= 1.0 / SHARPEST:
            break


# -- the map ---------------------------------------------------------------------------------------


def interval(slope, offset, limit):
    """The (low, high) between which |slope * x + offset| <= limit, as far as a mark can be from its
    point."""
    far = 2.0 * REACH
    if abs(slope) < 1e-6:
        return (-far, far) if abs(offset) <= limit else (far, -far)
    a, b = (-limit - offset) / slope, (limit - offset) / slope
    return max(min(a, b), -far), min(max(a, b), far)


@phase(lanes="tracks", writes="bank_map")
def draw_map(env, track, bank_line, bank_length, bank_map):
    """Every point of the line marks the nodes beside it: 255 on the line, 0 from REACH on. A node
    keeps its largest mark."""
    spacing = bank_length[track] / float32(POINTS)
    # a curve opens a wedge between the strips of two points; overlapping a little covers it
    beside = 0.5 * spacing * (1.0 + REACH / SHARPEST)
    for i in range(POINTS):
        x, y = bank_line[track, i, POINT_X], bank_line[track, i, POINT_Y]
        along_x, along_y = bank_line[track, i, TANGENT_X], bank_line[track, i, TANGENT_Y]
        tall = beside * abs(along_y) + REACH * abs(along_x)
        first = max(geometry.floor_int(to_map(y - tall)) + 1, 0)
        last = min(geometry.floor_int(to_map(y + tall)), TEXELS - 1)
        for row in range(first, last + 1):
            dy = TEXEL * float32(row - TEXELS // 2) - y
            low, high = interval(along_x, dy * along_y, beside)
            low_across, high_across = interval(-along_y, dy * along_x, REACH)
            left = max(geometry.floor_int(to_map(x + max(low, low_across))) + 1, 0)
            right = min(geometry.floor_int(to_map(x + min(high, high_across))), TEXELS - 1)
            for column in range(left, right + 1):
                dx = TEXEL * float32(column - TEXELS // 2) - x
                along, across = dx * along_x + dy * along_y, dy * along_x - dx * along_y
                away = abs(across - 0.5 * bank_line[track, i, CURVATURE] * along * along)
                mark = int(geometry.clamp(255.5 - away * (255.0 / REACH), 0.0, 255.0))
                bank_map[track, row, column] = max(mark, int(bank_map[track, row, column]))


def to_map(metres):
    """A coordinate of the world in nodes of the map."""
    return metres / TEXEL + float32(TEXELS // 2)


def line_distance(bank_map, track, x, y):
    """Metres from the centre line, at most REACH, at a place given in nodes of the map."""
    if not (x >= 0.0 and y >= 0.0 and x < float32(TEXELS - 1) and y < float32(TEXELS - 1)):
        return float32(REACH)
    column, row = int(x), int(y)
    fx, fy = x - float32(column), y - float32(row)
    a, b = float32(bank_map[track, row, column]), float32(bank_map[track, row, column + 1])
    c, d = float32(bank_map[track, row + 1, column]), float32(bank_map[track, row + 1, column + 1])
    low, high = a + fx * (b - a), c + fx * (d - c)
    return REACH - (REACH / 255.0) * (low + fy * (high - low))
