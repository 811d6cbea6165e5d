"""One file per way in which a reward misleads. Each function takes the ledger and yields findings;
its docstring explains."""
