"""The paper's two experiments: grids of runs, their figures and table, and a verdict on every claim."""
