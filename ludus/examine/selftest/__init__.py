"""Known-answer checks of the installed learning code: they tell a fault of the algorithm from a
fault of the game."""
