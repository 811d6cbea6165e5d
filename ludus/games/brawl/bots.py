"""Scripted fighters."""

from ludus.sim import phase


@phase(lanes="agents", writes=("action_up",))
def constant(env, agent, action_up):
    action_up[env, agent] = 0
