"""One module per command; each has `main(arguments)` and returns the exit status."""

# command → (module with a `main(arguments)`, what it does)
COMMANDS = {
    "train": ("ludus.commands.train", "train a recipe, with a live dashboard"),
    "resume": ("ludus.commands.resume", "go on where a run stopped, bit for bit"),
    "fork": ("ludus.commands.fork", "a new run from another's checkpoint, with changes"),
    "eval": ("ludus.commands.eval", "how well a run plays, with intervals"),
    "view": ("ludus.commands.view", "runs, replays and games in the browser"),
    "play": ("ludus.commands.play", "play against a run, or bots, in the browser"),
    "league": (
        "ludus.commands.league",
        "who is how strong in a run: ratings, payoff matrix, forgetting, exploitability",
    ),
    "export": (
        "ludus.commands.export",
        "a trained policy as an ONNX file, for an engine without Python",
    ),
    "recipes": ("ludus.commands.recipes", "what recipes there are"),
    "games": ("ludus.commands.games", "what games there are; one in detail"),
    "games diff": (
        "ludus.commands.games_diff",
        "how two games, presets or runs differ, in plain words",
    ),
    "bench train": (
        "ludus.commands.bench_train",
        "how fast a recipe trains, beside a bare torch loop and other libraries",
    ),
    "bench env": ("ludus.commands.bench_env", "how fast a game simulates"),
    "doctor check": (
        "ludus.commands.doctor_check",
        "can this recipe work? audits its reward and tries it out",
    ),
    "doctor run": (
        "ludus.commands.doctor_run",
        "is this run healthy? reads our logs and other libraries'",
    ),
    "doctor compare": (
        "ludus.commands.doctor_compare",
        "what differs between two runs, where their curves part, what is suspect",
    ),
    "doctor bisect": (
        "ludus.commands.doctor_bisect",
        "which difference between two runs makes one fail? found by running subsets",
    ),
    "doctor selftest": (
        "ludus.commands.doctor_selftest",
        "is the learning code sound? known answers, part by part, in about a minute",
    ),
    "doctor reference": (
        "ludus.commands.doctor_reference",
        "a recipe's usual course, from finished runs",
    ),
    "completion": ("ludus.commands.completion", "completion for bash or zsh"),
}
