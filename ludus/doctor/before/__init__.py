"""Can this recipe work? Judges what was tried out before training: evidence in, findings out.
`ludus.examine` makes the evidence."""
