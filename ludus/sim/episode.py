"""What the engine does around the rules in every step: the meaning of reset, terminated, truncated,
dead and idle.

A finished env shows its true final observation; the next row is a *reset row* that ignores its
action. In a reset row new parameters and new controllers take effect, and nowhere else. A row is
`valid` for an agent that was alive and not idle when it chose its action, outside reset rows;
everything else enters no loss, no normaliser and no count.
"""

from __future__ import annotations

from numpy import float32

from ludus.sim import random
from ludus.sim.game import phase

# values of `controller`: 0 is the learning policy, above are bots, -1 is the frozen policy in the
# slot of this env
FROZEN, STILL, RANDOM, FIRST_BOT = -1, 1, 2, 3
STREAM_CONTINUOUS, STREAM_BINARY, STREAM_CHOICE, STREAM_LINEUP = 9001, 9002, 9003, 9004


@phase(
    writes=(
        "resetting",
        "episode",
        "step",
        "key",
        "terminated",
        "truncated",
        "float_params",
        "int_params",
        "weights",
        "task",
        "episode_stage",
    ),
)
def begin_env(
    env,
    finished,
    resetting,
    episode,
    step,
    seed,
    env_id,
    key,
    terminated,
    truncated,
    float_params,
    float_params_next,
    int_params,
    int_params_next,
    weights,
    weights_next,
    task,
    task_next,
    current_stage,
    episode_stage,
    num_float_params,
    num_int_params,
    num_terms,
):
    resetting[env] = finished[env]
    if finished[env]:
        episode[env] += 1
        step[env] = 0
        task[env] = task_next[env]
        episode_stage[env] = current_stage[0]
        for i in range(num_float_params):
            float_params[env, i] = float_params_next[env, i]
        for i in range(num_int_params):
            int_params[env, i] = int_params_next[env, i]
        for i in range(num_terms):
            weights[env, i] = weights_next[env, i]
    else:
        step[env] += 1
    key[env] = random.key(seed[env], env_id[env], episode[env], step[env])
    terminated[env] = False
    truncated[env] = False


@phase(writes="lineup")
def draw_lineup(env, key, num_lineups, lineup_until, slot_open, lineup):
    """Who plays in the episode that starts: a draw by the mix, without frozen opponents while their
    slot is closed.

    Row 0 of `lineup_until` holds the running shares of the lineups without frozen opponents, row 1
    those of all.
    """
    lineup[env] = -1
    if num_lineups[0] > 0:
        row = 1 if slot_open[env] else 0
        drawn = random.uniform(key[env], STREAM_LINEUP, 0)
        chosen = 0
        while chosen < num_lineups[0] - 1 and drawn >= lineup_until[row, chosen]:
            chosen += 1
        lineup[env] = chosen


@phase(
    lanes="agents",
    writes=(
        "alive",
        "idle",
        "outcome",
        "controller",
        "was_alive",
        "valid",
        "episode_return",
        "episode_length",
        "terms",
        "term_totals",
        "goals",
        "action_mask",
    ),
)
def begin_agent(
    env,
    agent,
    resetting,
    alive,
    idle,
    outcome,
    lineup,
    lineup_controller,
    controller,
    controller_next,
    was_alive,
    valid,
    episode_return,
    episode_length,
    terms,
    term_totals,
    goals,
    action_mask,
    num_terms,
    num_goals,
    num_masked,
):
    if resetting[env]:
        alive[env, agent] = True
        idle[env, agent] = False
        outcome[env, agent] = 0
        if lineup[env] >= 0:
            controller[env, agent] = lineup_controller[lineup[env], agent]
        else:
            controller[env, agent] = controller_next[env, agent]
        was_alive[env, agent] = False
        valid[env, agent] = False
        episode_return[env, agent] = 0.0
        episode_length[env, agent] = 0
        for i in range(num_terms):
            term_totals[env, agent, i] = 0.0
        for i in range(num_goals):
            goals[env, agent, i] = 0.0
        for i in range(num_masked):
            action_mask[env, agent, i] = True
    else:
        was_alive[env, agent] = alive[env, agent]
        valid[env, agent] = alive[env, agent] and not idle[env, agent]
    for i in range(num_terms):
        terms[env, agent, i] = 0.0


@phase(lanes="agents", writes=("continuous", "binary", "choices"))
def still(env, agent, continuous, binary, choices, num_continuous, num_binary, num_choices):
    """The bot that does nothing: zeros, keys up, the first option."""
    for i in range(num_continuous):
        continuous[env, agent, i] = 0.0
    for i in range(num_binary):
        binary[env, agent, i] = 0
    for i in range(num_choices):
        choices[env, agent, i] = 0


@phase(lanes="agents", writes=("continuous", "binary", "choices"))
def random_bot(
    env,
    agent,
    key,
    continuous,
    binary,
    choices,
    action_mask,
    binary_mask_at,
    choice_mask_at,
    choice_options,
    num_continuous,
    num_binary,
    num_choices,
):
    """The bot that acts at random, among what its mask allows."""
    k = key[env]
    for i in range(num_continuous):
        continuous[env, agent, i] = random.between(k, STREAM_CONTINUOUS + 16 * i, agent, -1.0, 1.0)
    for i in range(num_binary):
        allowed = binary_mask_at[i] < 0 or action_mask[env, agent, binary_mask_at[i]]
        binary[env, agent, i] = (
            random.integer(k, STREAM_BINARY + 16 * i, agent, 2) if allowed else 0
        )
    for i in range(num_choices):
        at = choice_mask_at[i]
        if at < 0:
            choices[env, agent, i] = random.integer(
                k, STREAM_CHOICE + 16 * i, agent, choice_options[i]
            )
        else:
            allowed_count = 0
            for option in range(choice_options[i]):
                if action_mask[env, agent, at + option]:
                    allowed_count += 1
            skip = random.integer(k, STREAM_CHOICE + 16 * i, agent, allowed_count)
            for option in range(choice_options[i]):
                if action_mask[env, agent, at + option]:
                    if skip == 0:
                        choices[env, agent, i] = option
                    skip -= 1


@phase(writes=("truncated", "finished", "counted", "first_length"))
def end_env(
    env,
    resetting,
    terminated,
    truncated,
    finished,
    counted,
    step,
    first_length,
    current_stage,
    episode_stage,
):
    """Ends the env's episode; the first one earlier where starts are staggered. That one counts in
    no statistic, and neither does an episode that began in another stage of the curriculum: against
    other opponents, with other parameters."""
    over = (terminated[env] or truncated[env]) and not resetting[env]
    cut = (
        not over and not resetting[env] and first_length[env] > 0 and step[env] >= first_length[env]
    )
    if cut:
        truncated[env] = True
    if over or cut:
        first_length[env] = 0
    finished[env] = over or cut
    counted[env] = over and episode_stage[env] == current_stage[0]


@phase(
    lanes="agents",
    writes=(
        "reward",
        "agent_terminated",
        "agent_truncated",
        "episode_return",
        "episode_length",
        "term_totals",
    ),
)
def end_agent(
    env,
    agent,
    resetting,
    terminated,
    truncated,
    alive,
    was_alive,
    terms,
    term_applies,
    term_totals,
    weights,
    reward,
    agent_terminated,
    agent_truncated,
    episode_return,
    episode_length,
    num_terms,
):
    earned = 0.0
    if was_alive[env, agent]:
        for i in range(num_terms):
            if term_applies[agent, i]:
                earned += weights[env, i] * terms[env, agent, i]
                term_totals[env, agent, i] += terms[env, agent, i]
        episode_return[env, agent] += earned
        episode_length[env, agent] += 1
    reward[env, agent] = earned
    ends = was_alive[env, agent] and (terminated[env] or not alive[env, agent])
    agent_terminated[env, agent] = ends
    agent_truncated[env, agent] = was_alive[env, agent] and truncated[env] and not ends


@phase(lanes="agents", writes="statistics")
def count_agent(
    env,
    agent,
    counted,
    lineup,
    controller,
    outcome,
    truncated,
    terminated,
    episode_return,
    episode_length,
    term_totals,
    goals,
    statistics,
    num_terms,
    num_goals,
):
    """Adds a finished episode to the statistics. The columns are `layout.STATISTICS`, then terms,
    then goals.

    Where lineups are drawn, only learning agents count: what bots and frozen opponents earn is not
    the policy's doing.
    """
    if counted[env] and (lineup[env] < 0 or controller[env, agent] == 0):
        total = episode_return[env, agent]
        first = statistics[env, agent, 0] == 0.0
        statistics[env, agent, 0] += 1.0
        statistics[env, agent, 1] += total
        statistics[env, agent, 2] += total * total
        if first or total < statistics[env, agent, 3]:
            statistics[env, agent, 3] = total
        if first or total > statistics[env, agent, 4]:
            statistics[env, agent, 4] = total
        statistics[env, agent, 5] += float32(episode_length[env, agent])
        if outcome[env, agent] > 0:
            statistics[env, agent, 6] += 1.0
        elif outcome[env, agent] < 0:
            statistics[env, agent, 7] += 1.0
        elif truncated[env] and not terminated[env]:
            statistics[env, agent, 9] += 1.0
        else:
            statistics[env, agent, 8] += 1.0
        for i in range(num_terms):
            statistics[env, agent, 10 + i] += term_totals[env, agent, i]
        for i in range(num_goals):
            statistics[env, agent, 10 + num_terms + i] += goals[env, agent, i]


@phase(writes="lineup_results")
def count_lineup(env, agents, counted, lineup, controller, outcome, lineup_results):
    """Adds a finished episode to its lineup: episodes, and the shares of its learning agents that
    won, drew and lost."""
    if counted[env] and lineup[env] >= 0:
        learners, won, lost = 0, 0, 0
        for agent in range(agents):
            if controller[env, agent] == 0:
                learners += 1
                if outcome[env, agent] > 0:
                    won += 1
                elif outcome[env, agent] < 0:
                    lost += 1
        if learners > 0:
            at = lineup[env]
            lineup_results[env, at, 0] += 1.0
            lineup_results[env, at, 1] += float32(won) / float32(learners)
            lineup_results[env, at, 2] += float32(learners - won - lost) / float32(learners)
            lineup_results[env, at, 3] += float32(lost) / float32(learners)


@phase(writes="task_results")
def count_task(
    env, agents, counted, task, task_next, task_goal, task_scored, controller, goals, task_results
):
    """Adds a finished episode to its task: episodes, and the mean goal of its learning agents. Row
    1 is the task that comes next (which has begun where episodes are short), row 0 the one before
    it."""
    if counted[env]:
        learners, total = 0, 0.0
        for agent in range(agents):
            if task_scored[agent] and controller[env, agent] == 0:
                learners += 1
                total += goals[env, agent, task_goal[0]]
        if learners > 0:
            row = 1 if task[env] == task_next[env] else 0
            task_results[env, row, 0] += 1.0
            task_results[env, row, 1] += total / float32(learners)


@phase(writes="valid_steps")
def count_env(env, agents, valid, valid_steps):
    count = 0
    for agent in range(agents):
        if valid[env, agent]:
            count += 1
    valid_steps[env] += count
