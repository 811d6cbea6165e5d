"""Who plays and how well: opponents, players, evaluation, replays."""
