"""The one path of every op call: bind, keys, promote, view or kernel, history, record."""
