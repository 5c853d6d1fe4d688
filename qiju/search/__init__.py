"""Search: exact, indexed, ranked, paged by snapshot. `engine.run` answers a query, `pages.page` cuts it into pages."""
