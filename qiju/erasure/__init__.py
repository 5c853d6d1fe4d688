"""Erasure: a literal, or whole records, taken out of everything Qiju holds, and the proof that it is gone.

The layers: `secret` (a literal in all its spellings), `rewriting` (JSON values and records without it), `candidates`
(which rows hold it, found without any lock), `rows` (all of them changed in one transaction that leaves a pending
mark), `indexes` (FTS5 segments and the WAL), `files` with `texts`, `databases` and `columnar` (every file below the
home and the `.qiju` folders), `proof` (nothing left, byte by byte), `operation` and `deletion` (the order of it all),
`rescan` (today's rules over what is stored) and `audit`.

A killed run leaves the pending mark; the same call again cleans and proves, whatever is left to do.
"""
