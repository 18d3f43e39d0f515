"""HTTP/1.1 over asyncio: messages, the protocol, TLS."""
