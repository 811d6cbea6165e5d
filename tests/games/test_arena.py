"""The arena against what its rules say: converters and fights by hand, rewards by arithmetic,
invariants over random play, and each mistake of the original as a test."""

import numpy as np
import pytest

import ludus
from ludus.errors import LudusError
from ludus.games.arena import observation, timing
from ludus.games.arena.actions import GOT, LOOTED, PUT_IN, ROBBED
from ludus.games.arena.chain import earliest_rewards
from ludus.games.arena.spec import GAME, SMALL
from ludus.games.arena.world import (
    ACTS,
    ARMOR,
    BATTERY,
    BLOCK,
    BORDER,
    COLUMN_STEP,
    EMPTY,
    FACED,
    FIRST_CONVERTER,
    HEART,
    LASER,
    ORE,
    OUTPUT,
    OUTSIDE,
    ROW_STEP,
    WALL,
    mark,
)
from ludus.recipes import load_recipe
from ludus.sim import Batch

KIND = {"mine": 0, "generator": 1, "altar": 2, "armory": 3, "lasery": 4}
WAY = {"north": 0, "east": 1, "south": 2, "west": 3}
NAMES = {name: i for i, name in enumerate(observation.NAMES)}
EMPTY_ROOM = dict(mines=0, generators=0, altars=0, blocks=0, walls=0)
TINY = dict(rooms=1, room=11, side=11 + 2 * BORDER, converters=8)
MIDDLE = BORDER + 5


def arena(population=2, num_envs=1, **overrides) -> Batch:
    """An empty room of 11×11; agent 0 in its middle facing north, the others along the south
    wall."""
    batch = Batch(
        GAME, num_envs, overrides={**EMPTY_ROOM, **TINY, "population": population, **overrides}
    )
    for agent in range(population):
        stand(
            batch,
            agent,
            MIDDLE if agent == 0 else BORDER + 10,
            MIDDLE if agent == 0 else BORDER + agent,
        )
    return batch


def set_cell(batch, r, c, what):
    batch["grid"][:, r, c] = what
    for env in range(batch.num_envs):
        mark(batch["filled"], env, np.int64(r), np.int64(c), what not in (EMPTY, OUTSIDE))


def stand(batch, agent, r, c, facing="north"):
    if batch["grid"][0, batch["row"][0, agent], batch["column"][0, agent]] == -1 - agent:
        set_cell(batch, batch["row"][0, agent], batch["column"][0, agent], EMPTY)
    batch["row"][:, agent], batch["column"][:, agent] = r, c
    batch["facing"][:, agent] = WAY[facing]
    set_cell(batch, r, c, -1 - agent)


def build(batch, kind, r, c, stock=0):
    """A converter in a cell; a mine has started, as at the beginning of an episode."""
    k = int(batch["converter_count"][0])
    batch["converter_count"][...] = k + 1
    batch["converter_kind"][:, k] = KIND[kind]
    batch["converter_row"][:, k], batch["converter_column"][:, k] = r, c
    batch["stock"][:, k] = stock
    if kind == "mine":
        batch["converting"][:, k], batch["timer"][:, k] = True, 1
    set_cell(batch, r, c, FIRST_CONVERTER + k)
    return k


def do(batch, *acts):
    """One step; the first agents act as named, the others not at all."""
    batch["choices"][...] = 0
    for agent, act in enumerate(acts):
        batch["action_act"][:, agent] = ACTS.index(act)
    batch.step()


def held(batch, agent=0):
    return batch["held"][0, agent].tolist()


def observed(batch, agent, name):
    return float(batch["observation"][0, agent, NAMES[name]])


# -- the map ---------------------------------------------------------------------------------------


def test_every_room_holds_what_was_asked_for_on_a_map_of_62():
    batch = Batch(GAME, 4, preset="combat")
    assert batch["grid"].shape == (4, 62, 62) and batch.layout.num_agents == 24
    for env in range(4):
        grid, kinds = batch["grid"][env], batch["converter_kind"][env]
        for room in range(4):
            top, left = BORDER + 25 * (room // 2), BORDER + 25 * (room % 2)
            cells = grid[top : top + 25, left : left + 25]
            assert (
                (cells == WALL).sum() == 20
                and (cells == BLOCK).sum() == 20
                and (cells < 0).sum() == 6
            )
            inside = kinds[cells[cells >= FIRST_CONVERTER] - FIRST_CONVERTER]
            assert np.bincount(inside, minlength=5).tolist() == [10, 5, 5, 1, 1]
        assert np.isin(
            np.delete(np.delete(grid, np.s_[6:56], 0), np.s_[6:56], 1), (WALL, OUTSIDE)
        ).all()
        assert (
            (grid[5, 5:57] == WALL).all()
            and (grid[56, 5:57] == WALL).all()
            and (grid[:5] == OUTSIDE).all()
        )


def test_every_episode_has_a_new_map_and_reset_forgets_everything():
    batch = Batch(GAME, 3, overrides=dict(max_steps=300, **SMALL))
    batch.set_controller("agent", "gatherer")
    batch.reset()
    first = batch["grid"].copy()
    for _ in range(300):
        batch.step()
    assert batch["terminated"].all() and not batch["truncated"].any() and batch["held"].any()
    batch.step()
    assert batch["resetting"].all() and not np.array_equal(first, batch["grid"])
    for name in (
        "held",
        "frozen_until",
        "item_counts",
        "act_counts",
        "first_step",
        "still_steps",
        "inside",
        "earned",
    ):
        assert not batch[name].any(), name


def test_a_full_room_can_be_built():
    """6 agents and 619 walls on 625 cells."""
    batch = Batch(GAME, 2, overrides={**SMALL, **EMPTY_ROOM, "walls": 619})
    inner = batch["grid"][:, BORDER:-BORDER, BORDER:-BORDER]
    assert (
        (inner == WALL).sum() == 2 * 619 and (inner < 0).sum() == 12 and not (inner == EMPTY).any()
    )


def test_rooms_can_differ_between_envs():
    batch = Batch(GAME, 2)
    batch.set_params({"rooms": np.array([1, 2]), "blocks": np.array([0, 7])})
    batch.reset()
    assert (batch["grid"] == BLOCK).sum((1, 2)).tolist() == [0, 28]
    assert (batch["row"][0] < BORDER + 25).all() and (batch["row"][1] >= BORDER + 25).any()
    assert batch["grid"][0, 31, 6] == WALL and batch["converter_count"].tolist() == [20, 80]


# -- converters ------------------------------------------------------------------------------------


def stock_over_time(batch, k, steps):
    """The steps at which a converter's stock grew, while nobody does anything."""
    grew, before = [], int(batch["stock"][0, k])
    for _ in range(steps):
        do(batch)
        if batch["stock"][0, k] > before:
            grew.append(int(batch["step"][0]))
        before = int(batch["stock"][0, k])
    return grew


def test_a_mine_produces_first_and_cools_down_after():
    batch = Batch(GAME, 1, overrides={**EMPTY_ROOM, **TINY, "mines": 1, "population": 1})
    # and stops at a full store of 5
    assert stock_over_time(batch, 0, 310) == [1, 52, 103, 154, 205]
    assert batch["stock"][0, 0] == 5 and batch["timer"][0, 0] == 0


def test_a_full_mine_starts_again_when_it_is_emptied():
    batch = arena()
    mine = build(batch, "mine", MIDDLE - 1, MIDDLE, stock=5)
    batch["converting"][...], batch["timer"][...] = False, 0
    do(batch, "get")
    assert held(batch)[ORE] == 5 and batch["stock"][0, mine] == 0
    assert stock_over_time(batch, mine, 60) == [2, 53]


def test_start_cooling_gives_the_seeds_reading():
    batch = Batch(
        GAME, 1, overrides={**EMPTY_ROOM, **TINY, "mines": 1, "population": 1, "start_cooling": 1}
    )
    assert stock_over_time(batch, 0, 260) == [50, 100, 150, 200, 250]


def test_a_generator_turns_ore_into_a_battery_in_one_step_and_cools_for_25():
    batch = arena()
    generator = build(batch, "generator", MIDDLE - 1, MIDDLE)
    batch["held"][0, 0, ORE] = 3
    do(batch, "put")  # one ore, consumed at once
    assert (
        held(batch)[ORE] == 2
        and batch["inside"][0, generator, ORE] == 0
        and batch["stock"][0, generator] == 0
    )
    do(batch, "put")  # the next conversion's ore waits inside
    assert (
        held(batch)[ORE] == 1
        and batch["stock"][0, generator] == 1
        and batch["inside"][0, generator, ORE] == 1
    )
    do(batch, "put")
    assert held(batch)[ORE] == 1 and not batch["last_success"][0, 0]  # it needs no more now
    do(batch, "get")
    assert held(batch)[:2] == [1, 1]
    assert stock_over_time(batch, generator, 60) == [28]  # out at 2, cool at 27, out again at 28


def test_an_altar_wants_three_batteries_and_takes_them_from_several_hands():
    batch = arena(altar_batteries=3)
    altar = build(batch, "altar", MIDDLE - 1, MIDDLE)
    stand(batch, 1, MIDDLE - 2, MIDDLE, "south")
    batch["held"][0, :, BATTERY] = 2, 5
    do(batch, "put")
    do(batch)
    assert batch["inside"][0, altar, BATTERY] == 2 and batch["stock"][0, altar] == 0
    do(batch, "noop", "put")  # min(needed, held) = 1
    assert held(batch, 1)[BATTERY] == 4 and batch["inside"][0, altar, BATTERY] == 0
    do(batch, "get")
    assert held(batch)[HEART] == 1
    do(batch, "noop", "put")
    # out at 4, cool at 14
    assert held(batch, 1)[BATTERY] == 1 and stock_over_time(batch, altar, 20) == [15]


@pytest.mark.parametrize(
    ("kind", "needs", "product"),
    [("armory", {ORE: 3}, ARMOR), ("lasery", {ORE: 1, BATTERY: 2}, LASER)],
    ids=["armory", "lasery"],
)
def test_armor_and_lasers(kind, needs, product):
    batch = arena()
    build(batch, kind, MIDDLE - 1, MIDDLE)
    batch["held"][0, 0, :2] = 4, 4
    do(batch, "put")
    assert held(batch)[:2] == [4 - needs.get(ORE, 0), 4 - needs.get(BATTERY, 0)]
    do(batch, "get")
    assert held(batch)[product] == 1


@pytest.mark.parametrize(("item", "limit"), [(ORE, 50), (HEART, 255)])
def test_get_takes_all_that_fits(item, limit):
    batch = arena()
    k = build(batch, "mine" if item == ORE else "altar", MIDDLE - 1, MIDDLE, stock=4)
    batch["converting"][...] = False
    batch["held"][0, 0, item] = limit - 3
    do(batch, "get")
    assert held(batch)[item] == limit and batch["stock"][0, k] == 1
    do(batch, "get")
    assert (
        held(batch)[item] == limit
        and not batch["last_success"][0, 0]
        and not batch["mask_act"][0, 0, ACTS.index("get")]
    )


def test_initial_stock():
    batch = Batch(GAME, 1, preset="navigation")
    assert batch["converter_count"][0] == 20 and (batch["stock"][0, :20] == 1).all()
    assert (batch["converter_kind"][0, :20] == KIND["altar"]).all()


# -- moving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAY)
def test_forward_and_backward_follow_the_facing(way):
    batch = arena()
    do(batch, way)
    assert batch["facing"][0, 0] == WAY[way] and (batch["row"][0, 0], batch["column"][0, 0]) == (
        MIDDLE,
        MIDDLE,
    )
    do(batch, "forward")
    at = (MIDDLE + ROW_STEP[WAY[way]], MIDDLE + COLUMN_STEP[WAY[way]])
    assert (batch["row"][0, 0], batch["column"][0, 0]) == at and batch["grid"][0][at] == -1
    do(batch, "backward")
    assert (batch["row"][0, 0], batch["column"][0, 0]) == (MIDDLE, MIDDLE) and batch["grid"][0][
        at
    ] == EMPTY


def test_nothing_is_walked_through():
    for what in ("wall", "block", "mine", "agent"):
        batch = arena()
        if what == "mine":
            build(batch, what, MIDDLE - 1, MIDDLE)
        elif what == "agent":
            stand(batch, 1, MIDDLE - 1, MIDDLE)
        else:
            set_cell(batch, MIDDLE - 1, MIDDLE, WALL if what == "wall" else BLOCK)
        do(batch, "forward")
        assert batch["row"][0, 0] == MIDDLE and not batch["last_success"][0, 0], what
    for _ in range(20):
        do(batch, "backward")
    assert batch["row"][0, 0] == BORDER + 10  # the border holds


def test_swap_changes_places_with_blocks_and_frozen_agents_only():
    batch = arena()
    set_cell(batch, MIDDLE - 1, MIDDLE, BLOCK)
    do(batch, "swap")
    assert batch["row"][0, 0] == MIDDLE - 1 and batch["grid"][0, MIDDLE, MIDDLE] == BLOCK
    stand(batch, 1, MIDDLE - 2, MIDDLE)
    do(batch, "swap")
    assert batch["row"][0, 0] == MIDDLE - 1 and not batch["last_success"][0, 0]
    batch["frozen_until"][0, 1] = 100
    do(batch, "swap")
    assert batch["row"][0].tolist() == [MIDDLE - 2, MIDDLE - 1]
    assert batch["grid"][0, MIDDLE - 2, MIDDLE] == -1 and batch["grid"][0, MIDDLE - 1, MIDDLE] == -2
    set_cell(batch, MIDDLE - 3, MIDDLE, WALL)
    do(batch, "swap")
    assert not batch["last_success"][0, 0]


@pytest.mark.parametrize("what", ["cell", "ore"])
def test_who_comes_first_is_drawn_anew(what):
    """Two agents reach for one cell, or for one ore: each gets it about half the time."""
    batch = arena(num_envs=400)
    stand(batch, 0, MIDDLE - 1, MIDDLE, "south")
    stand(batch, 1, MIDDLE + 1, MIDDLE, "north")
    if what == "ore":
        build(batch, "mine", MIDDLE, MIDDLE)
    do(batch, *(("forward", "forward") if what == "cell" else ("get", "get")))
    won = batch["last_success"]
    assert (won.sum(1) == 1).all() and 140 < won[:, 0].sum() < 260


# -- fighting --------------------------------------------------------------------------------------


def armed(population=2, lasers=5, **overrides):
    batch = arena(population, attack_cost=1, **overrides)
    batch["held"][:, 0, LASER] = lasers
    batch["paid"][:, 0, LASER] = min(lasers, 2)
    return batch


def test_the_nine_targets_are_the_3x3_cells_ahead():
    """Facing north, the first target is one ahead to the left: north-west."""
    offsets = [(-1, -1), (-1, 0), (-1, 1), (-2, -1), (-2, 0), (-2, 1), (-3, -1), (-3, 0), (-3, 1)]
    for turns, way in enumerate(WAY):
        for k, (down, right) in enumerate(offsets):
            for _ in range(turns):
                down, right = right, -down  # a quarter turn clockwise
            batch = armed()
            stand(batch, 0, MIDDLE, MIDDLE, way)
            stand(batch, 1, MIDDLE + down, MIDDLE + right)
            do(batch)
            allowed = batch["mask_act"][0, 0, ACTS.index("attack_near_left") :]
            assert np.flatnonzero(allowed).tolist() == [k]
            do(batch, ACTS[ACTS.index("attack_near_left") + k])
            assert batch["frozen_until"][0, 1] == 12 and held(batch)[LASER] == 4


def test_a_hit_takes_everything_that_fits_and_freezes_for_ten_steps():
    batch = armed()
    stand(batch, 1, MIDDLE - 2, MIDDLE)
    batch["held"][0, 0, ORE], batch["held"][0, 1] = 47, (9, 8, 0, 3, 200)
    do(batch, "attack_ahead", "forward")  # attacks come first: the victim stays where it is
    assert batch["row"][0, 1] == MIDDLE - 2 and held(batch, 1) == [0] * 5
    assert held(batch) == [50, 8, 0, 7, 200]  # of 9 ore only 3 fit; 5 - 1 + 3 lasers
    assert batch["item_counts"][0, 0, LOOTED].tolist() == [3, 8, 0, 3, 200]
    assert batch["item_counts"][0, 1, ROBBED].tolist() == [9, 8, 0, 3, 200]
    for step in range(10):
        assert batch["idle"][0, 1] and np.flatnonzero(batch["mask_act"][0, 1]).tolist() == [0], step
        assert observed(batch, 1, "frozen") == pytest.approx((10 - step) / 10)
        do(batch, "noop", "backward")
        assert batch["row"][0, 1] == MIDDLE - 2 and not batch["valid"][0, 1]
    assert batch["frozen_steps"][0, 1] == 11 and not batch["idle"][0, 1]
    do(batch, "noop", "forward")
    assert batch["row"][0, 1] == MIDDLE - 3 and batch["valid"][0, 1]


def test_the_frozen_are_frozen_anew_but_not_robbed_again():
    batch = armed()
    stand(batch, 1, MIDDLE - 1, MIDDLE)
    do(batch, "attack_near")
    batch["held"][0, 1, ORE] = 5
    do(batch)
    do(batch, "attack_near")
    assert (
        held(batch, 1)[ORE] == 5 and batch["frozen_until"][0, 1] == 13 and held(batch)[LASER] == 3
    )


def test_armor_absorbs_a_hit_and_both_are_spent():
    batch = armed()
    stand(batch, 1, MIDDLE - 1, MIDDLE)
    batch["held"][0, 1, ARMOR], batch["held"][0, 1, ORE] = 1, 2
    do(batch, "attack_near")
    assert held(batch)[LASER] == 4 and held(batch, 1) == [2, 0, 0, 0, 0] and not batch["idle"][0, 1]
    do(batch, "attack_near")
    assert held(batch)[ORE] == 2 and batch["idle"][0, 1]


def test_no_attack_without_the_lasers_it_costs_or_without_a_target():
    batch = arena(attack_cost=3)
    batch["held"][0, 0, LASER] = 2
    stand(batch, 1, MIDDLE - 1, MIDDLE)
    do(batch, "attack_near")
    assert held(batch)[LASER] == 2 and not batch["idle"][0, 1] and not batch["last_success"][0, 0]
    batch["held"][0, 0, LASER] = 3
    do(batch, "attack_far")
    assert held(batch)[LASER] == 3
    do(batch, "attack_near")
    assert held(batch)[LASER] == 0 and batch["idle"][0, 1]
    assert not batch["mask_act"][0, 0, ACTS.index("attack_near")]


def test_in_easy_shaped_nobody_can_fight():
    assert GAME.resolve(preset="easy_shaped").params["attack_cost"] > 50


def test_two_who_shoot_at_each_other_do_not_both_hit():
    batch = armed(num_envs=200)
    stand(batch, 1, MIDDLE - 1, MIDDLE, "south")
    batch["held"][:, 1, LASER] = 5
    do(batch, "attack_near", "attack_near")
    assert (batch["idle"].sum(1) == 1).all() and 60 < batch["idle"][:, 0].sum() < 140


# -- rewards ---------------------------------------------------------------------------------------


def test_rewards_follow_what_is_held_and_a_deposit_costs_it_again():
    """The whole chain by hand, easy_shaped: +0.1 ore, −0.1 put, +0.8 battery, −0.8 put, +1
    heart."""
    batch = arena()
    build(batch, "mine", MIDDLE - 1, MIDDLE)
    build(batch, "generator", MIDDLE, MIDDLE + 1)
    build(batch, "altar", MIDDLE + 1, MIDDLE)
    paid = []
    for act in ("get", "east", "put", "get", "south", "put", "get"):
        do(batch, act)
        paid.append(float(batch["reward"][0, 0]))
        # signed: −0.8 stays −0.8
        assert observed(batch, 0, "last_reward") == pytest.approx(paid[-1])
        assert batch["reward"][0, 1] == 0.0
    assert paid == pytest.approx([0.1, 0, -0.1, 0.8, 0, -0.8, 1.0])
    assert batch["first_step"][0, 0].tolist() == [1, 4, 0, 0, 7]
    assert [batch[f"goal_first_{n}"][0, 0] for n in ("ore", "battery", "heart")] == [1, 4, 7]
    assert [batch[f"goal_first_{n}"][0, 1] for n in ("ore", "battery", "heart")] == [1000] * 3
    assert [batch[f"goal_{n}"][0, 0] for n in ("ore", "batteries", "hearts")] == [1, 1, 1]


def test_gains_pays_what_is_taken_and_deposits_are_free():
    batch = arena(gains=1)
    build(batch, "mine", MIDDLE - 1, MIDDLE)
    build(batch, "generator", MIDDLE, MIDDLE + 1)
    build(batch, "altar", MIDDLE + 1, MIDDLE)
    paid = []
    for act in ("get", "east", "put", "get", "south", "put", "get"):
        do(batch, act)
        paid.append(float(batch["reward"][0, 0]))
    assert paid == pytest.approx([0.1, 0, 0, 0.8, 0, 0, 1.0])


@pytest.mark.parametrize(
    ("kind", "item", "rewards"),
    [
        ("mine", ORE, [0.1] * 10 + [0.0] * 3),
        ("generator", BATTERY, [0.8, 0.2, 0.0]),
        ("armory", ARMOR, [0.5, 0.5, 0.0]),
        ("lasery", LASER, [0.5, 0.5, 0.0]),
        ("altar", HEART, [1.0] * 6),
    ],
)
@pytest.mark.parametrize("gains", [0, 1])
def test_each_item_pays_its_rate_up_to_its_cap(kind, item, rewards, gains):
    batch = arena(gains=gains)
    k = build(batch, kind, MIDDLE - 1, MIDDLE)
    for expected in rewards:
        batch["stock"][0, k], batch["converting"][0, k], batch["timer"][0, k] = 1, False, 99
        do(batch, "get")
        assert batch["reward"][0, 0] == pytest.approx(expected, abs=1e-6)
    assert (
        GAME.rewards[list(GAME.rewards)[item]].weight * min(len(rewards), 255)
        >= sum(rewards) - 1e-6
    )


@pytest.mark.parametrize("gains", [0, 1])
def test_a_robbery_moves_reward_unless_only_gains_count(gains):
    batch = armed(gains=gains)
    stand(batch, 1, MIDDLE - 1, MIDDLE)
    batch["held"][0, 1], batch["paid"][0, 1] = (1, 0, 0, 0, 2), (1, 0, 0, 0, 2)
    do(batch, "attack_near")
    # 4 lasers are still above the cap
    assert batch["reward"][0].tolist() == pytest.approx([0.0, 0.0] if gains else [2.1, -2.1])


def test_a_group_shares():
    """4 agents in 2 groups (0, 2 and 1, 3); half of a reward is spread: the earner keeps 0.5 + 0.5
    / 2."""
    batch = arena(4, groups=2, group_share=0.5)
    build(batch, "altar", MIDDLE - 1, MIDDLE, stock=1)
    do(batch, "get")
    assert batch["reward"][0].tolist() == pytest.approx([0.75, 0.0, 0.25, 0.0])
    assert batch["goal_hearts"][0].tolist() == [1, 0, 0, 0]
    assert observed(batch, 2, "last_reward") == pytest.approx(0.25)


def test_reward_terms_are_in_the_order_of_the_items():
    assert list(GAME.rewards) == ["ore", "batteries", "armor", "lasers", "hearts"]
    assert [t.weight for t in GAME.rewards.values()] == [0.1, 0.8, 0.5, 0.5, 1.0]


# -- invariants over random play -------------------------------------------------------------------


def check_world(batch):
    for env in range(batch.num_envs):
        grid = batch["grid"][env]
        for agent in range(batch.layout.num_agents):
            assert grid[batch["row"][env, agent], batch["column"][env, agent]] == -1 - agent
        assert (grid < 0).sum() == batch.layout.num_agents
        bits = np.array(
            [
                [(int(w[c // 32]) >> (c % 32)) & 1 for c in range(grid.shape[1])]
                for w in batch["filled"][env]
            ]
        )
        assert np.array_equal(bits.astype(bool), ~np.isin(grid, (EMPTY, OUTSIDE)))
    flows = batch["item_counts"]
    spent = np.zeros_like(batch["held"], dtype=np.int64)
    attacks = batch["act_counts"][:, :, ACTS.index("attack_near_left") :, 1].sum(-1)
    spent[..., LASER] = attacks
    balance = (
        flows[:, :, GOT] - flows[:, :, PUT_IN] + flows[:, :, LOOTED] - flows[:, :, ROBBED] - spent
    )
    absorbed = balance - batch["held"]
    assert not np.delete(absorbed, ARMOR, -1).any() and (absorbed >= 0).all()
    assert (batch["stock"] <= 5).all() and (batch["held"] >= 0).all()


@pytest.fixture(scope="module")
def brawl():
    """Raiders and gatherers in a small room with everything in it."""
    overrides = {
        **SMALL,
        "population": 12,
        "attack_cost": 1,
        "armories": 1,
        "laseries": 1,
        "walls": 10,
    }
    batch = Batch(GAME, 8, overrides=overrides, seed=5)
    for env, bot in enumerate(["random", "gatherer", "raider", "raider"] * 2):
        batch.set_controller("agent", bot, envs=env)
    batch.reset()
    return batch


def expected_tokens(batch, env, agent):
    """The tokens of one agent, by looking at all 121 cells."""
    out = []
    grid, step, groups = batch["grid"][env], batch["step"][env], batch["groups"][env]
    r, c, way = batch["row"][env, agent], batch["column"][env, agent], batch["facing"][env, agent]
    cells = [((i // 11 - 5), (i % 11 - 5), i) for i in range(121) if i != 60]
    for down, right, cell in [(ROW_STEP[way], COLUMN_STEP[way], FACED), *cells]:
        what = grid[r + down, c + right]
        if what in (WALL, BLOCK):
            out.append((cell, 0 if what == WALL else 1, 1))
        elif what >= FIRST_CONVERTER:
            k = what - FIRST_CONVERTER
            kind = int(batch["converter_kind"][env, k])
            out.append((cell, 7 + 2 * kind + int(batch["timer"][env, k] > 0), 1))
            items = batch["inside"][env, k].copy()
            items[OUTPUT[kind]] += batch["stock"][env, k]
            out += [(cell, 2 + i, int(n)) for i, n in enumerate(items) if n]
        elif what < 0:
            other = -1 - what
            frozen = batch["frozen_until"][env, other] > step
            out.append(
                (
                    cell,
                    17
                    + batch["facing"][env, other]
                    + 4 * frozen
                    + 8 * (other % groups != agent % groups),
                    1,
                )
            )
            out += [(cell, 2 + i, int(n)) for i, n in enumerate(batch["held"][env, other]) if n]
    return sorted(tuple(map(int, t)) for t in out)


def test_random_play_keeps_the_world_whole_and_tokens_true(brawl):
    frozen = 0
    for i in range(400):
        brawl.step()
        if i % 25:
            continue
        check_world(brawl)
        for env in range(8):
            frozen += int(brawl["idle"][env].any())
            agent = (i // 25 + env) % 12
            count = brawl["token_count"][env, agent]
            tokens = brawl["seen_tokens"][env, agent]
            wanted = expected_tokens(brawl, env, agent)
            assert not tokens[count:].any() and (tokens[:count, 2] > 0).all()
            told = sorted(map(tuple, tokens[:count].tolist()))
            assert told == wanted if len(wanted) <= 48 else set(told) < set(wanted)
    assert frozen > 0 and brawl["item_counts"][:, :, LOOTED].any()


def test_when_there_are_too_many_tokens_the_farthest_rows_are_dropped():
    batch = arena(1, walls=110, tokens=20)
    do(batch)
    tokens = batch["seen_tokens"][0, 0]
    assert batch["token_count"][0, 0] == 20 and (tokens[:, 2] == 1).all()
    rows = abs(tokens[tokens[:, 0] != FACED, 0].astype(int) // 11 - 5)
    assert (np.diff(rows) >= 0).all() and rows.max() < 3


def test_token_rows_are_enumerable():
    assert (
        observation.FEATURES == 33 and FACED == 121 and (FACED + 1) * observation.FEATURES == 4026
    )


def test_the_mask_says_exactly_what_succeeds():
    """Alone in a crowded room an agent's world does not change between mask and action."""
    overrides = {**SMALL, "population": 1, "attack_cost": 1, "blocks": 80, "room": 15, "masking": 1}
    batch = Batch(GAME, 32, overrides=overrides)
    rng, seen = np.random.default_rng(0), set()
    batch["held"][..., ORE] = 3
    for _ in range(600):
        batch["held"][..., BATTERY] = rng.integers(0, 2, (32, 1))
        batch["choices"][...] = 0
        batch.step()
        mask = batch["mask_act"].copy()
        acts = rng.integers(0, len(ACTS), (32, 1))
        batch["action_act"][...] = acts
        facing = batch["facing"].copy()
        batch.step()
        for env in range(32):
            act = int(acts[env, 0])
            # a turn to where it looks already is masked as useless
            if batch["resetting"][env] or act == 3 + facing[env, 0]:
                continue
            assert batch["last_success"][env, 0] == mask[env, 0, act], ACTS[act]
            seen.add((act, bool(mask[env, 0, act])))
    assert {
        (ACTS.index(a), ok)
        for a in ("forward", "backward", "get", "put", "swap")
        for ok in (True, False)
    } <= seen


def test_masking_can_be_switched_off_and_impossible_actions_then_fail():
    batch = arena(masking=0)
    do(batch, "get")
    assert batch["mask_act"].all() and not batch["last_success"][0, 0]
    assert batch["act_counts"][0, 0, ACTS.index("get")].tolist() == [1, 0]
    assert observed(batch, 0, "last_get") == 1.0 and observed(batch, 0, "last_success") == 0.0


def test_an_action_that_does_not_exist_is_a_noop():
    batch = arena()
    for wrong in (-7, 19, 1 << 30):
        batch["action_act"][...] = wrong
        batch.step()
    assert batch["act_counts"][0, 0, 0].tolist() == [0, 3] and batch["still_steps"][0, 0] == 3


def test_statistics_of_an_agent():
    batch = arena()
    build(batch, "mine", MIDDLE - 1, MIDDLE)
    for act in ("get", "get", "forward", "east", "forward", "backward", "noop"):
        do(batch, act)
    counts = {act: batch["act_counts"][0, 0, i].tolist() for i, act in enumerate(ACTS)}
    assert (
        counts["get"] == [1, 1]
        and counts["forward"] == [1, 1]
        and counts["backward"] == [0, 1]
        and counts["noop"] == [0, 1]
    )
    assert batch["still_steps"][0].tolist() == [5, 7] and batch["item_counts"][
        0, 0, GOT
    ].tolist() == [1, 0, 0, 0, 0]


def test_the_numbers_an_agent_observes():
    batch = arena(max_steps=10)
    build(batch, "generator", MIDDLE - 1, MIDDLE, stock=2)
    batch["held"][0, 0] = 5, 10, 0, 1, 30
    do(batch, "put")
    assert [observed(batch, 0, f"held_{n}") for n in GAME.rewards] == pytest.approx(
        [0.8, 2.0, 0.0, 0.2, 1.0]
    )
    on = {
        n
        for n, i in NAMES.items()
        if n.startswith(("faced", "facing", "last")) and batch["observation"][0, 0, i] == 1.0
    }
    assert on == {"facing_north", "faced_generator", "faced_busy", "last_put", "last_success"}
    assert observed(batch, 0, "faced_stock") == pytest.approx(0.4) and observed(
        batch, 0, "episode_share"
    ) == pytest.approx(0.1)
    stand(batch, 1, MIDDLE, MIDDLE + 1)
    do(batch, "east")
    assert observed(batch, 0, "faced_agent") == 1.0 and observed(batch, 0, "faced_generator") == 0.0
    batch["frozen_until"][0, 1] = 9
    do(batch)
    assert observed(batch, 0, "faced_frozen_agent") == 1.0


# -- the failures to make impossible ---------------------------------------------------------------


def test_reward_rates_overwritten_on_the_way_into_the_simulator_are_caught(monkeypatch):
    """The original's config said ore 0.1 and battery 0.8; the simulator held 0."""
    original = Batch.set_params

    def with_group_defaults(self, values, envs=slice(None)):
        original(self, {**values, "reward.ore": 0.0, "reward.batteries": 0.0}, envs)

    Batch(GAME, 2, overrides=SMALL).check_received()
    healthy = Batch(GAME, 2, overrides=SMALL).fingerprint()
    monkeypatch.setattr(Batch, "set_params", with_group_defaults)
    batch = Batch(GAME, 2, overrides=SMALL)
    with pytest.raises(
        LudusError,
        match=r"reward\.ore is 0\.0 instead of 0\.1; reward\.batteries is 0\.0 instead of 0\.8",
    ):
        batch.check_received()
    assert batch.received()["rewards"]["batteries"] == 0.0 and batch.fingerprint() != healthy


def test_training_does_not_start_on_overwritten_rewards(monkeypatch, tmp_path):
    """Between the config and the simulator, as in the original; the run does not come into
    being."""
    original = Batch.set_params

    def with_group_defaults(self, values, envs=slice(None)):
        original(self, {**values, "reward.batteries": 0.0}, envs)

    config = load_recipe("arena_small")
    config.envs, config.train.threads, config.learner.minibatches = 2, 1, 1
    monkeypatch.setattr(Batch, "set_params", with_group_defaults)
    with pytest.raises(
        LudusError,
        match=r"does not hold what was asked for: reward\.batteries is 0\.0 instead of 0\.15",
    ):
        ludus.train(config, run=tmp_path / "run", quiet=True)
    assert not list(tmp_path.iterdir())


def test_a_staggered_start_starves_no_first_episode():
    """The original cut first episodes anywhere from step 1 on, where nothing could be earned
    yet."""
    batch = Batch(GAME, 64, overrides=SMALL, stagger=True)
    lengths = batch["first_length"]
    assert lengths.min() >= 250 and lengths.max() <= 1000 and np.ptp(lengths) > 600
    assert lengths.min() > timing.first_heart(
        GAME.resolve(dict(start_cooling=1, altar_batteries=3)).params
    )
    batch["step"][...] = lengths - 1
    batch.step()
    assert (
        batch["truncated"].all()
        and not batch["terminated"].any()
        and batch.read_statistics()["agent"]["episodes"] == 0
    )
    with pytest.raises(
        LudusError, match=r"stagger_least=40 .*before a heart.*at step 89: use at least 89"
    ):
        GAME.resolve(dict(stagger_least=40, start_cooling=1))
    assert GAME.resolve(dict(stagger_least=40))


@pytest.mark.parametrize(
    ("preset", "overrides", "steps"),
    [
        ("easy_shaped", {}, dict(ore=1, batteries=4, armor=None, lasers=None, hearts=7)),
        ("combat", {}, dict(ore=1, batteries=4, armor=106, lasers=106, hearts=109)),
        (
            "default_after_rewrite",
            {},
            dict(ore=None, batteries=None, armor=None, lasers=None, hearts=109),
        ),
        ("navigation", {}, dict(ore=None, batteries=None, armor=None, lasers=None, hearts=1)),
        ("gains", {}, dict(ore=1, batteries=4, armor=None, lasers=None, hearts=7)),
        (
            "easy_shaped",
            dict(start_cooling=1),
            dict(ore=50, batteries=77, armor=None, lasers=None, hearts=89),
        ),
        (
            "basic",
            dict(start_cooling=1),
            dict(ore=50, batteries=77, armor=None, lasers=None, hearts=189),
        ),
    ],
)
def test_the_scripted_chain_earns_what_can_be_earned_as_early_as_arithmetic_says(
    preset, overrides, steps
):
    assert earliest_rewards(overrides, preset) == steps
    assert timing.first_heart(GAME.resolve(overrides, preset).params) == steps["hearts"]


def test_presets_hold_the_numbers_of_their_stories():
    easy, rewritten = (
        GAME.resolve(preset="easy_shaped"),
        GAME.resolve(preset="default_after_rewrite"),
    )
    names = (
        "mines",
        "generators",
        "altars",
        "blocks",
        "walls",
        "laseries",
        "armories",
        "altar_batteries",
        "attack_cost",
    )
    assert [easy.params[n] for n in names] == [10, 5, 5, 20, 20, 0, 0, 1, 100]
    assert [rewritten.params[n] for n in names] == [10, 5, 5, 0, 10, 1, 1, 3, 1]
    assert list(easy.weights.values()) == [0.1, 0.8, 0.5, 0.5, 1.0] and list(
        rewritten.weights.values()
    ) == [0, 0, 0, 0, 1]
    caps = [
        easy.params[f"{n}_cap"] * w
        for n, w in zip(("ore", "battery", "armor", "laser"), easy.weights.values(), strict=False)
    ]
    assert caps == pytest.approx([1.0] * 4)
    assert GAME.resolve(preset="basic").params["altar_batteries"] == 3
    assert [
        easy.params[f"{n}_cooldown"] for n in ("mine", "generator", "altar", "armory", "lasery")
    ] == [50, 25, 10, 10, 10]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (dict(population=0), "population=0.*at least 1"),
        (dict(rooms=3), "3x3 rooms of 25x25.*side of 87.*side=62.*use side=87"),
        (dict(side=200), "side=200.*at most 128"),
        (dict(walls=600), "625 cells but 6 agents.*600 walls need 646"),
        (dict(mines=20), "hold 120 converters but.*converters=96: use converters=120"),
        (dict(groups=30), "groups=30.*population of 24"),
        (dict(blokcs=3), "no size, parameter or reward 'blokcs': did you mean 'blocks'"),
        ({"reward.battery": 0.8}, "did you mean 'reward.batteries'"),
        (dict(group_share=1.5), "group_share=1.5 is outside 0.0 to 1.0"),
        (dict(altar_batteries=0), "altar_batteries=0 is outside 1 to 50"),
        (dict(altar_batteries=1.5), "altar_batteries=1.5 must be a whole number"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_with_both_numbers(overrides, message):
    with pytest.raises(LudusError, match=message):
        GAME.resolve(overrides)


# -- bots ------------------------------------------------------------------------------------------


def play(bots, num_envs=6, **options):
    """Mean statistics of an episode in which agents are handed to these bots in turn."""
    batch = Batch(GAME, num_envs, seed=11, **options)
    for agent in range(batch.layout.num_agents):
        batch["controller_next"][:, agent] = batch.controller_number(
            "agent", bots[agent % len(bots)]
        )
    batch.reset()
    for _ in range(1000):
        batch.step()
    return batch


def test_gatherers_gather_and_random_does_not():
    """benchmarks/arena_bots.py has the exact numbers; here looser ones of a smaller sample."""
    assert 16 < play(["gatherer"])["goal_hearts"].mean() < 24
    assert play(["random"])["goal_hearts"].mean() < 0.3
    assert not play(["still"], num_envs=1)["goal_hearts"].any()
    assert play(["gatherer"], preset="basic")["goal_hearts"].mean() > 4


def test_raiders_rob_gatherers():
    batch = play(["gatherer", "raider"], preset="combat")
    attacks = batch["act_counts"][:, :, ACTS.index("attack_near_left") :, 1].sum((0, 2))
    assert attacks[1::2].sum() > 50 and attacks[::2].sum() == 0
    hearts = batch["held"][..., HEART].mean(0)
    assert hearts[1::2].mean() > 1.1 * hearts[::2].mean()
