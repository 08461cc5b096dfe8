"""Where the work of a run takes place: today in one event loop of this process."""
