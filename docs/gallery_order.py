"""The order of the examples in the gallery; Sphinx-Gallery imports it by name."""

STORY = ("trig", "monotone", "robot_arm", "noisy_data", "surrogate", "duffing", "network", "own_basis")


class Order:
    """A key for file names; examples that are not named come last."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        stem = name.removesuffix(".py")
        return (STORY.index(stem) if stem in STORY else len(STORY), stem)
