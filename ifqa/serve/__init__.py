"""The server: a page, a JSON API and MCP tools over one opened system."""
