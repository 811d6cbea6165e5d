"""The scripted fighters, and which of them are for training.

Every bot is a style's keys, pressed by `press`. Those that react do so a little late now and then,
as people do.
"""

from ludus.games.brawl.senses import hesitate
from ludus.games.brawl.state import KEY_NAMES, LEFT, RIGHT, SIDE
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

NUM_KEYS = len(KEY_NAMES)
SWITCH_FRAMES = 450  # from one style of the switcher to the next


def press(binary, env, agent, status, keys):
    """Presses keys meant for the stage as it is: left and right are swapped for a fighter that sees
    it mirrored."""
    if status[env, agent, SIDE] < 0:
        left, right = keys & LEFT != 0, keys & RIGHT != 0
        keys = keys & ~(LEFT | RIGHT)
        if left:
            keys |= RIGHT
        if right:
            keys |= LEFT
    for key in range(NUM_KEYS):
        binary[env, agent, key] = keys >> key & 1


@phase(lanes="agents", writes="binary")
def constant(env, agent, status, binary):
    """Stands still."""
    keys = 0
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def based(env, agent, key, motion, status, binary):
    """Returns to the stage, walks up, jumps when below, strikes lightly within reach."""
    keys = hesitate(key[env], agent, based_keys(motion, status, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def clockwork(env, agent, step, decision_frames, status, binary):
    """The same drill over and over."""
    keys = clockwork_keys(step[env] * decision_frames[env])
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def aggressive(env, agent, key, motion, status, stage, binary):
    """Dashes in and strikes; takes weapons on its way."""
    keys = hesitate(key[env], agent, aggressive_keys(motion, status, stage, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def defensive(env, agent, key, motion, status, binary):
    """Holds its own ground, dodges, strikes what comes near."""
    keys = hesitate(key[env], agent, defensive_keys(motion, status, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def kiter(env, agent, key, motion, status, stage, binary):
    """Keeps away and strikes who cannot answer."""
    keys = hesitate(key[env], agent, kiter_keys(motion, status, stage, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def switcher(env, agent, step, decision_frames, key, motion, status, stage, binary):
    """Aggressive, then defensive, then kiter, 15 seconds each."""
    style = (step[env] * decision_frames[env] // SWITCH_FRAMES) % 3
    if style == 0:
        keys = aggressive_keys(motion, status, stage, env, agent)
    elif style == 1:
        keys = defensive_keys(motion, status, env, agent)
    else:
        keys = kiter_keys(motion, status, stage, env, agent)
    keys = hesitate(key[env], agent, keys)
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def parry(env, agent, key, motion, status, binary):
    """Waits; dodges slow blows and strikes back. Walk up and jab: lunging at it is wrong."""
    keys = hesitate(key[env], agent, parry_keys(motion, status, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def pounce(env, agent, key, motion, status, binary):
    """Waits, looking like parry; strikes who walks up and slips away from jabs. Lunge: walking up
    is wrong."""
    keys = hesitate(key[env], agent, pounce_keys(motion, status, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def jumper(env, agent, key, motion, status, binary):
    """Held out: always in the air."""
    keys = hesitate(key[env], agent, jumper_keys(motion, status, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def edge_guard(env, agent, key, motion, status, binary):
    """Held out: meets its opponent at the edge of the stage."""
    keys = hesitate(key[env], agent, edge_guard_keys(motion, status, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def zoner(env, agent, key, motion, status, stage, binary):
    """Held out: fetches a weapon and pokes from afar."""
    keys = hesitate(key[env], agent, zoner_keys(motion, status, stage, env, agent))
    press(binary, env, agent, status, keys)


@phase(lanes="agents", writes="binary")
def camper(env, agent, key, motion, status, stage, binary):
    """Held out: rides the platform."""
    keys = hesitate(key[env], agent, camper_keys(motion, status, stage, env, agent))
    press(binary, env, agent, status, keys)


TRAINING_BOTS = [constant, based, clockwork, aggressive, defensive, kiter, switcher, parry, pounce]
# to test generalisation: never train against these
HELD_OUT_BOTS = [jumper, edge_guard, zoner, camper]
