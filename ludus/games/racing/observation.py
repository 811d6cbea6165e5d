"""The named numbers a driver observes, and the index each group starts at."""

BEAMS = 19  # 10 degrees apart, from 90 degrees to the left to 90 to the right
FRAMES = 4  # lidar scans, the newest first
MEMORY = 4  # actions, the newest first

CAR = ["speed", "gear", "rpm"]
PEDALS = ["gas", "brake", "steer"]  # tell all eleven actions apart
PER_ACTION = len(PEDALS)

CAR_NAMES = [*CAR, *(f"action{k}_{name}" for k in range(MEMORY) for name in PEDALS)]
LIDAR_NAMES = [
    *CAR_NAMES,
    *(f"lidar{frame}_{beam}" for frame in range(FRAMES) for beam in range(BEAMS)),
]

SPEED, GEAR, RPM = range(3)
MEMORY_AT = len(CAR)
MEMORY_END = MEMORY_AT + MEMORY * PER_ACTION
LIDAR_0 = len(CAR_NAMES)
LIDAR_1 = LIDAR_0 + BEAMS
LIDAR_2 = LIDAR_1 + BEAMS
LIDAR_3 = LIDAR_2 + BEAMS
