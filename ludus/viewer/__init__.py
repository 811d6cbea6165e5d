"""The browser side: runs, replays, bots before training, training as it happens, and playing
yourself."""
