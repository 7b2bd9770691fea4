//! The embedded body: the channels as tools, an MCP server of its own. Messages leave as durable rows; it delivers none.
