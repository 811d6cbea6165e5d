"""The bare loop that training is measured against."""

from ludus.bench.train import bound, measure
from ludus.config import resolve
from ludus.recipes import load_recipe


def test_the_bound_learns_from_as_many_rows_as_the_trainer_did():
    """Agents that bots play are not learned from: a bound that did would be out of reach."""
    config = load_recipe("pursuit")
    config.envs, config.learner.minibatches, config.train.threads = 8, 1, 1
    config.league.mix = "bot:flee 100"
    trainer = measure(resolve(config), 0.1)["trainer"]
    found = bound(trainer, 0.1)
    learned = trainer.algorithm.learned_steps()
    everyone = (
        sum(role.rows for role in trainer.algorithm.roles.values())
        * trainer.algorithm.rollout_steps
    )
    assert found.agent_steps == learned < everyone
