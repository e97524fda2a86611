"""One file a network; the file's name is the network's, and no other list exists."""
