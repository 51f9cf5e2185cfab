"""The headings under which `tiercel --help` lists commands: what people want."""

EVALUATE = "Evaluate a machine"
UNDERSTAND = "Understand results, programs and traces"
IMPROVE = "Improve: place, cache and share"
HAND_ON = "Hand on"
