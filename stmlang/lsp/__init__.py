"""What an editor asks of a text: functions of a document and an offset, over the same tokens, tree, diagnostics and typed scan
that compile it. Only `server.py` and `protocol.py` know the Language Server Protocol."""
