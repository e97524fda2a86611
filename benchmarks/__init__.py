"""FedLoom's speed against its peers and against its own limits; nothing here is installed."""
