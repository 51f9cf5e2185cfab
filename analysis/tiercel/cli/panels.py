"""The headings under which `tiercel --help` lists commands: what people want."""

EVALUATE = "Measure a machine"
UNDERSTAND = "Read results and traces"
IMPROVE = "Place, cache and share"
HAND_ON = "Publish and rebuild"
