"""Racing, declared twice over the same rules: `racing` sees through a camera, `racing_lidar`
through 19 beams."""

from collections.abc import Mapping

from ludus.errors import LudusError
from ludus.games.racing import car, observation, rules, track, vision
from ludus.games.racing.bots import driver, full_gas
from ludus.sim import (
    Choice,
    Game,
    Goal,
    Headline,
    Image,
    Param,
    Phase,
    Role,
    Term,
    f32,
    flag,
    i32,
    u8,
)
from ludus.sim.game import Field

# first tracks of evaluations: those that choose a checkpoint, and those that judge it
VALIDATION, HELD_OUT = 250_000, 500_000


def check(sizes: Mapping[str, int], params: Mapping[str, float]) -> None:
    first, last = sizes["first_track"], sizes["first_track"] + sizes["tracks"] - 1
    for start in (VALIDATION, HELD_OUT):
        if first < start <= last:
            raise LudusError(
                f"tracks {first} to {last} reach into those held out for evaluation, which begin "
                f"at {start}: "
                f"use first_track at most {start - sizes['tracks']}"
            )


STATE = dict(
    # the bank, shared by all envs
    bank_line=f32("tracks", track.POINTS, track.POINT, shared=True),
    bank_length=f32("tracks", shared=True),
    bank_half_width=f32("tracks", shared=True),
    bank_map=u8("tracks", track.TEXELS, track.TEXELS, shared=True),
    bank_knots=f32("tracks", track.KNOTS, 2, shared=True),
    bank_samples=f32("tracks", track.KNOTS * track.SAMPLES, shared=True),
    # an env's own
    track=i32(),
    walled=flag(),
    car=f32("agents", car.CAR),
    at=i32("agents"),
    laps=i32("agents"),
    across=f32("agents"),
    along=f32("agents"),
    reached=i32("agents"),
    stalled=i32("agents"),
)

# The bank follows from these. They are fixed for a batch, like the number of tracks, so they are
# sizes.
BANK_SIZES = dict(tracks=32, first_track=0, shape=track.CIRCUIT)
BANK_LIMITS = dict(tracks=(1, 4096), first_track=(0, 1_000_000), shape=(track.CIRCUIT, track.OVAL))


def declare(
    *,
    name: str,
    sees: str,
    sizes: Mapping[str, int],
    size_limits: Mapping[str, tuple[int, int]],
    state: Mapping[str, Field],
    observed: list[str],
    setup: list[Phase],
    see: list[Phase],
    seen: Mapping[str, Image] | None = None,
) -> Game:
    """A game of racing with its own way to see: the phases of `see`, run in every step and
    reset."""
    return Game(
        name=name,
        summary=f"one lap against the clock on a track not seen before, {sees}",
        sizes={**BANK_SIZES, **sizes},
        size_limits={**BANK_LIMITS, **size_limits},
        roles=[Role("driver")],
        state={**STATE, **state},
        params=dict(
            max_steps=Param(1_000, 1, 100_000, "steps of 0.05 s until the episode is cut off"),
            far_off=Param(
                25.0, 10.0, 60.0, "metres from the centre line at which the episode is lost"
            ),
            walls=Param(0.25, 0.0, 1.0, "share of the tracks with walls beside the road"),
            action_history=Param(
                0, 0, 1, "1: the last four actions are observed; 0: zeros in their place"
            ),
        ),
        observation=observed,
        seen=seen or {},
        action=dict(drive=Choice(car.ACTIONS)),
        rewards=dict(
            progress=Term(
                "progress",
                1.0,
                most=track.LONGEST / 10.0,
                help="for every 10 metres of centre line reached for the first time",
            ),
            finish=Term("goal", 100.0, most=1, help="at the finish"),
            time_bonus=Term(
                "goal", 0.0, most=1, help="at the finish: the share of the time that is left"
            ),
            exponential_bonus=Term(
                "goal",
                0.0,
                most=rules.BONUS_MOST,
                help="at the finish: exp(max_steps / steps - 1), at most 5; the original's",
            ),
        ),
        goal_metrics=dict(
            finish=Goal("1 if the lap was finished", share=True),
            time=Goal(
                "seconds to the finish; the longest possible if not finished",
                higher_is_better=False,
            ),
            progress=Goal("share of the lap that was reached", share=True),
        ),
        headline=Headline("finish"),
        setup=[track.lay_out, track.draw_map, *setup],
        step=[car.drive, rules.follow, car.meet_wall, rules.judge, *see, rules.observe_car],
        reset=[rules.choose_track, car.line_up, rules.start_counting, *see, rules.observe_car],
        bots=dict(driver=[driver, full_gas]),
        held_out=dict(first_track=HELD_OUT, tracks=256),
        validation=dict(first_track=VALIDATION, tracks=128),
        check=check,
        presets=dict(
            oval=dict(shape=track.OVAL, tracks=1, walls=0.0),
            seed_failing={"action_history": 1, "reward.exponential_bonus": 100.0},
        ),
    )


GAME = declare(
    name="racing",
    sees="seen through a camera",
    sizes=dict(camera=64),
    size_limits=dict(camera=(8, 256)),
    state=dict(
        lens=i32("camera", "camera", 2, shared=True),
        view=i32("agents", vision.VIEW),
        seen_camera=u8("agents", "camera", "camera"),
    ),
    observed=observation.CAR_NAMES,
    setup=[vision.grind],
    see=[vision.aim, vision.expose],
    seen=dict(camera=Image(frames=4)),
)

LIDAR = declare(
    name="racing_lidar",
    sees="felt by a lidar of 19 beams",
    sizes=dict(beams=observation.BEAMS),
    size_limits=dict(beams=(observation.BEAMS, observation.BEAMS)),
    state={},
    observed=observation.LIDAR_NAMES,
    setup=[],
    see=[vision.scan],
)
