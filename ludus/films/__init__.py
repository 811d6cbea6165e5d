"""Episodes as frames for the page: replayed, recorded or live, with the views of games."""
