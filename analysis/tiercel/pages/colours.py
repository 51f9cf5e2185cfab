"""The colours by which figures tell things apart, here and in reports."""

#: M. Okabe and K. Ito, "Color Universal Design" (2008), without black and yellow, which need a background;
#: orange and sky blue darker than theirs, for 3:1 on white (WCAG 2.1, 1.4.11).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b87a00", "#2e93cc", "#8c6d31", "#7f7f7f")
