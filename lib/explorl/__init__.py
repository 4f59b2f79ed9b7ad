"""Rewarding Exploration: the rewards, rollouts and advantages of four papers on exploration in RL for LLM reasoning.

The rooms, in the order in which they may import one another:

``text`` → ``tasks`` → ``encoders`` → ``papers`` → ``train`` → ``report`` → ``run``
"""

__version__ = "0.1.0"
