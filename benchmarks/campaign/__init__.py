"""Evidence: a resumable queue of training runs, one result file per experiment and seed."""
