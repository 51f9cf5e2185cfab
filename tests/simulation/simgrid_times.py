"""Asks SimGrid when flows end; run by the Python that has it.

Standard input: JSON of links (bytes per second), latencies of some of them (seconds) and flows (links on the
way, bytes, start, and the most that one may have). Standard output: the end of each.
"""

import json
import sys

from simgrid import Actor, Engine, LinkInRoute, Mailbox, NetZone, this_actor

asked = json.load(sys.stdin)
engine = Engine(
    [
        "simgrid", "--log=root.thresh:critical", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0",
        "--cfg=network/crosstraffic:0", "--cfg=network/weight-S:0", "--cfg=network/bandwidth-factor:1",
        "--cfg=network/latency-factor:1", "--cfg=maxmin/precision:1e-9",
        "--cfg=contexts/factory:thread",
    ]
)  # fmt: skip
zone = NetZone.create_full_zone("all")
latencies = asked.get("latencies", {})
links = {
    name: zone.create_link(name, rate).set_latency(latencies.get(name, 0)).seal()
    for name, rate in asked["links"].items()
}
ends = [0.0] * len(asked["flows"])


def send(number, flow):
    this_actor.sleep_until(flow["start"])
    comm = Mailbox.by_name(str(number)).put_init(number, int(flow["bytes"]))
    if flow["limit"] is not None:
        comm.set_rate(flow["limit"])
    comm.start()
    comm.wait()


def receive(number):
    Mailbox.by_name(str(number)).get()
    ends[number] = Engine.clock


pairs = []
for number, flow in enumerate(asked["flows"]):
    a, b = (zone.create_host(f"{side}{number}", 1e9).seal() for side in "ab")
    zone.add_route(
        a.netpoint, b.netpoint, None, None, [LinkInRoute(links[name]) for name in flow["links"]], True
    )
    pairs.append((a, b))
zone.seal()
for number, (flow, (a, b)) in enumerate(zip(asked["flows"], pairs, strict=True)):
    Actor.create(f"send{number}", a, send, number, flow)
    Actor.create(f"receive{number}", b, receive, number)
engine.run()
json.dump(ends, sys.stdout)
