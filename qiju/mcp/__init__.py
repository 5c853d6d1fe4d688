"""The read-only MCP server: four tools over the same search and pages that the command line has.

`tools` says what is offered, `answers` gives the answers and knows no MCP, `server` speaks the protocol with the
official SDK, which is imported only there.
"""
