"""What the driver sees: a lidar that feels for the road's edge, or a camera over the ground. One lane per beam or pixel."""

import math

from ludus.games.racing.car import HEADING, WALL_GAP, X, Y
from ludus.games.racing.observation import BEAMS, LIDAR_0, LIDAR_1, LIDAR_2, LIDAR_3
from ludus.games.racing.track import POINT_X, POINT_Y, REACH, TANGENT_X, TANGENT_Y, TEXEL, line_distance, to_map
from ludus.sim import float32, geometry, phase

LIDAR_RANGE = 100.0  # metres, and the scale of a beam
OFF_ROAD_RANGE = 30.0  # how far a car beside the road feels for it
SHORTEST_STRIDE = 0.25  # of a beam, in metres

CAMERA_HEIGHT = 3.0
CAMERA_PITCH = math.radians(12.0)  # down
CAMERA_HALF_VIEW = math.tan(math.radians(40.0))
CAMERA_RANGE = 200.0  # the ground beyond is haze
EDGE_LINE = 0.5  # metres of white along either edge of the road
FINISH_LINE = 1.5  # metres of white across it
SKY, GRASS, WALL, ROAD, WHITE = 220, 90, 20, 150, 255  # greys

LENS_AHEAD, LENS_RIGHT = 0, 1
VIEW_X, VIEW_Y, VIEW_COS, VIEW_SIN, VIEW_EDGE, VIEW_WALL, VIEW_FINISH, VIEW_FINISH_AHEAD, VIEW_FINISH_RIGHT = range(9)
VIEW = 9  # entries of `view`


def feel(bank_map, track, half_width, x, y, cos, sin):
    """Metres along a beam to the road's edge; off the road, minus the metres to the road."""
    inside = half_width - line_distance(bank_map, track, to_map(x), to_map(y))
    sign = 1.0 if inside >= 0.0 else -1.0
    far = LIDAR_RANGE if inside >= 0.0 else OFF_ROAD_RANGE
    margin, t = abs(inside), float32(0.0)
    while t < far:
        stride = max(margin, SHORTEST_STRIDE)
        t += stride
        ahead = sign * (half_width - line_distance(bank_map, track, to_map(x + t * cos), to_map(y + t * sin)))
        if ahead <= 0.0:
            t -= stride * (1.0 - margin / max(margin - ahead, 1e-6))
            break
        margin = ahead
    return sign * geometry.clamp(t, 0.0, far)


@phase(lanes=("agents", "beams"), writes="observation")
def scan(env, agent, beam, step, car, track, bank_half_width, bank_map, observation):
    """The newest scan, and the three before it; a new episode starts with four equal ones."""
    angle = car[env, agent, HEADING] + math.pi * (0.5 - float32(beam) / float32(BEAMS - 1))
    t = feel(
        bank_map, track[env], bank_half_width[track[env]], car[env, agent, X], car[env, agent, Y], math.cos(angle), math.sin(angle)
    )  # fmt: skip
    felt = t / LIDAR_RANGE
    first = step[env] == 0
    observation[env, agent, LIDAR_3 + beam] = felt if first else observation[env, agent, LIDAR_2 + beam]
    observation[env, agent, LIDAR_2 + beam] = felt if first else observation[env, agent, LIDAR_1 + beam]
    observation[env, agent, LIDAR_1 + beam] = felt if first else observation[env, agent, LIDAR_0 + beam]
    observation[env, agent, LIDAR_0 + beam] = felt


@phase(lanes=("camera", "camera"), writes="lens")
def grind(env, row, column, camera, lens):
    """Where on the ground each pixel looks: metres ahead and to the right, once per batch. Nothing ahead: sky."""
    right = CAMERA_HALF_VIEW * (float32(2 * column + 1) / float32(camera) - 1.0)
    down = CAMERA_HALF_VIEW * (float32(2 * row + 1) / float32(camera) - 1.0)
    falls = math.sin(CAMERA_PITCH) + down * math.cos(CAMERA_PITCH)
    runs = math.cos(CAMERA_PITCH) - down * math.sin(CAMERA_PITCH)
    if falls * CAMERA_RANGE > CAMERA_HEIGHT * runs:
        lens[row, column, LENS_AHEAD] = CAMERA_HEIGHT * runs / falls
        lens[row, column, LENS_RIGHT] = CAMERA_HEIGHT * right / falls
    else:
        lens[row, column, LENS_AHEAD] = 0.0
        lens[row, column, LENS_RIGHT] = 0.0


@phase(lanes="agents", writes="view")
def aim(env, agent, car, track, walled, bank_half_width, bank_line, view):
    """What all pixels of a frame have in common, in nodes of the map where they look things up there."""
    line = track[env]
    x, y = car[env, agent, X], car[env, agent, Y]
    cos, sin = math.cos(car[env, agent, HEADING]), math.sin(car[env, agent, HEADING])
    view[env, agent, VIEW_X] = to_map(x)
    view[env, agent, VIEW_Y] = to_map(y)
    view[env, agent, VIEW_COS] = cos / TEXEL
    view[env, agent, VIEW_SIN] = sin / TEXEL
    view[env, agent, VIEW_EDGE] = bank_half_width[line]
    view[env, agent, VIEW_WALL] = bank_half_width[line] + WALL_GAP if walled[env] else 2.0 * REACH
    tangent_x, tangent_y = bank_line[line, 0, TANGENT_X], bank_line[line, 0, TANGENT_Y]
    view[env, agent, VIEW_FINISH] = (x - bank_line[line, 0, POINT_X]) * tangent_x + (y - bank_line[line, 0, POINT_Y]) * tangent_y
    view[env, agent, VIEW_FINISH_AHEAD] = cos * tangent_x + sin * tangent_y
    view[env, agent, VIEW_FINISH_RIGHT] = sin * tangent_x - cos * tangent_y


@phase(lanes=("agents", "camera", "camera"), writes="seen_camera")
def expose(env, agent, row, column, lens, view, track, bank_map, seen_camera):
    """One pixel of the newest frame."""
    ahead, right = lens[row, column, LENS_AHEAD], lens[row, column, LENS_RIGHT]
    if ahead <= 0.0:
        seen_camera[env, agent, row, column] = SKY
        return
    cos, sin = view[env, agent, VIEW_COS], view[env, agent, VIEW_SIN]
    x = view[env, agent, VIEW_X] + ahead * cos + right * sin
    y = view[env, agent, VIEW_Y] + ahead * sin - right * cos
    away = line_distance(bank_map, track[env], x, y)
    edge = view[env, agent, VIEW_EDGE]
    if away > edge:
        seen_camera[env, agent, row, column] = WALL if away > view[env, agent, VIEW_WALL] else GRASS
        return
    past = (
        view[env, agent, VIEW_FINISH] + ahead * view[env, agent, VIEW_FINISH_AHEAD] + right * view[env, agent, VIEW_FINISH_RIGHT]
    )
    white = away > edge - EDGE_LINE or (past >= 0.0 and past < FINISH_LINE)
    seen_camera[env, agent, row, column] = WHITE if white else ROAD
