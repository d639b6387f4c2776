"""The server: a page, a JSON API and MCP tools, all thin faces of one opened system."""
