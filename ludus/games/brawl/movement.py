"""One frame of one fighter: timers run, keys become modes and moves, the body moves over grounds,
platform and air.

Both grounds and the platform carry from above and can be passed from below.
"""

from ludus.games.brawl import moves
from ludus.games.brawl.state import (
    AIR,
    AIRBORNE,
    BACKDASHING,
    COMBO_WAIT,
    DASH,
    DASHING,
    DODGE_WAIT,
    DODGING,
    DOWN,
    FACING,
    FAST_FALLING,
    FRAME,
    GROUND,
    HEAVY,
    JUMP,
    JUMP_WAIT,
    JUMPS,
    KEYS,
    LEFT,
    LIGHT,
    MISSED,
    MODE,
    MOVE,
    MOVE_FRAME,
    NO_MOVE,
    OUT,
    PLATFORM,
    RECOVERIES,
    RIGHT,
    SAFE,
    SHUTTLE,
    SPEED_X,
    SPEED_Y,
    SPRINTING,
    STANDING,
    STRIKING,
    STRUCK,
    STUNNED,
    SURFACE,
    TAUNT,
    TAUNTING,
    TIMER,
    UP,
    WALKING,
    WEAPON,
    WINDING_UP,
    X,
    Y,
)
from ludus.sim import float32, geometry

HALF_WIDTH, HALF_HEIGHT = 0.435, 0.5  # of a body
GRAVITY = 17.8
WALK, DASH_SPEED, SPRINT, BACKDASH = 6.75, 10.0, 8.0, 4.0
DASH_FRAMES = 9  # of a dash, and of a backdash
JUMP_SPEED, AIR_JUMPS, JUMP_GAP = 8.9, 2, 9
# change of horizontal speed a second in the air, with and without a key
AIR_PUSH, AIR_DRAG = 24.0, 5.0
FASTEST_FALL, FAST_FALL = 12.0, 14.0
AIR_DODGE = 6.0
DODGE_FRAMES, DODGE_GAP_GROUND, DODGE_GAP_AIR = 10, 30, 82
TAUNT_FRAMES = 30
# share of the speed a fighter on the ground keeps each frame while it attacks, dodges, taunts or is
# stunned
BRAKE = 0.8
STUN_DECAY = 0.97  # share of the speed a stunned fighter keeps each frame
BOUNCE, SLOWEST_BOUNCE = 0.6, 3.0

INNER, OUTER = 2.0, 7.0  # both grounds reach from 2 to 7 to their side of the middle
LEFT_TOP, RIGHT_TOP = -2.0, 0.0
PLATFORM_HALF, PLATFORM_PERIOD = 1.0, 120
MIDDLE_TOP = (LEFT_TOP + RIGHT_TOP) / 2.0
ROUNDING = 1e-3


# -- the stage -------------------------------------------------------------------------------------


def platform_x(frame):
    """The platform's middle: -1 beside the left ground, 1 beside the right one, back and forth at
    an even pace."""
    half = PLATFORM_PERIOD // 2
    way = frame if frame < half else PLATFORM_PERIOD - frame
    return float32(way) * (2.0 / float32(half)) - 1.0


def platform_top(x):
    """It rises on its way from the low ground to the high one."""
    return MIDDLE_TOP + x * (RIGHT_TOP - LEFT_TOP) / 2.0


def over_ground(x):
    """Does a body here stand over one of the grounds?"""
    return INNER - HALF_WIDTH < abs(x) < OUTER + HALF_WIDTH


def ground_top(x):
    return float32(RIGHT_TOP) if x > 0.0 else float32(LEFT_TOP)


def over_platform(x, platform):
    return abs(x - platform) < PLATFORM_HALF + HALF_WIDTH


# -- modes -----------------------------------------------------------------------------------------


def in_control(mode):
    """May it choose what to do? Otherwise its mode has to run out first."""
    return mode <= FAST_FALLING


def attacking(mode):
    return WINDING_UP <= mode <= STRIKING


def dashing(mode):
    """In the middle of a dash or a backdash, which only an attack, a dodge or a jump cuts short."""
    return DASHING <= mode <= BACKDASHING


def free(status, env, me):
    """A mode has run out: it stands or falls."""
    status[env, me, MODE] = AIRBORNE if status[env, me, SURFACE] == AIR else STANDING
    status[env, me, TIMER] = 0
    status[env, me, MOVE] = NO_MOVE
    status[env, me, MOVE_FRAME] = 0


def enter(status, env, me, mode, frames):
    status[env, me, MODE] = mode
    status[env, me, TIMER] = frames


def tick(status, event, env, me):
    """Counts down what runs out with time. A fighter that is out is brought back elsewhere."""
    for entry in (DODGE_WAIT, JUMP_WAIT, SAFE, COMBO_WAIT):
        if status[env, me, entry] > 0:
            status[env, me, entry] -= 1
    if status[env, me, TIMER] > 0:
        status[env, me, TIMER] -= 1
        mode = status[env, me, MODE]
        if attacking(mode):
            status[env, me, MOVE_FRAME] += 1
        if status[env, me, TIMER] == 0 and mode != OUT:
            if mode == STRIKING and status[env, me, STRUCK] == 0:
                event[env, me, MISSED] += 1.0
            if mode == DASHING and status[env, me, SURFACE] != AIR:
                status[env, me, MODE] = SPRINTING
            else:
                free(status, env, me)


def chosen_move(status, env, me, keys):
    """The move these keys ask for, or NO_MOVE. Up asks for the neutral one even while moving."""
    aim = moves.NEUTRAL
    if keys & DOWN:
        aim = moves.DOWNWARD
    elif keys & (LEFT | RIGHT) and not keys & UP:
        aim = moves.SIDEWAYS
    if status[env, me, SURFACE] != AIR:
        kind = (moves.LIGHTS if keys & LIGHT else moves.HEAVIES) + aim
    elif keys & LIGHT:
        kind = moves.AIRS + aim
    elif aim == moves.DOWNWARD:
        kind = moves.GROUND_POUND
    elif status[env, me, RECOVERIES] > 0:
        kind = moves.RECOVERY
    else:
        return NO_MOVE
    return status[env, me, WEAPON] * moves.PER_WEAPON + kind


def attack(status, env, me, move):
    enter(status, env, me, WINDING_UP, moves.TOTAL[move])
    status[env, me, MOVE] = move
    status[env, me, MOVE_FRAME] = 1
    status[env, me, STRUCK] = 0
    if move % moves.PER_WEAPON == moves.RECOVERY:
        status[env, me, RECOVERIES] -= 1


def dash_or_dodge(motion, status, env, me, keys, direction):
    """On the ground a direction makes it a dash, or a backdash if it points behind. Says whether
    anything came of it."""
    grounded = status[env, me, SURFACE] != AIR
    if grounded and direction != 0:
        if dashing(status[env, me, MODE]) or status[env, me, MODE] == SPRINTING:
            return False
        backwards = direction != status[env, me, FACING]
        enter(status, env, me, BACKDASHING if backwards else DASHING, DASH_FRAMES)
        return True
    if status[env, me, DODGE_WAIT] > 0:
        return False
    enter(status, env, me, DODGING, DODGE_FRAMES)
    status[env, me, SAFE] = max(status[env, me, SAFE], DODGE_FRAMES)
    status[env, me, DODGE_WAIT] = DODGE_GAP_GROUND if grounded else DODGE_GAP_AIR
    if not grounded:
        climb = (1 if keys & UP else 0) - (1 if keys & DOWN else 0)
        motion[env, me, SPEED_X] = AIR_DODGE * float32(direction)
        motion[env, me, SPEED_Y] = AIR_DODGE * float32(climb)
    return True


def leap(motion, status, env, me):
    if status[env, me, SURFACE] == AIR:
        status[env, me, JUMPS] -= 1
    status[env, me, SURFACE] = AIR
    status[env, me, JUMP_WAIT] = JUMP_GAP
    motion[env, me, SPEED_Y] = JUMP_SPEED
    enter(status, env, me, AIRBORNE, 0)


def walk(status, env, me, keys, direction):
    """What is left when no other key did anything: walking, sprinting on, falling fast, dropping
    through the platform."""
    mode = status[env, me, MODE]
    if status[env, me, SURFACE] == AIR:
        return
    if dashing(mode):
        return
    if keys & DOWN != 0 and status[env, me, SURFACE] == PLATFORM:
        status[env, me, SURFACE] = AIR
        enter(status, env, me, FAST_FALLING, 0)
        return
    goes_on = mode == SPRINTING and direction == status[env, me, FACING]
    if direction != 0:
        status[env, me, FACING] = direction
    if not goes_on:
        status[env, me, MODE] = STANDING if direction == 0 else WALKING


def act(motion, status, env, me):
    """What the held keys start in this frame, first come first served: attack, dash or dodge, jump,
    taunt, walk."""
    if not in_control(status[env, me, MODE]):
        return
    keys = status[env, me, KEYS]
    direction = (1 if keys & RIGHT else 0) - (1 if keys & LEFT else 0)
    if keys & (LIGHT | HEAVY):
        move = chosen_move(status, env, me, keys)
        if move != NO_MOVE:
            if direction != 0:
                status[env, me, FACING] = direction
            attack(status, env, me, move)
            return
    if keys & DASH and dash_or_dodge(motion, status, env, me, keys, direction):
        return
    can_jump = status[env, me, SURFACE] != AIR or status[env, me, JUMPS] > 0
    if keys & JUMP and can_jump and status[env, me, JUMP_WAIT] == 0:
        leap(motion, status, env, me)
        if direction != 0:
            status[env, me, FACING] = direction
        return
    if keys & TAUNT and status[env, me, SURFACE] != AIR:
        enter(status, env, me, TAUNTING, TAUNT_FRAMES)
        return
    walk(status, env, me, keys, direction)


# -- bodies ----------------------------------------------------------------------------------------


def lunge(motion, status, env, me):
    """In its first active frame a move strikes, and may push the fighter itself."""
    move = status[env, me, MOVE]
    if status[env, me, MODE] != WINDING_UP or status[env, me, MOVE_FRAME] < moves.FIRST[move, 0]:
        return
    status[env, me, MODE] = STRIKING
    if moves.PUSH_X[move] != 0.0:
        motion[env, me, SPEED_X] = moves.PUSH_X[move] * float32(status[env, me, FACING])
    if moves.PUSH_Y[move] != 0.0:
        motion[env, me, SPEED_Y] = moves.PUSH_Y[move]


def ground_speed(mode, facing, speed):
    if mode == WALKING:
        return WALK * facing
    if mode == DASHING:
        return DASH_SPEED * facing
    if mode == SPRINTING:
        return SPRINT * facing
    if mode == BACKDASHING:
        return -BACKDASH * facing
    return float32(0.0) if mode == STANDING else BRAKE * speed


def air_speed(mode, direction, speed):
    """Horizontal speed in the air: drawn towards walking pace by a key (during moves too),
    otherwise towards rest."""
    if mode == STUNNED:
        return STUN_DECAY * speed
    steered = direction != 0 and (in_control(mode) or attacking(mode))
    change = (AIR_PUSH if steered else AIR_DRAG) * FRAME
    wanted = WALK * float32(direction) if steered else float32(0.0)
    return speed + geometry.clamp(wanted - speed, -change, change)


def fall(motion, status, env, me):
    speed, mode = motion[env, me, SPEED_Y], status[env, me, MODE]
    if mode == STUNNED:
        motion[env, me, SPEED_Y] = STUN_DECAY * speed - GRAVITY * FRAME
        return
    if mode == DODGING:
        return
    if mode == AIRBORNE and status[env, me, KEYS] & DOWN != 0 and speed <= 0.0:
        status[env, me, MODE] = FAST_FALLING
    if status[env, me, MODE] == FAST_FALLING:
        motion[env, me, SPEED_Y] = -FAST_FALL
        return
    limit = FAST_FALL if mode == STRIKING else FASTEST_FALL
    motion[env, me, SPEED_Y] = max(speed - GRAVITY * FRAME, -limit)


def land(motion, status, env, me, surface, top):
    """Touches down on a surface; a fighter stunned and falling hard bounces off it instead."""
    motion[env, me, Y] = top + HALF_HEIGHT
    if status[env, me, MODE] == STUNNED and motion[env, me, SPEED_Y] < -SLOWEST_BOUNCE:
        motion[env, me, SPEED_Y] = -BOUNCE * motion[env, me, SPEED_Y]
        return
    motion[env, me, SPEED_Y] = 0.0
    status[env, me, SURFACE] = surface
    status[env, me, JUMPS] = AIR_JUMPS
    status[env, me, RECOVERIES] = 1
    if in_control(status[env, me, MODE]):
        enter(status, env, me, STANDING, 0)


def lose_footing(status, env, me):
    status[env, me, SURFACE] = AIR
    if in_control(status[env, me, MODE]):
        enter(status, env, me, AIRBORNE, 0)


def stay_on(motion, status, stage, env, me):
    """A fighter on a surface: carried along by the platform, airborne once it has left the edge or
    the surface."""
    if motion[env, me, SPEED_Y] > 0.0:
        lose_footing(status, env, me)
        return
    motion[env, me, SPEED_Y] = 0.0
    if status[env, me, SURFACE] == PLATFORM:
        now = platform_x(stage[env, SHUTTLE])
        before = platform_x((stage[env, SHUTTLE] + PLATFORM_PERIOD - 1) % PLATFORM_PERIOD)
        motion[env, me, X] += now - before
        motion[env, me, Y] = platform_top(now) + HALF_HEIGHT
        if not over_platform(motion[env, me, X], now):
            lose_footing(status, env, me)
    elif not over_ground(motion[env, me, X]):
        lose_footing(status, env, me)


def come_down(motion, status, stage, env, me, feet_before):
    """A fighter in the air: lands on what its feet have just passed from above."""
    x, feet = motion[env, me, X], motion[env, me, Y] - HALF_HEIGHT
    if motion[env, me, SPEED_Y] > 0.0:
        return
    if over_ground(x):
        top = ground_top(x)
        if feet_before >= top - ROUNDING and feet <= top:
            land(motion, status, env, me, GROUND, top)
            return
    now = platform_x(stage[env, SHUTTLE])
    before = platform_x((stage[env, SHUTTLE] + PLATFORM_PERIOD - 1) % PLATFORM_PERIOD)
    passing = status[env, me, KEYS] & DOWN != 0 and in_control(status[env, me, MODE])
    crossed = feet_before >= platform_top(before) - ROUNDING and feet <= platform_top(now)
    if over_platform(x, now) and crossed and not passing:
        land(motion, status, env, me, PLATFORM, platform_top(now))


def move_body(motion, status, stage, env, me):
    """Speeds, then the position, then what it stands on. The platform has already moved."""
    lunge(motion, status, env, me)
    keys, mode = status[env, me, KEYS], status[env, me, MODE]
    direction = (1 if keys & RIGHT else 0) - (1 if keys & LEFT else 0)
    if status[env, me, SURFACE] != AIR:
        motion[env, me, SPEED_X] = ground_speed(
            mode, float32(status[env, me, FACING]), motion[env, me, SPEED_X]
        )
        motion[env, me, X] += motion[env, me, SPEED_X] * FRAME
        motion[env, me, Y] += max(motion[env, me, SPEED_Y], 0.0) * FRAME
        stay_on(motion, status, stage, env, me)
        return
    motion[env, me, SPEED_X] = air_speed(mode, direction, motion[env, me, SPEED_X])
    fall(motion, status, env, me)
    feet_before = motion[env, me, Y] - HALF_HEIGHT
    motion[env, me, X] += motion[env, me, SPEED_X] * FRAME
    motion[env, me, Y] += motion[env, me, SPEED_Y] * FRAME
    come_down(motion, status, stage, env, me, feet_before)
