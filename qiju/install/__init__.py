"""Putting Qiju's files where hosts find them, and taking them away again.

    plan                           steps as data, and the one place that carries them out
    skillfiles, exclude            skills; the line in Git's exclude file
    hookplan, hookfile, jsonedit   hooks, in settings files that belong to somebody else
    leftovers                      what the predecessor left behind
    setup, refresh, removal        what `init`, `update` and `uninstall` do
    run                            these three against a store, with their reports
    purge, scan, reminder          deleting the store; projects on the disk; what a hook says

Everything reads the host table (`qiju.hosts`), and every written file is a row of the manifest (`qiju.registry`).
"""
