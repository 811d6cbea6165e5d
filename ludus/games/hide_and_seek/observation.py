"""The 161 numbers an agent observes: their names, and the index each group starts at."""

SELF = [
    "x",
    "y",
    "z",
    "yaw",
    "pitch",
    "velocity_ahead",
    "velocity_up",
    "velocity_right",
    "grounded",
]
EDGES = ["edge_ahead", "edge_right", "edge_behind", "edge_left"]
RAYS = 64
CLOCK = ["time_left", "hiders_found", "seeking", "urgency"]
LAST_SEEN = ["last_seen_ahead", "last_seen_right", "last_seen_ago", "last_seen_visible"]
NEAREST = [
    "nearest_visible",
    "nearest_ahead",
    "nearest_right",
    "nearest_distance",
    "visible_count",
    "within_reach",
]
BLOCKS = ["can_place", "can_remove", "blocks_ahead"]
MOTION = ["blocked_x", "blocked_z", "moving"]

NAMES = [
    *SELF,
    *EDGES,
    *(f"ray{i}_distance" for i in range(RAYS)),
    *(f"ray{i}_kind" for i in range(RAYS)),
    *CLOCK,
    *LAST_SEEN,
    *NEAREST,
    *BLOCKS,
    *MOTION,
]

SELF_AT = 0
EDGES_AT = SELF_AT + len(SELF)
RAY_DISTANCE = EDGES_AT + len(EDGES)
RAY_KIND = RAY_DISTANCE + RAYS
CLOCK_AT = RAY_KIND + RAYS
LAST_SEEN_AT = CLOCK_AT + len(CLOCK)
NEAREST_AT = LAST_SEEN_AT + len(LAST_SEEN)
BLOCKS_AT = NEAREST_AT + len(NEAREST)
MOTION_AT = BLOCKS_AT + len(BLOCKS)
