"""Putting Qiju's files where hosts find them, and taking them away again.

    plan        steps as data, and the one place that carries them out
    skillfiles  skills;  hookplan, hookfile, jsonedit  hooks;  exclude  Git's exclude file;  leftovers  the predecessor's
    setup       what `init` does;  refresh  what `update` does;  removal  what `uninstall` does;  purge  the store itself
    run         these three against a store, with their reports
    scan        projects on the disk;  reminder  what a hook says

Everything reads the host table (`qiju.hosts`), and every written file is a row of the manifest (`qiju.registry`).
"""
