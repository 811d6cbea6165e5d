"""Brawl, declared: spaces, rewards, parameters, presets."""

from ludus.games.brawl.bots import HELD_OUT_BOTS, TRAINING_BOTS
from ludus.games.brawl.combat import DAMAGE_CAP
from ludus.games.brawl.observation import NAMES, mask_keys, observe
from ludus.games.brawl.rules import (
    COMBO_MOST,
    DANGER_MOST,
    FARTHEST,
    MISS_MOST,
    PRESSURE_MOST,
    WEAPON_MOST,
    fight,
    judge,
    listen,
    score,
    shape,
    start,
    start_counting,
)
from ludus.games.brawl.state import EVENTS, KEY_NAMES, MOTION, STAGE, STATUS
from ludus.sim import Binary, Game, Goal, Headline, Param, Role, Term, f32, i32

DENSE = {
    "reward.danger": -0.01,
    "reward.closing": 0.005,
    "reward.pressure": 0.01,
    "reward.combo": 0.5,
    "reward.pick_up": 1.0,
    "reward.drop": -1.0,
    "reward.spam": -0.01,
}
MOST_DAMAGE = f"stocks * {DAMAGE_CAP:.0f}"

GAME = Game(
    name="brawl",
    summary="two fighters on a stage with a pit: knock the other one out",
    roles=[Role("fighter", teams=2)],
    state=dict(
        motion=f32("agents", MOTION),
        status=i32("agents", STATUS),
        stage=i32(STAGE),
        event=f32("agents", EVENTS),
        paid=f32("agents", EVENTS),
        apart=f32("agents"),
    ),
    params=dict(
        max_steps=Param(
            900, 2, 10_000, "decisions until time is up: 900 of 3 frames are 90 seconds"
        ),
        decision_frames=Param(3, 1, 9, "frames, 30 a second, for which a decision's keys are held"),
        stocks=Param(3, 1, 9, "knock-outs that lose the match"),
        knockback=Param(
            0.096, 0.01, 1.0, "speed that one unit of force gives to whom a hit throws"
        ),
        weapon_wait=Param(150, 1, 10_000, "frames from one weapon to the next at the same place"),
    ),
    observation=NAMES,
    action={name: Binary(masked=True) for name in KEY_NAMES},
    rewards=dict(
        damage_dealt=Term("progress", 0.1, most=MOST_DAMAGE, help="a point of damage"),
        damage_taken=Term("progress", -0.1, most=MOST_DAMAGE, help="a point of damage"),
        knock_out=Term("goal", 50.0, most="stocks", help="the opponent loses a stock"),
        knocked_out=Term("goal", -50.0, most="stocks"),
        win=Term("goal", 100.0, most=1),
        loss=Term("goal", -100.0, most=1),
        danger=Term("shaping", 0.0, most=DANGER_MOST, help="a frame far off the stage"),
        closing=Term(
            "potential", 0.0, most=FARTHEST, least=-FARTHEST, help="a unit closer to the opponent"
        ),
        pressure=Term(
            "shaping",
            0.0,
            most=PRESSURE_MOST,
            help="a frame with the opponent cornered at the outer edge",
        ),
        combo=Term("shaping", 0.0, most=COMBO_MOST, help="a hit right after the last one"),
        pick_up=Term("shaping", 0.0, most=WEAPON_MOST, help="a weapon picked up"),
        drop=Term("cost", 0.0, most=WEAPON_MOST, help="a weapon dropped"),
        spam=Term("cost", 0.0, most=MISS_MOST, help="a move that ends without having hit"),
    ),
    goal_metrics=dict(
        win=Goal("1 if it won; a draw is no win", share=True),
        draw=Goal("1 if neither won", higher_is_better=False, share=True),
        stock_difference=Goal("stocks the opponent lost, less those lost"),
        damage_difference=Goal("damage dealt, less damage taken"),
    ),
    headline=Headline("win", against="bot:based"),
    step=[listen, fight, score, shape, judge, observe, mask_keys],
    reset=[start, start_counting, observe, mask_keys],
    bots=dict(fighter=[*TRAINING_BOTS, *HELD_OUT_BOTS]),
    presets=dict(
        sparse=dict.fromkeys(DENSE, 0.0),
        dense=DENSE,
        every_frame=dict(decision_frames=1, max_steps=2700),
    ),
)
