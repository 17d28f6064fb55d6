"""Colours, markers and sizes that all pictures share: no picture tells things apart by colour alone."""

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#999999"
GREEN, RED, PURPLE, SKY, BLACK = "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"
"""Of Okabe and Ito's palette, which colour-blind readers can tell apart."""
QUIET = "#595959"
"""For second thoughts in small print: dark enough to be read."""
LINES = (BLUE, RED, GREEN, PURPLE, SKY, BLACK)
MARKERS = "osD^vP"
"""For lines that colour alone should not tell apart."""
PANEL = (3.4, 3.0)
"""Width and height of one panel, in inches."""
ALONE = (4.6, 3.5)
"""Width and height of a picture of one panel, in inches."""
COLUMNS = 4
"""Panels in a row, at most."""
MARGIN = 0.12
"""How far beyond the training range a curve is drawn, as a share of that range."""
