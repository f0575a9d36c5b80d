#!/usr/bin/env python3
"""Reads an API server's audit log: who held the lease when, and who has written what meanwhile. Each write must be in a term of
its writer, and the terms must be those that are expected.

Usage: check_leaders.py AUDIT_LOG --lease SECONDS --retry SECONDS NAME:END[@EPOCH]...
END of the term, in this order: `released` (after SIGTERM at EPOCH), `killed` (at EPOCH), `lost` (the API server was away).
Replicas are service accounts whose names are their identities in the lease. All times are the API server's.
"""
import argparse
import collections
import datetime
import json
import sys

arguments = argparse.ArgumentParser()
arguments.add_argument("log")
arguments.add_argument("--lease", type=float)
arguments.add_argument("--retry", type=float)
arguments.add_argument("terms", nargs="+")
args = arguments.parse_args()
Write = collections.namedtuple("Write", "who at done verb what name code body")
Term = collections.namedtuple("Term", "who begin renewed end released")


def time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def read(line):
    event = json.loads(line)
    ref, body = event.get("objectRef", {}), event.get("requestObject") or {}
    what = "/".join(filter(None, [ref.get("resource"), ref.get("subresource")]))
    return Write(
        event["user"]["username"].rpartition(":")[2],
        time(event["requestReceivedTimestamp"]), time(event["stageTimestamp"]), event["verb"],
        what, ref.get("name") or body.get("metadata", {}).get("name"), event["responseStatus"]["code"], body,
    )


failures = []


def fail(text):
    failures.append(text)
    print(f"  FAILED: {text}")


def terms_of(leases):
    """From the moment at which the lease was taken to the one at which it was given up, or taken by another one."""
    terms, who, begin, renewed = [], "", 0.0, 0.0
    for write in leases:
        holder = write.body["spec"].get("holderIdentity") or ""
        if holder not in ("", write.who):
            fail(f"{write.who} wrote the lease for {holder}")
        if holder != who:
            if who:
                terms.append(Term(who, begin, renewed, write.at, holder == ""))
            who, begin = holder, write.done
        renewed = write.at
    if who:
        terms.append(Term(who, begin, renewed, float("inf"), False))
    return terms


def seconds(time):
    return f"{time:.2f} s"


with open(args.log) as log:
    writes = sorted((read(line) for line in log if line.strip()), key=lambda write: write.done)
leases = [write for write in writes if write.what == "leases" and write.code < 300]
acts = [write for write in writes if write.what in ("pods", "websets", "websets/status", "events")]
terms = terms_of(leases)
expected = [term.partition(":")[::2] for term in args.terms]
if [term.who for term in terms] != [who for who, _ in expected]:
    fail(f"terms of {[term.who for term in terms]} in the lease")
    sys.exit(1)

for number, (term, (_, end)) in enumerate(zip(terms, expected)):
    end, _, epoch = end.partition("@")
    epoch = float(epoch or 0)
    following = terms[number + 1].begin if number + 1 < len(terms) else None
    own = [act for act in acts if act.who == term.who]
    outside = [act for act in own if act.at < term.begin or act.done > term.end]
    for act in outside:
        fail(f"{act.who} has written {act.what} {act.name} outside of its term")
    made = sum((act.verb, act.what, act.code) == ("create", "pods", 201) for act in own)
    line = f"  {term.who}: {len(own)} writes in its term of {seconds(term.end - term.begin)}, {made} pods made"
    if (end == "released") != term.released:
        fail(f"the term of {term.who} was {'' if term.released else 'not '}released")
    if end == "killed":
        if not own or any(act.at > epoch + 1 for act in own):
            fail(f"{term.who} has written nothing before it was killed, or something after it")
        takeover = following - epoch
        # The last renewal may be seen 2.2 retry periods late; one second for a busy machine.
        if takeover > args.lease + 2.2 * args.retry + 1 or following - term.renewed < args.lease:
            fail(f"taken over {seconds(takeover)} after the kill, {seconds(following - term.renewed)} after the last renewal")
        within = "within" if takeover <= args.lease + args.retry else "beyond"
        line += f"; killed, and taken over {seconds(takeover)} later, {within} lease duration + retry period"
    if end == "released" and epoch:
        late = [act for act in own if act.at > epoch]
        if not late:
            fail(f"{term.who} has written nothing after SIGTERM: it was not at work")
        if following and following - term.end > 2.2 * args.retry + 1:
            fail(f"the lease was free for {seconds(following - term.end)}")
        line += f"; {len(late)} writes after SIGTERM, the lease released {seconds(term.end - epoch)} after it"
        line += f" and taken {seconds(following - term.end)} later" if following else ""
    if end == "lost":
        line += f"; last renewed {seconds(following - term.renewed)} before the next term"
    print(line)
strangers = {act.who for act in acts} - {who for who, _ in expected}
if strangers:
    fail(f"writes of {strangers}")
order = [act.who for act in sorted(acts, key=lambda act: act.at)]
changes = sum(before != after for before, after in zip(order, order[1:]))
if changes != len(terms) - 1:
    fail(f"the writer changed {changes} times, and the leader {len(terms) - 1} times")
transitions = [write.body["spec"].get("leaseTransitions", 0) for write in leases]
if transitions != sorted(transitions) or max(transitions) != len(terms) - 1:
    fail(f"transitions of the lease: {sorted(set(transitions))} for {len(terms)} terms")
print(f"  {len(acts)} writes by {len(set(order))} replicas, {changes} changes of the writer, {len(terms) - 1} hand-overs, {len(leases)} writes of the lease")
sys.exit(bool(failures))
