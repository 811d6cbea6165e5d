"""The scripted fighters, and which of them are for training.

Every bot is a style's keys, pressed by `press`. Those that react do so a little late now and then,
as people do.
"""

from ludus.games.brawl.senses import hesitate
from ludus.games.brawl.state import (
    DASH,
    DOWN,
    HEAVY,
    JUMP,
    LEFT,
    LIGHT,
    PICK,
    RIGHT,
    SIDE,
    TAUNT,
    UP,
)
from ludus.games.brawl.styles import (
    aggressive_keys,
    based_keys,
    camper_keys,
    clockwork_keys,
    defensive_keys,
    edge_guard_keys,
    jumper_keys,
    kiter_keys,
    parry_keys,
    pounce_keys,
    zoner_keys,
)
from ludus.sim import phase

WRITES = (
    "action_up",
    "action_left",
    "action_down",
    "action_right",
    "action_jump",
    "action_pick",
    "action_dash",
    "action_light",
    "action_heavy",
    "action_taunt",
)
SWITCH_FRAMES = 450  # from one style of the switcher to the next


def press(
    env,
    agent,
    status,
    keys,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Presses keys meant for the stage as it is: left and right are swapped for a fighter that sees
    it mirrored."""
    mirrored = status[env, agent, SIDE] < 0
    action_up[env, agent] = keys & UP != 0
    action_left[env, agent] = keys & (RIGHT if mirrored else LEFT) != 0
    action_down[env, agent] = keys & DOWN != 0
    action_right[env, agent] = keys & (LEFT if mirrored else RIGHT) != 0
    action_jump[env, agent] = keys & JUMP != 0
    action_pick[env, agent] = keys & PICK != 0
    action_dash[env, agent] = keys & DASH != 0
    action_light[env, agent] = keys & LIGHT != 0
    action_heavy[env, agent] = keys & HEAVY != 0
    action_taunt[env, agent] = keys & TAUNT != 0


@phase(lanes="agents", writes=WRITES)
def constant(
    env,
    agent,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Stands still."""
    keys = 0
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def based(
    env,
    agent,
    key,
    motion,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Returns to the stage, walks up, jumps when below, strikes lightly within reach."""
    keys = hesitate(key[env], agent, based_keys(motion, status, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def clockwork(
    env,
    agent,
    step,
    decision_frames,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """The same drill over and over."""
    keys = clockwork_keys(step[env] * decision_frames[env])
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def aggressive(
    env,
    agent,
    key,
    motion,
    status,
    stage,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Dashes in and strikes; takes weapons on its way."""
    keys = hesitate(key[env], agent, aggressive_keys(motion, status, stage, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def defensive(
    env,
    agent,
    key,
    motion,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Holds its own ground, dodges, strikes what comes near."""
    keys = hesitate(key[env], agent, defensive_keys(motion, status, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def kiter(
    env,
    agent,
    key,
    motion,
    status,
    stage,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Keeps away and strikes who cannot answer."""
    keys = hesitate(key[env], agent, kiter_keys(motion, status, stage, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def switcher(
    env,
    agent,
    step,
    decision_frames,
    key,
    motion,
    status,
    stage,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Aggressive, then defensive, then kiter, 15 seconds each."""
    style = (step[env] * decision_frames[env] // SWITCH_FRAMES) % 3
    if style == 0:
        keys = aggressive_keys(motion, status, stage, env, agent)
    elif style == 1:
        keys = defensive_keys(motion, status, env, agent)
    else:
        keys = kiter_keys(motion, status, stage, env, agent)
    keys = hesitate(key[env], agent, keys)
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def parry(
    env,
    agent,
    key,
    motion,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Waits; dodges slow blows and strikes back. Walk up and jab: lunging at it is wrong."""
    keys = hesitate(key[env], agent, parry_keys(motion, status, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def pounce(
    env,
    agent,
    key,
    motion,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Waits, looking like parry; strikes who walks up and slips away from jabs. Lunge: walking up
    is wrong."""
    keys = hesitate(key[env], agent, pounce_keys(motion, status, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def jumper(
    env,
    agent,
    key,
    motion,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Held out: always in the air."""
    keys = hesitate(key[env], agent, jumper_keys(motion, status, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def edge_guard(
    env,
    agent,
    key,
    motion,
    status,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Held out: meets its opponent at the edge of the stage."""
    keys = hesitate(key[env], agent, edge_guard_keys(motion, status, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def zoner(
    env,
    agent,
    key,
    motion,
    status,
    stage,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Held out: fetches a weapon and pokes from afar."""
    keys = hesitate(key[env], agent, zoner_keys(motion, status, stage, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


@phase(lanes="agents", writes=WRITES)
def camper(
    env,
    agent,
    key,
    motion,
    status,
    stage,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """Held out: rides the platform."""
    keys = hesitate(key[env], agent, camper_keys(motion, status, stage, env, agent))
    press(
        env,
        agent,
        status,
        keys,
        action_up,
        action_left,
        action_down,
        action_right,
        action_jump,
        action_pick,
        action_dash,
        action_light,
        action_heavy,
        action_taunt,
    )


TRAINING_BOTS = [constant, based, clockwork, aggressive, defensive, kiter, switcher, parry, pounce]
HELD_OUT_BOTS = [
    jumper,
    edge_guard,
    zoner,
    camper,
]  # to test generalisation: never train against these
