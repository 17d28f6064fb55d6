"""The paper's experiments and the comparison of methods: grids of runs, kept on disk as they are done.

Each study is a folder: what is run (`cells`), how it is drawn (`figures`) and what is written (`output`). They share
`tasks`, which runs cells and keeps them, `tables`, and `decouple_each`, which fits many problems at once. May import
`plots` and the front door, `decouple`, and what lies below.
"""
