"""Questions about queues, answered without changing anything and free of any user interface."""
