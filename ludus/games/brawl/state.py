"""The words of brawl: what the entries of its state arrays mean, and the values they take.

`motion[env, fighter, …]` holds a fighter's numbers, `status[env, fighter, …]` its counters and
modes, `stage[env, …]` what moves or lies on the stage, `event[env, fighter, …]` what happened to a
fighter during the current step.
"""

FRAME = 1.0 / 30.0  # seconds

# motion: position is the middle of the body, y up
X, Y, SPEED_X, SPEED_Y, DAMAGE = range(5)
MOTION = 5

# status
(
    MODE,  # one of the thirteen below
    TIMER,  # frames left in a mode that runs out
    FACING,  # 1 right, -1 left
    SURFACE,  # what it stands on
    JUMPS,  # left in the air
    RECOVERIES,  # left in the air
    DODGE_WAIT,  # frames until it can dodge again
    JUMP_WAIT,  # frames until it can jump again
    SAFE,  # frames of invulnerability left
    WEAPON,
    MOVE,  # number in the table of moves, or NO_MOVE
    MOVE_FRAME,  # 1 in the move's first frame
    STRUCK,  # one bit for every hit of the move that has landed
    STOCKS,
    COMBO_WAIT,  # frames in which another hit taken counts as a combo
    # 1 started on the left, -1 on the right: this fighter's observations and keys are mirrored
    SIDE,
    KEYS,  # held during this decision, as bits
) = range(17)
STATUS = 17

(
    STANDING,
    WALKING,
    DASHING,
    BACKDASHING,
    SPRINTING,
    AIRBORNE,
    FAST_FALLING,
    DODGING,
    TAUNTING,
    WINDING_UP,
    STRIKING,
    STUNNED,
    OUT,
) = range(13)
MODES = 13
MODE_NAMES = (
    "standing",
    "walking",
    "dashing",
    "backdashing",
    "sprinting",
    "airborne",
    "fast_falling",
    "dodging",
    "taunting",
    "winding_up",
    "striking",
    "stunned",
    "out",
)

AIR, GROUND, PLATFORM = range(3)  # values of SURFACE
UNARMED, SPEAR, HAMMER = range(3)  # values of WEAPON
NO_MOVE = -1

# keys as bits
KEY_NAMES = ("up", "left", "down", "right", "jump", "pick", "dash", "light", "heavy", "taunt")
UP, LEFT, DOWN, RIGHT, JUMP, PICK, DASH, LIGHT, HEAVY, TAUNT = (1 << i for i in range(10))

# stage: how far the platform is on its way, then for each of the two places a weapon and its frames
# left
SHUTTLE, WEAPON_KIND, WEAPON_TIME = 0, 1, 3
PLACES = 2
STAGE = WEAPON_TIME + PLACES

# event: amounts of this step
HURT, FELL, IN_DANGER, PRESSED, COMBO, PICKED, DROPPED, MISSED = range(8)
EVENTS = 8
