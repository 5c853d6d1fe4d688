"""Browse the store with Datasette, read-only, in a process of its own.

Datasette reads with the standard library's SQLite, the rest of Qiju with apsw's; two SQLite libraries on one file in
one process break its locks. So `launch` (no Datasette) starts `serve` as a child (no apsw), and a pipe between them
says which port was taken and ends the child when the parent is gone, however it went.

    launch.py      start, watch and end the child
    serve.py       the child: a Datasette with one read-only database, on loopback
    pages.py       its plugin: connection, headers, cells, what the templates show
    facets.py      counting tags at speed
    rendering.py   Markdown of records as HTML in which nothing runs
    metadata.json  titles, facets, hidden tables, canned queries
"""
