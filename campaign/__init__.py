"""Thousands of small disasters: kills, malformed inputs, flipped bits, full disks. `python -m campaign --help`.

calls      the commands that are tried, each with what it needs on disk
workshop   what a call finds and what it leaves when nothing goes wrong
forking    a process that has torch loaded and forks a child for every trial
child      what happens inside such a child, and what is done to it
trials     a trial by its name (part, seed, index), its scratch directory, its verdict
kills, inputs, flips, disk     the four parts
"""
